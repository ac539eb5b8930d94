"""`targetdp attack`, as a data holder types it."""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    FEATURES,
    Ran,
    cli,
    command,
    make_desk,
    new_policy,
    release,
    table_of,
    words,
    write_csv,
    write_parquet,
    write_scales,
)
from support.scores import release_scores
from targetdp.attacks import panel_names, registered

ROWS = 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("attack")
    everyone = table_of(ROWS + 200, seed=3)
    write_parquet(place / "everyone.parquet", everyone)
    write_parquet(place / "original.parquet", everyone.slice(0, ROWS))
    make_desk(place)
    for output in ("private.parquet", "second.parquet"):
        release(place, output, table="original.parquet")
    return place


@pytest.fixture(scope="module")
def all_attacks(folder: Path) -> Ran:
    return command(
        "attack", "everyone.parquet", "private.parquet", "--id", "name", "--rest-is-holdout", "--seed", "1",
        "--save", "attacks.json", cwd=folder,
    )  # fmt: skip


def test_one_table_with_every_attack_and_its_meaning(all_attacks: Ran) -> None:
    assert all_attacks.code == 0, all_attacks.err
    said = words(all_attacks.out)
    assert "600 people, 3 columns, holdout 200" in said
    for name in panel_names():
        assert name in all_attacks.out.replace("│", "").replace("\n", "") or name[:8] in said
    assert "Traceback" not in all_attacks.err
    assert "statistics of the original rows" in words(all_attacks.err)


def test_the_file_has_everything_that_was_found(all_attacks: Ran, folder: Path) -> None:
    found = json.loads((folder / "attacks.json").read_text(encoding="utf-8"))
    assert found["for_the_data_holder_only"] is True
    assert (found["people"], found["holdout"], found["features"]) == (600, 200, list(FEATURES))
    assert found["guarantee"]["B"] == 0.25
    assert found["crowd_within_B"]["looked_at"] == 600
    assert found["crowd_within_B"]["sentence"] in words(all_attacks.out)
    findings = {one["attack"]: one for one in found["findings"]}
    assert list(findings) == list(panel_names())
    for name, one in findings.items():
        assert one["wp216_criteria"] == list(registered()[name].answers.criteria)
        assert one["does_not_reach"]
        if name == "linkability":
            assert one["protection"] is None
            assert "--second" in one["meaning"]
            continue
        p = one["protection"]
        assert 0 <= p["interval"][0] <= p["score"] <= p["interval"][1] <= 1
        assert p["strongest"] in p["detail"]["settings"]
        assert p["bound"] == ("lower" if name == "distinguishing" else "upper")
    assert (folder / "attacks.json").stat().st_mode & 0o077 == 0


def test_a_seed_makes_it_repeatable_whatever_else_is_run(all_attacks: Ran, folder: Path) -> None:
    again = cli(
        "attack", folder / "everyone.parquet", folder / "private.parquet", "--id", "name",
        "--rest-is-holdout", "--seed", "1", "--attacks", "attribute_inference", "--json",
    )  # fmt: skip
    before = json.loads((folder / "attacks.json").read_text(encoding="utf-8"))["findings"]
    assert again.json["findings"][0] == next(f for f in before if f["attack"] == "attribute_inference")


def test_the_worst_of_each_kind_comes_first(all_attacks: Ran, folder: Path) -> None:
    """A release with ids: everybody is linked by them, and the insider's figure is the one for inference."""
    found = json.loads((folder / "attacks.json").read_text(encoding="utf-8"))
    assert (found["format"], found["ids"]) == ("targetdp attacks 2", "in clear")
    scores = {one["attack"]: one["protection"]["score"] for one in found["findings"] if one["protection"]}
    released, stripped = "as released", "if ids were stripped"
    assert found["worst"]["linkability"][released] == {"attack": "linkage_by_id", "score": 0.0}
    assert found["worst"]["inference"][released]["attack"] == "insider_inference"
    assert found["worst"]["inference"][released]["score"] == scores["insider_inference"]
    assert scores["insider_inference"] < scores["attribute_inference"] - 0.2
    assert found["worst"]["inference"][stripped]["attack"] == "attribute_inference"
    headline, rest = all_attacks.out.split("600 people, 3 columns")
    for said in (released, stripped, "linkage_by_id", "insider_inference", "This release carries ids"):
        assert said in headline
    assert rest.index("as released:") < rest.index("insider_inference") < rest.index("if ids were stripped:")
    assert rest.index("if ids were stripped:") < rest.index("attribute_inference")


def test_the_best_guess_stands_beside_epsilon(all_attacks: Ran, folder: Path) -> None:
    guess = json.loads((folder / "attacks.json").read_text(encoding="utf-8"))["best_guess"]
    assert 0.5 < guess["at_B"] < guess["at_distance_2"] <= 1
    near, far = (math.ceil(100 * guess[name] - 1e-9) for name in ("at_B", "at_distance_2"))
    said = words(all_attacks.out)
    assert "Promised: ε = 4 at B = 0.25." in said
    assert f"right at most {near} of 100 times for two people B apart, {far} of 100 at distance 2" in said


def test_further_releases_count_together(folder: Path) -> None:
    asked = (
        "attack", folder / "original.parquet", folder / "private.parquet", "--id", "name", "--seed", "1",
        "--attacks", "insider_inference,linkage,reconstruction,linkage_by_id", "--json",
    )  # fmt: skip
    once, twice = cli(*asked).json, cli(*asked, "--second", folder / "second.parquet").json
    for before, after in zip(once["findings"][:3], twice["findings"][:3], strict=True):
        assert after["protection"]["score"] < before["protection"]["score"], after["attack"]
        assert after["protection"]["detail"]["strongest_release"] == "releases 1 and 2 together"
    assert "Release 2 has the same ids" in twice["findings"][3]["meaning"]
    (other,) = twice["further_releases"]
    assert (other["people"], other["released"], other["ids"]) == (ROWS, list(FEATURES), "in clear")
    three = cli(*asked, *("--second", folder / "second.parquet") * 2)
    assert len(three.json["further_releases"]) == 2


@pytest.fixture
def place(folder: Path, tmp_path: Path) -> Path:
    """A desk of its own for what a test changes, with the same people."""
    for name in ("everyone.parquet", "original.parquet"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    make_desk(tmp_path)
    return tmp_path


def test_releases_with_and_without_pseudonyms_are_attacked_together(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The desk has the key: it is named, or found above the folder that the command runs in."""
    release(place, "private.parquet", table="original.parquet")
    new_policy(place / "desk", pseudonyms=True)
    release(place, "hashed.parquet", table="original.parquet")
    first, second = place / "private.parquet", place / "hashed.parquet"
    asked = ("--attacks", "reconstruction,linkage_by_id,linkage", "--json")
    for one, other, ids in ((first, second, "in clear"), (second, first, "pseudonyms")):
        found = cli(
            "attack", place / "original.parquet", one, "--id", "name", "--desk", place / "desk", "--second",
            other, *asked,
        )  # fmt: skip
        assert found.code == 0, found.err
        together, by_id, by_values = found.json["findings"]
        assert found.json["ids"] == ids
        assert together["protection"]["detail"]["strongest_release"] == "releases 1 and 2 together"
        assert by_id["protection"]["score"] == 0
        assert "Release 2 has no id in common" in by_id["meaning"]
        stranger = "if ids were stripped" if ids == "in clear" else "without the pseudonyms' key"
        assert by_values["situation"] == stranger
    alone = ("attack", place / "original.parquet", second, "--id", "name", *asked)
    refused = cli(*alone)
    assert refused.code == 2
    assert "pseudonyms of desk people" in words(refused.err)
    assert "(--desk)" in words(refused.err)
    assert cli(*alone, "--desk", place / "nothing").code == 2
    (place / "below").mkdir()
    monkeypatch.chdir(place / "below")
    assert cli(*alone).json["ids"] == "pseudonyms"


def test_scales_of_tables_without_a_certificate_are_named(folder: Path, tmp_path: Path) -> None:
    """Original rows, in units of their own: with scales they are brought into those of the release."""
    hidden = write_csv(tmp_path / "hidden.csv", table_of(ROWS + 200, seed=3).slice(0, ROWS))
    scales = write_scales(tmp_path / "scales.toml")
    asked = (
        "attack", folder / "original.parquet", folder / "private.parquet", "--id", "name", "--attacks",
        "reconstruction", "--second", hidden, "--json",
    )  # fmt: skip
    alone = cli(*asked, "--second-scales", scales)
    assert alone.code == 0, alone.err
    assert alone.json["notes"] == []
    assert [
        note for note in cli(*asked).json["notes"] if note.startswith("Release 2: There is no certificate")
    ]
    named = (*asked, "--second", folder / "second.parquet", "--second-scales")
    assert cli(*named, f"{hidden}={scales}").code == 0
    for wrong in (scales, f"nobody.parquet={scales}", f"{hidden}="):
        refused = cli(*named, wrong)
        assert refused.code == 2
        assert "does not name one of the other releases" in words(refused.err)
    refused = cli(*named, f"{folder / 'second.parquet'}={scales}")
    assert refused.code == 2
    assert "certificate has its scales; leave --scales out" in words(refused.err)


def test_two_releases_are_linked(folder: Path) -> None:
    ran = cli(
        "attack", folder / "original.parquet", folder / "private.parquet", "--id", "name", "--second",
        folder / "second.parquet", "--attacks", "linkability,membership", "--json",
    )  # fmt: skip
    linked, member = ran.json["findings"]
    assert linked["protection"]["score"] < 0.99
    assert member["protection"] is None
    assert "--holdout" in member["meaning"]


def test_two_releases_in_different_orders_are_linked_by_person(folder: Path, tmp_path: Path) -> None:
    """Without noise every row is found, if and only if people are paired rightly."""
    table = table_of(50)
    original = write_parquet(tmp_path / "a.parquet", table)
    shuffled = table.take(np.random.default_rng(0).permutation(50)).drop_columns(["texts"])
    second = write_parquet(tmp_path / "b.parquet", shuffled)
    ran = cli(
        "attack", original, original, "--id", "name", "--second", second, "--attacks", "linkability", "--json"
    )
    assert ran.json["findings"][0]["protection"]["score"] == 0


def test_no_noise_no_protection_and_no_certificate(folder: Path) -> None:
    ran = cli("attack", folder / "original.parquet", folder / "original.parquet", "--id", "name", "--json")
    found = {one["attack"]: one["protection"] for one in ran.json["findings"]}
    assert found["singling_out"]["score"] == 0
    assert found["linkage"]["score"] == 0
    assert found["attribute_inference"]["score"] < 0.05
    assert found["distinguishing"] is None
    assert ran.json["notes"]


@pytest.fixture
def kept(place: Path) -> Path:
    """A release that passes a public column on, of an ε that is no round number."""
    public = {"topups": "it is on a public list"}
    new_policy(place / "desk", ("calls", "texts"), public=public, reason="a public list")
    release(place, "kept.parquet", table="original.parquet", B=2.0, epsilon=1.0000049)
    return place / "kept.parquet"


def test_a_derived_score_says_what_it_depends_on(folder: Path, kept: Path) -> None:
    asked = ("attack", folder / "original.parquet", kept, "--id", "name", "--attacks")
    shown = cli(*asked, "distinguishing")
    assert "≥*" in shown.out
    assert "the release's condition:" in shown.err
    found = cli(*asked, "distinguishing,distinguishing", "--json").json["findings"]
    assert len(found) == 1
    assert len(found[0]["holds_only"]) == 1
    assert found[0]["meaning"].startswith("Only without the columns that are passed on as they are (topups)")


def test_the_best_guess_says_what_it_depends_on(folder: Path, kept: Path) -> None:
    """ε is printed as it is."""
    asked = ("attack", folder / "original.parquet", kept, "--id", "name", "--attacks", "distinguishing")
    shown = cli(*asked)
    said = words(shown.out)
    assert "Promised: ε = 1.0000049 at B = 2. Only without the columns that are passed on" in said
    assert "as they are (topups): the best guess of any attacker" in said
    assert "linkage by them, is not measured" in words(shown.err)
    found = cli(*asked, "--json").json
    assert found["best_guess"]["holds_only"] == found["findings"][0]["holds_only"] != []
    assert any("(topups)" in note for note in found["notes"])
    first = (asked[0], asked[1], folder / "private.parquet", *asked[3:])
    second = cli(*first, "--second", kept, "--json").json
    assert len(second["best_guess"]["holds_only"]) == 1
    assert [note for note in second["notes"] if note.startswith("Release 2: No attack here uses")]


def test_a_further_release_with_fewer_people_makes_no_holdout(folder: Path, tmp_path: Path) -> None:
    """People who are missing there are in the release under attack: no outsiders."""
    write_parquet(tmp_path / "half.parquet", table_of(ROWS + 200, seed=3).slice(0, ROWS // 2))
    make_desk(tmp_path)
    release(tmp_path, "few.parquet", table="half.parquet")
    asked = (
        "attack", folder / "original.parquet", folder / "private.parquet", "--id", "name", "--seed", "1",
        "--attacks", "insider_inference", "--json",
    )  # fmt: skip
    once, more = (
        cli(*asked, *second).json["findings"][0]["protection"]
        for second in ((), ("--second", tmp_path / "few.parquet"))
    )
    assert more["score"] <= once["score"]
    assert more["detail"]["holdout"] == 0


def test_an_attack_that_refuses_stops_nobody_else(folder: Path, tmp_path: Path) -> None:
    few = table_of(5).set_column(0, "name", [[f"x{i}" for i in range(5)]])
    ran = cli(
        "attack", folder / "original.parquet", folder / "private.parquet", "--id", "name", "--holdout",
        write_parquet(tmp_path / "few.parquet", few), "--attacks", "membership,singling_out", "--json",
    )  # fmt: skip
    member, single = ran.json["findings"]
    assert member["protection"] is None
    assert "holdout" in member["meaning"]
    assert single["protection"] is not None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--attacks", "magic"], "attacks = 'magic' is not one of"),
        (["--confidence", "1"], "confidence = 1.0 is outside (0, 1)"),
        (["--people", "0"], "people = 0 is outside"),
        (["--seed", "-1"], "seed = -1 is outside"),
        (["--save", "{folder}/original.parquet"], "exists: choose another name"),
        (["--save", "{folder}/none/a.json"], "folder does not exist"),
        (["--save", "{folder}", "--force"], "is a folder"),
        (["--save", "{folder}/original.parquet", "--force"], "is one of the tables"),
        (["--attacks", ""], "names none"),
        *(
            ([*given, "--save", f"{{folder}}/{file}", "--force"], "is one of the tables or files given")
            for given, file in (
                ([], "private.parquet.certificate.json"),
                (["--certificate", "{folder}/scales.toml"], "scales.toml"),
                (["--holdout", "{folder}/scales.toml"], "scales.toml"),
                (["--second", "{folder}/second.parquet"], "second.parquet.certificate.json"),
                (
                    ["--second", "{folder}/second.parquet", "--second-scales", "{folder}/scales.toml"],
                    "scales.toml",
                ),
            )
        ),
    ],
)
def test_refused_before_any_work(folder: Path, arguments: list[str], reason: str) -> None:
    given = [part.format(folder=folder) for part in arguments]
    ran = cli("attack", folder / "original.parquet", folder / "private.parquet", "--id", "name", *given)
    assert ran.code == 2
    assert reason in words(ran.err)
    assert ran.out == ""


def test_tables_that_do_not_line_up_are_refused(folder: Path, tmp_path: Path) -> None:
    stranger = table_of(3).set_column(0, "name", [["a", "b", "c"]])
    ran = cli(
        "attack", write_parquet(tmp_path / "s.parquet", stranger), folder / "private.parquet", "--id", "name"
    )
    assert ran.code == 2
    assert "has 600 people who are not in original" in words(ran.err)


def test_a_single_column_and_few_people(folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ids = [str(i) for i in range(30)]
    x = rng.standard_normal(30)
    a = write_parquet(tmp_path / "a.parquet", pa.table({"name": ids, "x": x}))
    b = write_parquet(tmp_path / "b.parquet", pa.table({"name": ids, "x": x + rng.standard_normal(30)}))
    ran = cli("attack", a, b, "--id", "name", "--json")
    assert ran.code == 0, ran.err
    found = {one["attack"]: one for one in ran.json["findings"]}
    assert "needs two columns" in found["attribute_inference"]["meaning"]
    assert found["singling_out"]["protection"]["detail"]["people"] == 30


def test_scores_are_attacked_too(folder: Path, place: Path) -> None:
    """By exact scores; what a score tells of the columns behind it is guessed by an informed adversary."""
    released = place / "scores.parquet"
    release_scores(place, table="original.parquet")
    asked = ("attack", folder / "everyone.parquet", released, "--id", "name", "--rest-is-holdout")
    shown = cli(*asked, "--seed", "1")
    assert shown.code == 0, shown.err
    said = words(shown.out)
    assert "600 people, 1 score of 3 columns, holdout 200" in said
    assert "Cleverer guesses" in said
    assert "others who look alike" in said
    found = cli(*asked, "--seed", "1", "--json").json
    assert (found["features"], found["scores"]) == (list(FEATURES), ["score"])
    findings = {one["attack"]: one for one in found["findings"]}
    assert list(findings) == list(panel_names())
    missing = [name for name, one in findings.items() if one["protection"] is None]
    assert missing == ["attribute_inference", "linkability"]
    assert 0 < findings["insider_inference"]["protection"]["score"] < 0.9
    assert "whose row or score it is" in findings["insider_inference"]["adversary"]
    assert found["worst"]["inference"]["as released"]["attack"] == "insider_inference"
    # The crowd is of rows: B is a distance between rows, and scores are nearer to each other than these.
    rows = cli(
        "attack", folder / "everyone.parquet", folder / "private.parquet", "--id", "name",
        "--rest-is-holdout", "--seed", "1", "--attacks", "singling_out", "--json",
    ).json  # fmt: skip
    assert found["crowd_within_B"] == rows["crowd_within_B"]
    assert rows["scores"] is None
