"""Every message that the documents show is one that a command really gives, word for word.

What is collected: rows of tables of messages, and lines or inline code that begin with `error:` or
`warning:`. Each needs a case here that produces it; … stands for whatever differs from time to time.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.docs import DOCS
from support.release import (
    ASKED,
    ENOUGH,
    FEATURES,
    Ran,
    cli,
    new_policy,
    place_with,
    release,
    request_of,
    table_of,
    words,
    write_parquet,
)
from targetdp.release import Desk, Ledger, rotate_key
from targetdp.release._engine._base import Wrote
from targetdp.release._engine._local import LocalEngine
from targetdp.release._staging import Staging

ROOT = DOCS.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
KEY = "QMDWDzozj+isbjP+6JfNZxOh+mfpS68IicrzjZOAqcs="
"""Somebody's public key."""
Patch = pytest.MonkeyPatch
Run = Callable[[Path, Patch], Ran]


def shown(text: str) -> Iterator[str]:
    """The messages that a document shows."""
    fenced, in_table = False, False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        first = line.strip("| ").split(" | ")[0].strip() if line.startswith("|") else ""
        if first == "message":
            in_table = True
        elif not first:
            in_table = False
        elif in_table and not re.fullmatch(r"[-:|]+", first):
            yield first
        if fenced and re.match(r"\$? ?(?:error|warning): ", line):
            yield line.lstrip("$ ")
        if not fenced:
            yield from re.findall(r"`((?:error|warning): [^`]+)`", line)


def privatize(*more: Any, table: str = "in.parquet") -> Ran:
    return cli("privatize", table, "out.parquet", *ASKED, *more)


def answered(**given: Any) -> Ran:
    """A release that a request's file asks for."""
    Path("request.toml").write_text(request_of(**given).text(), encoding="utf-8")
    return cli("privatize", "in.parquet", "out.parquet", "--request", "request.toml", "--yes")


def of_table(column: str, values: Any) -> Run:
    """A release of people of whom one column is not as it should be."""

    def run(folder: Path, patch: Patch) -> Ran:
        people = table_of(60)
        given = pa.array(values(people[column].to_pylist()))
        changed = people.set_column(people.column_names.index(column), column, given)
        write_parquet(Path("bad.parquet"), changed)
        return privatize(table="bad.parquet")

    return run


def under(**policy: Any) -> Run:
    """A release at a desk that has another policy."""

    def run(folder: Path, patch: Patch) -> Ran:
        new_policy(folder / "desk", **policy)
        return privatize()

    return run


def asked_for(**given: Any) -> Run:
    return lambda folder, patch: answered(**given)


def no_desk(folder: Path, patch: Patch) -> Ran:
    shutil.rmtree(folder / "desk")
    return privatize()


def second_desk(folder: Path, patch: Patch) -> Ran:
    return cli("init", "in.parquet", "--desk", "another")


def copied_desk(folder: Path, patch: Patch) -> Ran:
    shutil.copytree(folder / "desk", folder / "copy")
    return privatize("--desk", "copy")


def loosened(folder: Path, patch: Patch) -> Ran:
    release(folder, "first.parquet")
    new_policy(folder / "desk", limit=(0.25, 101.0, 0.5))
    return privatize()


def unapproved(folder: Path, patch: Patch) -> Ran:
    new_policy(folder / "desk", approvers={"auditor": KEY})
    release(folder, "first.parquet")
    new_policy(folder / "desk", approvers={"auditor": KEY}, limit=(0.25, 101.0, 0.5), reason="a survey")
    return privatize()


def without_key(folder: Path, patch: Patch) -> Ran:
    (folder / "desk" / "keys" / "signing.pem").unlink()
    return privatize()


def changed_key(folder: Path, patch: Patch) -> Ran:
    patch.setattr(Desk, "check_unchanged", lambda desk: rotate_key(Desk.open(desk.path), "meanwhile"))
    return privatize()


def holders_field(folder: Path, patch: Patch) -> Ran:
    Path("request.toml").write_text("B = 0.25\nepsilon = 4\npseudonyms = false\n", encoding="utf-8")
    return cli("privatize", "in.parquet", "out.parquet", "--request", "request.toml", "--yes")


def exists(folder: Path, patch: Patch) -> Ran:
    Path("out.parquet").touch()
    return privatize()


def busy(folder: Path, patch: Patch) -> Ran:
    with Staging(folder / "out.parquet", force=False) as other:
        other.begin(lambda _: None)
        return privatize()


def nobody(folder: Path, patch: Patch) -> Ran:
    return cli("privatize", "in.parquet", "out.parquet", "--B", "0.25", "--epsilon", "4")


def used_up(folder: Path, patch: Patch) -> Ran:
    new_policy(folder / "desk", limit=(0.25, 5.0, 0.03))
    assert privatize().code == 0
    return privatize("--force")


def planned_out(folder: Path, patch: Patch) -> Ran:
    line = {"release": "rows", "columns": 3, "B": 0.25, "epsilon": 4.0, "delta": 1e-3}
    new_policy(folder / "desk", plan=[line])
    release(folder, "first.parquet")
    return privatize()


def other_ids(folder: Path, patch: Patch) -> Ran:
    release(folder, "first.parquet")
    table = table_of()
    names = pa.array([f"new salt {name}" for name in table["name"].to_pylist()])
    write_parquet(Path("in.parquet"), table.set_column(0, "name", names))
    return privatize()


def other_desk(folder: Path, patch: Patch) -> Ran:
    release(folder, "first.parquet")
    (folder / "desk").rename(folder / "first_desk")
    assert cli("status", "--desk", "first_desk").code == 0
    (folder / "elsewhere").mkdir()
    patch.chdir(folder / "elsewhere")
    return cli("init", folder / "in.parquet")


def put_back(folder: Path, patch: Patch) -> Ran:
    release(folder, "first.parquet")
    files = [folder / "desk" / name for name in ("ledger.db", "ledger.db.head")]
    older = [path.read_bytes() for path in files]
    release(folder, "second.parquet")
    for path, content in zip(files, older, strict=True):
        path.write_bytes(content)
    return privatize()


def changing(folder: Path, patch: Patch) -> Ran:
    write = LocalEngine.write

    def late(engine: LocalEngine, *given: Any) -> Wrote:
        done = write(engine, *given)
        write_parquet(Path("in.parquet"), table_of(60, seed=5))
        return done

    patch.setattr(LocalEngine, "write", late)
    return privatize()


def other_rows(folder: Path, patch: Patch) -> Ran:
    """A run draws noise and ends; the next one finds the same people with other values."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as within:
        within.setattr("targetdp.release._job.make_certificate", full)
        assert privatize().code == 3
    first = table_of(60)
    moved = pa.array([0.5, *first["calls"].to_pylist()[1:]])
    write_parquet(Path("in.parquet"), first.set_column(1, "calls", moved))
    return privatize()


def unsettled(folder: Path, patch: Patch) -> Ran:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    patch.setattr(Ledger, "settle", full)
    return privatize()


def nearly_constant(folder: Path, patch: Patch) -> Ran:
    new_policy(folder / "desk", scales="private")
    people = table_of(ENOUGH)
    zeros = people.set_column(2, "texts", [np.where(np.arange(ENOUGH) < 5, 7.0, 0.0)])
    write_parquet(Path("zeros.parquet"), zeros)
    return privatize(table="zeros.parquet")


def own_scales(folder: Path, patch: Patch) -> Ran:
    named = ("--features", ",".join(FEATURES), "--source", "public", "--reason", "a census")
    assert cli("scales", "in.parquet", *named, "--out", "desk/scales.toml", "--force").code == 0
    return privatize()


def stranger(folder: Path, patch: Patch) -> Ran:
    release(folder, "private.parquet")
    patch.setenv("XDG_CONFIG_HOME", str(folder / "another user"))
    (folder / "labels.csv").write_text("name,target\n")
    (folder / "program.toml").write_text('kind = "aid"\ntarget = "target"\nquota = 0.3\n')
    return cli("learn", "private.parquet", "labels.csv", "--program", "program.toml", "--out", "r.toml")


def narrow_scales(folder: Path, patch: Patch) -> Ran:
    path = folder / "desk" / "scales.toml"
    path.write_text(re.sub(r"scale = [\d.]+", "scale = 0.5", path.read_text()))
    return privatize()


@dataclass(frozen=True)
class Case:
    """What is run, and how it ends."""

    run: Run
    code: int = 2


CASES = {
    "there is no desk here or above": Case(no_desk),
    "there is a desk already (…)": Case(second_desk),
    "desk … is a copy of …": Case(copied_desk),
    "… columns cannot be released as …: … gaps, in row …": Case(
        of_table("texts", lambda x: [None, None, *x[2:]])
    ),
    "… columns cannot be released as …: … infinite values": Case(
        of_table("texts", lambda x: [np.inf, -np.inf, *x[2:]])
    ),
    "… columns cannot be released as …: … text": Case(of_table("topups", lambda x: ["much" for _ in x])),
    "… columns cannot be released as …: … ids in another spelling": Case(
        of_table("name", lambda x: [f" {x[0]}", f"{x[1]} ", *x[2:]])
    ),
    "id column … has duplicated values": Case(of_table("name", lambda x: [x[1], *x[1:]])),
    "constant columns: …": Case(of_table("texts", lambda x: [1.0 for _ in x])),
    "private scales cannot be estimated from so few people: …": Case(under(scales="private")),
    "private scales were drawn, and cannot be used (…)": Case(nearly_constant),
    "the public scales were learned from … of these people": Case(own_scales),
    "δ = … is above 1/rows": Case(asked_for(delta=0.2)),
    "signed by nobody you have named": Case(stranger),
    "policy.toml allows more than the policy on record: …": Case(loosened),
    "policy.toml allows more than the policy on record (…), and that needs an approval: …": Case(unapproved),
    "… is gone: bring it back from a backup": Case(without_key),
    "the key of this desk was changed meanwhile": Case(changed_key),
    "the policy releases no …": Case(asked_for(features=("calls", "visits"))),
    "the request is not signed": Case(under(requests={"accept": "signed"}, keys={"ministry": KEY})),
    "… the data holder decides about that, in policy.toml, and no request does": Case(holders_field),
    "the limit would be passed: it takes … of what one person may spend, … is spent": Case(used_up, code=7),
    "the plan has none of these releases left": Case(planned_out, code=7),
    "no earlier release shares half of these … people": Case(other_ids),
    "… people of … are in releases of another desk of yours": Case(other_desk),
    "the tail was cut: … has seen entry …": Case(put_back),
    "output … exists": Case(exists),
    "another run is writing …": Case(busy, code=6),
    "input … does not exist": Case(lambda _, __: privatize(table="absent.parquet"), code=6),
    "nobody is at the terminal to say yes": Case(nobody),
    "input … changed while it was read": Case(changing, code=6),
    "the table is not the one that this release was begun with": Case(other_rows),
    "warning: the noise on a row has length …": Case(asked_for(B=2.0, epsilon=0.5), code=0),
    "warning: … of rows are longer than 1 and will be clipped": Case(narrow_scales, code=0),
    "warning: the scores are nearly the column …": Case(
        asked_for(release="scores", weights={"calls": 0.0, "texts": 1.0, "topups": 0.1}), code=0
    ),
    "warning: ids go out in clear": Case(lambda _, __: privatize(), code=0),
    "the release IS published (…), but …": Case(unsettled, code=4),
}


def pattern_of(message: str) -> re.Pattern[str]:
    """A message as it is shown, with … for anything; an error must say that it is one."""
    begins = "" if message.startswith(("error: ", "warning: ")) else r"error: (?:[^\n]*: (?:- )?)?"
    return re.compile(begins + ".+?".join(re.escape(part.strip()) for part in message.split("…")).strip())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Patch) -> Path:
    monkeypatch.chdir(tmp_path)
    return place_with(tmp_path)


@pytest.mark.parametrize("message", CASES)
def test_the_message_is_given(message: str, folder: Path, monkeypatch: Patch) -> None:
    case = CASES[message]
    ran = case.run(folder, monkeypatch)
    said = words(ran.err)
    assert ran.code == case.code, said
    assert pattern_of(message).search(said), said


def test_every_message_that_is_shown_has_a_case_here() -> None:
    found = {
        message: str(path.relative_to(ROOT))
        for path in DOCUMENTS
        for message in shown(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 20
    without = {message: place for message, place in found.items() if message not in CASES}
    assert not without, f"add the command that gives them: {without}"
    assert set(CASES) == set(found), "a case for what no document shows any more"


def test_messages_are_found_wherever_they_are_shown() -> None:
    text = """
Words, then `error: this one` and `not this`.

| message | meaning |
|---|---|
| output … exists | it is there |

| table | of other things |
|---|---|
| none | here |

```
$ targetdp privatize a b
error: epsilon must be given
warning: no clock
print("error: no")
```
"""
    assert list(shown(text)) == [
        "error: this one", "output … exists", "error: epsilon must be given", "warning: no clock",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "said", "right"),
    [
        ("output … exists", "error: output out.csv exists: choose another name", True),
        ("output … exists", "error: column out.csv exists: choose another name", False),
        ("output … exists", "the output out.csv exists", False),
        ("warning: ids go out in clear", "warning: ids go out in clear: whoever", True),
        ("warning: ids go out in clear", "error: ids go out in clear: whoever", False),
    ],
)
def test_a_message_that_changed_would_be_noticed(message: str, said: str, *, right: bool) -> None:
    assert bool(pattern_of(message).search(said)) == right
