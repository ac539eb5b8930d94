"""Scores that are fitted to people whose rows are known: what they predict, say, and leave out."""

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from targetdp._core import Floats
from targetdp.programs import Aid, Lending
from targetdp.release import AskedDecision, Question
from targetdp.targeting import fit_scores
from targetdp.targeting._fit import _boosted
from targetdp.targeting._fit._boosted import LEAST_LEAF, Boosted, BoostedFit
from targetdp.targeting._fit._kinds import CrossFitted, ScoreKind, rounded, rounded_cuts, score_kinds
from targetdp.targeting._fit._linear import RIDGES, ridge_fit
from targetdp.targeting._fit._trees import ScoreTrees

FEATURES = ("calls", "texts", "topups")


def crowd(people: int = 600, seed: int = 0) -> tuple[Floats, Floats]:
    """Rows, and a target with a line in one column and a bump in another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(people, 3)) * [1.0, 20.0, 0.01] + [0.0, 50.0, 3.0]
    y = X[:, 0] + 2 * (np.abs(X[:, 1] - 50) < 10) + 0.2 * rng.normal(size=people)
    return X, y


def fitted(kind: str, people: int = 600, *, lending: bool = False, X: Floats | None = None) -> CrossFitted:
    rows, y = crowd(people)
    program = Lending((y > 0.7).astype(float), None) if lending else Aid(np.exp(y / 3))
    return fit_scores(rows if X is None else X, program, classic=True, kinds=[kind])[0]


def test_kinds_are_found_by_their_files_the_simplest_first() -> None:
    assert list(score_kinds()) == ["linear", "additive", "boosted"]
    assert [kind.any_B for kind in score_kinds().values()] == [True, True, False]


@pytest.mark.parametrize("kind", ["linear", "additive", "boosted"])
@pytest.mark.parametrize("lending", [False, True])
def test_a_score_predicts_people_whom_it_has_not_seen(kind: str, lending: bool) -> None:
    one = fitted(kind, lending=lending)
    X, y = crowd(5_000, seed=1)
    told = np.corrcoef(one.score.of_rows(X), y)[0, 1]
    assert told > (0.6 if kind == "linear" else 0.85)  # only a line cannot see the bump
    own = np.corrcoef(one.own, crowd()[1])[0, 1]
    assert own == pytest.approx(told, abs=0.06)


def test_own_scores_are_by_fits_without_the_person() -> None:
    """Where there is nothing to learn, whoever is judged by her own label would look well predicted."""
    X, _ = crowd(300)
    y = np.random.default_rng(7).normal(size=300)
    for one in fit_scores(X, Aid(np.exp(y)), classic=True):
        assert abs(np.corrcoef(one.own, y)[0, 1]) < 0.2
    seen = fit_scores(X, Aid(np.exp(y)), classic=True, kinds=["boosted"])[0].score.of_rows(X)
    assert np.corrcoef(seen, y)[0, 1] > 0.28  # some labels are learned by heart


def test_the_middle_makes_a_score_a_prediction() -> None:
    for lending in (False, True):
        for kind in score_kinds():
            one = fitted(kind, lending=lending)
            predicted = one.own + one.score.middle
            y = crowd()[1]
            if lending:
                assert np.mean(1 / (1 + np.exp(-predicted))) == pytest.approx(np.mean(y > 0.7), abs=0.03)
            else:
                assert np.mean(predicted) == pytest.approx(np.mean(y / 3), abs=0.03)


@pytest.mark.parametrize("kind", ["linear", "additive"])
def test_the_request_says_the_same_score(kind: str) -> None:
    one = fitted(kind)
    X, _ = crowd(50, seed=2)
    asked = AskedDecision.model_validate(one.score.asked(FEATURES) | {"cut": 0.0})
    columns = dict(zip(FEATURES, X.T, strict=True))
    assert asked.scores_of(columns) == pytest.approx(one.score.of_rows(X), abs=1e-12)
    Question.of(asked, 2.0)


def test_weights_and_curves_are_rounded() -> None:
    digits = [f"{abs(w):.12g}" for w in fitted("linear").score.asked(FEATURES)["weights"].values()]
    assert all(len(one.replace(".", "").lstrip("0").rstrip("0")) <= 8 for one in digits)
    for curve in fitted("additive").score.asked(FEATURES)["additive"].values():
        assert all(len(f"{one:.12g}") <= 9 for one in (*curve["knots"], *curve["values"]))


def test_cuts_and_knots_are_nobodys_own_value() -> None:
    X, _ = crowd()
    trees = fitted("boosted").score
    assert isinstance(trees, BoostedFit)
    cuts = {float(t) for tree in trees.trees.trees for t in tree.threshold[tree.column >= 0]}
    assert not cuts & {*X.astype(np.float32).ravel().tolist()}
    assert max(len(f"{np.format_float_positional(np.float32(cut))}") for cut in cuts) <= 8


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lending", [False, True])
@pytest.mark.parametrize("library", ["lightgbm", "sklearn"])
def test_every_leaf_has_twenty_people(
    library: str, lending: bool, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LightGBM counts people by their curvature: leaves had 8 of them for a lender, and 2 by weights."""
    if library == "sklearn":
        without_lightgbm(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000, 5))
    chance = 1 / (1 + np.exp(-3 * X[:, 0] - 2))
    y = (rng.random(1_000) < chance).astype(float) if lending else X[:, 0] + rng.normal(size=1_000)
    weights = rng.lognormal(size=1_000) if weighted else np.ones(1_000)
    score = Boosted().fit(X, y, "classification" if lending else "regression", weights, 0)
    rows = X.astype(np.float32)
    for tree in score.trees.trees:
        for leaf in np.flatnonzero(tree.column < 0):
            marked = np.zeros(len(tree.column))
            marked[leaf] = 1.0
            here = type(tree)(tree.column, tree.threshold, tree.left, tree.right, marked).of_rows(rows)
            assert here.sum() >= LEAST_LEAF
    assert np.corrcoef(score.of_rows(X) + score.middle, chance if lending else X[:, 0])[0, 1] > 0.8


def solved_labels(trees: ScoreTrees, X: Floats, met: list[np.ndarray[Any, np.dtype[np.bool_]]]) -> Floats:
    """The labels that fit all leaves best, by somebody with the rows who knows whom each tree has met.

    A leaf is the mean of what the trees before it have left over, of people whom it has met, times the rate.
    """
    n, rows, values = len(X), X.astype(np.float32), []
    equations: list[Floats] = []
    for forest, whom in enumerate(met):
        before = np.zeros(n)
        for place, tree in enumerate(trees.trees[forest::3]):
            marked = np.arange(len(tree.column), dtype=float)
            leaves = type(tree)(tree.column, tree.threshold, tree.left, tree.right, marked).of_rows(rows)
            for leaf in np.unique(leaves):
                own = (leaves == leaf) & whom[place]
                if own.any():
                    offset = np.zeros(4)  # of each forest's first tree, and of all
                    offset[3], offset[forest] = -1.0, float(place == 0)
                    equations.append(np.concatenate([own / own.sum(), offset]))
                    values.append(3 * tree.value[int(leaf)] / 0.05 + before[own].mean())
            before += 3 * tree.of_rows(rows)
    found, *_ = np.linalg.lstsq(np.array(equations), np.array(values), rcond=1e-4)
    return np.asarray(found[:n])


def whom_lightgbm_meets(seed: int, people: int, rounds: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Who is in the half that each tree is fitted to, by LightGBM's random numbers; up to 1,024 people."""
    booster = _boosted_once(seed)
    state = int(booster.split("[bagging_seed: ")[1].split("]")[0])
    met = np.empty((rounds, people), dtype=bool)
    for each in range(rounds):
        for person in range(people):
            state = (214013 * state + 2531011) % 2**32
            met[each, person] = (state >> 16) % 2**15 < 2**14
    return met


def _boosted_once(seed: int) -> str:
    from lightgbm import LGBMRegressor

    once = LGBMRegressor(random_state=seed, n_estimators=1, verbosity=-1)
    return str(once.fit(np.eye(50), np.arange(50.0)).booster_.model_to_string())


def test_labels_cannot_be_solved_for_by_a_seed_that_anybody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """With seeds 0, 1, 2 the data holder, who has the rows, read every label off the trees."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 4))
    y = X[:, 0] + rng.normal(size=200)
    met = [whom_lightgbm_meets(seed, 200, 100) for seed in range(3)]

    def solved() -> float:
        score = Boosted().fit(X, y, "regression", np.ones(200), 0).of_size(100)
        return float(np.corrcoef(solved_labels(score.trees, X, met), y)[0, 1])

    assert solved() < 0.8  # that of the column itself is 0.7
    monkeypatch.setattr(_boosted, "_own_seeds", lambda *_: [0, 1, 2])
    assert solved() > 0.99


@pytest.mark.parametrize("library", ["lightgbm", "sklearn"])
def test_seeds_are_made_of_labels(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has rows and labels can repeat a fit, and nobody else."""
    if library == "sklearn":
        without_lightgbm(monkeypatch)
    X, y = crowd(200)

    def shape(target: Floats) -> list[float]:
        trees = Boosted().fit(X, target, "regression", np.ones(200), 0).trees.trees
        return [float(one) for tree in trees for one in tree.threshold]

    assert shape(y) == shape(y + 1e-12)
    assert shape(y) != shape(4 * y)  # the same trees, if they met the same people


@pytest.mark.parametrize("lending", [False, True])
def test_the_file_answers_as_the_trees_do(lending: bool) -> None:
    score = fitted("boosted", lending=lending).score
    data = score.file()
    assert data is not None
    onnx.checker.check_model(onnx.ModelProto.FromString(data), full_check=True)
    X, _ = crowd(500, seed=3)
    X[:20, 1] = np.nan
    session = onnxruntime.InferenceSession(data)
    (told,) = session.run(None, {"columns": X.astype(np.float32)})
    assert told[:, 0] == pytest.approx(score.of_rows(X), abs=1e-5)
    assert not np.isnan(told).any()  # a gap goes right


def without_lightgbm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_boosted, "find_spec", lambda name: None if name == "lightgbm" else find_spec(name))


def test_with_and_without_lightgbm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both grow trees that are as good, within what another seed would change; whichever is there is used."""
    with_it = fitted("boosted")
    assert "lightgbm" in sys.modules
    without_lightgbm(monkeypatch)
    without = fitted("boosted")
    y = crowd()[1]
    assert not np.array_equal(with_it.own, without.own)
    for one in (with_it, without):
        assert np.corrcoef(one.own, y)[0, 1] > 0.9
        assert isinstance(one.score, BoostedFit)
        X = crowd(40, seed=4)[0]
        assert one.score.of_size(50).of_rows(X) + one.score.middle == pytest.approx(
            one.score.of_rows(X) + one.score.middle, abs=1.5
        )


def test_trees_need_the_package_that_writes_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_boosted, "find_spec", lambda _: None)
    assert "pip install 'targetdp[models]'" in str(Boosted().why_not())
    X, y = crowd()
    found = fit_scores(X, Aid(np.exp(y)), classic=True)
    assert [one.kind for one in found] == ["linear", "additive"]
    with pytest.raises(ValueError, match="none of them can be used"):
        fit_scores(X, Aid(np.exp(y)), classic=True, kinds=["boosted"])


def test_below_two_only_what_moves_no_more_than_rows() -> None:
    X, y = crowd()
    X = (X - [0, 50, 3]) / [4, 80, 0.04]
    X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    fits = fit_scores(X, Aid(np.exp(y / 3)), classic=False)
    assert [one.kind for one in fits] == ["linear", "additive"]
    for one in fits:
        asked = AskedDecision.model_validate(one.score.asked(FEATURES) | {"cut": 0.0})
        question = Question.of(asked, 0.25)
        assert question.score is not None
        moved = X + 0.1 * np.random.default_rng(0).normal(size=X.shape)
        moved /= np.maximum(1, np.linalg.norm(moved, axis=1))[:, None]
        far = np.linalg.norm(moved - X, axis=1)
        assert (np.abs(question.score.of_rows(moved) - question.score.of_rows(X)) <= far + 1e-12).all()


def test_gaps_leave_a_line_without_an_answer_and_trees_with_one() -> None:
    X, _ = crowd()
    X[::7, 0] = np.nan
    for kind, answers in (("linear", False), ("additive", False), ("boosted", True)):
        one = fitted(kind, X=X)
        assert np.isnan(one.own[::7]).all() == (not answers)
        assert not np.isnan(np.delete(one.own, np.s_[::7])).any()


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        (np.zeros((59, 2)), np.arange(59.0), "people = 59"),
        (np.zeros((80, 2)), np.ones(80), "nothing to learn"),
        (np.zeros((79, 2)), np.arange(80.0), "has shape"),
        (np.full((80, 1), np.inf), np.arange(80.0), "infinite"),
    ],
)
def test_what_cannot_be_fitted_is_said(X: Any, y: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        fit_scores(X, Aid(y), classic=True)


def test_columns_that_are_all_alike_teach_nothing() -> None:
    y = np.exp(np.random.default_rng(0).normal(size=100))
    for one in fit_scores(np.full((100, 2), 3.0), Aid(y), classic=True):
        assert np.ptp(one.score.of_rows(np.full((5, 2), 3.0))) == 0


def test_a_kind_declares_itself() -> None:
    class Constant(ScoreKind):
        name, any_B, order = "constant", True, 9

        def fit(self, X: Floats, y: Floats, task: Any, weights: Floats, seed: int) -> Any:
            raise NotImplementedError

    try:
        assert list(score_kinds())[-1] == "constant"
    finally:
        del ScoreKind.kinds["constant"]


def test_the_ridge_is_that_of_leaving_everybody_out_once() -> None:
    """By brute force: as many fits as people, for each penalty."""
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(40, 6)), rng.uniform(0.5, 2, 40)
    y = X[:, 0] + 2 * rng.normal(size=40)

    def fit(rows: Floats, target: Floats, counts: Floats, ridge: float) -> tuple[Floats, float]:
        shares = counts / counts.sum()
        middle, mean = shares @ rows, shares @ target
        A = rows - middle
        slopes = np.linalg.solve((A.T * counts) @ A + ridge * np.eye(6), (A.T * counts) @ (target - mean))
        return slopes, float(mean - middle @ slopes)

    counts = weights / weights.mean()
    losses = []
    for ridge in RIDGES:
        left_out = [np.arange(40) != place for place in range(40)]
        models = [fit(X[keep], y[keep], counts[keep], ridge) for keep in left_out]
        errors = [(y[i] - X[i] @ w - b) ** 2 * counts[i] for i, (w, b) in enumerate(models)]
        losses.append(sum(errors))
    slopes, middle = ridge_fit(X, y, weights)
    best = fit(X, y, counts, float(RIDGES[int(np.argmin(losses))]))
    assert slopes == pytest.approx(best[0], abs=1e-9)
    assert middle == pytest.approx(best[1], abs=1e-9)


# Rounding


def test_numbers_are_rounded_at_a_scale() -> None:
    assert rounded(0.123456, 1.0) == 0.123
    assert rounded(123.456, 1000.0, 2) == 100.0
    assert rounded(1e-9, 1.0) == 0.0
    assert rounded(0.5, 0.0) == 0.5


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_cuts_divide_people_evenly(scale: float) -> None:
    column = np.random.default_rng(0).lognormal(size=1_000) * scale + 7 * scale
    cuts = rounded_cuts(column, 9, 20)
    shares = np.histogram(column, [-np.inf, *cuts, np.inf])[0] / 1_000
    assert len(cuts) == 9
    assert (shares > 0.05).all()


def test_of_few_values_cuts_are_between_them() -> None:
    assert rounded_cuts(np.array([0.0, 1.0] * 50), 9, 20).tolist() == [0.5]
    assert rounded_cuts(np.array([1.0, 2.0, 3.0] * 50), 9, 20).tolist() == [1.5, 2.5]
    assert not len(rounded_cuts(np.full(50, 3.0), 9, 20))
    assert not len(rounded_cuts(np.full(50, np.nan), 9, 20))


def test_no_cut_and_no_knot_is_for_one_person() -> None:
    """A column that hardly anybody has would be a curve of these people's labels."""
    rare = np.append(np.zeros(399), 1.0)
    assert not len(rounded_cuts(rare, 9, 20))
    counts = np.random.default_rng(0).poisson(0.3, 400).astype(float)
    for column in (counts, np.concatenate([np.zeros(330), np.arange(70.0)])):
        cuts = rounded_cuts(column, 64, 20)
        assert len(cuts) >= 2
        between = np.diff(np.searchsorted(np.sort(column), [-np.inf, *cuts, np.inf], side="right"))
        assert between.min() >= 10
    X = np.column_stack([rare, np.random.default_rng(1).normal(size=(400, 2))])
    curves = []
    for label in (0.0, 3.0):
        y = X[:, 1].copy()
        y[-1] = label
        asked = fit_scores(X, Aid(np.exp(y)), classic=True, kinds=["additive"])[0].score.asked(FEATURES)
        curves.append(asked["additive"]["calls"])
    assert curves[0] == curves[1]
