"""Whose signatures count: keys that this user has named, as ssh knows hosts, and those of her own desks."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from targetdp._core import check
from targetdp._files import plain_name, read_toml, toml_key, toml_value, write_whole
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._elsewhere import known_desks
from targetdp.release._trust._keys import SigningKey, config_folder, fingerprint_of

_HEADER = "# Whose releases this user believes: names, and public keys as `targetdp key` prints them.\n"


def signers_path() -> Path:
    """Where the user's named keys are."""
    return config_folder() / "signers.toml"


def named_signers() -> dict[str, str]:
    """Public keys by the names that the user has given them; a ValueError if the file is damaged."""
    path = signers_path()
    if not path.exists():
        return {}
    found: dict[str, Any] = read_toml(path, "list of signers")
    for name, key in found.items():
        try:
            plain_name(name)
            fingerprint_of(key)
        except (ValueError, TypeError) as error:
            raise ValueError(f"list of signers {path}: {error}; correct the line, or remove it") from error
    return found


def trust(name: str, key: str, *, replace: bool = False) -> None:
    """Name a key, so that what it signs is believed.

    Args:
        name: Whose key it is.
        key: The public key, as its owner has told it by another way than a release.
        replace: Whether another key may have had the name before.

    Raises:
        ValueError: The key is none, or the name is another key's.

    Example:
        >>> trust("operator", "not a key")
        Traceback (most recent call last):
        ...
        ValueError: key = 'not a key' is not an Ed25519 public key: give its 32 bytes in base64
    """
    plain_name(name)
    mark = fingerprint_of(key, "key")
    known = named_signers()
    if known.get(name, key) != key and not replace:
        raise ValueError(
            f"{name} has another key, {fingerprint_of(known[name])}: has it told you of the new one, "
            f"{mark}, by another way than a release? Then give --replace"
        )
    _write(known | {name: key})


def forget(name: str) -> None:
    """Take a name out of the list; a ValueError if it is not there."""
    known = named_signers()
    check.choice("name", name, known)
    _write({one: key for one, key in known.items() if one != name})


def known_signers() -> dict[str, str]:
    """All keys whose signatures count, by name: those that were named, and those of the user's own desks."""
    _must_be_the_users()
    own = {f"your desk {path}": key for path, key in _of_own_desks()}
    return named_signers() | own


def _must_be_the_users() -> None:
    """A ValueError if others could write down whom this user believes."""
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(config_folder().stat().st_mode)
        if os.name == "posix" and mode & 0o022:
            raise ValueError(
                f"{config_folder()} has permission {mode:04o}, so others can write whose releases you "
                f"believe: look at signers.toml and desks.jsonl in it, then run chmod 700 '{config_folder()}'"
            )


def earlier_key_of_own_desk(desk: str, key: str, release: str, sha256: str) -> str | None:
    """Which of the user's own desks has published a release with a key that it has replaced since, if any.

    The rows of people who agreed count as one. An earlier key may be in somebody else's hands: it counts for
    what the ledger has on record, and the ledger counts where the desk's present key signs it.
    """
    for other, path in known_desks():
        with suppress(OSError, ValueError):
            if other == desk:
                present = _key_of(path)
                with Ledger(path / "ledger.db") as ledger:
                    reading, history = ledger.reading, ledger.history
                    row = history.releases.get(release) or history.agreements.get(release)
                if row is None or row.sha256 != sha256 or reading.key != present:
                    continue
                if key in set(reading.keys_since(row.entry)) - {one.lost for one in reading.signers}:
                    return f"your desk {path}, by an earlier key"
    return None


def _of_own_desks() -> Iterator[tuple[Path, str]]:
    for _, path in known_desks():
        with suppress(OSError, ValueError):  # it may be gone, or on a disk that is not there
            yield path, _key_of(path)


def _key_of(desk: Path) -> str:
    return SigningKey.open(desk / "keys" / "signing.pem", create=False).public


def _write(known: dict[str, str]) -> None:
    lines = (f"{toml_key(name)} = {toml_value(key)}\n" for name, key in known.items())
    config_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(signers_path(), _HEADER + "".join(lines), private=True)
