"""A newcomer's first certified release of an own messy table: two commands and one edit of the policy."""

import re
from pathlib import Path

import numpy as np
import pytest

from support.release import Ran, certificate_of, command, hidden, holds, nothing_changes, read_back, words

ROWS = 10_000
HEADER = "Phone number,region,last seen,calls out,texts,topups (CFA),hours active,contract,note"
EDIT = {
    '# "topups (CFA)" = 0': '"topups (CFA)" = 0',
    "# texts = 0": "texts = 0",
}
"""All that the data holder edits, line by line: what stands for what is missing."""


def messy_csv(path: Path) -> Path:
    """Telephone numbers, text, dates, gaps in two ways of writing, a constant, and free text."""
    rng = np.random.default_rng(17)
    lines = [HEADER]
    for i in range(ROWS):
        calls, texts = rng.poisson(40), "" if rng.random() < 0.05 else rng.poisson(25)
        topups = "NA" if rng.random() < 0.03 else f"{rng.gamma(2, 900):.0f}"
        day = f"2026-0{1 + i % 9}-{1 + i % 28:02d}"
        hours = f"{min(744, rng.gamma(3, 40)):.1f}"
        note = '"moved, twice"' if i % 7 == 0 else ""
        lines.append(
            f"9{i:07d},{('Maritime', 'Kara')[i % 2]},{day},{calls},{texts},{topups},{hours},1,{note}"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("subscribers")
    messy_csv(place / "features.csv")
    return place


@pytest.fixture(scope="module")
def made(folder: Path) -> Ran:
    """The first command."""
    return command("init", "features.csv", cwd=folder)


@pytest.fixture(scope="module")
def edited(folder: Path, made: Ran) -> str:
    """The policy after the one edit."""
    assert made.code == 0, made.err
    policy = folder / "desk" / "policy.toml"
    lines = policy.read_text(encoding="utf-8").splitlines()
    for at, line in enumerate(lines):
        for before, after in EDIT.items():
            if line.startswith(before):
                lines[at] = after
    policy.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return policy.read_text(encoding="utf-8")


def test_the_first_command_says_all_that_is_wrong_and_all_that_is_to_do(folder: Path, made: Ran) -> None:
    said = words(made.err)
    for part in (
        "people are identified by 'Phone number'; releases have keyed hashes in place of its ids",
        "4 columns may be released: calls out, texts, topups (CFA), hours active",
        "region text [kinds.region]", "last seen date", "contract ", "note ", "texts ", "topups (CFA) ",
        "next: edit", "[gaps]: what stands for a missing value of texts, topups (CFA)",
        "targetdp privatize features.csv OUTPUT --B 0.25 --epsilon 4",
    ):  # fmt: skip
        assert part in said, (part, said)


def test_without_the_edit_nothing_fails_without_all_its_remedies(folder: Path, made: Ran) -> None:
    """Whoever goes on at once is told everything in one message, ready to be copied into the policy."""
    if "\ntexts = 0" in (folder / "desk" / "policy.toml").read_text():
        pytest.skip("the policy was edited already")
    with nothing_changes(folder / "desk" / "keys"):
        ran = command(
            "privatize", "features.csv", "private.csv", "--B", "0.25", "--epsilon", "4", "--yes", cwd=folder
        )
    assert ran.code == 2
    for part in (
        "[gaps] texts = 0", '[gaps] "topups (CFA)" = 0', "nothing was charged and nothing was published",
    ):  # fmt: skip
        assert part in words(ran.err), (part, ran.err)
    assert not (folder / "private.csv").exists()


def test_the_edit_is_of_lines_that_are_there(folder: Path, made: Ran, edited: str) -> None:
    for after in EDIT.values():
        assert f"\n{after}" in edited, after
    numbers = re.findall(r"^[^#\n]*=\s*(.+)$", edited, flags=re.MULTILINE)
    assert numbers, "the policy is read as it stands"


def test_two_commands_and_one_edit_make_a_certified_release(folder: Path, edited: str) -> None:
    run = ("privatize", "features.csv", "private.csv", "--B", "0.25", "--epsilon", "4")
    looked = command(*run, "--check", cwd=folder)
    assert looked.code == 0, looked.err
    ran = command(*run, "--yes", cwd=folder)
    assert ran.code == 0, ran.err
    output = folder / "private.csv"
    assert holds(output)
    c = certificate_of(output)
    assert (c.rows, c.pseudonyms, c.scales.source) == (ROWS, True, "private")
    assert c.gaps == {"texts": 0.0, "topups (CFA)": 0.0}
    assert c.guarantee.B == 0.25
    assert c.guarantee.epsilon == pytest.approx(4)
    released = read_back(output)
    assert released.column_names == ["Phone number", "calls out", "texts", "topups (CFA)", "hours active"]
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in released["Phone number"].to_pylist())
    assert hidden(folder) == []
    again = command(
        "privatize", "features.csv", "more.csv", "--B", "0.25", "--epsilon", "2", "--yes", cwd=folder
    )
    assert again.code == 0, again.err
    assert certificate_of(folder / "more.csv").scales.source == "earlier", "paid for once"
