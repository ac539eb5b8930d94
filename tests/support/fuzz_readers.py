"""Everything that reads a file, by name, and what must hold whatever the file is."""

import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.release import FEATURES, policy_text, write_scales
from targetdp.normalization import read_scales
from targetdp.programs import read_program_file
from targetdp.release import Desk, Ledger, read_certificate, read_policy, read_request, secret_key
from targetdp.release._draws import Draws, can_go_on
from targetdp.table import check_columns, open_source
from targetdp.tradeoff import read_run

Reader = Callable[[Path], Any]
BOUND, RELEASE = "5" * 64, "0" * 32
"""Of the release whose draws are read."""


def _read_table(path: Path) -> list[Any]:
    """As every command does."""
    source = open_source(path)
    check_columns(source.columns, f"input {path}", id=["name"])
    return [*source.batches(["name"], {}, 100)]


def _read_ledger(path: Path) -> Any:
    with Ledger(path) as ledger:
        return ledger.history.releases


def _read_policy(path: Path) -> Any:
    """The policy, and the desk whose policy it is: what a request would be held against."""
    policy = read_policy(path)
    return policy.sha256, policy.fill(FEATURES), policy.limit.value()


def _read_request(path: Path) -> Any:
    request = read_request(path)
    return request.sha256, request.signer, request.text()


def _read_desk(path: Path) -> Any:
    """A desk whose desk.json is the file."""
    folder = path.parent
    folder.chmod(0o700)
    return Desk.open(folder).id


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """A folder of draws with the file in it, and another true one."""
    folder = path.parent / RELEASE
    folder.mkdir(exist_ok=True)
    for name in ("secret", "drawn"):
        (folder / name).write_bytes(f"{'ab' * 32} {BOUND}\n".encode() if name == "secret" else b"")
    (folder / path.name).write_bytes(path.read_bytes())
    try:
        yield path.parent
    finally:
        for name in ("secret", "drawn", "lock"):
            (folder / name).unlink(missing_ok=True)


def _read_draws(path: Path) -> Any:
    """Draws are not there, or can be gone on with: no other answer, whatever is in their files."""
    with _draft(path) as drafts:
        can = can_go_on(drafts, RELEASE, BOUND)
        draws = Draws.reopen(drafts, RELEASE, BOUND)
        assert can == (draws is not None)
        if draws is not None:
            draws.close()
        return can


def _read_key(path: Path) -> Any:
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    return secret_key(path)


TOML_READERS: dict[str, Reader] = {
    "request": _read_request,
    "policy": _read_policy,
    "program": read_program_file,
    "scales": lambda path: read_scales(path, FEATURES),
}
JSON_READERS: dict[str, Reader] = {
    "certificate": read_certificate,
    "desk": _read_desk,
    "sweep": lambda path: read_run(path.parent),
}
READERS: dict[str, Reader] = TOML_READERS | JSON_READERS | {
    "ledger": _read_ledger,
    "secret of draws": _read_draws,
    "what was drawn for": _read_draws,
    "key": _read_key,
    "CSV": _read_table,
    "Parquet": _read_table,
}  # fmt: skip
_FILES = {
    "sweep": "run.json", "CSV": "table.csv", "Parquet": "table.parquet", "ledger": "ledger.db",
    "desk": "desk.json", "certificate": "file.json", "secret of draws": "secret", "key": "tags.key",
    "what was drawn for": "drawn",
}  # fmt: skip


def file_of(name: str) -> str:
    """What a reader's file is called."""
    return _FILES.get(name, "file.toml")


def only_value_errors(read: Reader, path: Path) -> None:
    """A value comes back, or a ValueError that says something, and not the whole file."""
    try:
        read(path)
    except ValueError as error:
        said = str(error)
        assert said, "an error says something"
        assert len(said) < 20_000, "and not the whole file"


def true_policy(folder: Path) -> Path:
    """A policy with everything in it."""
    write_scales(folder / "scales.toml")
    path = folder / "policy.toml"
    path.write_text(
        policy_text(
            pseudonyms=True, spelling={"country_code": "228", "digits": 8, "case": "lower"},
            public={"region": "it is on the map"}, gaps={"calls": 0, "all": 1.5}, scales="private",
            share=0.2, plan=({"release": "rows", "B": 0.25, "epsilon": 4.0, "delta": 1e-5, "times": 2},),
            requests={"accept": "signed", "tell": False}, keys={"ministry": "A" * 43 + "="},
            reason="the board agreed",
        )
    )  # fmt: skip
    return path
