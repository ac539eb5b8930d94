"""Laws: numbers that say what noise was drawn, read back strictly, and drawn row by row."""

import hashlib
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from targetdp import GaussianNoise, PrivateProjection, SphericalLaplace, Staircase
from targetdp._core import row_product
from targetdp.mechanisms import LinearLaw, NoiseLaw, Scores, law_of
from targetdp.mechanisms._law import all_laws
from targetdp.noise import RowWords, SecretWords

MADE: dict[str, NoiseLaw] = {
    "gaussian": GaussianNoise(B=0.25, epsilon=2.0, delta=1e-6).law(4),
    "spherical-laplace": SphericalLaplace(B=0.25, epsilon=2.0, delta=1e-6).law(4),
    "staircase": Staircase(B=0.25, epsilon=2.0).law(),
    "projection": PrivateProjection(
        B=0.25, epsilon1=1.0, epsilon2=0.5, delta1=1e-6, delta2=1e-6, k=50, calibration="exact"
    ).law(4),
    "linear": Scores([1.0, 2.0, 3.0, 4.0], Staircase(B=0.25, epsilon=2.0)).law(4),
}
EXAMPLES = pytest.mark.parametrize("law", MADE.values(), ids=MADE)


def tags(count: int, first: int = 0) -> bytes:
    numbers = np.zeros((count, 3), np.uint32)
    numbers[:, 0] = np.arange(first, first + count)
    return numbers.tobytes()


def test_every_law_is_tried() -> None:
    assert {*MADE, "decision"} == set(all_laws())


def test_a_law_is_found_by_its_family_before_anything_has_imported_it() -> None:
    """Also those in a room of this room, such as decisions."""
    script = "import targetdp.mechanisms._law as it; print(*it._LAWS, '|', *it.all_laws())"
    run = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    before, _, after = run.stdout.partition("|")
    assert (before.split(), set(after.split())) == ([], {*MADE, "decision"}), run.stderr


@EXAMPLES
def test_a_record_is_plain_and_reads_back(law: NoiseLaw) -> None:
    assert law_of(json.loads(json.dumps(law.record()))) == law


@EXAMPLES
@pytest.mark.parametrize("change", [{"grid": 2.0**-200}, {"grid": 3e-8}, {"grid": 1.0}, {"dimensions": 0},
                                    {"dimensions": True}, {"grid": float("nan")}, {"more": 1}])  # fmt: skip
def test_a_record_that_no_sampler_could_have_drawn_is_refused(law: NoiseLaw, change: dict[str, Any]) -> None:
    if law.family == "staircase" and change == {"grid": 1.0}:
        return  # its steps are counted in the grid: merely a giant noise
    with pytest.raises((ValueError, TypeError)):
        law_of(law.record() | change)


@EXAMPLES
def test_a_record_without_a_field_or_family_is_refused(law: NoiseLaw) -> None:
    for name in law.record():
        with pytest.raises(ValueError, match=r"family = None|is not complete"):
            law_of({key: value for key, value in law.record().items() if key != name})


@EXAMPLES
def test_less_noise_is_a_larger_loss(law: NoiseLaw) -> None:
    record = law.record()
    if isinstance(law, LinearLaw):  # less noise behind a map: a longer map, as far as it may go
        smaller = record | {"weights": (np.array(record["weights"]) / 2).tolist()}
        assert law_of(smaller).privacy_loss(0.25).delta(1.0) < law.privacy_loss(0.25).delta(1.0)
        return
    size = next(name for name in ("deviation", "scale", "period") if name in record)
    smaller = record | {size: record[size] // 2 if size == "period" else record[size] * 0.5}
    smaller["grid"] = record["grid"] / 4
    if size == "period":  # counted in steps of the grid
        smaller |= {"period": 2 * record["period"], "inner": 2 * record["inner"]}
    assert law_of(smaller).privacy_loss(0.25).delta(2.0) > law.privacy_loss(0.25).delta(2.0)


@EXAMPLES
def test_rows_with_words_of_their_own_get_the_same_noise_in_any_company(law: NoiseLaw) -> None:
    rng, key = np.random.default_rng(2), hashlib.sha256(b"company").digest()
    rows = rng.uniform(-0.4, 0.4, size=(500, law.dimensions))
    all_tags = np.frombuffer(tags(500), np.uint8).reshape(500, -1)
    together = law.add_to(rows, RowWords(key, all_tags.tobytes()))
    order = rng.permutation(500)
    assert (law.add_to(rows[order], RowWords(key, all_tags[order].tobytes())) == together[order]).all()
    alone = [law.add_to(rows[i : i + 1], RowWords(key, all_tags[i].tobytes()))[0] for i in range(60)]
    assert (np.array(alone) == together[:60]).all()
    assert len({row.tobytes() for row in together - rows}) == 500, "no noise twice"


@EXAMPLES
def test_words_for_other_rows_are_refused(law: NoiseLaw) -> None:
    with pytest.raises(ValueError, match="give one tag for each row"):
        law.add_to(np.zeros((3, law.dimensions)), RowWords(bytes(32), tags(2)))


def test_a_rejection_that_runs_past_its_window_comes_to_an_end() -> None:
    """This row's chi once read its 32 words in circles, forever."""
    law = SphericalLaplace(B=0.25, epsilon=4, delta=1 / 5_000_001).law(10)
    key = hashlib.sha256(b"2 31").digest()
    rows = np.zeros((4_096, 10))
    private = law.add_to(rows, RowWords(key, tags(4_096, 24_576)))
    assert np.isfinite(private).all()
    assert law.add_to(np.zeros((1, 10)), RowWords(key, tags(1, 27_872)))[0].tolist() == (
        private[27_872 - 24_576].tolist()
    )


def test_staircases_end_even_on_words_that_are_all_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    law = MADE["staircase"]
    ones = np.full((1, 32), 2**64 - 1, dtype=np.uint64)

    def of_rows(self: RowWords, start: int, stop: int, width: int) -> Any:
        more = np.random.default_rng(0).integers(0, 2**63, size=(1, width), dtype=np.uint64)
        more[:, :32] = ones
        return more

    monkeypatch.setattr(RowWords, "of_rows", of_rows)
    assert np.isfinite(law.add_to(np.zeros((1, 1)), RowWords(bytes(32), tags(1)))).all()


def test_a_product_depends_on_its_row_only() -> None:
    rng = np.random.default_rng(4)
    rows, matrix = rng.standard_normal((2_003, 17)), rng.standard_normal((17, 17))
    whole = row_product(rows, matrix)
    assert whole == pytest.approx(rows @ matrix, rel=1e-12, abs=1e-12)
    order = rng.permutation(len(rows))
    assert (row_product(rows[order], matrix) == whole[order]).all()
    assert all((row_product(rows[i : i + 1], matrix) == whole[i]).all() for i in range(0, 2_003, 97))


def test_a_release_of_a_projection_does_not_tell_a_row_s_place() -> None:
    law, rows = MADE["projection"], np.random.default_rng(5).uniform(-0.4, 0.4, (1_000, 4))
    key, order = bytes(32), np.random.default_rng(6).permutation(1_000)
    mine = np.frombuffer(tags(1_000), np.uint8).reshape(1_000, -1)
    first = law.add_to(rows, RowWords(key, mine.tobytes()))
    assert (law.add_to(rows[order], RowWords(key, mine[order].tobytes())) == first[order]).all()
    assert (law.add_to(rows, SecretWords()) != law.add_to(rows, SecretWords())).any()
