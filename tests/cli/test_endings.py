"""How runs end: words and an exit code for people, with --json an object for programs; SIGTERM; --quiet."""

import ast
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from support.release import ASKED, COMMAND, Ran, cli, make_desk, table_of, words, write_parquet
from targetdp._core import NothingLeftError, NotYetError
from targetdp.cli import _main, app
from targetdp.cli._console import PublishedError
from targetdp.cli._endings import Terminated, asks_for_json, sigterm_raises

PLAN = ("plan", "--B", "0.4", "--accuracy", "0.99", "--epsilon", "1", "--delta", "1e-4")
CLI = Path(_main.__file__).parent


def error_of(ran: Ran) -> dict[str, Any]:
    """What a program is told; it has the keys that were promised, and nothing else is on stdout."""
    error: dict[str, Any] = ran.json
    assert set(error) == {"outcome", "exit_code", "message", "notes", "run_again", "unfinished"}
    assert error["exit_code"] == ran.code
    return error


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> Ran:
    """A run of a command that meets this error."""

    def broken(**_: Any) -> None:
        raise error

    monkeypatch.setattr("targetdp.mechanisms.plan", broken)
    return cli(*PLAN, "--json")


# Errors as JSON


def test_a_refusal_is_words_and_an_object() -> None:
    ran = cli("plan", "--B", "0.4", "--accuracy", "2", "--epsilon", "1", "--delta", "1e-4", "--json")
    error = error_of(ran)
    assert error["message"] == "accuracy = 2.0 is outside [0.5, 1): Theorem 1 speaks of γ from 1/2 to below 1"
    assert (error["outcome"], ran.code, error["notes"]) == ("refused", 2, [])
    assert ran.err == f"error: {error['message']}\n"
    assert ran.out.isascii(), "whatever stdout's encoding, it can be written"


def test_without_json_stdout_stays_empty() -> None:
    assert cli("plan", "--B", "0.4", "--accuracy", "2", "--epsilon", "1", "--delta", "1e-4").out == ""
    assert cli("plan", "--B", "0.4", "--accuracy", "x", "--epsilon", "1", "--delta", "1e-4").out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "--json"), "Missing option '--B'."),
        ((*PLAN, "--nonsense", "--json"), "No such option: --nonsense"),
        (
            ("plan", "--B", "0.4", "--accuracy", "x", "--json", "--epsilon", "1", "--delta", "0"),
            "Invalid value",
        ),
        (("attack", "a.parquet", "--json"), "Missing argument 'released'."),
        (("ledger", "shwo", "--json"), "No such command 'shwo'. Did you mean 'show'?"),
        (("privatise", "--json"), "No such command 'privatise'. Did you mean 'privatize'?"),
        (
            ("tradeoff", "recomend", "results", "--json"),
            "No such command 'recomend'. Did you mean 'recommend'?",
        ),
        (("status", "--dsek", "desk", "--json"), "No such option: --dsek (Possible options: --desk)"),
        (
            ("attack", "audit", "--epsilo", "3", "--json"),
            "No such option: --epsilo (Possible options: --epsilon)",
        ),
    ],
)
def test_so_are_arguments_that_are_not_understood(arguments: tuple[str, ...], message: str) -> None:
    ran = cli(*arguments)
    error = error_of(ran)
    assert (error["outcome"], ran.code) == ("refused", 2)
    assert message in error["message"]
    assert message in words(ran.err)


@pytest.mark.parametrize(
    ("error", "kind", "code", "message"),
    [
        (ValueError("too large"), "refused", 2, "too large"),
        (TypeError("no number"), "refused", 2, "no number"),
        (
            OSError(28, "No space left", "x.csv"),
            "machine",
            3,
            "No space left (x.csv): make room and run again",
        ),
        (RuntimeError("no memory"), "machine", 3, "no memory"),
        (NotYetError("wait"), "waiting", 6, "wait"),
        (NothingLeftError("spent"), "spent", 7, "spent"),
        (PublishedError("it IS published"), "unsettled", 4, "it IS published"),
        (KeyboardInterrupt(), "interrupted", 130, "interrupted"),
        (Terminated(), "interrupted", 143, "terminated"),
    ],
)
def test_every_kind_of_error_has_its_code_and_keeps_its_notes(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, kind: str, code: int, message: str
) -> None:
    error.add_note("Nothing was lost")
    ran = failing(monkeypatch, error)
    assert error_of(ran) == {
        "message": message, "outcome": kind, "exit_code": code, "notes": ["Nothing was lost"],
        "run_again": kind not in {"refused", "spent"}, "unfinished": None,
    }  # fmt: skip
    prefix = "" if kind == "interrupted" else "error: "
    assert ran.err == f"{prefix}{message}. Nothing was lost\n"


def test_a_question_that_is_not_answered_is_an_object_too(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = failing(monkeypatch, typer.Abort())
    assert (error_of(ran)["outcome"], ran.code) == ("interrupted", 1)
    ran = failing(monkeypatch, EOFError())
    assert (error_of(ran)["outcome"], ran.code) == ("interrupted", 1)


def test_a_mistake_of_ours_is_not_dressed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        failing(monkeypatch, ZeroDivisionError())


def test_a_check_that_does_not_hold_is_an_answer_and_no_error(tmp_path: Path) -> None:
    write_parquet(tmp_path / "in.parquet", table_of(60))
    make_desk(tmp_path)
    output = tmp_path / "out.parquet"
    assert cli("privatize", tmp_path / "in.parquet", output, *ASKED, "--desk", tmp_path / "desk").code == 0
    write_parquet(output, table_of(60))
    ran = cli("verify", output, "--json")
    assert (ran.code, ran.json["holds"]) == (1, False)


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("plan --json", True),
        ("plan --accuracy 2 --json", True),
        ("plan --accuracy --json", False),
        ("plan --accuracy=2 --json", True),
        ("privatize in out --request --request --json", True),
        ("privatize in out --force --json", True),
        ("privatize in -- --json", False),
        ("privatize in out", False),
        ("attack a b --json --id name", True),
        ("attack a b --id --json", False),
        ("attack --json a b", True),
        ("attack audit --B 1 --json", True),
        ("tradeoff recommend folder --json", True),
        ("ledger show --desk --json", False),
        ("", False),
        ("--help", False),
    ],
)
def test_json_is_asked_for_by_the_option_alone(line: str, asked: bool) -> None:
    assert asks_for_json(get_command(app), line.split()) is asked


def test_where_saving_fails_stdout_has_the_error_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parquet(tmp_path / "a.parquet", table_of(60))
    write_parquet(tmp_path / "b.parquet", table_of(60, seed=1))

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("targetdp.cli._attacks._attack.save_text", full)
    ran = cli(
        "attack", tmp_path / "a.parquet", tmp_path / "b.parquet", "--id", "name", "--features", "calls,texts",
        "--attacks", "singling_out", "--save", tmp_path / "found.json", "--json",
    )  # fmt: skip
    assert error_of(ran)["outcome"] == "machine"


# SIGTERM


def begun(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """A process that writes a large table, at the moment when its draft is there."""
    process = subprocess.Popen(  # noqa: S603 (our own command)
        [*COMMAND, "example", "togo", "--rows", "20000000", "--out", "people.parquet", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not any(path.is_file() and path.stat().st_size for path in folder.glob(".*/*")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return process


@pytest.mark.parametrize("times", [1, 2], ids=["once", "to the process and to its group"])
def test_sigterm_ends_a_process_in_order(tmp_path: Path, times: int) -> None:
    process = begun(tmp_path)
    for _ in range(times):
        process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (143, "", "terminated\n")
    assert list(tmp_path.iterdir()) == [], "the draft is removed"


def test_sigterm_is_told_to_programs() -> None:
    script = (
        "import os, signal; import targetdp.mechanisms as m; from targetdp.cli import main; "
        "m.plan = lambda **_: os.kill(os.getpid(), signal.SIGTERM); main()"
    )
    run = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script, *PLAN, "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (run.returncode, run.stderr) == (143, "terminated\n")
    assert json.loads(run.stdout)["exit_code"] == 143


def test_sigterm_is_as_before_outside_of_a_run() -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "nothing happens at import"
    with sigterm_raises():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_whoever_handles_sigterm_goes_on_to_do_so() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        with sigterm_raises():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]


def test_in_another_thread_nothing_is_changed() -> None:
    ran: list[Ran] = []
    thread = threading.Thread(target=lambda: ran.append(cli(*PLAN, "--json")))
    thread.start()
    thread.join()
    assert ran[0].json["ruled_out"] is True


def test_a_later_sigterm_ends_even_what_swallowed_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("targetdp.cli._endings.time.monotonic", lambda: now[0])
    raised = []
    with sigterm_raises():
        for moment in (0.0, 0.5, 1.4, 5.0):
            now[0] = moment
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            except Terminated:
                raised.append(moment)
    assert raised == [0.0, 5.0]


def test_a_fork_ends_at_once_and_tidies_up_nothing() -> None:
    script = """
import os, signal
from targetdp.cli._endings import sigterm_raises

with sigterm_raises():
    child = os.fork()
    try:
        if child == 0:
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        print(["tidied up by the child", "tidied up"][child != 0], flush=True)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    run = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (run.stdout, run.returncode) == ("tidied up\n143\n", 0), run.stderr


# --quiet


def quiet_parts(tree: ast.AST) -> Iterator[ast.AST]:
    """Whatever is done only where --quiet was not given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "quiet" in ast.unparse(node.test):
            for part in node.body:
                yield from ast.walk(part)


def silenced(code: str) -> list[str]:
    """Calls that warn, and would be silent with --quiet."""
    return [
        ast.unparse(node)
        for node in quiet_parts(ast.parse(code))
        if isinstance(node, ast.Call)
        and (ast.unparse(node.func).startswith(("warn", "_warn")) or "warning:" in ast.unparse(node))
    ]


@pytest.mark.parametrize("name", sorted({path.name for path in CLI.glob("*.py")}))
def test_quiet_silences_no_warning(name: str) -> None:
    assert silenced((CLI / name).read_text(encoding="utf-8")) == []


def test_a_silenced_warning_would_be_noticed() -> None:
    assert silenced("if not quiet:\n    if marked:\n        warn(notes)") == ["warn(notes)"]
    assert silenced("if not (quiet or as_json): tell(f'warning: {note}')")
    assert silenced("if not quiet:\n    tell(note)\nwarn(notes)") == []


def test_attack_warns_however_quiet_it_is(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", table_of(60))
    write_parquet(tmp_path / "b.parquet", table_of(60, seed=1))
    run = (
        "attack", tmp_path / "a.parquet", tmp_path / "b.parquet", "--id", "name", "--features", "calls,texts",
        "--attacks", "singling_out", "--save", tmp_path / "found.json",
    )  # fmt: skip
    loud, quiet = cli(*run), cli(*run, "--force", "--quiet")
    warnings = [line for line in loud.err.splitlines() if line.startswith("warning: ")]
    assert any("for the data holder's eyes" in line for line in warnings)
    assert [line for line in quiet.err.splitlines() if line.startswith("warning: ")] == warnings
    assert "written to" in loud.err
    assert "written to" not in quiet.err


def test_an_audit_is_a_kind_of_attack() -> None:
    claim = ("--B", "0.25", "--epsilon", "4", "--delta", "1e-5", "--features", "3", "--runs", "2000")
    ran = cli("attack", "audit", *claim, "--json", "--quiet")
    assert (ran.code, ran.json["holds"], ran.err) == (0, True, "")
    assert cli("attack", "audit", *claim, "--mechanism", "none", "--json").json["outcome"] == "refused"
