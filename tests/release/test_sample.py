"""The sample of the weights: it must be what its certificate says, and everybody in it must be found."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import FEATURES, nothing_changes, read_back, write_parquet, write_scales
from support.scores import (
    EVERYBODY,
    SAMPLED,
    in_folder,
    release_sample,
    release_scores,
    two_tables,
    write_weights,
)
from targetdp.release import (
    Certificate,
    ManyMissingError,
    SigningKey,
    certificate_path,
    privatize_file,
    pseudonym_key,
)
from targetdp.release._keys import new_pseudonym_key


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    two_tables(folder)
    release_sample(folder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "copy")


def scored(folder: Path, **given: Any) -> Any:
    return release_scores(folder, **({"sample": folder / "sample.parquet"} | given))


def ids(path: Path) -> set[str]:
    return set(read_back(path).column("name").to_pylist())


def sign_again(folder: Path, change: Callable[[dict[str, Any]], Any], key: str = "key.pem") -> None:
    place = certificate_path(folder / "sample.parquet")
    plain = json.loads(place.read_text())
    change(plain)
    signed = Certificate.model_validate(plain).signed(SigningKey.open(folder / key))
    place.write_text(signed.text(), encoding="utf-8")


# Who is scored


def test_people_of_the_sample_are_left_out_and_nobody_else(folder: Path) -> None:
    done = scored(folder)
    everybody, sample = (ids(folder / name) for name in ("all.parquet", "sample.parquet"))
    assert ids(done.path) == everybody - sample
    assert done.certificate.rows == done.outcome.rows == EVERYBODY - SAMPLED
    assert done.certificate.sample is not None
    assert (done.certificate.sample.rows, done.certificate.sample.scored) == (SAMPLED, False)
    assert not any("those of the sample" in warning for warning in done.warnings)


def test_everybody_is_scored_if_that_is_asked_for(folder: Path) -> None:
    write_scales(folder / "scales.toml", features=("texts", "calls", "topups"))  # other scales: Lemma 2
    done = scored(folder, score_sample=True)
    assert ids(done.path) == ids(folder / "all.parquet")
    assert done.certificate.sample is not None
    assert done.certificate.sample.scored
    assert done.certificate.sample.inside.epsilon == 8.0
    assert done.certificate.sample.same_scales is False
    assert any("are not known to be those of the sample" in warning for warning in done.warnings)


def test_what_is_in_the_rows_of_people_who_are_left_out_does_not_matter(folder: Path) -> None:
    """Gaps, an id twice and a column that only they make differ: nothing of their rows is looked at."""
    table = read_back(folder / "all.parquet").to_pydict()
    sample = ids(folder / "sample.parquet")
    table["calls"] = [
        None if name in sample else value for name, value in zip(table["name"], table["calls"], strict=True)
    ]
    first = next(i for i, name in enumerate(table["name"]) if name in sample)
    twice = {column: [*values, values[first]] for column, values in table.items()}
    write_parquet(folder / "all.parquet", pa.table(twice))
    assert scored(folder).certificate.rows == EVERYBODY - SAMPLED
    with pytest.raises(ValueError, match=f"calls  {SAMPLED + 1} gaps, first in row"):
        release_scores(folder, "other.parquet", no_sample=True)


def test_rows_are_not_numbered_where_some_are_left_out(folder: Path) -> None:
    table = read_back(folder / "all.parquet").to_pydict()
    table["calls"][EVERYBODY - 1] = None
    write_parquet(folder / "all.parquet", pa.table(table))
    with pytest.raises(ValueError, match=r"calls  1 gap  \[gaps\] calls = 0"):
        scored(folder)


def test_private_scales_are_learned_from_those_who_are_scored(folder: Path) -> None:
    """The people who are left out have values beyond all others: no scale may show it."""
    table, sample = read_back(folder / "all.parquet").to_pydict(), ids(folder / "sample.parquet")
    for feature in FEATURES:
        table[feature] = [
            1e6 if name in sample else value
            for name, value in zip(table["name"], table[feature], strict=True)
        ]
    write_parquet(folder / "all.parquet", pa.table(table))
    bounds = "\n".join(f"{name} = {{ lower = -100, upper = 1e6 }}" for name in FEATURES)
    (folder / "bounds.toml").write_text(f"[features]\n{bounds}\n")
    done = scored(folder, scales="private", bounds=folder / "bounds.toml", scales_epsilon=50.0)
    assert done.certificate.scales.values is not None
    assert all(value.center < 5e4 for value in done.certificate.scales.values.values())


@pytest.mark.parametrize("kind", [pa.int64(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_ids_are_compared_as_text_whatever_they_are(tmp_path: Path, kind: pa.DataType) -> None:
    two_tables(tmp_path)
    for name in ("all.parquet", "sampled.parquet"):
        table = read_back(tmp_path / name)
        plain = pa.array([str(int(x)) for x in table.column("name").to_pylist()])
        column = plain if name == "sampled.parquet" else plain.cast(kind)
        write_parquet(tmp_path / name, table.set_column(0, "name", column))
    release_sample(tmp_path)
    assert scored(tmp_path).certificate.rows == EVERYBODY - SAMPLED


def test_pseudonyms_are_looked_up_with_their_key(tmp_path: Path) -> None:
    two_tables(tmp_path)
    release_sample(tmp_path, pseudonymize=tmp_path / "pseudonyms.key")
    with pytest.raises(ValueError, match="has pseudonyms, so that only their key tells"):
        scored(tmp_path)
    with pytest.raises(ValueError, match="give that key"):
        scored(tmp_path, pseudonymize=tmp_path / "new.key")
    done = scored(tmp_path, pseudonymize=tmp_path / "pseudonyms.key")
    assert done.certificate.rows == EVERYBODY - SAMPLED
    assert not ids(done.path) & ids(tmp_path / "sample.parquet")
    pseudonym_key(tmp_path / "new.key", new_pseudonym_key())
    with pytest.raises(ValueError, match="nobody of sample"):
        scored(tmp_path, name="other.parquet", pseudonymize=tmp_path / "new.key")
    with pytest.raises(ValueError, match="which Spark cannot look up"):
        scored(tmp_path, pseudonymize=tmp_path / "pseudonyms.key", engine="spark")


def test_people_who_are_not_in_the_table_must_be_known_to_have_left(folder: Path) -> None:
    table = read_back(folder / "all.parquet")
    gone = sorted(ids(folder / "sample.parquet"))[:3]
    here = [name not in gone for name in table.column("name").to_pylist()]
    write_parquet(folder / "all.parquet", table.filter(pa.array(here)))
    with pytest.raises(ValueError, match=rf"3 of the {SAMPLED} people of sample .* are not in the table"):
        scored(folder)
    assert not (folder / "scores.parquet").exists()
    # Three of 40 look like another spelling: they need a second word.
    with nothing_changes(folder), pytest.raises(ManyMissingError, match=r"3 of the 40 .*accept_missing"):
        scored(folder, some_have_left=True)
    done = scored(folder, some_have_left=True, accept_missing=True)
    assert done.certificate.rows == EVERYBODY - SAMPLED
    assert any("have left; that was declared" in condition for condition in done.certificate.conditions)
    assert any("3 of the 40" in warning for warning in done.warnings)


def test_a_few_who_left_are_a_warning(folder: Path) -> None:
    """Two of 40 are 5%."""
    table = read_back(folder / "all.parquet")
    gone = sorted(ids(folder / "sample.parquet"))[:2]
    here = [name not in gone for name in table.column("name").to_pylist()]
    write_parquet(folder / "all.parquet", table.filter(pa.array(here)))
    done = scored(folder, some_have_left=True)
    (warning,) = (warning for warning in done.warnings if "2 of the 40" in warning)
    assert "were not found, and count as having left; whoever is in the table under another id" in warning


def test_who_has_not_left_gives_no_warning(folder: Path) -> None:
    assert not any("not found" in warning for warning in scored(folder, some_have_left=True).warnings)


def test_ids_that_are_written_in_another_way_are_not_taken_for_people_who_left(folder: Path) -> None:
    table = read_back(folder / "all.parquet")
    other = pa.array([f"+{name}" for name in table.column("name").to_pylist()])
    write_parquet(folder / "all.parquet", table.set_column(0, "name", other))
    for more in ({}, {"some_have_left": True}):
        with pytest.raises(ValueError, match=r"nobody of sample .* is in the table: ids must be written"):
            scored(folder, **more)


def test_a_table_of_the_sample_alone_leaves_nobody(folder: Path) -> None:
    shutil.copy(folder / "sampled.parquet", folder / "all.parquet")
    with pytest.raises(ValueError, match="everybody in the table is in the sample"):
        scored(folder)


# What is taken for a sample


def test_a_sample_without_its_certificate_is_refused(folder: Path) -> None:
    certificate_path(folder / "sample.parquet").unlink()
    with pytest.raises(ValueError, match="has no certificate beside it"):
        scored(folder)


def test_a_sample_that_was_changed_is_refused(folder: Path) -> None:
    table = read_back(folder / "sample.parquet")
    pq.write_table(table.slice(1), folder / "sample.parquet")  # somebody would be scored after all
    with pytest.raises(ValueError, match="is not what its certificate says") as refused:
        scored(folder)
    assert "file sample.parquet: is not the one certified" in str(refused.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c["guarantee"].update(epsilon=1.0), "guarantee"),
        (lambda c: c.update(rows=39), "rows"),
        (lambda c: c["conditions"].pop(), "conditions"),
    ],
)
def test_a_sample_whose_certificate_claims_too_much_is_refused(folder: Path, change: Any, said: str) -> None:
    sign_again(folder, change)
    with pytest.raises(ValueError, match=f"is not what its certificate says.*{said}"):
        scored(folder)


def test_a_sample_that_somebody_else_signed_is_refused(folder: Path) -> None:
    sign_again(folder, lambda c: None, key="stranger.pem")
    with pytest.raises(ValueError, match="not signed with your key"):
        scored(folder)


def test_a_sample_of_an_older_version_is_taken_but_for_its_wording(folder: Path) -> None:
    sign_again(folder, lambda c: (c.update(library="0.0.9"), c["conditions"].pop()))
    assert scored(folder).certificate.rows == EVERYBODY - SAMPLED


def test_weights_that_were_learned_from_another_release_are_refused(folder: Path) -> None:
    write_weights(folder / "weights.toml", release="another")
    with pytest.raises(ValueError, match="was learned from release 'another', and sample"):
        scored(folder)


def test_weights_without_an_origin_may_be_given_one(folder: Path) -> None:
    write_weights(folder / "weights.toml")
    assert scored(folder).certificate.sample is not None


def test_scores_are_no_sample(folder: Path) -> None:
    """Whom they left out would be scored now, and nobody would add that up."""
    scored(folder)
    write_weights(folder / "weights.toml")
    with pytest.raises(ValueError, match="holds scores, and weights are learned from features"):
        scored(folder, name="more.parquet", sample=folder / "scores.parquet")


def test_a_sample_without_a_guarantee_is_refused(tmp_path: Path) -> None:
    two_tables(tmp_path)
    given: dict[str, Any] = {
        "mechanism": "mondrian",
        "group_size": 5,
        "B": None,
        "epsilon": None,
        "delta": None,
    }
    release_sample(tmp_path, **given)
    with pytest.raises(ValueError, match="has no guarantee: nothing could be stated for its people"):
        scored(tmp_path)


def test_the_sample_is_not_overwritten(folder: Path) -> None:
    before = (folder / "sample.parquet").read_bytes()
    with pytest.raises(ValueError, match=r"and sample .* overlap"):
        privatize_file(
            folder / "all.parquet", folder / "sample.parquet",
            in_folder(folder, weights=folder / "weights.toml", sample=folder / "sample.parquet"), force=True,
        )  # fmt: skip
    assert (folder / "sample.parquet").read_bytes() == before
