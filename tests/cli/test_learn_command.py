"""`targetdp learn`: from a private sample and labels to a request for scores."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.learn import (
    EVERYBODY,
    SAMPLED,
    population,
    release_sample,
    write_ids,
    write_population,
    write_program,
)
from support.release import FEATURES, Ran, certificate_of, cli, nothing_changes, read_back, words
from support.scores import release_scores
from targetdp import Guarantee
from targetdp.release import read_request
from targetdp.targeting._expect import Difference
from targetdp.targeting._learn import LearnedWeights
from targetdp.theorem1 import accuracy_ceiling

QUICK = ("--program", "program.toml", "--release", "scores", "--out", "request.toml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    release_sample(tmp_path, tuned_on="public")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def learn(*arguments: Any) -> Ran:
    return cli("learn", "sample.parquet", "labels.csv", *(arguments or QUICK))


def test_the_story_of_learning(folder: Path) -> None:
    """A sample is released, weights are learned, everybody else is scored, and scores find the poor."""
    ran = learn()
    assert ran.code == 0, ran.err
    assert "poor left out" in ran.out
    assert "What more or less ε would buy" in ran.out
    assert "of 1,000 people" in words(ran.out)
    assert "hand it to the data holder, who runs targetdp privatize --request" in words(ran.err)
    scored = cli("privatize", "all.parquet", "scores.parquet", "--request", "request.toml", "--yes")
    assert scored.code == 0, scored.err
    scores = read_back(folder / "scores.parquet")
    assert scores.num_rows == EVERYBODY - SAMPLED
    truth = dict(zip(population()["name"].to_pylist(), population()["consumption"].to_pylist(), strict=True))
    y = np.log([truth[name] for name in scores["name"].to_pylist()])
    assert np.corrcoef(scores["score"].to_numpy(), y)[0, 1] > 0.55


def test_the_request_has_weights_and_where_they_are_from(folder: Path) -> None:
    assert learn().code == 0
    text = (folder / "request.toml").read_text(encoding="utf-8")
    assert text.startswith("# A request for scores, written by targetdp learn.")
    assert "About the labels they tell\n# something" in text
    asked, sample = read_request(folder / "request.toml"), certificate_of(folder / "sample.parquet")
    assert (asked.release, asked.scores, asked.program) == ("scores", ("score",), "aid")
    assert (asked.B, asked.epsilon, asked.delta) == (sample.guarantee.B, sample.guarantee.epsilon, None)
    assert (asked.learned_from, asked.leave_out) == (sample.release, (sample.release,))
    assert asked.tuned_on == sample.tuned_on == "public"
    assert tuple(asked.weights or ()) == FEATURES
    assert np.linalg.norm(asked.matrix) == pytest.approx(1, abs=1e-3)
    assert asked.matrix[0] @ [0.6, 0.3, -0.4] > 0.7  # consumption rises with these
    # Nothing but these: no mean, no quantile, no label, nor how many of them there are.
    assert "Nothing else about labels\n# is in it" in text
    assert str(SAMPLED) not in text.replace(sample.release, "")
    assert all(len(f"{abs(w):.6g}".replace("0.", "").lstrip("0")) <= 4 for w in asked.matrix[0].tolist())


def test_what_is_left_to_fill_in_stands_there_as_a_comment(folder: Path) -> None:
    assert learn(*QUICK, "--B", "0.5", "--delta", "1e-7", "--mechanism", "gaussian").code == 0
    asked = read_request(folder / "request.toml")
    assert (asked.B, asked.delta, asked.mechanism) == (0.5, 1e-7, "gaussian")
    assert asked.tuned_on is None  # of this B nothing is known
    text = (folder / "request.toml").read_text(encoding="utf-8")
    for field in ("asked_by", "why", "tuned_on"):
        assert f"\n# {field} = " in text
        text = text.replace(f"\n# {field} = ", f"\n{field} = ")
    (folder / "request.toml").write_text(text, encoding="utf-8")
    filled = read_request(folder / "request.toml")
    assert (filled.asked_by, filled.why, filled.tuned_on) == ("a name", "a reason", "public")


def test_labels_are_joined_by_the_data_holders_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_population(tmp_path, pseudonyms=True)
    release_sample(tmp_path)
    monkeypatch.chdir(tmp_path)
    with nothing_changes(tmp_path):
        ran = learn()
    assert ran.code == 2
    assert "has pseudonyms: ask the data holder" in words(ran.err)
    assert "(targetdp ids), and give the list (--ids)" in words(ran.err)
    write_ids(tmp_path, population().slice(0, SAMPLED))
    with nothing_changes(tmp_path):
        assert learn("--program", "program.toml", "--out", "ids.csv", "--force", "--ids", "ids.csv").code == 2
    ran = learn(*QUICK, "--ids", "ids.csv")
    assert ran.code == 0, ran.err
    assert read_request(tmp_path / "request.toml").matrix[0] @ [0.6, 0.3, -0.4] > 0.7


def test_lending_and_json(folder: Path) -> None:
    write_program(folder, "lending", population=20_000.0)
    ran = learn(*QUICK, "--json", "--B", "1", "--epsilon", "2", "--delta", "1e-6", "--confidence", "0.9")
    assert ran.code == 0, ran.err
    told = ran.json
    assert told["scores"]["guarantee"] == {"B": 1, "epsilon": 2, "delta": 1e-6}
    assert told["request"] == read_request(folder / "request.toml").sha256
    assert told["program"] == "lending"
    assert told["confidence"] == 0.9
    assert (told["unit"], told["population"], told["people"]) == ("$", 20_000, SAMPLED)
    assert set(told["expected"]) == {"accuracy", "wrong_approvals", "wrong_refusals", "profit"}
    low, high = told["expected"]["profit"]["interval"]
    assert low < told["expected"]["profit"]["value"] < high
    assert [one["guarantee"]["epsilon"] for one in told["other_epsilons"]] == [0.5, 1, 2, 4, 8]
    assert told["target_scale"] == "as given"
    again = learn(*QUICK, "--json", "--force", "--quiet", "--B", "1", "--epsilon", "2", "--delta",
                  "1e-6", "--confidence", "0.9")  # fmt: skip
    assert again.json == told
    assert again.err == ""


def test_a_lender_who_names_no_loans_is_told_of_no_money(folder: Path) -> None:
    write_program(folder, "lending", loans=False)
    ran = learn()
    assert ran.code == 0, ran.err
    assert "profit" not in ran.out
    assert "Counts are of 1,000 people" in words(ran.out)


def test_a_programs_estimator_is_none_of_our_business(folder: Path) -> None:
    """Scores take its place: it is not imported, and a file that names one is not refused."""
    (folder / "elsewhere.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    write_program(folder, estimator="elsewhere.Model")
    ran = learn()
    assert ran.code == 0, ran.err


def test_who_is_left_out_is_told(folder: Path) -> None:
    lines = (folder / "labels.csv").read_text(encoding="utf-8").splitlines()
    (folder / "labels.csv").write_text("\n".join(lines[:201]) + "\n", encoding="utf-8")
    ran = learn()
    assert "200 people of the sample have no label" in ran.err
    assert "on a log scale" in words(ran.out)


def test_a_sample_that_shows_nothing_is_warned_about(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its noise is a release's, and cannot be seeded: what it shows is settled here."""
    assert "does not show" not in learn().err
    monkeypatch.setattr(LearnedWeights, "tells", False)
    ran = learn(*QUICK, "--force")
    assert ran.code == 0
    assert "does not show that scores would tell anything" in words(ran.err)


def test_scales_that_the_sample_has_paid_for_cost_the_scores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the sample's ε = 16 a half went to its scales; all of the scores' goes to their noise."""
    write_population(tmp_path, scales="private", share=0.5)
    sample = release_sample(tmp_path, epsilon=16.0).certificate
    assert sample.scales.spent is not None
    assert sample.scales.spent.epsilon == pytest.approx(8.0)
    monkeypatch.chdir(tmp_path)
    ran = learn(*QUICK, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["scores"]["guarantee"]["epsilon"] == 16
    assert ran.json["notes"] == []
    scored = cli("privatize", "all.parquet", "scores.parquet", "--request", "request.toml", "--yes")
    assert scored.code == 0, scored.err
    scores = certificate_of(tmp_path / "scores.parquet")
    assert (scores.scales.source, scores.scales.spent) == ("earlier", None)
    assert scores.scales.values == sample.scales.values
    assert scores.mechanism.deviation_per_column == pytest.approx(ran.json["scores"]["noise_sd"], rel=1e-3)


def test_what_no_algorithm_can_do_stands_beside(folder: Path) -> None:
    ran = learn(*QUICK, "--B", "2", "--epsilon", "1", "--delta", "0.01")
    assert "no more often than γ = 0.7338" in words(ran.out)
    assert "γ is not this accuracy" in words(ran.out)
    told = learn(*QUICK, "--B", "2", "--epsilon", "1", "--delta", "0.01", "--json", "--force").json
    assert told["ceiling"]["largest_agreement"] == accuracy_ceiling(Guarantee(2.0, 1.0, 0.01))
    usual = learn(*QUICK, "--force", "--json").json
    guarantee = Guarantee(**usual["scores"]["guarantee"])
    assert usual["ceiling"]["largest_agreement"] == accuracy_ceiling(guarantee)


def test_pictures_that_disagree_are_warned_about(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Difference, "is_odd", False)
    assert "rely on the interval" not in learn().err
    monkeypatch.setattr(Difference, "is_odd", True)
    ran = learn(*QUICK, "--force", "--json")
    assert ran.code == 0
    assert "so rely on the interval, not on the figure" in words(ran.err)
    (warning,) = ran.json["warnings"]
    assert "of people are decided about rightly" in warning
    assert set(ran.json["checked_on_the_sample"]) == {"smooth", "counted", "error"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--program", "program.toml", "--out", "labels.csv"), "exists"),
        (("--program", "program.toml", "--out", "labels.csv", "--force"), "one of the inputs"),
        (("--program", "program.toml", "--out", "nowhere/request.toml"), "folder does not exist"),
        (("--program", "program.toml", "--out", "request.onnx"), "named as a model is"),
        (("--program", "missing.toml", "--out", "request.toml"), "missing.toml"),
        ((*QUICK, "--B", "3"), "B = 3.0 is outside"),
        ((*QUICK, "--epsilon", "-1"), "epsilon = -1.0 is outside"),
        ((*QUICK, "--delta", "1.5"), "delta = 1.5 is outside"),
        ((*QUICK, "--delta", "0"), "delta = 0.0 is outside"),
        ((*QUICK, "--ids", "labels.csv"), "the sample has no pseudonyms; leave --ids out"),
        ((*QUICK, "--confidence", "1"), "confidence = 1.0 is outside"),
        ((*QUICK, "--id", "person"), "id names 'person'"),
        ((*QUICK, "--certificate", "labels.csv"), "is not one"),
        ((*QUICK, "--public-key", "00"), "not an Ed25519 public key"),
    ],
)
def test_what_is_refused_writes_nothing(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    with nothing_changes(folder):
        ran = learn(*arguments)
    assert ran.code == 2
    assert said in words(ran.err)


def test_scores_are_not_learned_from(folder: Path) -> None:
    release_scores(folder, table="sampled.parquet")
    with nothing_changes(folder):
        ran = cli("learn", "scores.parquet", "labels.csv", *QUICK, "--force")
    assert ran.code == 2
    assert "holds scores (score), not features" in words(ran.err)


def test_weights_for_laplace_noise_on_the_score(folder: Path) -> None:
    """Weights and what to expect of them are for the noise that will be added; unknown noise is refused."""
    least = learn(*QUICK, "--json").json
    laplace = learn(*QUICK, "--json", "--mechanism", "spherical-laplace", "--force").json
    assert least["scores"]["mechanism"] == "staircase"
    assert laplace["scores"]["mechanism"] == "spherical-laplace"
    refused = learn(*QUICK, "--mechanism", "quietest", "--force")
    assert refused.code == 2
    assert "mechanism = 'quietest' is not one of" in words(refused.err)
