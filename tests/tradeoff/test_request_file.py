"""Requests for cells of a sweep: what they ask for, what they say, and that a desk answers them."""

import tomllib
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.tradeoff import FEATURES, GRID
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import NoiseMechanism, PrivateProjection, noise_mechanisms
from targetdp.normalization import data_scales, normalize, scales_text
from targetdp.populations import ID, Example, draw
from targetdp.programs import MARK, QUOTA, Aid, Folds
from targetdp.release import Desk, Request, check_release, privatize, read_request
from targetdp.release._request import HOLDERS
from targetdp.tradeoff import Cell, Constraint, Grid, Study, Sweep, read_run, recommend, request_text, run
from targetdp.tradeoff._study import fingerprint_of

SMALL = "least-noise B=0.25 epsilon=3.5"
PRINTED = "projection B=0.25 epsilon1=3 epsilon2=0.9"
IN_PARTS = "projection B=0.25 epsilon1=3 epsilon2=0.9999"
RELEASED = replace(GRID, k=(10_000,))


def run_record(**more: Any) -> dict[str, Any]:
    made_of = {"public_record": {"rows": "clip"}}
    whole = {
        "features": list(FEATURES), "source": "public", "for_the_data_holder_only": False,
        "program": "small", "people": 150, "fingerprint": fingerprint_of(made_of), "made_of": made_of,
    }  # fmt: skip
    return whole | more


def cell(name: str, grid: Grid = GRID, people: int = 150) -> Cell:
    (found,) = (one for one in grid.cells(people) if one.name == name)
    return found


def parsed(text: str) -> Request:
    return Request.model_validate(tomllib.loads(text))


def test_rows_are_asked_for_at_the_cells_B_and_epsilon() -> None:
    record = run_record()
    asked = parsed(request_text(record, cell(SMALL)))
    assert asked == Request(
        release="rows", features=FEATURES, B=0.25, epsilon=3.5, mechanism="least-noise", tuned_on="public",
        program="small", page=record["fingerprint"],
    )  # fmt: skip


def test_nothing_that_the_data_holder_decides_is_in_it() -> None:
    for technology in ("gaussian", "least-noise", "score", "score-laplace"):
        grid = Grid(B=(0.25,), epsilon1=(3.0,), epsilon2=(0.5,), mechanisms=(technology,))
        text = request_text(run_record(), cell(f"{technology} B=0.25 epsilon=3.5", grid))
        assert not HOLDERS & set(tomllib.loads(text))
        assert parsed(text).mechanism == ("gaussian" if technology == "gaussian" else "least-noise")


def test_who_asks_and_why_are_left_to_fill_in() -> None:
    text = request_text(run_record(), cell(SMALL))
    assert "asked_by" not in tomllib.loads(text)
    filled = text.replace('# asked_by = "…"', 'asked_by = "Ministry of Aid"')
    assert parsed(filled.replace('# why = "…"', 'why = "a pilot"')).asked_by == "Ministry of Aid"
    with pytest.raises(ValueError, match="is no plain name"):  # somebody forgot to fill it in
        parsed(text.replace('# asked_by = "…"', 'asked_by = "…"'))


def test_the_desk_takes_delta_where_the_sweep_had_the_usual_one_or_more() -> None:
    for grid, had in ((GRID, "δ = 0.00663:"), (replace(GRID, parts=5), "δ = 0.0323, 4.87 times the usual")):
        text = request_text(run_record(), cell(SMALL, grid))
        assert parsed(text).delta is None
        assert f"the smaller of its policy's and 1/(rows + 1). The sweep had {had}" in text
        assert ("a smaller one, as a release has it, means more noise" in text) == (grid.parts is not None)


def test_a_smaller_delta_than_usual_is_asked_for() -> None:
    """Left out, the release would promise less than the sweep said."""
    text = request_text(run_record(), cell(SMALL, replace(GRID, delta=1e-6)))
    assert parsed(text).delta == 1e-6
    assert "It asks for (B = 0.25, ε = 3.5, δ = 1e-06), as the sweep had it." in text


@pytest.mark.parametrize("e1", [0.5, 2.0, 2.9997, 3.0, 8.0])
@pytest.mark.parametrize("e2", [0.5, 0.9999])
def test_a_projection_is_asked_for_with_the_cells_noise(e1: float, e2: float) -> None:
    grid = Grid(B=(0.25,), epsilon1=(e1,), epsilon2=(e2,))
    made = cell(f"projection B=0.25 epsilon1={e1:g} epsilon2={e2:g}", grid, 4_201)
    asked, delta = parsed(text := request_text(run_record(people=4_201), made)), 1 / 4_202
    assert asked.delta is None
    released = noise_mechanisms()[asked.mechanism](Guarantee(0.25, asked.epsilon, delta))
    assert isinstance(released, PrivateProjection)
    wanted = PrivateProjection(B=0.25, epsilon1=e1, epsilon2=e2, delta1=delta * 2 / 3, delta2=delta / 3)
    assert released.noise_sd(4) == pytest.approx(wanted.noise_sd(4), rel=1e-9)
    assert ("The cell has ε" in text) == (asked.epsilon != pytest.approx(e1 + e2))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (cell("status quo"), "it is no release; choose another cell"),
        (
            cell("mondrian group_size=2"),
            "k-anonymity has no guarantee, and no request can ask for it; choose another cell",
        ),
        (cell(PRINTED), r"no request can ask for it: k is not 10,000; sweep the grid with k = \[10000\]"),
        (
            cell(IN_PARTS, Grid(parts=6), 20_788),
            "no request can ask for it: it is made in random parts; sweep .* and without parts",
        ),
    ],
)
def test_what_no_request_can_ask_for_is_refused_with_its_remedy(made: Cell, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        request_text(run_record(), made)


def test_odd_names_survive() -> None:
    odd = ('say "x"', "a\\b", "#c", "day\x7f")
    text = request_text(run_record(features=list(odd)), cell(PRINTED, RELEASED))
    assert parsed(text).features == odd


@pytest.mark.parametrize(
    ("program", "plain"),
    [
        ("aid 2026", "aid 2026"),
        ("aid.v2 (north)", "aid v2 north"),
        ("l'aide d'été", "l'aide d'été"),
        ("one two three four five six seven", "one two three four five six"),
        ("x" * 80, "x" * 60),
        ('"\n# epsilon = 99 [weights]\n', "epsilon 99 weights"),
        ("…", None),
    ],
)
def test_the_programs_name_is_a_plain_one(program: str, plain: str | None) -> None:
    """It goes on a page that the data holder signs."""
    asked = parsed(request_text(run_record(program=program), cell(SMALL)))
    assert (asked.program, asked.epsilon) == (plain, 3.5)


def test_no_hash_of_confidential_rows_is_in_a_request() -> None:
    """It would go into the certificate: whoever knows all rows but one could find the last by it."""
    record = run_record(source="confidential", for_the_data_holder_only=True)
    text = request_text(record, cell(SMALL))
    assert record["fingerprint"][:16] not in text
    assert text.startswith(f"# {MARK}\n")
    assert (parsed(text).page, parsed(text).tuned_on) == (None, "this-data")


# From a sweep to a release


GRID_OF_ALL = Grid(
    B=(0.5,), epsilon1=(3.0,), epsilon2=(0.9999,), group_sizes=(),
    mechanisms=("projection", "least-noise", "gaussian", "score", "score-laplace"),
)  # fmt: skip

POLICY = """
name = "invented subscribers"

[id]
column = "id"

[columns]
release = {features}

[scales]
source = "public"

[limit]
B = 0.5
epsilon = 8
delta = 1e-2

[release]
epsilon = 4
delta = 1e-2
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep of some invented people."""
    people = draw("togo", rows=300)
    rows = normalize(people.X, data_scales(people.X)).X
    study = Study(
        "cash aid 2026", "synthetic", people.features, rows, Aid(people.y, QUOTA), Folds(len(people.X))
    )
    folder = tmp_path_factory.mktemp("requests") / "sweep"
    run(Sweep(study, GRID_OF_ALL, simulations=2), folder, jobs=1)
    return folder


@pytest.fixture
def others() -> Example:
    """Other invented people, of whom a release is to be made."""
    return draw("togo", rows=400, seed=8)


@pytest.fixture
def desk(others: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk for them, with scales of yet other people."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    public = draw("togo", rows=500, seed=9)
    scales = tmp_path / "public.toml"
    scales.write_text(scales_text(data_scales(public.X), public.features, "public", "a"), encoding="utf-8")
    policy = POLICY.format(features=list(others.features))
    return Desk.create(tmp_path / "desk", policy, scales=scales)


def test_a_recommended_request_is_answered_as_it_is(
    swept: Path, others: Example, desk: Desk, tmp_path: Path
) -> None:
    found = recommend(swept, [Constraint("singling_out", at_least=0.0)])
    assert found.chosen is not None
    assert found.guarantee is not None
    path = tmp_path / "request.toml"
    path.write_text(str(found.request), encoding="utf-8")
    asked = read_request(path)
    seen = check_release(others.table, desk=desk, request=asked)
    assert seen.problems == ()
    assert seen.terms is not None
    assert seen.terms.guarantee == Guarantee(found.guarantee.B, found.guarantee.epsilon, 1 / 401)
    released = privatize(others.table, desk=desk, request=asked)
    certificate = released.certificate
    assert (certificate.tuned_on, certificate.request.program) == ("synthetic", "cash aid 2026")
    assert certificate.request.page == read_run(swept)["fingerprint"]
    assert certificate.features == others.features
    assert released.frame.num_rows == 400
    assert ID in released.frame.column_names


def test_a_request_for_every_cell_with_noise_is_accepted(swept: Path, others: Example, desk: Desk) -> None:
    """On a table of the sweep's size a release has the noise that was measured."""
    table, record = others.table.slice(0, 300), read_run(swept)
    noisy = [Cell(**one) for one in record["cells"] if one["epsilon"] is not None]
    assert {one.mechanism for one in noisy} == set(GRID_OF_ALL.mechanisms)
    for made in noisy:
        seen = check_release(table, desk=desk, request=parsed(request_text(record, made)))
        assert seen.problems == ()
        assert seen.terms is not None
        assert made.promise is not None
        assert astuple(seen.terms.guarantee) == pytest.approx(astuple(made.promise), rel=1e-12)
        own = made.noises(10)[0]
        assert isinstance(own, NoiseMechanism)
        assert seen.terms.law.noisy is not None
        assert np.allclose(seen.terms.law.noisy.covariance, own.law(10).covariance)
