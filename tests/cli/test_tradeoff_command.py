"""`targetdp tradeoff`, as a data holder and an official's analyst type it."""

import tomllib
from pathlib import Path

import pytest

from support.release import Ran, certificate_of, cli, make_desk, words
from support.tradeoff import FEATURES, files, finished_bytes
from targetdp.programs import MARK
from targetdp.release import read_request

EASY = ("--singling-out", "0.1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tradeoff")
    files(place)
    return place


@pytest.fixture(scope="module")
def ran(folder: Path) -> Ran:
    return cli("tradeoff", folder / "program.toml", "--out", folder / "results", "--jobs", "1")


def test_a_sweep_prints_every_cell_and_where_time_went(ran: Ran, folder: Path) -> None:
    assert ran.code == 0, ran.err
    for text in ("status quo", "projection *", "least-noise", "mondrian 5", "3 + 0.9", "true ε"):
        assert text in ran.out
    assert "computed once" in words(ran.out)
    assert "21 simulations (21 of them now); milliseconds for each: privatize" in words(ran.err)
    assert "150 people (synthetic), 3 simulations, δ = 0.00663" in words(ran.out)
    assert "is large" not in words(ran.err)
    assert MARK not in words(ran.out + ran.err)
    names = {path.name for path in (folder / "results").iterdir()}
    assert names == {"run.json", "parts", "results.parquet", "summary.parquet", "timing.parquet"}


def test_run_again_it_computes_nothing_and_prints_the_same(ran: Ran, folder: Path) -> None:
    before = finished_bytes(folder / "results")
    again = cli("tradeoff", folder / "program.toml", "--out", folder / "results", "--jobs", "1")
    assert again.out == ran.out
    assert "(0 of them now)" in words(again.err)
    assert finished_bytes(folder / "results") == before


def test_options_may_come_first_and_the_word_run_may_be_said(ran: Ran, folder: Path) -> None:
    for arguments in (
        ("--jobs", "1", "--out", folder / "results", "--quiet", folder / "program.toml"),
        ("run", folder / "program.toml", "--out", folder / "results", "--jobs", "1", "--quiet"),
    ):
        done = cli("tradeoff", *arguments)
        assert (done.code, done.out) == (0, ran.out), done.err
        assert done.err == ""


def test_json_has_means_of_every_cell(ran: Ran, folder: Path) -> None:
    done = cli("tradeoff", folder / "program.toml", "--out", folder / "results", "--jobs", "1", "--json")
    record = done.json
    assert (record["source"], record["for_the_data_holder_only"]) == ("synthetic", False)
    assert len(record["cells"]) == 11
    today, first = record["cells"][:2]
    assert today["name"] == "status quo"
    assert today["means"]["extra_exclusion_errors"] == 0
    assert today["means"]["exact_epsilon"] is None
    assert first["means"]["singling_out"] > today["means"]["singling_out"] == 0
    assert (record["simulations"], record["computed_now"]) == (21, 0)


def test_a_recommendation_is_a_request(ran: Ran, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "request.toml"
    done = cli("tradeoff", "recommend", folder / "results", *EASY, "--out", out)
    assert done.code == 0, done.err
    assert "best" in done.out
    assert "Of the 4 cells" in words(done.out) or "among the 4 cells" in words(done.out)
    assert "say in it who asks and why, and send it to the data holder" in words(done.err)
    assert out.read_text(encoding="utf-8").strip() in done.out
    asked = read_request(out)
    assert (asked.tuned_on, asked.program, asked.features) == ("synthetic", "program", FEATURES)
    assert "150 people (synthetic), δ = 0.00663" in words(done.out)
    assert f"Its release promises (B = {asked.B:g}, ε = {asked.epsilon:g}, δ = 0.00663)." in words(done.out)
    refused = cli("tradeoff", "recommend", folder / "results", *EASY, "--out", out)
    assert refused.code == 2
    assert "exists: choose another name" in words(refused.err)
    assert cli("tradeoff", "recommend", folder / "results", *EASY, "--out", out, "--force").code == 0


def test_privatize_answers_the_request_at_a_desk(ran: Ran, folder: Path, tmp_path: Path) -> None:
    out, released = tmp_path / "request.toml", tmp_path / "private.parquet"
    assert cli("tradeoff", "recommend", folder / "results", *EASY, "--out", out).code == 0
    make_desk(tmp_path, FEATURES, id="id")
    asked = ("privatize", folder / "people.parquet", released, "--request", out, "--desk", tmp_path / "desk")
    looked = cli(*asked, "--check", "--json")
    assert (looked.code, looked.json["look"]["problems"]) == (0, []), looked.err
    done = cli(*asked, "--yes", "--quiet")
    assert done.code == 0, done.err
    certificate = certificate_of(released)
    assert (certificate.tuned_on, certificate.request.program, certificate.rows) == (
        "synthetic", "program", 150,
    )  # fmt: skip


def test_if_nothing_satisfies_the_exit_code_is_1(ran: Ran, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "request.toml"
    done = cli(
        "tradeoff", "recommend", folder / "results", "--singling-out", "1", "--attribute-inference", "0.1",
        "--distinguishing", "0.999", "--max-exclusion-errors", "0", "--out", out,
    )  # fmt: skip
    assert done.code == 1
    assert "None of the 4 releases satisfies every constraint" in words(done.out)
    assert "2 more cells are no releases (no request can ask for it: k is not 10,000)" in words(done.out)
    assert "2 more cells are no releases (k-anonymity has no guarantee" in words(done.out)
    assert "Distinguishing protection of at least 0.999 excludes 4" in words(done.out)
    assert not out.exists()


def test_any_metric_can_be_a_constraint(ran: Ran, folder: Path) -> None:
    done = cli(
        "tradeoff", "recommend", folder / "results", "--at-least", "accuracy=0.4", "--at-most",
        "exclusion-errors=100000", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["constraints"] == ["accuracy of at least 0.4", "exclusion errors of at most 100,000"]
    assert done.json["recommended"] in done.json["satisfy"]
    assert tomllib.loads(done.json["request"])["release"] == "rows"


def test_a_large_delta_is_told_everywhere(tmp_path: Path) -> None:
    program, out = files(tmp_path, parts=5), tmp_path / "results"
    done = cli("tradeoff", program, "--out", out, "--jobs", "1", "--quick", "--simulations", "1")
    assert done.code == 0, done.err
    assert "δ = 0.0323, 4.87 times the usual 1/(rows + 1)" in words(done.out)
    assert "warning: δ = 0.033 is large" in words(done.err)
    chosen = cli("tradeoff", "recommend", out, *EASY)
    assert "δ = 0.0323, 4.87 times the usual 1/(rows + 1)" in words(chosen.out)
    assert "# Warning: δ = 0.033 is large" in words(chosen.out)
    assert "warning: δ = 0.033 is large" in words(chosen.err)


def test_confidential_rows_leave_their_mark_everywhere(tmp_path: Path) -> None:
    program = files(tmp_path, "confidential")
    out = tmp_path / "results"
    done = cli("tradeoff", program, "--out", out, "--jobs", "1", "--quick", "--simulations", "1", "--quiet")
    assert done.code == 0, done.err
    assert MARK in words(done.out)
    assert MARK in words(done.err)
    chosen = cli("tradeoff", "recommend", out, *EASY)
    assert words(chosen.out).count(MARK) == 2, "over the table, and in the request"
    assert 'tuned_on = "this-data"' in chosen.out
    assert MARK in words(chosen.err)
    for arguments in (("tradeoff", program, "--out", out, "--jobs", "1", "--quick", "--simulations", "1"),
                      ("tradeoff", "recommend", out, *EASY)):  # fmt: skip
        marked = cli(*arguments, "--json")
        assert marked.json["for_the_data_holder_only"] is True
        assert MARK in words(marked.err)
    none = cli("tradeoff", "recommend", out, "--distinguishing", "1")
    assert none.code == 1
    assert MARK in words(none.out)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ("tradeoff", "ghana", "--out", "{folder}/new"),
            "program = 'ghana' is neither a file nor one of togo",
        ),
        (("tradeoff", "{folder}/people.parquet", "--out", "{folder}/new"), "program file"),
        (("tradeoff", "{program}", "--out", "{folder}/results", "--seed", "8"), "differs in seed (5 → 8)"),
        (
            ("tradeoff", "{program}", "--out", "{folder}/new", "--simulations", "0"),
            "simulations = 0 is outside",
        ),
        (("tradeoff", "{program}", "--out", "{folder}/new", "--jobs", "0"), "jobs = 0 is outside"),
        (
            ("tradeoff", "{program}", "--out", "{folder}/new", "--address", "x"),
            "address = 'x' is for backend dask",
        ),
        (("tradeoff", "recommend", "{folder}", "--singling-out", "0.5"), "is no folder of a sweep"),
        (("tradeoff", "recommend", "{folder}/results"), "constraints has 0 entries"),
        (
            ("tradeoff", "recommend", "{folder}/results", "--singling-out", "2"),
            "singling_out = 2.0 is outside [0, 1]",
        ),
        (
            ("tradeoff", "recommend", "{folder}/results", "--min-profit", "2"),
            "metric = 'profit' is not one of",
        ),
        (
            ("tradeoff", "recommend", "{folder}/results", "--at-least", "accuracy"),
            "'accuracy' is not a metric and a",
        ),
    ],
)
def test_bad_input_is_refused_with_the_reason(
    ran: Ran, folder: Path, arguments: tuple[str, ...], reason: str
) -> None:
    given = [part.format(folder=folder, program=folder / "program.toml") for part in arguments]
    done = cli(*given)
    assert done.code == 2
    assert reason in words(done.err)
    assert done.out == ""


def test_help_is_quick_to_read() -> None:
    assert "recommend" in cli("tradeoff", "--help").out
    assert "--quick" in cli("tradeoff", "run", "--help").out


def test_a_quick_look_stands_above_the_table_and_in_json(ran: Ran, folder: Path) -> None:
    looked = (
        "QUICK LOOK: 3 simulations of each release with noise, where 20 or more are needed to tell chance"
    )
    assert words(ran.out).startswith(looked)
    done = cli("tradeoff", folder / "program.toml", "--out", folder / "results", "--jobs", "1", "--json")
    assert done.json["first_look"][-1] == "these people are invented"
    chosen = cli("tradeoff", "recommend", folder / "results", *EASY)
    assert words(chosen.out).startswith(looked)
    assert "# Made from a quick look: 3 simulations" in chosen.out
    record = cli("tradeoff", "recommend", folder / "results", *EASY, "--json").json
    assert record["first_look"] == done.json["first_look"]


def test_a_part_of_the_grid_is_a_quick_look(tmp_path: Path) -> None:
    program, out = files(tmp_path, "public"), tmp_path / "results"
    done = cli(
        "tradeoff", program, "--out", out, "--jobs", "1", "--quick", "--simulations", "20", "--json"
    )  # fmt: skip
    assert done.json["first_look"] == ["a part of the grid only"]


def test_the_table_shows_the_strongest_attack_the_papers_and_the_best_guess(ran: Ran, folder: Path) -> None:
    assert "as in" in ran.out
    assert "100.0%" in ran.out, "without privacy the best guess is always right"
    assert "an insider's, who knows whose row or score it is, the noise, and all columns but one" in words(
        ran.out
    )
    done = cli("tradeoff", folder / "program.toml", "--out", folder / "results", "--jobs", "1", "--json")
    for cell in done.json["cells"]:
        means = cell["means"]
        assert means["inference"] <= min(means["attribute_inference"], means["insider_inference"]) + 1e-12
        assert 0.5 < means["best_guess"] <= means["best_guess_at_2"] <= 1


def test_limits_on_inference_and_the_best_guess(ran: Ran, folder: Path) -> None:
    limits = ("--inference", "0.01", "--attribute-inference", "0.02", "--best-guess", "0.9999")
    done = cli("tradeoff", "recommend", folder / "results", *limits, "--json")
    assert done.json["constraints"] == [
        "inference protection of at least 0.01",
        "attribute inference protection as in the paper of at least 0.02",
        "the best guess of any attacker at distance B right in at most 99.99% of cases",
    ]
    wrong = cli("tradeoff", "recommend", folder / "results", "--best-guess", "0.3")
    assert wrong.code == 2
    assert "best_guess = 0.3 is outside" in words(wrong.err)


def test_near_misses_are_printed(ran: Ran, folder: Path) -> None:
    record = cli("tradeoff", "recommend", folder / "results", *EASY, "--json").json
    assert record["near_misses"] == []
    cells = cli(
        "tradeoff", folder / "program.toml", "--out", folder / "results", "--jobs", "1", "--json"
    ).json
    guesses = {cell["name"]: cell["means"]["distinguishing"] for cell in cells["cells"]}
    just_above = guesses["least-noise B=0.25 epsilon=3.5"] + 0.001
    limit = ("--distinguishing", f"{just_above:.6f}")
    missed = cli("tradeoff", "recommend", folder / "results", *limit, "--json").json["near_misses"]
    assert missed
    assert all(text.startswith("distinguishing protection 0.0") for text in missed)
    printed = cli("tradeoff", "recommend", folder / "results", *limit)
    assert f"near miss: {words(missed[0])}" in words(printed.out)


def test_a_file_for_learning_is_refused_with_all_that_it_lacks(tmp_path: Path) -> None:
    rule = tmp_path / "rule.toml"
    rule.write_text('kind = "lending"\ntarget = "repaid"\n', encoding="utf-8")
    refused = cli("tradeoff", rule, "--out", tmp_path / "results")
    assert refused.code == 2
    assert "rule.toml: table, source, features, loans and currency must be given" in words(refused.err)
    assert "targetdp program init" in words(refused.err)
    assert not (tmp_path / "results").exists()
