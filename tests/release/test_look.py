"""A look before a release: everything at once, nothing changes, and it says what the release will be."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    CENTERS,
    FEATURES,
    SCALES,
    cli,
    look,
    make_desk,
    new_policy,
    nothing_changes,
    place_with,
    policy_text,
    release,
    request_of,
    table_of,
    words,
    write_parquet,
)
from targetdp.release import Desk, LimitExceeded, Look, Refused, check_release, privatize, verify
from targetdp.release._certificate._numbers import verify_guarantee

WEIGHTS = {"calls": 1.0, "texts": 2.0, "topups": -1.0}


def told(seen: Look) -> str:
    return "\n".join([*seen.lines, *seen.warnings, *map(str, seen.problems)])


def test_looking_changes_nothing(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder)
    with nothing_changes(folder):
        for given in ({}, {"epsilon": 1e6}, {"features": ("nope",)}, {"leave_out": ("abcdef",)}):
            look(folder, **given)
        assert cli("privatize", folder / "in.parquet", "--B", 0.25, "--epsilon", 4, "--check",
                   "--desk", folder / "desk").code == 0  # fmt: skip


def test_it_says_what_goes_out_at_what_price(tmp_path: Path) -> None:
    folder = place_with(tmp_path, limit=(0.25, 8.0, 1e-3), most=(6.0, 1e-3), pseudonyms=True)
    first = release(folder, "a.parquet", delta=1e-4, epsilon=3.0)
    seen = look(folder, delta=1e-4, epsilon=3.0, asked_by="Ministry")
    text = told(seen)
    for part in (
        f"desk people ({folder / 'desk'})",
        "asked for by Ministry",
        "what goes out: 3 columns about 60 people (calls, texts, topups), under pseudonyms",
        "what is promised: (B = 0.25, ε = 3, δ = 0.0001)",
        "noise: ",
        "for you only: ",
        "budget of those who have spent most: ",
        "% before, ",
        "% after",
        "are told apart beyond (ε = 8, δ = 0.001) by all releases of this desk together",
        "largest ε that fits, at this B and δ: ",
        f"of these people the ledger knows: 60 in {first.certificate.release[:12]}",
    ):
        assert part in text, part
    assert seen.terms is not None
    for condition in seen.terms.conditions:
        assert condition in text
    assert seen.spending is not None
    assert seen.spending.known == {first.certificate.release: 60}
    assert seen.record()["budget"]["known"] == {first.certificate.release: 60}
    assert "people" in seen._repr_html_()


def test_what_is_shown_is_what_comes_out(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    shown: list[Look] = []
    seen = look(folder)
    done = privatize(
        folder / "in.parquet", folder / "out.parquet", desk=folder / "desk", request=request_of(),
        confirm=shown.append,
    )  # fmt: skip
    assert [one.lines for one in shown] == [seen.lines]
    assert done.look is shown[0]
    c = done.certificate
    assert seen.terms is not None
    assert (c.guarantee.value(), c.conditions, c.mechanism.law) == (
        seen.terms.guarantee, seen.terms.conditions, seen.terms.law.record(),
    )  # fmt: skip
    assert seen.clipped == done.clipped / c.rows


def test_whoever_says_no_is_charged_nothing(tmp_path: Path) -> None:
    folder = place_with(tmp_path)

    def no(_: Look) -> None:
        raise ValueError("that was not confirmed")

    with nothing_changes(folder), pytest.raises(ValueError, match="not confirmed"):
        privatize(folder / "in.parquet", folder / "out.parquet", desk=folder / "desk", request=request_of(),
                  confirm=no)  # fmt: skip


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    table = table_of(60).to_pydict()
    table["calls"][3] = None
    table["texts"] = [7.0] * 60
    table["topups"][5] = float("inf")
    table["name"][8] = table["name"][9]
    write_parquet(tmp_path / "in.parquet", pa.table(table))
    make_desk(tmp_path, most=(1.0, 1e-9), requests={"accept": "signed"}, keys={"m": KEY})
    with nothing_changes(tmp_path / "desk" / "keys"), pytest.raises(Refused) as refused:
        release(tmp_path, delta=1e-3, leave_out=("abcdef",))
    text = str(refused.value)
    for part in (
        "7 things keep this release from being made",
        "the request is not signed",
        "epsilon = 4 is more than one release may have",
        "delta = 0.001 is more than one release may have",
        "no release of this desk begins so",
        "2 of 3 columns cannot be released as they are",
        "calls",
        "1 gap, in row 4",
        "1 infinite value, in row 6",
        "constant columns: texts: leave them out",
        "id column 'name' has duplicated values: 1 rows repeat an id",
        "nothing was charged and nothing was published",
    ):
        assert part in text, (part, text)


KEY = "mjzkJqdJAWs/PDptO2b0L9iPjGZlRd7Y0VUMYvx0vh8="


def test_constant_columns_are_refused_by_name(tmp_path: Path) -> None:
    table = table_of(60).set_column(1, "calls", [[1.0] * 60])
    make_desk(tmp_path)
    with pytest.raises(Refused, match="constant columns: calls: leave them out; the same value in every row"):
        release(tmp_path, table=table)


def test_an_empty_table_is_nothing_to_release(tmp_path: Path) -> None:
    make_desk(tmp_path)
    with pytest.raises(Refused, match="the frame has no rows: there is nothing to release"):
        release(tmp_path, table=table_of(10).slice(0, 0))


def test_a_share_of_clipped_rows_that_is_large_is_warned_of_with_its_remedy(tmp_path: Path) -> None:
    folder = place_with(tmp_path, 200)
    seen = look(folder)
    assert seen.clipped is not None
    assert seen.clipped > 0.5
    (warning,) = (warning for warning in seen.warnings if "% of rows are longer than 1" in warning)
    assert "widen" in warning
    # Scales ten times as wide clip nobody.
    lines = ['source = "public"', 'reason = "a census"', "[features]"]
    lines += [
        f"{name} = {{ center = {c}, scale = {10 * s} }}"
        for name, c, s in zip(FEATURES, CENTERS, SCALES, strict=True)
    ]
    (folder / "desk" / "scales.toml").write_text("\n".join(lines))
    seen = look(folder)
    assert seen.clipped == 0
    assert not any("clipped" in warning for warning in seen.warnings)


@pytest.mark.parametrize(
    ("policy", "given", "said"),
    [
        ({}, {}, "ids go out in clear: whoever gets the table knows whose row is whose"),
        ({}, {"epsilon": 0.01}, "it drowns any one person's signal; release fewer columns"),
        (
            {}, {"epsilon": 0.01, "release": "scores", "weights": WEIGHTS},
            "it drowns any one person's signal; ask for fewer scores, or a larger ε",
        ),
        (
            {}, {"release": "scores", "weights": WEIGHTS | {"texts": 60.0}},
            "the scores are nearly the column 'texts' (100% of how people differ in it): whoever gets them",
        ),
    ],
)  # fmt: skip
def test_what_should_be_thought_about_is_warned_of(
    tmp_path: Path, policy: dict[str, Any], given: dict[str, Any], said: str
) -> None:
    folder = place_with(tmp_path, 400, **policy)
    assert any(said in warning for warning in look(folder, **given).warnings)


def test_what_scores_are_made_of_is_said(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    seen = look(folder, release="scores", weights=WEIGHTS)
    assert "% texts (raises it), " in told(seen)
    assert "(of how people differ, after scaling and clipping; for you only)" in told(seen)
    assert "what goes out: 1 score about 60 people (score)" in told(seen)


# δ


def test_a_delta_that_was_chosen_for_fewer_people_needs_the_holders_word(tmp_path: Path) -> None:
    """A sweep of 60 people says 1/61; it is not used for 400 in silence."""
    folder = place_with(tmp_path, 400)
    (problem,) = look(folder, delta=1 / 61).problems
    assert "above 1/rows = 0.0025" in problem.what
    assert "large_delta" in problem.remedy
    assert not look(folder, delta=1 / 400).problems
    assert not look(folder).problems
    new_policy(folder / "desk", large_delta="a pilot, by contract", reason="a pilot")
    assert not look(folder, delta=1 / 61).problems
    done = release(folder, delta=1 / 61)
    said = "δ is above 1 in the number of rows"
    assert said in " ".join(done.certificate.conditions)
    assert verify(folder / "out.parquet").holds
    # Without the sentence the certificate does not hold.
    bare = tuple(one for one in done.certificate.conditions if said not in one)
    forged = done.certificate.model_copy(update={"conditions": bare})
    assert {c.what for c in verify_guarantee(forged) if c.holds is False} == {"conditions"}


def test_what_delta_means_is_said_where_it_is_printed(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    assert "It is no chance that a row goes out as it is" in told(look(folder))
    release(folder)
    assert (
        "It is no chance that a row goes out as it is" in (folder / "out.parquet.certificate.md").read_text()
    )


# The budget


def test_the_largest_epsilon_fits_and_a_little_more_does_not(tmp_path: Path) -> None:
    folder = place_with(tmp_path, limit=(0.25, 8.0, 1e-5), most=(50.0, 1e-5))
    release(folder, "a.parquet", delta=1e-7)
    seen = look(folder, delta=1e-7, epsilon=20.0)
    assert "the limit would be passed" in told(seen)
    largest = seen.largest_epsilon
    assert largest is not None
    assert 3.0 < largest < 8.0
    assert look(folder, delta=1e-7, epsilon=largest).problems == ()
    assert look(folder, delta=1e-7, epsilon=largest * 1.01).problems
    assert f"with ε up to {np.floor(largest * 100) / 100:g}"[:17] in seen.reply
    release(folder, "b.parquet", delta=1e-7, epsilon=largest)


def test_nothing_fits_and_nothing_is_offered(tmp_path: Path) -> None:
    limit = {"B": 0.25, "epsilon": 4.0, "delta": 1e-5, "filter": "gaussian"}
    folder = place_with(tmp_path, limit=limit, most=(50.0, 0.1))
    # What is left is tiny, and so is the smallest ε that is tried: its δ makes it dear.
    release(folder, "a.parquet", delta=0.93e-5, epsilon=3.999, mechanism="gaussian")
    seen = look(folder, delta=0.1, epsilon=1e-3, mechanism="gaussian")
    assert seen.problems
    assert seen.largest_epsilon is None
    assert seen.reply == "you may tell who asked: nothing more about these people fits the limit of this desk"


def test_what_would_be_accepted_is_told_only_if_the_policy_allows_it(tmp_path: Path) -> None:
    folder = place_with(tmp_path, most=(2.0, 1e-6))
    seen = look(folder, epsilon=5.0)
    assert seen.reply == (
        "you may tell who asked: this desk would accept columns among calls, texts, topups; B = 0.25 with ε "
        "up to 2; δ up to 1e-06, or none given"
    )
    assert look(folder, epsilon=2.0).reply == ""
    text = policy_text(most=(2.0, 1e-6), requests={"tell": False})
    (folder / "desk" / "policy.toml").write_text(text)
    seen = look(folder, epsilon=5.0)
    assert (seen.reply, len(seen.problems)) == ("", 1)
    # What only the data holder can mend is nothing to tell anybody.
    (folder / "desk" / "scales.toml").unlink()
    assert look(folder, epsilon=2.0).reply == ""


def test_two_looks_at_the_same_budget_are_one_release(tmp_path: Path) -> None:
    """Between a look and its release somebody else may have spent what was left."""
    folder = place_with(tmp_path, limit=(0.25, 5.0, 1e-3), most=(5.0, 1e-3))
    desk = Desk.open(folder / "desk")

    def meanwhile(_: Look) -> None:
        release(folder, "first.parquet", delta=1e-4)

    with pytest.raises(LimitExceeded, match="together"):
        privatize(folder / "in.parquet", folder / "second.parquet", desk=desk,
                  request=request_of(delta=1e-4), confirm=meanwhile)  # fmt: skip
    assert not (folder / "second.parquet").exists()
    with desk.ledger() as ledger:
        assert [row.state for row in ledger.history.releases.values()] == ["published"]
        assert ledger.verify() == []
    assert [path for path in desk.drafts.iterdir() if path.is_dir()] == []
    assert len(list((desk.path / "people").iterdir())) == 1


def test_two_looks_at_the_same_plan_are_one_release(tmp_path: Path) -> None:
    line = {"release": "rows", "columns": 3, "B": 0.25, "epsilon": 4.0, "delta": 1e-3}
    folder = place_with(tmp_path, plan=[line])

    def meanwhile(_: Look) -> None:
        release(folder, "first.parquet")

    with pytest.raises(ValueError, match="another run has just made a release of the plan"):
        privatize(folder / "in.parquet", folder / "second.parquet", desk=folder / "desk",
                  request=request_of(), confirm=meanwhile)  # fmt: skip
    assert not (folder / "second.parquet").exists()


def test_a_frame_is_looked_at_alike(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    seen = check_release(table_of(60), desk=desk, request=request_of())
    write_parquet(tmp_path / "in.parquet")
    line, *others = [line for line in look(tmp_path).lines if line not in seen.lines]
    assert (line, others) == (f"table {tmp_path / 'in.parquet'}: 1 file of Parquet", [])


def test_the_command_shows_the_same_and_asks(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    given = ("privatize", folder / "in.parquet", folder / "out.parquet", "--B", 0.25, "--epsilon", 4)
    ran = cli(*given, "--desk", folder / "desk")
    assert ran.code != 0
    assert "nobody is at the terminal to say yes: look with --check, then give --yes" in words(ran.err)
    assert "what goes out: 3 columns about 60 people" in words(ran.err)
    assert not (folder / "out.parquet").exists()
    ran = cli(*given, "--desk", folder / "desk", "--yes", "--quiet")
    assert ran.code == 0
    assert "ids go out in clear" in words(ran.err), "no safety word is silenced"
