"""docs/decisions.md: its commands run in order, its requests are requests, its figures are printed."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from support.docs import DOCS, Block, blocks, printed_by
from support.release import cli, read_back, words
from targetdp.release import read_request

TEXT = (DOCS / "decisions.md").read_text(encoding="utf-8").split("\n## Models that the data holder runs\n")[0]


def test_all_of_it_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures that nothing simulates are printed to the last digit."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "document"}
    said: dict[str, str] = {}
    pattern = r"^```(console|python)\n(.*?)^```\n(?:\n```output\n(.*?)^```\n)?"
    for language, text, shown in re.findall(pattern, TEXT, flags=re.DOTALL | re.MULTILINE):
        if language == "python":
            printed = printed_by(Block(language, text, shown or None), names)
            assert printed == shown
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "targetdp"
            ran = cli(*arguments)
            assert ran.code == 0, (line, ran.err)
            said[arguments[0]] = words(ran.out + ran.err)
    assert set(said) == {"example", "init", "agree", "learn", "privatize", "verify", "allocate"}
    assert "400 people, 10 columns as they are" in said["agree"]
    assert "nothing is promised to these people" in said["agree"]
    assert "→ linear" in said["learn"], "the page says so"
    assert not (tmp_path / "request.onnx").exists()
    assert re.search(r"rows .+ scores .+ → decisions", said["learn"])
    assert "decisions: a decision is better than a score, by" in said["learn"]
    assert "1 decision about 4,000 people" in said["privatize"]
    assert "found again from the bits" in said["verify"]
    assert "aid for 1,160 of 4,000 people" in said["allocate"]
    assert "of 400 people whose truth is known" in said["allocate"]
    assert "400 people of the sample are decided about by their own row" in said["allocate"]
    listed = read_back(tmp_path / "list.csv")
    assert listed.column_names == ["id", "answer", "decision", "based_on"]
    assert listed["decision"].to_pylist().count("aid") == round(0.29 * 4_000)
    # The list reaches the poor better than lots do, which reach 29% of them.
    people = read_back(tmp_path / "togo.parquet")
    poorest = people.sort_by("consumption").slice(0, 1_160)["id"].to_pylist()
    given = dict(zip(*(listed[name].to_pylist() for name in ("id", "decision")), strict=True))
    helped = {one for one in given if given[one] == "aid"}
    assert len(helped & set(poorest)) > 0.4 * len(helped)


def test_requests_are_requests(tmp_path: Path) -> None:
    asked = blocks("decisions.md", "toml")[:2]
    for place, block in enumerate(asked):
        path = tmp_path / f"{place}.toml"
        path.write_text(block.text, encoding="utf-8")
        request = read_request(path)
        assert request.release == "decisions"
        assert (2.0, 0.25)[place] == request.B
        assert request.questions


def test_words_about_batches_are_those_of_the_code() -> None:
    from targetdp.release._decision._cuts import batch_ends

    assert "The first batch, some 48 to 64 people," in TEXT
    for people in (1_000, 20_000, 5_000_000):
        ends = batch_ends(people)
        assert 48 <= ends[0] <= 64
        assert ends[-1] - ends[-2] == pytest.approx(people / 4, abs=1)
