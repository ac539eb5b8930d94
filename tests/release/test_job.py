"""The release job: files and tables in memory, rows and scores; one order, everything once."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from support.release import (
    FEATURES,
    certificate_of,
    hidden,
    holds,
    make_desk,
    normalized,
    nothing_changes,
    people,
    place_with,
    read_back,
    release,
    release_frame,
    request_of,
    table_of,
    values_of,
    write_csv,
    write_parquet,
)
from targetdp._core import Floats
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LinearLaw, Scores, law_of
from targetdp.mechanisms import _linear as linear_module
from targetdp.release import (
    AlreadyReleased,
    Desk,
    Look,
    PublishedButUnsettledError,
    Refused,
    Witness,
    privatize,
)
from targetdp.release import _request as request_module
from targetdp.release._certificate import _certificate as certificate_module
from targetdp.release._certificate._contents import is_certified
from targetdp.release._certificate._numbers import verify_guarantee
from targetdp.release._engine._base import Wrote
from targetdp.release._engine._local import LocalEngine
from targetdp.release._engine._tables import opened_table
from targetdp.release._ledger import _book as book_module
from targetdp.release._ledger import _entries as entries_module
from targetdp.release._ledger import _record as record_module
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._entries import Reading
from targetdp.release._staging import digest_of, page_path
from targetdp.release._trust._keys import is_signed

WEIGHTS = {"calls": 1.0, "texts": 2.0, "topups": -1.0}
TWO = {"calls": [1.0, 1.0], "texts": [-1.0, 1.0], "topups": [0.0, -2.0]}
SCORES: dict[str, Any] = {"release": "scores", "weights": WEIGHTS}
KINDS: dict[str, tuple[Callable[..., Any], type]] = {
    "pandas": (pd.DataFrame, pd.DataFrame),
    "polars": (pl.DataFrame, pl.DataFrame),
    "pyarrow": (pa.table, pa.Table),
}


OTHERS = "tests that share a desk release different people, in any order"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk with room for many small releases."""
    return make_desk(tmp_path_factory.mktemp("job"), limit=(0.25, 1e6, 0.9))


def columns(frame: Any) -> dict[str, list[Any]]:
    if isinstance(frame, pa.Table):
        return frame.to_pydict()  # type: ignore[no-any-return]
    return {name: list(frame[name]) for name in frame.columns}


# Files


@pytest.mark.parametrize("output", ["out.csv", "out.parquet", "out"])
@pytest.mark.parametrize("source", ["in.parquet", "in.csv", "parts"])
def test_every_shape_of_files(tmp_path: Path, source: str, output: str) -> None:
    raw = table_of(120, region=["north", "south"] * 60)
    write_parquet(tmp_path / "in.parquet", raw)
    write_csv(tmp_path / "in.csv", raw)
    (tmp_path / "parts").mkdir()
    for number in range(3):
        write_parquet(tmp_path / "parts" / f"{number}.parquet", raw.slice(40 * number, 40))
    make_desk(tmp_path, public={"region": "it is on the list"})
    done = release(tmp_path, output, table=source, epsilon=50.0)
    found = read_back(tmp_path / output)
    assert found.column_names == ["name", *FEATURES, "region"]
    assert found["name"].to_pylist() == sorted(raw["name"].to_pylist())
    assert np.abs(values_of(found) - normalized(raw.sort_by("name"))).max() < 0.5
    assert found["region"].to_pylist() == raw.sort_by("name")["region"].to_pylist()
    assert (done.path, done.frame) == (tmp_path / output, None)
    assert holds(tmp_path / output)
    assert hidden(tmp_path) == []


def test_ids_go_out_as_pseudonyms_that_stay_the_same(tmp_path: Path) -> None:
    folder = place_with(tmp_path, pseudonyms=True)
    release(folder, "a.parquet")
    release(folder, "b.parquet", **SCORES)
    one, two = (read_back(folder / name)["name"].to_pylist() for name in ("a.parquet", "b.parquet"))
    assert one == two == sorted(one)
    assert all(len(name) == 32 and set(name) <= set("0123456789abcdef") for name in one)
    assert len(set(one)) == 60
    assert set(one).isdisjoint(table_of()["name"].to_pylist())
    assert certificate_of(folder / "a.parquet").pseudonyms


def test_the_certificate_is_signed_by_the_desk_and_names_it(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    asked = request_of(asked_by="Ministry", program="Novissi", why="as agreed", page="ab" * 8)
    c = release(folder, request=asked).certificate
    desk = Desk.open(folder / "desk")
    assert c == certificate_of(folder / "out.parquet")
    assert c.signature is not None
    assert c.signature.key == desk.key.public
    assert is_signed(c.signature.key, c.signature.value, c.message())
    assert (c.desk.id, c.desk.name, c.desk.policy) == (desk.id, "people", 1)
    assert c.desk.policy_sha256 == desk.policy.sha256
    assert (c.request.sha256, c.request.asked_by, c.request.program) == (asked.sha256, "Ministry", "Novissi")
    assert (c.request.why, c.request.page, c.request.signer) == ("as agreed", "ab" * 8, None)
    with desk.ledger() as ledger:
        row = ledger.release(c.release)
        assert (row.state, row.sha256, row.entry) == ("published", c.output.sha256, c.ledger.number)
        assert row.title["request"] == asked.sha256
        assert ledger.verify([Witness("it", c.ledger.head())], desk.key.public) == []


def test_noise_is_fresh_in_each_release(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    for name in ("a.parquet", "b.parquet"):
        release(folder, name)
    one, two = (values_of(read_back(folder / name)) for name in ("a.parquet", "b.parquet"))
    assert not np.isin(one, two).any()


def test_an_output_that_exists_is_replaced_only_by_force(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    first = release(folder).certificate.release
    with nothing_changes(folder), pytest.raises(AlreadyReleased):
        release(folder)
    with nothing_changes(folder), pytest.raises(ValueError, match=r"exists: .* replace it with --force"):
        release(folder, epsilon=3.0)
    second = release(folder, force=True).certificate.release
    assert second != first
    assert holds(folder / "out.parquet")
    (folder / "mine.csv").write_text("mine")
    with pytest.raises(
        ValueError, match="is not a release with a certificate: --force replaces nothing else"
    ):
        release(folder, "mine.csv", force=True)
    assert (folder / "mine.csv").read_text() == "mine"


def test_a_path_needs_an_output_and_an_engine_has_a_name(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    with pytest.raises(ValueError, match="output must be given"):
        privatize(folder / "in.parquet", desk=folder / "desk", request=request_of())
    with pytest.raises(ValueError, match="engine = 'abacus' is not one of"):
        release(folder, engine="abacus")
    for wrong in ("spark", "abacus"):
        with pytest.raises(
            ValueError, match=f"engine = '{wrong}': a table in memory is privatized where it is"
        ):
            privatize(table_of(), desk=folder / "desk", request=request_of(), engine=wrong)
    with pytest.raises(ValueError, match=r"no such file|does not exist|cannot"):
        release(folder, table="absent.parquet")


def test_a_table_in_memory_can_go_to_files(tmp_path: Path) -> None:
    make_desk(tmp_path)
    done = release(tmp_path, table=pd.DataFrame(people(50)))
    assert (done.certificate.output.format, done.frame) == ("parquet", None)
    assert holds(tmp_path / "out.parquet")


def test_a_file_that_changes_while_it_is_read_is_not_released(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    kept = LocalEngine.write

    def meanwhile(self: LocalEngine, *given: Any) -> Wrote:
        done = kept(self, *given)
        write_parquet(folder / "in.parquet", table_of(60, seed=5))
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalEngine, "write", meanwhile)
        with pytest.raises(ValueError, match="changed while it was read"):
            release(folder)
    assert not (folder / "out.parquet").exists()


def test_rows_that_come_between_looking_and_writing_are_noticed(tmp_path: Path) -> None:
    folder = place_with(tmp_path)

    def meanwhile(_: Any) -> None:
        write_parquet(folder / "in.parquet", table_of(70))

    with pytest.raises(ValueError, match="changed"):
        privatize(folder / "in.parquet", folder / "out.parquet", desk=folder / "desk", request=request_of(),
                  confirm=meanwhile)  # fmt: skip
    assert not (folder / "out.parquet").exists()


# Tables in memory


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_kind_comes_out_sorted_by_id_with_its_certificate(desk: Desk, kind: str) -> None:
    make, expected = KINDS[kind]
    done = release_frame(make(people(50)), desk, new_people=OTHERS)
    assert type(done.frame) is expected
    found = columns(done.frame)
    assert list(found) == ["name", *FEATURES]
    assert found["name"] == [f"{i:06d}" for i in range(50)], "sorted, with leading zeros"
    assert all(isinstance(value, str) for value in found["name"])
    assert all(isinstance(value, float) for name in FEATURES for value in found[name])
    assert (done.certificate.output.format, done.certificate.rows, done.path) == ("frame", 50, None)
    assert done.certificate.guarantee.value() == Guarantee(0.25, 4.0, 1 / 51)
    assert all(check.holds for check in verify_guarantee(done.certificate))
    assert "50 rows" in done._repr_html_()


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_is_recognized_and_a_changed_one_is_not(desk: Desk, kind: str) -> None:
    done = release_frame(KINDS[kind][0](people(50)), desk, new_people=OTHERS)
    assert is_certified(done.frame, done.certificate)
    found = columns(done.frame)
    for other, _ in KINDS.values():
        assert is_certified(other(found), done.certificate), "whatever kind it is turned into"
        changed = found | {"texts": [np.nextafter(found["texts"][0], 9), *found["texts"][1:]]}
        assert not is_certified(other(changed), done.certificate)
        assert not is_certified(other({k: v[:-1] for k, v in found.items()}), done.certificate)
        assert not is_certified(other({k: v for k, v in found.items() if k != "texts"}), done.certificate)
        assert not is_certified(other(found | {"name": found["name"][::-1]}), done.certificate)


@pytest.mark.parametrize("kind", KINDS)
def test_each_call_is_a_release_of_its_own_and_is_charged(kind: str, tmp_path: Path) -> None:
    desk = make_desk(tmp_path, limit=(0.25, 7.0, 1e-3), most=(7.0, 1e-3))
    frame = KINDS[kind][0](people(50))
    done = release_frame(frame, desk, new_people=OTHERS)
    with desk.ledger() as ledger:
        (row,) = ledger.history.releases.values()
        assert ledger.verify([Witness("it", done.certificate.ledger.head())]) == []
    assert (row.release, row.state, row.sha256) == (
        done.certificate.release, "published", done.certificate.output.sha256,
    )  # fmt: skip
    with pytest.raises(Refused, match=r"the limit would be passed: it takes .*% of .*, together 1..\.?\d?%"):
        release_frame(frame, desk, new_people=OTHERS)
    with desk.ledger() as ledger:
        assert len(ledger.history.releases) == 1


def test_other_columns_are_dropped_and_public_ones_keep_their_type(tmp_path: Path) -> None:
    kept = {
        "region": ["north", "south"] * 25, "age": np.arange(50, dtype=np.int16), "paid": [True, None] * 25,
        "secret": range(50), "height": np.arange(50) / 7,
    }  # fmt: skip
    table = pa.table(people(50) | kept)
    desk = make_desk(tmp_path, public=dict.fromkeys(("age", "region", "paid", "height"), "why"))
    done = release_frame(table, desk, new_people=OTHERS)
    assert done.frame.column_names == ["name", *FEATURES, "age", "region", "paid", "height"]
    assert [str(t) for t in done.frame.schema.types[-4:]] == ["int16", "string", "bool", "double"]
    order = np.argsort(table["name"].to_pylist())
    assert done.frame["age"].to_pylist() == order.tolist()
    assert is_certified(done.frame, done.certificate)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_categories_can_be_public(kind: str, tmp_path: Path) -> None:
    region = ["north", "süd"] * 25
    makers: dict[str, Callable[[], Any]] = {
        "pandas": lambda: pd.DataFrame(people(50) | {"region": pd.Categorical(region)}),
        "polars": lambda: pl.DataFrame(people(50) | {"region": pl.Series(region, dtype=pl.Categorical)}),
        "pyarrow": lambda: pa.table(people(50) | {"region": pa.array(region).dictionary_encode()}),
    }
    desk = make_desk(tmp_path, public={"region": "why"})
    order = np.argsort(people(50)["name"])
    for table in (makers[kind](), KINDS[kind][0](people(50) | {"region": region})):
        found = columns(release_frame(table, desk, new_people=OTHERS).frame)
        assert [str(value) for value in found["region"]] == [region[i] for i in order]


def test_an_index_of_pandas_does_not_come_along(desk: Desk) -> None:
    frame = pd.DataFrame(people(50), index=pd.Index(np.arange(50) * 7, name="secret_rank"))
    done = release_frame(frame, desk, new_people=OTHERS)
    assert list(done.frame.columns) == ["name", *FEATURES]
    assert list(done.frame.index) == list(range(50))
    assert done.frame.index.name is None


def test_metadata_of_a_table_does_not_come_along(desk: Desk) -> None:
    table = pa.table(people(50)).replace_schema_metadata({"secret": "mean = 3"})
    done = release_frame(table, desk, new_people=OTHERS)
    assert done.frame.schema.metadata is None
    assert all(field.metadata is None for field in done.frame.schema)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_whole_numbers_as_ids_become_text(desk: Desk, kind: str) -> None:
    frame = KINDS[kind][0](people(12) | {"name": list(range(12))})
    done = release_frame(frame, desk, new_people=OTHERS)
    assert columns(done.frame)["name"] == sorted(map(str, range(12)))


def test_missing_values_of_pandas_are_found_and_filled(tmp_path: Path) -> None:
    frame = pd.DataFrame(people(50))
    frame.loc[3, "calls"] = np.nan
    frame["texts"] = frame["texts"].round().astype("Int64")
    frame.loc[[5, 6], "texts"] = pd.NA
    (tmp_path / "a").mkdir()
    with pytest.raises(Refused, match=r"calls +1 gap, in row 4[^\n]*\n *texts +2 gaps, in row 6, 7"):
        release_frame(frame, make_desk(tmp_path / "a"))
    (tmp_path / "b").mkdir()
    done = release_frame(frame, make_desk(tmp_path / "b", gaps={"calls": 0, "texts": -1}))
    assert done.certificate.gaps == {"calls": 0, "texts": -1}


def test_what_is_not_a_table_in_memory_is_refused_by_name(desk: Desk) -> None:
    for other in ([1, 2], {"name": ["a"]}, None, pd.Series([1.0], name="calls"), np.zeros((3, 3))):
        with pytest.raises(TypeError, match=f"table is a {type(other).__name__}: give a path, a"):
            release_frame(other, desk, new_people=OTHERS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ["a"] * 50}, "id column 'name' has duplicated values: 49 rows repeat an id"),
        ({"calls": ["x"] * 50}, r"1 of 3 columns cannot be released as it is"),
        ({"calls": [1.0] * 50}, "constant columns: calls"),
        ({"calls": [np.inf] + [1.0] * 49}, "1 infinite value, in row 1"),
        ({"name": [*(f"{i}" for i in range(49)), None]}, "id"),
        ({"name": [*(f"{i}" for i in range(49)), " x"]}, "id"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_file_may_not_hold_a_frame_may_not(
    desk: Desk, kind: str, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(Refused, match=message):
        release_frame(KINDS[kind][0](people(50) | change), desk, new_people=OTHERS)


# Scores


def noise(released: pa.Table, raw: pa.Table, weights: dict[str, Any]) -> Floats:
    """What was added to each score, in order of ids: computed here and not by the library."""
    matrix = np.atleast_2d(np.array([np.atleast_1d(weights[name]) for name in FEATURES]).T)
    exact = normalized(raw.sort_by("name")) @ (matrix / np.linalg.norm(matrix, 2)).T
    return np.asarray(values_of(released, released.column_names[1:]) - exact)


def test_id_and_score_come_out_sorted_with_a_certificate_that_holds(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    done = release(folder, **SCORES)
    found = read_back(folder / "out.parquet")
    assert found.column_names == ["name", "score"]
    assert found["name"].to_pylist() == sorted(table_of()["name"].to_pylist())
    assert found.schema.field("score").type == pa.float64()
    c = done.certificate
    assert (c.scores, c.features, c.released) == (("score",), FEATURES, ("score",))
    assert holds(folder / "out.parquet")
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.release(c.release).title["scores"] == ["score"]


def test_each_person_gets_her_own_score_with_the_noise_of_one_dimension(tmp_path: Path) -> None:
    """The deviation within 4% (some five standard errors of 4,000 draws): 0.9 or 1.1 of it would be found."""
    folder = place_with(tmp_path, 4000)
    done = release(folder, **SCORES, mechanism="gaussian", epsilon=1.0, delta=2e-4)
    law = law_of(done.certificate.mechanism.law)
    assert isinstance(law, LinearLaw)
    added = noise(read_back(folder / "out.parquet"), table_of(4000), WEIGHTS)
    assert added.std() == pytest.approx(law.noise.deviation_per_column, rel=0.04)
    assert abs(added.mean()) < 5 * law.deviation_per_column / np.sqrt(4000)
    assert done.certificate.mechanism.noise_length == law.deviation_per_column


def test_one_dimension_needs_far_less_noise_than_all_columns(desk: Desk) -> None:
    asked: list[dict[str, Any]] = [SCORES, {**SCORES, "weights": TWO, "scores": ("a", "b")}, {}]
    made = [
        release_frame(table_of(), desk, new_people=OTHERS, delta=1e-5, **given).certificate for given in asked
    ]
    lengths = [c.mechanism.noise_length or 0.0 for c in made]
    assert lengths == sorted(lengths)
    assert made[0].mechanism.deviation_per_column == pytest.approx(0.255 * 0.25, rel=1e-3)


def test_the_size_of_weights_changes_nothing(desk: Desk) -> None:
    large = {name: weight * 1e200 for name, weight in WEIGHTS.items()}
    one, two = (
        release_frame(table_of(), desk, new_people=OTHERS, release="scores", weights=weights)
        for weights in (WEIGHTS, large)
    )
    weights = [done.certificate.mechanism.law["weights"] for done in (one, two)]
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-12)
    assert np.linalg.norm(weights[0]) == pytest.approx(1)
    assert np.abs(noise(two.frame, table_of(), WEIGHTS)).max() < 2


def test_features_are_matched_by_name(desk: Desk) -> None:
    turned = dict(reversed(WEIGHTS.items()))
    done = release_frame(table_of(), desk, new_people=OTHERS, release="scores", weights=turned, epsilon=100.0)
    assert np.abs(noise(done.frame, table_of(), WEIGHTS)).max() < 0.2
    assert done.certificate.features == FEATURES[::-1]


@pytest.mark.parametrize("kind", KINDS)
def test_frames_are_scored_alike(desk: Desk, kind: str) -> None:
    done = release_frame(KINDS[kind][0](people(50)), desk, new_people=OTHERS, **SCORES)
    assert list(columns(done.frame)) == ["name", "score"]
    assert is_certified(done.frame, done.certificate)


@pytest.mark.parametrize(
    "mechanism", ["spherical-laplace", "gaussian", "projection", "projection-exact", "staircase"]
)
def test_a_mechanism_by_name_works_on_the_scores(tmp_path: Path, mechanism: str) -> None:
    folder = place_with(tmp_path)
    done = release(folder, mechanism=mechanism, **SCORES)
    assert done.certificate.mechanism.name == mechanism
    assert holds(folder / "out.parquet")


def test_the_page_says_what_the_scores_tell(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, **SCORES)
    text = page_path(folder / "out.parquet").read_text(encoding="utf-8")
    assert "60 rows, 1 score of 3 protected columns" in text
    assert "- **score**: 0.816 × texts, 0.408 × calls, -0.408 × topups" in text
    assert "per score" in text
    assert "weights = [" not in text


# Everything once


@contextmanager
def counted(*places: tuple[Any, str]) -> Iterator[Counter[str]]:
    """How often functions are called."""
    found: Counter[str] = Counter()

    def watched(name: str, kept: Any) -> Any:
        def call(*given: Any, **more: Any) -> Any:
            found[name] += 1
            return kept(*given, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in places:
            patch.setattr(owner, name, watched(name, getattr(owner, name)))
        yield found


@pytest.mark.parametrize("scales", ["public", "private"])
def test_a_release_of_scores_does_everything_once(tmp_path: Path, scales: str) -> None:
    folder = place_with(tmp_path, 6000, scales=scales)
    for number in range(3):
        release(folder, f"{number}.parquet", epsilon=1.0 + number)
    checked: list[int] = []
    kept: Any = vars(Reading)["walked"]

    def walked(self: Reading) -> Any:
        checked.append(len(self.entries))
        return kept.func(self)

    watched = cached_property(walked)
    watched.__set_name__(Reading, "walked")
    with (
        pytest.MonkeyPatch.context() as patch,
        counted(
            (sqlite3, "connect"), (request_module, "weights_matrix"), (linear_module, "unit_map"),
            (Scores, "law"), (LinearLaw, "__post_init__"), (certificate_module, "at_distances"),
            (Look, "_fits"),
        ) as calls,
    ):  # fmt: skip
        patch.setattr(Reading, "walked", watched)
        release(folder, **SCORES, epsilon=2.5)
    assert calls["connect"] == 1, "one connection"
    assert calls["weights_matrix"] == calls["unit_map"] == 1, (
        "weights are validated once, and normalized once"
    )
    assert calls["law"] == 1, "the law is built once"
    # And read back once, when the ledger that now has it is read to its end.
    assert calls["__post_init__"] <= 3
    assert calls["at_distances"] == 1
    assert calls["_fits"] == 0, "the largest ε is worked out only if it is shown"
    assert len(checked) == 1, "the chain is verified once; later entries as they come"


def test_signatures_of_all_entries_are_checked_once(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    for number in range(3):
        release(folder, f"{number}.parquet", epsilon=1.0 + number)
    with Desk.open(folder / "desk").ledger() as ledger:
        there = len(ledger.entries)
    with counted((entries_module, "is_signed")) as calls:
        release(folder)
    # Each entry that was there, the two new ones, and the mark whenever it is held against the chain.
    marks = calls["is_signed"] - there - 2
    assert 0 < marks <= 8


def test_a_ledger_that_was_read_is_measured_once(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    with counted((book_module, "measure"), (record_module, "read_people")) as calls:
        release(folder, "b.parquet")
    assert calls["measure"] <= 2, "before the lock and, if anything was written since, under it"
    assert calls["read_people"] <= 2


# The end


def test_a_release_that_is_out_but_not_told_is_said_to_be_out(tmp_path: Path) -> None:
    folder = place_with(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "settle", full)
        with pytest.raises(
            PublishedButUnsettledError, match=r"the release IS published .*It counts. Run the same"
        ):
            release(folder)
    assert holds(folder / "out.parquet")
    with Desk.open(folder / "desk").ledger() as ledger:
        assert [row.state for row in ledger.history.releases.values()] == ["reserved"]
    with pytest.raises(AlreadyReleased):
        release(folder)
    with Desk.open(folder / "desk").ledger() as ledger:
        assert [row.state for row in ledger.history.releases.values()] == ["published"]
    assert hidden(folder) == []


def test_what_another_desk_left_is_not_settled_here(tmp_path: Path) -> None:
    folder = place_with(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "settle", full)
        with pytest.raises(PublishedButUnsettledError):
            release(folder)
    elsewhere = tmp_path.with_name(f"{tmp_path.name} elsewhere")
    elsewhere.mkdir()
    stranger = make_desk(elsewhere)
    with pytest.raises(ValueError, match="an earlier run, of another desk"):
        release(folder, desk=stranger, force=True)
    with pytest.raises(AlreadyReleased):
        release(folder)


def test_a_journal_that_the_desk_has_not_signed_tells_its_ledger_nothing(tmp_path: Path) -> None:
    """It lies in the output's folder, where others may write: they could publish in the desk's name."""
    folder = place_with(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "settle", full)
        with pytest.raises(PublishedButUnsettledError):
            release(folder)
    place = folder / ".out.parquet.targetdp" / "journal.json"
    journal = json.loads(place.read_text())
    del journal["check"]
    for change in ({"sha256": "0" * 64}, {"scales": {"calls": {"center": 0, "scale": 1}}}):
        forged = journal | change
        place.write_text(json.dumps(forged | {"check": digest_of(forged)}))
        with pytest.raises(ValueError, match="is not signed by this desk: somebody else wrote it"):
            release(folder)
    with Desk.open(folder / "desk").ledger() as ledger:
        assert [row.state for row in ledger.history.releases.values()] == ["reserved"]
    place.write_text(json.dumps(journal | {"check": digest_of(journal)}))
    with pytest.raises(AlreadyReleased):
        release(folder)


def test_tables_are_opened_by_what_they_are(tmp_path: Path) -> None:
    write_parquet(tmp_path / "in.parquet")
    desk = make_desk(tmp_path)
    with opened_table(tmp_path / "in.parquet", desk) as engine:
        assert engine.place == f"input {tmp_path / 'in.parquet'}"
    with opened_table(str(tmp_path / "in.parquet"), desk) as engine:
        assert engine.name == "local"
    with opened_table(table_of(), desk) as engine:
        assert engine.place == "the frame"
