"""A private sample and its labels: joined by id, refused where that cannot be right."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.learn import (
    SAMPLED,
    labels,
    population,
    release_sample,
    write_ids,
    write_population,
    write_program,
)
from support.release import FEATURES, read_back, values_of, write_csv, write_parquet
from support.scores import release_scores
from targetdp import Guarantee
from targetdp.programs import Aid, Lending, read_decision_rule
from targetdp.targeting import compare_epsilons, plan_scores, read_labelled
from targetdp.targeting._labelled import OF_EACH, LabelledSample


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("learn")
    release_sample(place)
    return place


def read(
    folder: Path, table: pa.Table | None = None, program: str = "program.toml", **more: Any
) -> LabelledSample:
    path = folder / "labels.csv"
    if table is not None:
        path = write_csv(folder / "other.csv", table)
    return read_labelled(folder / "sample.parquet", path, read_decision_rule(folder / program), **more)


def sampled() -> pa.Table:
    return labels(population().slice(0, SAMPLED))


def test_rows_and_labels_are_of_the_same_people(folder: Path) -> None:
    """Whatever the order of either table."""
    order = np.random.default_rng(1).permutation(SAMPLED)
    found = read(folder, sampled().take(order))
    released = read_back(folder / "sample.parquet")
    places = {name: i for i, name in enumerate(released["name"].to_pylist())}
    here = [places[name] for name in sampled().take(order)["name"].to_pylist()]
    np.testing.assert_array_equal(found.rows, values_of(released)[here])
    np.testing.assert_array_equal(found.program.outcomes, sampled().take(order)["consumption"].to_numpy())
    assert found.notes == ()
    assert isinstance(found.program, Aid)
    assert found.program.people.population == OF_EACH
    assert found.law.record() == found.certificate.mechanism.law


def test_features_are_the_certificates_and_the_rest_the_programs(folder: Path) -> None:
    write_program(folder, "lending", "lending.toml", threshold=0.6, population=5_000.0)
    found = read(folder, program="lending.toml")
    assert isinstance(found.program, Lending)
    assert found.certificate.features == FEATURES
    assert found.program.threshold == 0.6
    assert found.program.people.population == 5_000
    np.testing.assert_allclose(found.program.money.revenue, 0.3 * found.program.money.amount)
    assert found.learn(0.01).task == "classification"


HOLDERS: dict[str, Any] = {"table": "elsewhere.parquet", "source": "confidential", "features": ["whatever"]}
"""What the data holder's file says beside: none of it is the official's."""


@pytest.mark.parametrize("kind", ["aid", "lending"])
def test_a_data_holders_file_gives_the_same_as_the_rule_alone(folder: Path, kind: str) -> None:
    write_program(folder, kind, "rule.toml")
    write_program(folder, kind, "whole.toml", **HOLDERS, estimator="nobody_has_it.Model")
    alone, whole = (read(folder, program=name) for name in ("rule.toml", "whole.toml"))
    np.testing.assert_array_equal(alone.learn(0.01).w, whole.learn(0.01).w)
    assert alone.program.people.count == whole.program.people.count == SAMPLED


def test_loans_need_no_money_to_be_decided(folder: Path) -> None:
    """A threshold decides; without amounts nothing is said of a profit, and nothing is asked of labels."""
    write_program(folder, "lending", "poor.toml", loans=False, threshold=0.6)
    write_program(folder, "lending", "rich.toml", threshold=0.6)
    without, known = (
        read(folder, sampled().drop_columns(["amount"]), "poor.toml"),
        read(folder, program="rich.toml"),
    )
    assert isinstance(without.program, Lending)
    np.testing.assert_array_equal(without.learn(0.01).w, known.learn(0.01).w)
    asked = Guarantee(0.25, 4.0, 1e-5)
    found, whole = (
        plan_scores(one, asked, np.random.default_rng(0), redrawn=20).expectation.figures
        for one in (without, known)
    )
    assert set(found) == {"accuracy", "wrong_approvals", "wrong_refusals"}
    assert found == {name: one for name, one in whole.items() if name != "profit"}
    with pytest.raises(ValueError, match="loans = None: a profit needs amount, revenue and interest"):
        without.program.judge(np.full(SAMPLED, 0.7))


def test_people_in_one_table_only_are_left_out_and_told(folder: Path) -> None:
    found = read(folder, labels(population().slice(100, 350)))
    assert found.program.people.count == 300
    assert found.notes == (
        "100 people of the sample have no label: nothing was learned from them",
        "50 labels are of people who are not in the sample: they were not used",
    )


def test_labels_may_have_another_id_column(folder: Path) -> None:
    renamed = sampled().rename_columns(["person", "consumption", "repaid", "amount"])
    assert read(folder, renamed, id_column="person").program.people.count == SAMPLED
    write_program(folder, name="named.toml", id="person")
    assert read(folder, renamed, program="named.toml").program.people.count == SAMPLED
    with pytest.raises(ValueError, match="id names 'name': no such column"):
        read(folder, renamed)


def test_a_surveys_weights_are_learned_with(folder: Path) -> None:
    write_program(folder, name="weighted.toml", weights="amount")
    found = read(folder, program="weighted.toml")
    assert found.program.people.weighted
    assert not np.allclose(found.learn(0.01).w, read(folder).learn(0.01).w, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: pa.concat_tables([t, t.slice(0, 2)]), "2 rows have an id that occurs before"),
        (lambda t: t.slice(0, 29), "29 people in common"),
        (
            lambda t: t.set_column(0, "name", pa.array([f"x{i}" for i in range(SAMPLED)])),
            "0 people in common",
        ),
        (lambda t: t.drop_columns(["consumption"]), "target names 'consumption'"),
        (
            lambda t: t.set_column(1, "consumption", pa.array([None, *t["consumption"].to_pylist()[1:]])),
            "'consumption' is missing in 1 row",
        ),
        (lambda t: t.slice(0, 0), "no rows"),
    ],
)
def test_labels_that_cannot_be_right(folder: Path, change: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(folder, change(sampled()))


def test_a_constant_target(folder: Path) -> None:
    table = sampled().set_column(1, "consumption", pa.array(np.full(SAMPLED, 7.0)))
    with pytest.raises(ValueError, match=r"7\.0 for everybody"):
        read(folder, table).learn(0.01)


def test_no_certificate(folder: Path, tmp_path: Path) -> None:
    alone = write_parquet(tmp_path / "sample.parquet", read_back(folder / "sample.parquet"))
    with pytest.raises(ValueError, match="has no certificate"):
        read_labelled(alone, folder / "labels.csv", read_decision_rule(folder / "program.toml"))


def test_a_certificate_of_another_file(folder: Path, tmp_path: Path) -> None:
    other = read_back(folder / "sample.parquet").slice(1)
    changed = write_parquet(tmp_path / "sample.parquet", other)
    with pytest.raises(ValueError, match="does not hold for sample"):
        read_labelled(
            changed, folder / "labels.csv", read_decision_rule(folder / "program.toml"),
            certificate=folder / "sample.parquet.certificate.json",
        )  # fmt: skip


def test_scores_are_not_rows(folder: Path) -> None:
    release_scores(folder, "scores.parquet", table="sampled.parquet")
    with pytest.raises(ValueError, match=r"holds scores \(score\), not features"):
        read_labelled(
            folder / "scores.parquet", folder / "labels.csv", read_decision_rule(folder / "program.toml")
        )


# Pseudonyms, and the data holder's list


@pytest.fixture(scope="module")
def hashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample under pseudonyms, and ids.csv of its people."""
    place = tmp_path_factory.mktemp("hashed")
    write_population(place, pseudonyms=True)
    release_sample(place)
    write_ids(place, sampled())
    return place


def test_labels_meet_pseudonyms_by_the_data_holders_list(hashed: Path) -> None:
    """The same people, rows and labels as if the sample had ids."""
    order = np.random.default_rng(1).permutation(SAMPLED)
    found = read(hashed, sampled().take(order), ids=hashed / "ids.csv")
    listed = read_back(hashed / "ids.csv")
    known = dict(zip(listed["id"].to_pylist(), listed["pseudonym"].to_pylist(), strict=True))
    assert found.ids.to_pylist() == [known[name] for name in sampled().take(order)["name"].to_pylist()]
    released = read_back(hashed / "sample.parquet")
    places = {name: i for i, name in enumerate(released["name"].to_pylist())}
    np.testing.assert_array_equal(
        found.rows, values_of(released)[[places[name] for name in found.ids.to_pylist()]]
    )
    assert found.notes == ()
    assert found.learn(0.01).tells


def test_without_the_list_the_message_says_whom_to_ask(hashed: Path) -> None:
    with pytest.raises(ValueError, match=r"0 people in common.*has pseudonyms.*targetdp ids.*--ids"):
        read(hashed)
    named = read_back(hashed / "ids.csv").rename_columns(["who", "name"])
    by_pseudonym = sampled().set_column(0, "name", named["name"])  # an official may join them herself
    assert read(hashed, by_pseudonym).program.people.count == SAMPLED


def test_people_who_are_not_in_the_list_are_left_out(hashed: Path) -> None:
    some = write_ids(hashed, sampled().slice(0, 300), "some.csv")
    found = read(hashed, labels(population().slice(0, SAMPLED + 10)), ids=some)
    assert found.program.people.count == 300
    assert found.notes == (
        "100 people of the sample have no label: nothing was learned from them",
        "110 labels are of people who are not in the sample: they were not used",
    )


def test_lists_that_cannot_be_right(folder: Path, hashed: Path, tmp_path: Path) -> None:
    listed = read_back(hashed / "ids.csv")

    def refused(words: str, table: pa.Table) -> None:
        with pytest.raises(ValueError, match=words):
            read(hashed, ids=write_csv(tmp_path / "list.csv", table))

    refused("ids names 'pseudonym': no such column", listed.rename_columns(["id", "hash"]))
    refused("has an id twice", pa.concat_tables([listed, listed.slice(3, 1)]))
    strangers = pa.array([f"{i:032x}" for i in range(SAMPLED)])
    refused("the list must be of the desk that", listed.set_column(1, "pseudonym", strangers))
    empty = pa.array(["", *listed["pseudonym"].to_pylist()[1:]])
    refused("pseudonym  1 row without an id", listed.set_column(1, "pseudonym", empty))
    same = pa.array([listed["pseudonym"][1].as_py(), *listed["pseudonym"].to_pylist()[1:]])
    refused("1 labels are of a person who has one already", listed.set_column(1, "pseudonym", same))
    with pytest.raises(ValueError, match="the sample has no pseudonyms; leave --ids out"):
        read(folder, ids=hashed / "ids.csv")


def test_a_list_of_other_spellings(tmp_path: Path) -> None:
    """Labels keep the spelling that the official knows; the desk's list says whom they mean."""
    write_population(tmp_path, pseudonyms=True, spelling={"country_code": "228", "digits": 6})
    release_sample(tmp_path)
    spelled = pa.array([f"+228 {name}" for name in sampled()["name"].to_pylist()])
    asked = sampled().set_column(0, "name", spelled)
    write_ids(tmp_path, asked)
    found = read(tmp_path, asked, ids=tmp_path / "ids.csv")
    assert found.program.people.count == SAMPLED
    assert found.learn(0.01).tells


# What more or less ε would buy


def test_more_epsilon_is_less_noise_and_better_scores(folder: Path) -> None:
    found = compare_epsilons(read(folder), Guarantee(0.25, 4.0), np.random.default_rng(0))
    assert [one.guarantee.epsilon for one in found] == [1.0, 2.0, 4.0, 8.0, 16.0]
    noise = [one.deviation for one in found]
    accuracy = [one.expectation["accuracy"].value for one in found]
    assert noise == sorted(noise, reverse=True)
    assert accuracy[0] < accuracy[2]
    assert accuracy[0] < accuracy[4]  # the last ones differ by less than chance does
    assert {one.mechanism for one in found} == {"staircase"}


def test_an_offer_has_the_guarantee_that_was_asked_for(folder: Path) -> None:
    sample, rng = read(folder), np.random.default_rng(0)
    asked = Guarantee(0.25, 4.0, 1e-5)
    one = plan_scores(sample, asked, rng, redrawn=20)
    assert one.guarantee == asked
    figure = one.expectation["accuracy"]
    assert figure.low < figure.value < figure.high
    pure = plan_scores(sample, Guarantee(0.25, 4.0), rng, redrawn=0)
    assert 0 < pure.guarantee.delta < 1e-20  # no sampler is exactly pure
    assert len(compare_epsilons(sample, Guarantee(0.25, 60.0), rng)) == 3  # ε is at most 100
