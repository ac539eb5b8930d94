"""Settings of a release: every rule between fields, release files, flags over them, and clear messages."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from support.release import settings
from support.scores import TWO, write_weights
from targetdp.mechanisms import noise_mechanisms
from targetdp.release import make_settings, read_release_file
from targetdp.release._settings import MECHANISMS

MONDRIAN = {"mechanism": "mondrian", "group_size": 5, "B": None, "epsilon": None}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mechanism": "magic"}, "mechanism = 'magic' is not one of"),
        ({"B": None}, "B must be given: least-noise is calibrated to it"),
        ({"epsilon": None}, "epsilon must be given"),
        ({"scales": None}, "scales must be given: a scales file (targetdp scales makes one)"),
        ({"B": 3.0}, "B = 3.0: must be less than or equal to 2"),
        ({"B": None, "epsilon": None}, "B and epsilon must be given"),
        ({"group_size": 5}, "group_size is for mechanism = 'mondrian' only"),
        (MONDRIAN | {"group_size": None}, "'mondrian' needs group_size, 2 or more"),
        (MONDRIAN | {"B": 0.25}, "'mondrian' has no guarantee: leave out B"),
        (MONDRIAN | {"epsilon": 1.0, "delta": 1e-5}, "leave out epsilon, delta"),
        (MONDRIAN | {"partitions": 6}, "leave out partitions"),
        (MONDRIAN | {"engine": "spark"}, "'mondrian' needs the local engine"),
        ({"partitions": 6, "delta": 1e-5}, "partitions sets δ from the number of rows"),
        ({"scales": "private"}, "bounds and scales_epsilon belong to scales = 'private'"),
        ({"scales": "private", "bounds": "b.toml"}, "give both with it, or neither"),
        ({"scales": "private", "scales_epsilon": 0.1}, "give both with it, or neither"),
        ({"bounds": "b.toml", "scales_epsilon": 0.1}, "give both with it, or neither"),
        ({"scales": "data", "bounds": "b.toml"}, "give both with it, or neither"),
        ({"scales": "data", "scales_epsilon": 0.1}, "give both with it, or neither"),
        ({"ledger": "l.db"}, "ledger and population belong together"),
        ({"population": "p"}, "ledger and population belong together"),
        ({"part": "north"}, "part needs a ledger"),
        ({"override": "why"}, "override needs a ledger"),
        ({"features": ("calls", "name")}, "column 'name' is named twice among id, features and keep"),
        ({"features": ("calls", "calls")}, "column 'calls' is named twice"),
        ({"keep": ("calls",)}, "column 'calls' is named twice"),
        ({"keep": ("region", "region")}, "column 'region' is named twice"),
        ({"impute": {"calls": 0.0, "nope": 1.0}}, "impute names ['nope'], which are not among the features"),
        ({"for": "cider", "features": ("label", "x")}, "drop ['label']"),
        ({"for": "cider", "id": "weight"}, "drop ['weight']"),
        ({"for": "cider", "keep_order": True}, "leave out keep_order"),
        ({"for": "cider", "keep": ("region",)}, "leave out keep"),
        ({"sample": "s.parquet"}, "sample belongs to a weights file"),
        ({"score_sample": True}, "score_sample belongs to a weights file"),
        ({"some_have_left": True}, "some_have_left belongs to a weights file"),
        ({"no_sample": True}, "no_sample belongs to a weights file"),
        ({"accept_weights": True}, "accept_weights belongs to a weights file"),
        ({"accept_missing": True}, "accept_missing belongs to a weights file"),
        ({"scales": "sample"}, "scales = 'sample' are those of the sample: give it"),
        ({"ledger": "l", "population": " people"}, "population = ' people' is outside"),
        ({"ledger": "l", "population": "p", "part": "a\nb"}, "part = 'a\\nb' is outside"),
        ({"ledger": "l", "population": "p", "override": "x" * 2001}, "is outside 1 to 2000 printable"),
        (
            {
                "weights": "w",
                "sample": "s",
                "score_sample": True,
                "ledger": "l",
                "population": "p",
                "part": "sample",
            },
            "leave out part, so that everybody is charged",
        ),
        ({"weights": "absent.toml"}, "weights file absent.toml cannot be read"),
        ({"weights": "absent.toml"} | MONDRIAN, "mechanism = 'mondrian' groups rows: it has no scores"),
        ({"weights": "absent.toml", "partitions": 6}, "partitions are not for scores"),
        ({"weights": "w", "score_sample": True}, "score_sample needs the sample"),
        ({"weights": "w", "some_have_left": True}, "some_have_left needs the sample"),
        ({"weights": "w", "sample": "s", "no_sample": True}, "leave out sample, or no_sample"),
        (
            {"weights": "w", "sample": "s", "score_sample": True, "some_have_left": True},
            "some_have_left is for a sample that is left out",
        ),
    ],
)
def test_fields_that_do_not_agree_are_refused_with_a_remedy(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        settings(**given)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"B": 3.0}, "B = 3.0: must be less than or equal to 2"),
        ({"B": 0.0}, "B = 0.0: must be greater than 0"),
        ({"B": float("nan")}, "B = nan"),
        ({"epsilon": -1.0}, "epsilon = -1.0: must be greater than 0"),
        ({"delta": 1.0}, "delta = 1.0: must be less than 1"),
        ({"delta": -0.1}, "delta = -0.1"),
        ({"partitions": 0}, "partitions = 0"),
        ({**MONDRIAN, "group_size": 1}, "group_size = 1"),
        ({"scales_epsilon": 0.0}, "scales_epsilon = 0.0"),
        ({"features": ()}, "features = ()"),
        ({"id": ""}, "id = ''"),
        ({"tuned_on": "hope"}, "tuned_on = 'hope'"),
        ({"engine": "abacus"}, "engine = 'abacus'"),
        ({"for": "excel"}, "for = 'excel'"),
        ({"epsilom": 4}, "epsilom = 4: Extra inputs are not permitted"),
        ({"scales": None}, "scales must be given"),
        ({"id": None}, "id must be given"),
    ],
)
def test_a_bad_field_is_named_with_its_value(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        settings(**given)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("scores", "given", "message"),
    [
        (("name",), {}, "score 'name' has the name of column 'name'"),
        (("texts",), {}, "score 'texts' has the name of column 'texts'"),
        (("TEXTS",), {}, "score 'TEXTS' has the name of column 'texts'"),
        (("region",), {"keep": ("region",)}, "score 'region' has the name of column 'region'"),
        (("label",), {"for": "cider"}, "drop ['label']"),
        (("score",), {"features": ("calls", "texts")}, "has weights for 'topups'"),
        (("score",), {"features": ("calls", "texts", "topups", "age")}, "has no weight for 'age'"),
    ],
)
def test_scores_must_fit_the_columns(
    tmp_path: Path, scores: tuple[str, ...], given: dict[str, Any], message: str
) -> None:
    weights = write_weights(tmp_path / "w.toml", scores=scores)
    with pytest.raises(ValueError, match=r".") as refused:
        settings(weights=weights, **given)
    assert message in str(refused.value)


def test_what_comes_out_are_the_scores_or_the_features(tmp_path: Path) -> None:
    made = settings(weights=write_weights(tmp_path / "w.toml", TWO, ("a", "b")))
    assert (made.released, made.features) == (("a", "b"), ("calls", "texts", "topups"))
    assert made.asked is not None
    assert not made.leaves_sample_out
    assert settings().released == settings().features
    assert settings().asked is None
    copied = made.model_copy(update={"accept_weights": True})
    assert copied.asked is made.asked, "what was seen is what is used"
    assert pickle.loads(pickle.dumps(made)).released == ("a", "b")  # noqa: S301 (as Spark's tasks are sent)


@pytest.mark.parametrize("constant", [float("nan"), float("inf"), {"calls": float("nan")}])
def test_a_constant_that_is_no_number_is_refused_by_name(constant: Any) -> None:
    with pytest.raises(ValueError, match="impute"):
        settings(impute=constant)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ValueError, match=r"B = 3.0.*epsilon = -1.0"):
        settings(B=3.0, epsilon=-1.0)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_can_be_asked_for_by_name(name: str) -> None:
    given = MONDRIAN if name == "mondrian" else {"mechanism": name}
    assert settings(**given).mechanism == name
    assert set(noise_mechanisms()) < set(MECHANISMS)


def test_what_agrees_is_taken(tmp_path: Path) -> None:
    made = settings(
        scales="private", bounds=tmp_path / "b.toml", scales_epsilon=0.1, ledger=tmp_path / "l.db",
        population="p", part="north", override="the board agreed", keep=("region",), keep_order=True,
    )  # fmt: skip
    assert made.bounds == tmp_path / "b.toml"
    assert (made.part, made.override, made.keep, made.keep_order) == (
        "north", "the board agreed", ("region",), True,
    )  # fmt: skip
    assert settings(**{"for": "cider"}).made_for == "cider"
    assert settings(made_for="cider").made_for == "cider"


def test_defaults_are_the_safe_ones() -> None:
    made = settings()
    assert (made.keep, made.keep_order, made.impute, made.delta) == ((), False, None, None)
    assert (made.mechanism, made.engine, made.made_for, made.tuned_on) == (
        "least-noise", "local", None, None,
    )  # fmt: skip


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        settings().epsilon = 8.0


def test_constants_for_missing_values_by_name_or_for_all() -> None:
    assert settings().constants() == {}
    assert settings(impute=0).constants() == {"calls": 0.0, "texts": 0.0, "topups": 0.0}
    assert settings(impute={"texts": -1.5}).constants() == {"texts": -1.5}


RELEASE = """
id = "name"
features = ["calls", "texts"]
B = 0.25
epsilon = 4
scales = "scales.toml"
ledger = "books/ledger.db"
population = "subscribers"
pseudonymize = "pseudonyms.key"
key = "/absolute/signing.pem"
weights = "weights.toml"
sample = "first/sample.parquet"
for = "cider"
[impute]
calls = 0
"""


def test_a_release_files_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "release.toml"
    place.parent.mkdir()
    place.write_text(RELEASE)
    write_weights(tmp_path / "deep" / "weights.toml", (1.0, 2.0), features=("calls", "texts"))
    made = make_settings(read_release_file(place))
    assert made.weights == tmp_path / "deep" / "weights.toml"
    assert made.sample == tmp_path / "deep" / "first" / "sample.parquet"
    assert made.scales == str(tmp_path / "deep" / "scales.toml")
    assert made.ledger == tmp_path / "deep" / "books" / "ledger.db"
    assert made.pseudonymize == tmp_path / "deep" / "pseudonyms.key"
    assert made.key == Path("/absolute/signing.pem")
    assert made.made_for == "cider"
    assert made.constants() == {"calls": 0.0}


@pytest.mark.parametrize("word", ["private", "data"])
def test_words_for_scales_are_not_taken_for_files(tmp_path: Path, word: str) -> None:
    place = tmp_path / "release.toml"
    place.write_text(f'scales = "{word}"\nbounds = "bounds.toml"\n')
    given = read_release_file(place)
    assert given == {"scales": word, "bounds": tmp_path / "bounds.toml"}


def test_flags_override_a_release_file(tmp_path: Path) -> None:
    place = tmp_path / "release.toml"
    place.write_text(RELEASE)
    write_weights(tmp_path / "weights.toml", (1.0, 2.0), features=("calls", "texts"))
    made = make_settings(read_release_file(place) | {"epsilon": 2.0, "scales": "other.toml"})
    assert (made.epsilon, made.B, made.scales) == (2.0, 0.25, "other.toml")


def test_an_unknown_key_in_a_release_file_is_named(tmp_path: Path) -> None:
    place = tmp_path / "release.toml"
    place.write_text(RELEASE.replace("B = 0.25", "b = 0.25"))
    with pytest.raises(ValueError, match=r"b = 0.25: Extra inputs"):
        make_settings(read_release_file(place))


@pytest.mark.parametrize(
    ("content", "message"), [(b"id = [", "cannot be read"), (b'id = "\xff"', "cannot be read")]
)
def test_a_release_file_that_is_not_toml_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    place = tmp_path / "release.toml"
    place.write_bytes(content)
    with pytest.raises(ValueError, match=f"release file {place} {message}"):
        read_release_file(place)
    with pytest.raises(ValueError, match=r"release file .*absent.toml cannot be read"):
        read_release_file(tmp_path / "absent.toml")
