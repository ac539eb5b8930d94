"""What commands share: lists of names, progress on stderr, tables on stdout."""

import functools
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text
from typer.core import TyperGroup

from targetdp._core import declared

if TYPE_CHECKING:
    from targetdp.table import Source

Command = TypeVar("Command", bound=Callable[..., None])

PublicKey = Annotated[
    str | None, typer.Option(help="the data holder's public key, as `targetdp key` prints it")
]


TableName = Annotated[
    str,
    typer.Argument(
        help="Parquet or CSV (a file, a folder of part files, or a pattern in quotes), - for standard input, "
        "s3://…, or a database: postgresql://…, duckdb:FILE, sqlite:FILE"
    ),
]
FromTable = Annotated[str | None, typer.Option("--table", help="of a database: the table")]
Query = Annotated[str | None, typer.Option("--query", help="of a database: what to ask it")]
DeskFolder = Annotated[
    Path | None, typer.Option("--desk", help="the desk; default: TARGETDP_DESK, or the nearest one above")
]
NewPeople = Annotated[
    str | None,
    typer.Option(help="why people whom the ledger should know, or another desk does, are others: on record"),
]
Csv = Annotated[
    str | None,
    typer.Option(help="how CSV files are written: 'separator=; decimal=, encoding=latin-1'; default: found"),
]
Tables = Annotated[
    list[str],
    typer.Argument(
        help="Parquet or CSV: files, folders of part files, or patterns in quotes; all are one table. Or - "
        "for standard input, s3://…, or a database: postgresql://…, duckdb:FILE, sqlite:FILE",
        metavar="TABLE...",
    ),
]
KeyFile = Annotated[Path | None, typer.Option("--key", help="signing key; default: your own")]


def option(kind: Any, words: str, *flags: str, **more: Any) -> Any:
    """An option that `takes` gives a command: what it must be, if it is given, and its help."""
    return Annotated[kind | None, typer.Option(*flags, help=words, **more)]


def takes(options: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Give a command these options, by name, in place of its ``**given``; unless given, they are None.

    In its help they stand behind what it takes itself, and before what it takes by keyword only.
    """

    def declare(command: Command) -> Command:
        signature = inspect.signature(command)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        shared = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in options.items()
        ]
        first = [p for p in own if p.kind is not p.KEYWORD_ONLY]
        last = [p for p in own if p.kind is p.KEYWORD_ONLY]
        command.__signature__ = signature.replace(parameters=[*first, *shared, *last])  # type: ignore[attr-defined]
        return command

    return declare


class FirstByDefault(TyperGroup):
    """A group whose first command may go without its name: `attack A B` is short for `attack release A B`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put in the word that people leave out."""
        nothing = not args and not self.no_args_is_help
        if args and args[0].isalpha() and args[0] not in self.commands and not Path(args[0]).exists():
            # What is nearly the name of a command, and no file, is a slip of the hand.
            near = get_close_matches(args[0], self.commands, n=1, cutoff=0.75)
            if near:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        if nothing or (args and args[0] not in self.commands and args[0] != "--help"):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Whoever may leave out the word is also offered what comes after it."""
        argument = next(iter(self.commands.values())).params[0]
        return [*super().shell_complete(ctx, incomplete), *argument.shell_complete(ctx, incomplete)]


class PublishedError(Exception):
    """Something failed after a release became visible: nobody may think that nothing was published."""


@contextmanager
def opened_table(
    name: str | list[str], from_table: str | None = None, query: str | None = None, csv: str | None = None
) -> "Iterator[Source]":
    """The table that a command is given; what is elsewhere is copied first, and the copy goes afterwards."""
    from targetdp.table import Elsewhere, on_disk, table_named

    given, folder = table_named(name, table=from_table, query=query), Path.cwd()
    if isinstance(given, Elsewhere):
        from targetdp.release import spool_folder

        folder = spool_folder()
    with on_disk(given, folder, csv=csv) as source:
        yield source


def path_or_address(text: str) -> Any:
    """A path; or, as it is written, an address in a store, for `fetches`."""
    return text if "://" in text else Path(text)


def fetches(*releases: str) -> Callable[[Command], Command]:
    """Give a command what is in a store as a path: it is copied, and the copy goes when the command ends."""

    def declare(command: Command) -> Command:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            with ExitStack() as stack:
                for name in releases:
                    if isinstance(given[name], str):
                        from targetdp.release import fetched

                        given[name] = stack.enter_context(fetched(given[name]))
                command(**given)

        return cast(Command, run)

    return declare


def names(value: str | None) -> tuple[str, ...] | None:
    """Names separated by commas, or @FILE with one name in each line."""
    if value is None:
        return None
    if value.startswith("@"):
        try:
            lines = Path(value[1:]).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ValueError(f"list of names {value[1:]} cannot be read: {error.strerror}") from error
        return tuple(line for line in lines if line.strip())
    return tuple(part.strip() for part in value.split(",") if part.strip())


def constants(value: str | None) -> float | dict[str, float] | None:
    """One number for all features, or name=number pairs separated by commas."""
    if value is None:
        return None
    try:
        if "=" not in value:
            return float(value)
        pairs = (part.rsplit("=", 1) for part in value.split(","))
        return {name.strip(): float(number) for name, number in pairs}
    except ValueError as error:
        raise ValueError(
            f"impute = {value!r} is not a number or name=number pairs, such as calls=0,texts=0"
        ) from error


def tell(text: str, *, style: str | None = None) -> None:
    """Words for the person at the terminal."""
    Console(stderr=True, soft_wrap=True).print(text, style=style, highlight=False, markup=False)


def warn(warnings: Iterable[str]) -> None:
    """Warnings, one line each. No command asks for ``--quiet`` before it warns."""
    for warning in warnings:
        tell(f"warning: {warning}", style="yellow")


def out() -> Console:
    """Where tables for people go."""
    return Console(width=None if sys.stdout.isatty() else 110)


def cells(*values: str) -> list[Text]:
    """Cells of a table, as they are: a column may be named [red]."""
    return [Text(value) for value in values]


def emit(data: Any) -> None:
    """Data for the next program: text as it is, all else as JSON."""
    typer.echo(data if isinstance(data, str) else json.dumps(data, indent=2, ensure_ascii=False))


def must_be_free(name: str, path: Path, *, force: bool) -> None:
    """A file that may be written: found out before the work, not after it."""
    if path.is_dir():
        raise ValueError(f"{name} = {path} is a folder: give the name of a file")
    if path.exists() and not force:
        raise ValueError(f"{name} = {path} exists: choose another name, or give --force")
    if not path.parent.is_dir():
        raise ValueError(f"{name} = {path}: its folder does not exist; create it first")


def must_be_no_input(output: Path, *inputs: Path | None) -> None:
    if output.resolve() in {path.resolve() for path in inputs if path is not None}:
        raise ValueError(f"out = {output} is one of the inputs: choose another name")


def must_be_a_table(path: Path) -> None:
    """Found out before the work, not after it."""
    from targetdp.table import format_of

    if format_of(path) is None or path.name.lower().endswith(".gz"):
        raise ValueError(f"out = {path} has no known suffix: use .csv or .parquet")


def save_text(path: Path, text: str | bytes, *, shared: bool = False) -> None:
    """Write a file, all of it or nothing: for its owner's eyes, or (shared) with the usual permissions."""
    from targetdp._files import write_whole

    write_whole(path, text, private=not shared)


def save_new(what: str, path: Path, text: str, *, force: bool, private: bool = False) -> None:
    """Write a file, all of it or nothing; what is there, or came meanwhile, is replaced by force only."""
    from targetdp._files import write_whole

    try:
        write_whole(path, text, private=private, replace=force)
    except FileExistsError as error:
        raise ValueError(f"{what} {path} exists: choose another name, or replace it with --force") from error


def save_table(table: Any, path: Path, *, force: bool) -> None:
    """Write a table about people, all of it or nothing, for its owner's eyes."""
    import pyarrow as pa

    from targetdp._files import whole_file
    from targetdp.table import Sink, format_of

    kind = format_of(path)
    if kind is None or path.name.lower().endswith(".gz"):
        raise ValueError(f"{path} has no known suffix: use .csv or .parquet")
    with (
        whole_file(path, force=force) as place,
        Sink(place, kind, table.schema, ids=table.schema.names[0], private=True) as sink,
    ):
        for batch in table.to_batches(max_chunksize=1 << 20):
            sink.write(pa.Table.from_batches([batch]))
        sink.finish()


class Bar:
    """A progress bar with rows (or other units) per second and time left; nothing where nobody watches."""

    def __init__(self, *, quiet: bool, unit: str = "rows") -> None:
        self._unit = unit
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(), console=console, transient=True,
            disable=quiet or not console.is_terminal,
        )  # fmt: skip
        self._task: TaskID | None = None

    def __enter__(self) -> "Bar":
        self._progress.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._progress.stop()

    def pause(self) -> None:
        """Take the bar away, for words or a question; the next phase brings it back."""
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
        self._progress.refresh()
        self._progress.stop()

    def phase(self, name: str, rows: int | None) -> None:
        """A new phase begins."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._progress.start()
        self._task = self._progress.add_task(name, total=rows, speed="")

    def advance(self, rows: int) -> None:
        """So many more rows are done."""
        if self._task is not None:
            self._progress.update(self._task, advance=rows)
            speed = self._progress.tasks[-1].speed
            self._progress.update(self._task, speed="" if speed is None else f"{speed:,.0f} {self._unit}/s")


# What the shell offers when somebody presses Tab: names that a command takes, next to files.
#
# Importing a room takes a second, and Tab must not: what declares itself is read off the files, not imported.


def noises() -> tuple[str, ...]:
    """The noise mechanisms."""
    return declared("targetdp.mechanisms")


def attack_names() -> tuple[str, ...]:
    """The attacks on a release: those that declare a place."""
    return declared("targetdp.attacks", r"(?s)^@attack\((?:(?!^def ).)*?\bplace=(?:(?!^def ).)*?^def (\w+)\(")


PROGRAMS = ("togo", "nigeria")


def audited(incomplete: str) -> list[str]:
    """Mechanisms that can be audited."""
    return _beginning(("least-noise", *noises()), incomplete)


def attacks(incomplete: str) -> list[str]:
    """Attacks, separated by commas: the last one is completed, and none is offered twice."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    left = (name for name in attack_names() if name not in given)
    return [before + comma + name for name in _beginning(left, last)]


def tables(incomplete: str) -> list[str]:
    """Tables: files, and folders of part files."""
    return _or_files((), incomplete, (".parquet", ".pq", ".csv", ".gz"))


def folders(incomplete: str) -> list[str]:
    """Folders."""
    return _or_files((), incomplete, ())


def programs(incomplete: str) -> list[str]:
    """Built-in programs, and program files."""
    return _or_files(PROGRAMS, incomplete)


def _or_files(names: Iterable[str], incomplete: str, suffixes: tuple[str, ...] = (".toml",)) -> list[str]:
    """Names, and what the folder that is being typed has: folders, and files that end like this."""
    typed, folder = incomplete.rpartition("/")[2], incomplete.rpartition("/")[0]
    within = f"{folder}/" if "/" in incomplete else ""
    here = Path(within or ".")
    entries = sorted(here.iterdir()) if here.is_dir() else []
    found = [
        f"{within}{entry.name}{'/' * entry.is_dir()}" for entry in entries if _offered(entry, typed, suffixes)
    ]
    return [*_beginning(names, incomplete), *found]


def _offered(entry: Path, typed: str, suffixes: tuple[str, ...]) -> bool:
    hidden = entry.name.startswith(".") and not typed.startswith(".")
    return entry.name.startswith(typed) and not hidden and (entry.suffix in suffixes or entry.is_dir())


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
