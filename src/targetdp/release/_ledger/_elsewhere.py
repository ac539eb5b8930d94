"""What is known of a ledger outside its own folder, so that an older copy, or a second ledger, is found.

The user's configuration has a list of her desks, and the newest entry that was seen of each one's ledger.
"""

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from targetdp._core import Words
from targetdp._files import append_line, write_whole
from targetdp.release._ids import Spelling
from targetdp.release._ledger._agreements import AgreementRow
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._entries import Head
from targetdp.release._ledger._people import Sums
from targetdp.release._policy import read_policy
from targetdp.release._trust._keys import config_folder, secret_key

_ONE = np.ones(1)
_NOWHERE = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}


class DeskElsewhere(NamedTuple):
    """Another desk of the user: how many people of a table its releases know, or why nobody can tell."""

    path: Path
    known: int
    problem: str | None = None
    gone: bool = False


# The user's desks


def known_desks() -> Iterator[tuple[str, Path]]:
    """The desks that the user's list names: id and folder."""
    with suppress(OSError):
        told = (config_folder() / "desks.jsonl").read_text(encoding="utf-8", errors="replace")
        for line in told.splitlines():  # of one that is damaged, whatever can be read
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                record = json.loads(line)
                if b"\0" not in os.fsencode(path := str(record["path"])):  # otherwise it names nothing
                    yield str(record["id"]), Path(path)


def remember_desk(own: str, path: Path) -> None:
    """Name a desk in the user's list."""
    with suppress(OSError):  # a list that cannot be written helps nobody, and stops nobody
        config_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        append_line(config_folder() / "desks.jsonl", json.dumps({"id": own, "path": str(path)}))


def desks_elsewhere(own: str) -> list[Path]:
    """The folders of the user's other desks, each once."""
    return list(dict.fromkeys(path for other, path in known_desks() if other != own))


def shared_tag_key() -> bytes:
    """The key for tags that the user's desks have in common: that of the first of them."""
    own = config_folder() / "tags.key"
    for path in desks_elsewhere("") if not own.exists() else ():
        with suppress(OSError, ValueError):  # it may come from another machine
            write_whole(own, f"{secret_key(path / 'keys' / own.name).hex()}\n", private=True, replace=False)
            break
    return secret_key(own, create=True)


def known_elsewhere(own: str, tag_key: bytes, spelling: Spelling, people: Words) -> Iterator[DeskElsewhere]:
    """Which other desks of the user have released something about some people, told by their tags.

    Desks of one user have the same key for tags, so that they can be compared.
    """
    for path in desks_elsewhere(own):
        try:
            if not _is_there(path):
                remedy = f"if you removed it, take its line out of {config_folder() / 'desks.jsonl'}"
                yield DeskElsewhere(path, 0, f"it is no longer there; {remedy}", gone=True)
                continue
            if secret_key(path / "keys" / "tags.key") != tag_key:
                yield DeskElsewhere(path, 0, "its tags have another key")
                continue
            with Ledger(path / "ledger.db") as ledger:
                sums = Sums(people, 1)
                for row in ledger.history.with_lists:
                    if isinstance(row, AgreementRow) or row.counts:
                        sums.add(ledger.people_of(row), _ONE)
            same = read_policy(path / "policy.toml").id.spelling == spelling
            yield DeskElsewhere(
                path, int((sums.amounts[:, 0] > 0).sum()), None if same else "it spells ids in another way"
            )
        except (OSError, ValueError) as error:
            yield DeskElsewhere(path, 0, str(error))


def _is_there(path: Path) -> bool:
    """Whether there is a folder; an OSError if nobody can tell, since it is closed, say."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        if error.errno in _NOWHERE:
            return False
        raise


# Where a ledger stood


def second_mark(own: str) -> Path:
    """Where the newest entry of a desk's ledger is kept outside the desk, as its mark is kept inside."""
    return config_folder() / "heads" / f"{own}.head"


def noted_head(own: str) -> Head | None:
    """The newest entry of a desk's ledger that this user has seen.

    Whichever key has signed it: a ledger from before a change of keys does not know the newest.
    """
    try:
        found = Head.signed_in(second_mark(own).read_bytes())
    except OSError:
        return None  # without one, certificates are left
    return None if found is None else found[0]
