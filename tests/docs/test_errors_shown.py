"""Every message that the documents show is one that a command really gives, word for word.

What is collected: rows of tables of messages, and lines or inline code that begin with `error:` or
`warning:`. Each needs a case here that produces it; … stands for whatever differs from time to time.
"""

import os
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
from support.release import ASKED, FEATURES, Ran, cli, read_back, table_of, words, write_parquet
from support.scores import two_tables, write_weights
from targetdp.mechanisms import GaussianNoise
from targetdp.release import Ledger, SigningKey, default_key_path
from targetdp.release._certificate._charge import Charge
from targetdp.release._engine._local import privatize_table
from targetdp.release._staging import Staging

ROOT = DOCS.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
BOOK = ("--ledger", "ledger.db", "--population", "people")
SCALES = ("--scales", "scales.toml")
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


def privatize(*more: Any, table: str = "in.parquet", scales: tuple[str, ...] = SCALES) -> Ran:
    return cli("privatize", table, "out.parquet", *ASKED, *scales, *more)


def score(*more: Any) -> Ran:
    return cli("score", "all.parquet", "weights.toml", "scores.parquet", *ASKED, *SCALES, *more)


def of_table(column: str, values: Any) -> Run:
    """A release of people of whom one column is not as it should be."""

    def run(folder: Path, patch: Patch) -> Ran:
        people = table_of(60)
        given = pa.array(values(people[column].to_pylist()))
        changed = people.set_column(people.column_names.index(column), column, given)
        write_parquet(Path("bad.parquet"), changed)
        return privatize(table="bad.parquet")

    return run


def of_weights(weights: Any, features: tuple[str, ...] = FEATURES, **learned: Any) -> Run:
    def run(folder: Path, patch: Patch) -> Ran:
        write_weights(folder / "weights.toml", weights, features=features, **learned)
        return score()

    return run


def release_sample(folder: Path, *more: Any) -> None:
    ran = cli("privatize", "sampled.parquet", "sample.parquet", *ASKED, *SCALES, "--json", *more)
    assert ran.code == 0, ran.err
    write_weights(folder / "weights.toml", release=ran.json["release"])


def exists(folder: Path, patch: Patch) -> Ran:
    Path("out.parquet").touch()
    return privatize()


def busy(folder: Path, patch: Patch) -> Ran:
    with Staging(folder / "out.parquet", force=False) as other:
        other.begin(lambda _: None)
        return privatize()


def used_up(folder: Path, patch: Patch) -> Ran:
    limit = ("--B", "0.25", "--epsilon", "5", "--delta", "0.03")
    assert cli("ledger", "limit", *BOOK, *limit).code == 0
    assert privatize(*BOOK).code == 0
    return privatize(*BOOK, "--force")


def changing(folder: Path, patch: Patch) -> Ran:
    def late(*arguments: Any) -> Any:
        write_parquet(Path("in.parquet"), table_of(60, seed=5))
        return privatize_table(*arguments)

    patch.setattr("targetdp.release._engine._local.privatize_table", late)
    return privatize()


def drowned(folder: Path, patch: Patch) -> Ran:
    return cli(
        "privatize", "in.parquet", "out.parquet", "--id", "name", "--features", ",".join(FEATURES),
        "--B", "2", "--epsilon", "0.5", *SCALES,
    )  # fmt: skip


def missing_people(folder: Path, patch: Patch) -> Ran:
    release_sample(folder)
    write_parquet(Path("all.parquet"), read_back(folder / "all.parquet").slice(1))
    return score("--sample", "sample.parquet")


def scored_twice(folder: Path, patch: Patch) -> Ran:
    release_sample(folder, *BOOK, "--part", "sample")
    again = ("--sample", "sample.parquet", *BOOK)
    assert score(*again, "--part", "others").code == 0
    return score(*again, "--part", "elsewhere", "--force")


def declared_part(folder: Path, patch: Patch) -> Ran:
    release_sample(folder, *BOOK, "--part", "sample")
    return score("--no-sample", *BOOK, "--part", "others")


def stuck(folder: Path, patch: Patch) -> Ran:
    def fails(*_: Any, **__: Any) -> None:
        raise OSError(39, os.strerror(39))

    patch.setattr(shutil, "rmtree", fails)
    return privatize(*BOOK)


def reserved(folder: Path, patch: Patch) -> Ran:
    ledger = Ledger(Path("ledger.db"), SigningKey.open(default_key_path()))
    ledger.reserve("people", "r1", Charge(law=GaussianNoise(B=0.25, epsilon=1, delta=1e-5).law(3)))
    return cli("ledger", "show", "--ledger", "ledger.db")


@dataclass(frozen=True)
class Case:
    """What is run, how it ends, and (where the document describes a message) what is said instead."""

    run: Run
    code: int = 2
    said: str | None = None


CASES = {
    "… columns cannot be released as …: … gaps, in row …": Case(
        of_table("texts", lambda x: [None, None, *x[2:]])
    ),
    "… columns cannot be released as …: … infinite values": Case(
        of_table("texts", lambda x: [np.inf, -np.inf, *x[2:]])
    ),
    "… columns cannot be released as …: … text": Case(of_table("topups", lambda x: ["much" for _ in x])),
    "id column … has duplicated values": Case(of_table("name", lambda x: [x[1], *x[1:]])),
    "constant columns among the features": Case(of_table("texts", lambda x: [1.0 for _ in x])),
    "output … exists": Case(exists),
    "another run is writing …": Case(busy),
    "this release is refused; requested ε …, spent …, remaining …": Case(used_up),
    "input … changed while it was read": Case(changing),
    "warning: the noise on a row has length …": Case(drowned, code=0),
    "the weights file has no weight for … and has weights for …": Case(
        of_weights((1.0, 2.0, 3.0), ("calls", "texts", "visits"))
    ),
    "the weights single out …": Case(of_weights((0.0, 1.0, 0.1))),
    "the weights were learned from release …": Case(of_weights((1.0, 2.0, -1.0), release="a" * 32)),
    "… of the … people of sample … are not in the table": Case(missing_people),
    "somebody may be in these scores and in release …": Case(scored_twice),
    "warning: part … declares that nobody in this table is in these releases": Case(declared_part, code=0),
    "warning: conditional guarantee": Case(lambda _, __: privatize(scales=("--scales", "data")), code=0),
    "the release IS published (…), but …": Case(stuck, code=4),
    "a reserved, unsettled release in `ledger show`": Case(reserved, code=0, said="reserved"),
}


def pattern_of(message: str) -> re.Pattern[str]:
    """A message as it is shown, with … for anything; an error must say that it is one."""
    begins = "" if message.startswith(("error: ", "warning: ")) else r"error: (?:[^\n]*: )?"
    return re.compile(begins + ".+?".join(re.escape(part.strip()) for part in message.split("…")).strip())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Patch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_parquet(Path("in.parquet"))
    two_tables(tmp_path)
    SigningKey.open(default_key_path())
    return tmp_path


@pytest.mark.parametrize("message", CASES)
def test_the_message_is_given(message: str, folder: Path, monkeypatch: Patch) -> None:
    case = CASES[message]
    ran = case.run(folder, monkeypatch)
    said = words(ran.err)
    assert ran.code == case.code, said
    if case.said is None:
        assert pattern_of(message).search(said), said
    else:
        assert case.said in ran.out, ran.out


def test_every_message_that_is_shown_has_a_case_here() -> None:
    found = {
        message: str(path.relative_to(ROOT))
        for path in DOCUMENTS
        for message in shown(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 15
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
warning: no ledger
print("error: no")
```
"""
    assert list(shown(text)) == [
        "error: this one", "output … exists", "error: epsilon must be given", "warning: no ledger",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "said", "right"),
    [
        ("output … exists", "error: output out.csv exists: choose another name", True),
        ("output … exists", "error: column out.csv exists: choose another name", False),
        ("output … exists", "the output out.csv exists", False),
        ("warning: conditional guarantee", "warning: conditional guarantee: scales", True),
        ("warning: conditional guarantee", "error: conditional guarantee: scales", False),
    ],
)
def test_a_message_that_changed_would_be_noticed(message: str, said: str, *, right: bool) -> None:
    assert bool(pattern_of(message).search(said)) == right
