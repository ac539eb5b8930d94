"""Decisions from scores: the right people, the right number of them, and nothing that does not fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.learn import (
    EVERYBODY,
    SAMPLED,
    labels,
    population,
    release_sample,
    write_ids,
    write_population,
    write_program,
)
from support.release import read_back, write_csv
from support.scores import release_scores
from targetdp import Staircase
from targetdp.programs import read_decision_rule
from targetdp.programs._measures import highest
from targetdp.release import Released
from targetdp.targeting import allocate, read_labelled, read_scores
from targetdp.targeting._labelled import LabelledSample
from targetdp.targeting._list._allocate import Decisions, PrivateScores

NOISE = Staircase(B=0.25, epsilon=4.0).noise_sd(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("allocate")
    release_sample(place)
    score(place)
    write_program(place, "lending", "lending.toml")
    return place


def score(
    folder: Path, weights: list[float] | None = None, name: str = "scores.parquet", **more: Any
) -> Released:
    """Everybody outside the sample, by these weights or by those that are learned."""
    listed = folder / "ids.csv"
    sample = read(folder, ids=listed if listed.exists() else None)
    found, w = sample.certificate, weights or np.round(sample.learn(NOISE**2).w, 4).tolist()
    asked: dict[str, Any] = {"learned_from": found.release, "leave_out": (found.release,)}
    return release_scores(folder, name, dict(zip(found.features, w, strict=True)), **asked | more)


def read(
    folder: Path, program: str = "program.toml", labelled: str = "labels.csv", **more: Any
) -> LabelledSample:
    rule = read_decision_rule(folder / program)
    return read_labelled(folder / "sample.parquet", folder / labelled, rule, **more)


def decided(folder: Path, program: str = "program.toml", name: str = "scores.parquet") -> Decisions:
    return allocate(read_scores(folder / name), read(folder, program), np.random.default_rng(0))


def truth(found: Decisions, column: str) -> Any:
    known = dict(zip(population()["name"].to_pylist(), population()[column].to_pylist(), strict=True))
    return np.array([known[name] for name in found.ids.to_pylist()])


def test_aid_goes_to_the_quota_of_everybody(folder: Path) -> None:
    found = decided(folder)
    assert found.ids.to_pylist() == sorted(population()["name"].to_pylist())
    assert int(found.chosen.sum()) == round(0.3 * EVERYBODY)
    assert int(found.by_score.sum()) == EVERYBODY - SAMPLED
    assert found.chances[found.chosen].min() >= found.chances[~found.chosen].max()
    assert found.notes == ()
    y = truth(found, "consumption")
    poor = y <= np.sort(y)[round(0.3 * EVERYBODY) - 1]
    for ours in (found.by_score, ~found.by_score):
        assert np.mean(found.chosen[ours] == poor[ours]) > 0.75  # a lottery: 0.58
        # Chances mean what they say, within 5 errors.
        assert found.chances[ours].mean() == pytest.approx(poor[ours].mean(), abs=0.1)


def test_loans_go_to_chances_above_the_threshold(folder: Path) -> None:
    found = decided(folder, "lending.toml")
    assert found.program.kind == "lending"
    np.testing.assert_array_equal(found.chosen, found.chances > 0.5)
    repaid = truth(found, "repaid") == 1
    assert np.mean(found.chosen == repaid) > max(repaid.mean(), 1 - repaid.mean()) + 0.1
    write_program(folder, "lending", "careful.toml", threshold=0.8)
    careful = decided(folder, "careful.toml")
    assert 0 < careful.chosen.sum() < found.chosen.sum()


def test_the_table_says_what_was_decided_and_why(folder: Path) -> None:
    found = decided(folder)
    table = found.table()
    assert table.column_names == ["name", "chance", "decision", "based_on"]
    assert set(table["decision"].to_pylist()) == {"aid", "none"}
    assert table["decision"].to_pylist().count("aid") == round(0.3 * EVERYBODY)
    assert table["based_on"].to_pylist().count("row of the sample") == SAMPLED
    assert decided(folder, "lending.toml").table()["decision"].to_pylist().count("loan") > 0


def test_people_of_the_sample_without_a_label_are_decided_about_too(folder: Path) -> None:
    write_csv(folder / "some.csv", labels(population().slice(0, 300)))
    scores = read_scores(folder / "scores.parquet")
    for program in ("program.toml", "lending.toml"):
        found = allocate(scores, read(folder, program, "some.csv"), np.random.default_rng(0))
        assert len(found.ids) == EVERYBODY
        unlabelled = np.isin(found.ids.to_pylist(), population()["name"].to_pylist()[300:SAMPLED])
        assert unlabelled.sum() == SAMPLED - 300
        y = truth(found, "consumption" if program == "program.toml" else "repaid")
        right = np.corrcoef(found.chances[unlabelled], y[unlabelled])[0, 1]
        assert (right < -0.3) if program == "program.toml" else (right > 0.3)


def test_a_persons_own_label_does_not_count(folder: Path) -> None:
    """Whoever is in the survey has no advantage: her chance is the same, whatever she said."""
    people = population().slice(0, SAMPLED)
    y = people["consumption"].to_numpy().copy()
    place = int(np.argsort(y)[SAMPLED // 2])
    chances = []
    for times in (1.0, 1.02):  # on the same side of the line
        y[place] *= times
        write_csv(folder / "changed.csv", labels(people.set_column(4, "consumption", pa.array(y))))
        scores = read_scores(folder / "scores.parquet")
        found = allocate(scores, read(folder, labelled="changed.csv"), np.random.default_rng(0))
        chances.append(found.chances[found.ids.to_pylist().index(people["name"][place].as_py())])
    assert chances[0] == pytest.approx(chances[1], abs=1e-4)


def test_whoever_has_a_score_is_judged_by_it(folder: Path) -> None:
    score(folder, None, "both.parquet", leave_out=())
    found = decided(folder, name="both.parquet")
    assert found.by_score.all()
    assert len(found.ids) == EVERYBODY


def test_scores_along_other_weights_are_read_as_they_are(folder: Path) -> None:
    score(folder, [0.0, 0.2, -1.0], "other.parquet")
    found = decided(folder, name="other.parquet")
    assert "not along the weights that targetdp learn would find" in found.notes[0]
    score(folder, [-0.6, -0.3, 0.4], "turned.parquet")
    with pytest.raises(ValueError, match="target does not rise with these scores"):
        decided(folder, name="turned.parquet")


def test_columns_may_be_in_another_order(folder: Path) -> None:
    scores = read_scores(folder / "scores.parquet")
    law = scores.law
    turned = replace(law, weights=tuple(tuple(reversed(row)) for row in law.weights))
    proof = scores.certificate.model_copy(update={"features": scores.certificate.features[::-1]})
    other = PrivateScores(proof, turned, scores.ids, scores.values)
    found = allocate(other, read(folder), np.random.default_rng(0))
    np.testing.assert_array_equal(found.chances, decided(folder).chances)


def test_what_does_not_fit(folder: Path, tmp_path: Path) -> None:
    release_sample(tmp_path)  # the same people, another release
    scores = read_scores(folder / "scores.parquet")
    with pytest.raises(ValueError, match=r"name release .* learned from or leave out, and the sample is"):
        allocate(scores, read(tmp_path), np.random.default_rng(0))
    with pytest.raises(ValueError, match="holds no scores"):
        read_scores(folder / "sample.parquet")
    other = scores.certificate.model_copy(update={"features": ("calls", "texts", "else")})
    with pytest.raises(ValueError, match="different columns"):
        allocate(replace(scores, certificate=other), read(folder), np.random.default_rng(0))
    named = scores.certificate.model_copy(update={"id": "chance"})
    with pytest.raises(ValueError, match="named 'chance'"):
        allocate(replace(scores, certificate=named), read(folder), np.random.default_rng(0))


def test_a_changed_file_of_scores(folder: Path, tmp_path: Path) -> None:
    changed = read_back(folder / "scores.parquet").slice(1)
    pa.parquet.write_table(changed, tmp_path / "scores.parquet")
    with pytest.raises(ValueError, match="does not hold for scores"):
        read_scores(tmp_path / "scores.parquet", folder / "scores.parquet.certificate.json")
    with pytest.raises(ValueError, match="has no certificate"):
        read_scores(tmp_path / "scores.parquet")


def test_ties_are_drawn_and_nobody_is_one_too_many() -> None:
    chances = np.array([0.9, 0.5, 0.5, 0.5, 0.1])
    found = [highest(chances, 2, np.random.default_rng(seed)) for seed in range(40)]
    assert all(one.sum() == 2 and one[0] and not one[4] for one in found)
    assert np.all(np.sum(found, axis=0)[1:4] > 3)
    assert highest(chances, 0, np.random.default_rng(0)).sum() == 0
    with pytest.raises(ValueError, match="places"):
        highest(chances, 6, np.random.default_rng(0))


# Which sample, in which scales, and by which names


def with_certificate(folder: Path, **changed: Any) -> PrivateScores:
    scores = read_scores(folder / "scores.parquet")
    return replace(scores, certificate=scores.certificate.model_copy(update=changed))


def test_the_scores_name_their_sample_where_they_can(folder: Path) -> None:
    sample = read(folder)
    release = sample.certificate.release
    fits: list[dict[str, Any]] = [
        {"learned_from": release[:8]}, {"left_out": (release,), "learned_from": None},
        {"learned_from": "0" * 32}, {"learned_from": None, "left_out": ()},
    ]  # fmt: skip
    for named in fits:
        found = allocate(with_certificate(folder, **named), sample, np.random.default_rng(0))
        assert found.notes == ()
    others: list[dict[str, Any]] = [
        {"learned_from": "0" * 32, "left_out": ()}, {"learned_from": None, "left_out": ("1" * 32,)},
    ]  # fmt: skip
    for named in others:
        with pytest.raises(ValueError, match="give that one"):
            allocate(with_certificate(folder, **named), sample, np.random.default_rng(0))


def test_other_scales_are_told_of(folder: Path) -> None:
    scales = read_scores(folder / "scores.parquet").certificate.scales
    values = {name: one.model_copy(update={"scale": 2 * one.scale}) for name, one in scales.values.items()}
    other = with_certificate(folder, scales=scales.model_copy(update={"values": values}))
    (note,) = allocate(other, read(folder), np.random.default_rng(0)).notes
    assert "scaled in different ways" in note


def test_private_scales_are_those_of_the_sample(tmp_path: Path) -> None:
    write_population(tmp_path, scales="private", share=0.5)
    first = release_sample(tmp_path, epsilon=16.0).certificate
    second = score(tmp_path).certificate
    assert (first.scales.source, second.scales.source) == ("private", "earlier")
    assert second.scales.values == first.scales.values
    assert second.guarantee.epsilon == 4.0, "all of it is for the noise"
    assert decided(tmp_path).notes == ()


def test_decisions_by_pseudonyms(tmp_path: Path) -> None:
    write_population(tmp_path, pseudonyms=True)
    release_sample(tmp_path)
    write_ids(tmp_path, population().slice(0, SAMPLED))
    score(tmp_path)
    sample, scores = read(tmp_path, ids=tmp_path / "ids.csv"), read_scores(tmp_path / "scores.parquet")
    found = allocate(scores, sample, np.random.default_rng(0))
    assert len(found.ids) == EVERYBODY  # nobody twice: people of both releases have the same pseudonyms
    listed = read_back(write_ids(tmp_path, population(), "everybody.csv"))
    names = dict(zip(listed["pseudonym"].to_pylist(), listed["id"].to_pylist(), strict=True))
    y = truth(replace(found, ids=pa.array([names[one] for one in found.ids.to_pylist()])), "consumption")
    poor = y <= np.sort(y)[round(0.3 * EVERYBODY) - 1]
    assert np.mean(found.chosen == poor) > 0.75  # a lottery: 0.58
    elsewhere = scores.certificate.desk.model_copy(update={"id": "0" * 32})
    for changed, words in (
        ({"desk": elsewhere}, "pseudonyms of desk people and pseudonyms of desk people"),
        ({"pseudonyms": False}, "ids in clear and pseudonyms of desk people"),
    ):
        with pytest.raises(ValueError, match=f"name people in different ways .{words}"):
            allocate(with_certificate(tmp_path, **changed), sample, np.random.default_rng(0))
