"""Values and requests that were forged: what `verify` says of them must be true."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.release import certificate_of, cli, place_with, release, request_of
from targetdp._core import Floats
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import NoiseLaw, least_noise, noise_mechanisms
from targetdp.noise import PublicWords
from targetdp.release import Certificate, Request
from targetdp.release._certificate._asked import request_checks
from targetdp.release._certificate._values import has_the_noise


def law_at(B: float, d: int) -> NoiseLaw:
    return least_noise(Guarantee(B, 4.0, 1e-6), d).mechanism.law(d)


def sphere(n: int, d: int) -> Floats:
    rows = np.random.default_rng(0).normal(size=(n, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


# Values


@pytest.mark.parametrize("B", [0.18, 0.2, 0.22])
def test_clipped_rows_without_noise_do_not_pass_for_noise_by_a_rounding_error(B: float) -> None:
    """Their lengths are 1 up to the last digit, above as often as below, and were counted as above."""
    law = law_at(B, 10)
    rows = sphere(20_000, 10)
    grid = law.added.steps
    for forged in (rows, rows * (1 + 1e-9), np.rint(rows / grid) * grid):
        assert has_the_noise(forged, law) is not True


def test_nobody_knows_on_which_rows_a_direction_is_found() -> None:
    """Every other row went out without any noise in its first column: that of the rest hid it."""
    law = law_at(1.0, 5)
    rows = sphere(20_000, 5) / 2
    noise = law.add_to(rows, PublicWords(3)) - rows
    forged = rows + noise * 1.3
    forged[1::2, 0] = rows[1::2, 0]
    assert has_the_noise(forged, law) is False
    assert has_the_noise(rows + noise, law) is True


@pytest.mark.parametrize("factor", [10.0, 1000.0])
def test_rows_that_were_never_scaled_are_no_noise(factor: float) -> None:
    """A raw table is long and varies in all directions: it passed for one with much noise."""
    rows = np.random.default_rng(1).lognormal(size=(4000, 6)) * factor
    assert has_the_noise(rows, law_at(0.25, 6)) is False


@pytest.mark.parametrize("name", sorted(noise_mechanisms()))
def test_no_honest_row_is_too_long(name: str) -> None:
    """The most that a table can add to the noise: all rows of length 1, in the direction of the noise."""
    d = 1 if name == "staircase" else 4
    law = noise_mechanisms()[name](Guarantee(0.25, 4.0, 1e-6)).law(d)
    for seed in range(5):
        noise = law.add_to(np.zeros((5000, d)), PublicWords(seed))
        along = noise / np.maximum(np.linalg.norm(noise, axis=1)[:, None], 1e-12)
        assert has_the_noise(noise + along, law) is not False


def test_what_is_said_of_values_is_no_more_than_is_known(tmp_path: Path) -> None:
    """Of ten rows one may have gone out as it is: that there is "no less than is stated" nobody knows."""
    folder = place_with(tmp_path / "place", 2000)
    release(folder, B=2.0, epsilon=1.0)
    found = cli("verify", folder / "out.parquet", "--json").json["checks"]
    (noise,) = [one for one in found if one["what"] == "noise in the values"]
    assert noise["holds"] is True
    assert "would have been found" in noise["detail"]
    law = law_at(0.25, 10)
    rows = sphere(4000, 10) / 2
    forged = law.add_to(rows, PublicWords(1))
    forged[:200] = rows[:200]
    assert has_the_noise(forged, law) is True, "it is not found, and must not be denied"


# Requests


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = place_with(tmp_path_factory.mktemp("asked"))
    release(folder)
    return certificate_of(folder / "out.parquet")


def asked(c: Certificate, request: Request) -> tuple[bool | None, str]:
    """Whether a certificate that cites a request tells of what it asked for."""
    cites = c.model_copy(update={"request": c.request.model_copy(update={"sha256": request.sha256})})
    *_, found = request_checks(cites, request)
    assert found.what == "what was asked for"
    return found.holds, found.detail


def changed(c: Certificate, **guarantee: float) -> Certificate:
    return c.model_copy(update={"guarantee": c.guarantee.model_copy(update=guarantee)})


def test_a_tenth_of_what_was_asked_for_is_less(made: Certificate) -> None:
    assert asked(made, request_of())[0] is True
    holds, told = asked(changed(made, epsilon=0.4), request_of())
    assert (holds, "ε are 0.25 and 0.4, not 0.25 and 4" in told) == (False, True)


def test_a_delta_that_was_left_open_is_not_any_delta(made: Certificate) -> None:
    """A request without δ asks for at most 1/(rows + 1)."""
    holds, told = asked(changed(made, delta=0.4), request_of())
    assert (holds, "δ is 0.4, above 1/rows" in told) == (False, True)
    assert asked(changed(made, delta=0.4), request_of(delta=0.4))[0] is True


def test_every_release_that_was_left_out_was_named(made: Certificate) -> None:
    """Two beginnings of one name covered for another release that nobody had named."""
    one, other = "abcdef12" * 4, "99999999" * 4
    named = request_of(leave_out=("abcdef", "abcdef12"))
    assert asked(made.model_copy(update={"left_out": (one,)}), named)[0] is True
    assert asked(made.model_copy(update={"left_out": (one, other)}), named)[0] is False
    both = made.model_copy(update={"left_out": (one, one[:-1] + "f")})
    assert asked(both, request_of(leave_out=("abcdef",)))[0] is False


@pytest.mark.parametrize("name", sorted(noise_mechanisms()))
@pytest.mark.parametrize("scales", ["public", "private"])
def test_every_honest_release_is_what_was_asked_for(tmp_path: Path, name: str, scales: str) -> None:
    given: dict[str, Any] = {"mechanism": name, "epsilon": 3.3}
    if name == "staircase":
        given |= {"release": "scores", "weights": {"calls": 1.0, "texts": -2.0, "topups": 0.5}}
    place_with(tmp_path, 2000, scales=scales)
    (tmp_path / "request.toml").write_text(request_of(**given).text())
    release(tmp_path, **given)
    ran = cli("verify", tmp_path / "out.parquet", "--request", tmp_path / "request.toml")
    assert ran.code == 0, ran.out + ran.err
