"""The commands: few, each under who uses it, each with an example that the command line understands."""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from support.release import cli
from targetdp import __version__
from targetdp.cli import app
from targetdp.cli._main import COMMANDS, EXAMPLES

MOST = 21
ROLES = ["For the data holder", "For the program official", "For the privacy researcher"]
ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def below(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command's subcommands, and theirs, by their whole names."""
    for name, one in getattr(command, "commands", {}).items():
        yield (*path, name), one
        yield from below(one, *path, name)


NAMES = [" ".join(path) for path, _ in below(get_command(app))]


def help_of(name: str) -> list[str]:
    """The lines of a help, as on a terminal of 80 columns."""
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        app([*name.split(), "--help"], standalone_mode=False, prog_name="targetdp")
    without_colors = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
    return [line.rstrip() for line in without_colors.splitlines()]


def called_by(example: str) -> str:
    """The command that an example would run, by its whole name. It is not run; its options are read."""
    called: list[str] = []
    command = get_command(app)
    for path, one in below(command):
        if not isinstance(one, TyperGroup):
            one.callback = lambda path=path, **_: called.append(" ".join(path))
    program, *arguments = shlex.split(example, comments=True)
    assert program == "targetdp"
    if ">" in arguments:
        arguments = arguments[: arguments.index(">")]
    command.main(arguments, prog_name="targetdp", standalone_mode=False)
    (name,) = called
    return name


def test_there_are_few_commands_and_each_has_its_place() -> None:
    command = get_command(app)
    assert isinstance(command, TyperGroup)
    assert len(command.commands) <= MOST
    assert list(COMMANDS) == ROLES
    panels = {name: one.rich_help_panel for name, one in command.commands.items()}  # type: ignore[attr-defined]
    assert panels == {name: panel for panel, names in COMMANDS.items() for name in names}


def test_the_help_is_in_the_order_of_the_list() -> None:
    shown = [re.match(r"│ (\w+)  |╭─ (For [\w ]+) ─", line) for line in help_of("")]
    words = [found[1] or found[2] for found in shown if found is not None]
    assert words == [word for panel, names in COMMANDS.items() for word in (panel, *names)]


@pytest.mark.parametrize("name", NAMES)
def test_every_help_has_an_example_that_fits_and_is_understood(name: str) -> None:
    lines = [line.removeprefix(" ") for line in help_of(name)]
    at = next((i for i, line in enumerate(lines) if line.startswith("targetdp ")), None)
    assert at is not None, f"targetdp {name}: no example; it needs a line in cli/_main.py"
    example = lines[at]
    while example.endswith("\\"):
        at += 1
        example = example.removesuffix("\\") + lines[at]  # as a shell reads it
    assert shlex.split(example) == ["targetdp", *name.split(), *shlex.split(EXAMPLES[name])]
    assert called_by(example).startswith(name)


@pytest.mark.parametrize("name", NAMES)
def test_no_word_of_a_help_is_taken_for_markup(name: str) -> None:
    """What stands in square brackets, such as a section of policy.toml, would not be shown."""
    command = {" ".join(path): one for path, one in below(get_command(app))}[name]
    texts = [command.help, *(getattr(one, "help", None) for one in command.params)]
    assert [found for text in texts for found in re.findall(r"\[[a-z/][^\]]*\]", text or "")] == []


def test_no_example_is_left_of_a_command_that_is_gone() -> None:
    assert set(EXAMPLES) == set(NAMES)


def shown_in(document: Path) -> list[str]:
    """Every call of the command line that a document shows in a block of its own."""
    text = document.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```(?:console|sh|bash)?\n(.*?)^ *```", text, flags=re.DOTALL | re.MULTILINE)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in map(str.strip, lines) if line.startswith("targetdp ")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_show_commands_that_are_understood(document: Path) -> None:
    for line in shown_in(document):
        assert called_by(line) in NAMES, line
    named = re.findall(r"`targetdp ([a-z]+)", document.read_text(encoding="utf-8"))
    assert set(named) <= set(NAMES)


def test_documents_show_commands_at_all() -> None:
    assert sum(len(shown_in(document)) for document in DOCUMENTS) > 30


@pytest.mark.parametrize(
    "example",
    [
        "targetdp audit --B 1",
        "targetdp plan --B 0.25 --epsilon 1 --delta 0 --nonsense",
        "targetdp key x",
    ],
)
def test_an_example_that_is_wrong_would_be_noticed(example: str) -> None:
    with pytest.raises(Exception, match=r"No such|unexpected"):
        called_by(example)


@pytest.mark.parametrize(
    ("example", "name"),
    [
        ("targetdp attack a.parquet b.parquet --id name", "attack release"),
        ("targetdp attack --id name a.parquet b.parquet", "attack release"),
        ("targetdp attack release a.parquet b.parquet --id name", "attack release"),
        ("targetdp attack ./audit b.parquet --id name", "attack release"),
        ("targetdp attack audit --B 0.25 --epsilon 4 --delta 0", "attack audit"),
        ("targetdp report results --out page.html", "report page"),
        ("targetdp report figures togo nigeria --out figures", "report figures"),
        ("targetdp tradeoff togo --out results", "tradeoff run"),
        ("targetdp key", "key show"),
        ("targetdp key --desk desk", "key show"),
    ],
)
def test_the_first_command_of_a_group_may_go_without_its_name(example: str, name: str) -> None:
    assert called_by(example) == name


def test_the_version_is_an_option() -> None:
    assert cli("--version").out == f"targetdp {__version__}\n"
    assert cli("version").code == 2
