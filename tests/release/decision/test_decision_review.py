"""What a hostile reader of decisions found: nothing but drawn bits may depend on anybody's row."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import FEATURES, make_desk, release_frame, table_of, write_parquet
from targetdp.accounting import ResponseLoss, StatedLoss, compose
from targetdp.mechanisms import Cells, Decision, LinearScore, steps_of
from targetdp.normalization import declared_scales, rows_in_ball, scores_in_ball
from targetdp.release import make_request, privatize, verify
from targetdp.release._certificate._page import page
from targetdp.release._decision._cuts import CutRule
from targetdp.release._request import Request
from targetdp.table import Tally, numbers_of

AID: dict[str, Any] = {"name": "aid", "weights": {"calls": 1.0, "texts": 0.5}}
KNOWN: dict[str, Any] = AID | {"cut": 10.0}
SEARCHED: dict[str, Any] = AID | {"share": 0.3, "expected": [[-20.0, 0.0], [8.0, 0.3], [60.0, 1.0]]}
SCALED: dict[str, Any] = AID | {"share": 0.3, "expected": [[-1.0, 0.0], [-0.3, 0.3], [1.0, 1.0]]}


def asking(B: float = 2.0, epsilon: float = 4.0, **one: Any) -> Request:
    return make_request(release="decisions", B=B, epsilon=epsilon, decisions=[one])


@pytest.mark.parametrize("value", [2**53 + 1, 2**63 - 1, None])
def test_no_whole_number_of_one_person_is_refused_in_a_column_with_a_dictionary(
    tmp_path: Path, value: int | None
) -> None:
    """A careful cast refuses what floats do not hold: that would be an answer that nobody paid for."""
    calls = pa.array([value, *range(59)], pa.int64()).dictionary_encode()
    table = table_of().set_column(1, "calls", calls)
    done = release_frame(table, make_desk(tmp_path), release="decisions", B=2, decisions=[SEARCHED])
    assert done.frame.num_rows == 60


def test_a_column_in_a_dictionary_is_read_as_the_plain_one() -> None:
    plain = pa.array([2**53 + 1, -(2**60) - 7, None, 3], pa.int64())
    batch = pa.record_batch({"plain": plain, "kept": plain.dictionary_encode()})
    tally = Tally()
    one, other = numbers_of(batch, ["plain", "kept"], {}, tally, 0)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("B", "asked"), [(2.0, SEARCHED), (0.25, SCALED)])
def test_parts_whose_types_one_gap_has_changed_are_decided_about(
    tmp_path: Path, B: float, asked: dict[str, Any]
) -> None:
    """A part without gaps is written as whole numbers, one with a gap as floats: that refuses nobody."""
    desk = make_desk(tmp_path, gaps={"calls": 0.0})
    (tmp_path / "in").mkdir()
    for number, calls in enumerate((pa.array([3, 12, 30]), pa.array([7.5, None, 3.0]))):
        names = [f"{number}{place}" for place in range(3)]
        others = {name: [1.0, 2.0 + number, 3.0] for name in FEATURES[1:]}
        write_parquet(
            tmp_path / "in" / f"part-{number}.parquet", pa.table({"name": names, "calls": calls} | others)
        )
    done = privatize(tmp_path / "in", tmp_path / "out.parquet", desk=desk, request=asking(B, **asked))
    assert done.certificate.rows == 6


def of_size(size: float) -> dict[str, Any]:
    expected = [[0.02 * size, 0.1], [size, 0.6]]
    return {"name": "aid", "weights": {"a": size, "b": size}, "share": 0.3, "expected": expected}


@pytest.mark.parametrize("B", [2.0, 0.25])
@pytest.mark.parametrize("size", [1e307, 1.0, 1e-300])
@pytest.mark.parametrize("yes", [0, 50])
def test_bits_cannot_move_a_cut_beyond_floats(B: float, size: float, yes: int) -> None:
    """The page could not have named such a cut: charged and drawn, the release would never have gone out."""
    (question,) = asking(B, **of_size(size)).questions
    rule = question.rule(Decision(B=B, epsilon=4, score=question.score).law())
    assert isinstance(rule, CutRule)
    cuts = [rule.first]
    for _ in range(30):
        cuts.append(rule.next(cuts, [50] * len(cuts), [yes] * len(cuts)))
    assert np.isfinite(question.in_own_units(cuts[-1]))
    assert question.placed(np.array([size, -size])).shape == (2,)


@pytest.mark.parametrize("B", [2.0, 0.25])
@pytest.mark.parametrize("size", [1.7e308, 1e308, 8e307])
def test_cuts_that_bits_could_move_beyond_floats_are_refused_in_the_request(B: float, size: float) -> None:
    with pytest.raises(ValueError, match="divide the score by something"):
        asking(B, **of_size(size))


def test_what_is_stated_adds_up_without_the_error_of_a_convolution() -> None:
    """Scales that cost a tiny δ, and bits that have none: ε of both holds with that δ, and no less does."""
    tiny = 2.0**-100
    both = compose(ResponseLoss(2.5), StatedLoss(1.5, tiny))
    assert both.delta(4.0) == tiny
    assert both.epsilon(tiny) == 4.0
    assert both.delta(3.999) > 1e-13
    # In floats the sum is 0.3, and exactly it is more.
    assert compose(ResponseLoss(0.1), StatedLoss(0.2, tiny)).delta(0.3) > 1e-13


def test_decisions_with_private_scales_say_the_same_everywhere(tmp_path: Path) -> None:
    """The page said that no finite ε holds at B, below a headline that stated one."""
    table = write_parquet(tmp_path / "in.parquet", table_of(3_000))
    desk, asked = make_desk(tmp_path, scales="private"), asking(0.25, **SCALED)
    c = privatize(table, tmp_path / "out.parquet", desk=desk, request=asked).certificate
    told = {at.distance: at.epsilon for at in c.distances}
    assert told[0.25] == pytest.approx(c.guarantee.epsilon)
    assert told[0.25] == min(filter(None, told.values()))
    level, spent = c.mechanism.law["level"], c.scales.spent
    assert spent is not None
    assert told[2.0] == pytest.approx(8 * level + spent.epsilon)
    assert c.classic.exact is not None
    assert "none" not in page(c)
    assert all(one.holds is not False for one in verify(tmp_path / "out.parquet", request=asked).checks)


@pytest.mark.parametrize("asked", [KNOWN, SEARCHED])
def test_the_page_speaks_of_the_cut_that_a_person_was_held_against(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    """Two rows may be on one side of the last cut, and on two sides of that of her batch."""
    done = release_frame(table_of(), make_desk(tmp_path), release="decisions", B=2, decisions=[asked])
    text = page(done.certificate)
    assert "same side of the cut that the person was held against" in text
    assert "same true answer" not in text


@pytest.mark.parametrize("scale", [1e-10, 1e-300])
def test_rows_beyond_floats_are_as_near_each_other_as_they_are(scale: float) -> None:
    """Exactly, both rows are clipped to (1, 0) and hardly anything: they were half a unit apart."""
    scales = declared_scales([0.0, 0.0], [scale, 1.0])
    columns = np.array([[1e308, 1e308], [1e308, 0.0]])
    one, other = rows_in_ball(columns, scales)[0]
    assert np.linalg.norm(one - other) <= 2 * scale + 1e-15
    score = LinearScore.of(np.array([-0.25, 0.97]), B=0.25)
    cells = Cells.hiding(0.25, score)
    steps = steps_of(scores_in_ball(columns, scales, np.array([score.weights]))[0][:, 0])
    for cut in range(-(2**50), 2**50, 2**44):
        assert abs(np.diff(cells.of_steps(steps, cut))[0]) <= 1


def test_directions_of_rows_beyond_floats_are_exact() -> None:
    """Against fractions: whatever overflows, a difference, a quotient or both, a row keeps its direction."""
    rng = np.random.default_rng(3)
    largest = np.finfo(np.float64).max
    for _ in range(300):
        d = int(rng.integers(1, 6))
        center = rng.choice([0.0, largest, -largest, 1.0, 5e-324], size=d)
        scale = rng.choice([5e-324, 1e-310, 1e-10, 1.0, 1e300], size=d)
        row = rng.choice([largest, -largest, 1e300, 1.0, 0.0, 5e-324], size=d)
        exact = [
            (Fraction(x) - Fraction(c)) / Fraction(s) for x, c, s in zip(row, center, scale, strict=True)
        ]
        if not any(abs(x) > largest for x in exact):
            continue
        most = max(map(abs, exact))
        unit = np.array([float(x / most) for x in exact])
        found = rows_in_ball(row[:, None], declared_scales(center, scale))[0][0]
        np.testing.assert_allclose(found, unit / np.linalg.norm(unit), rtol=0, atol=1e-15)
