"""What the house looks like: rooms, their doors and who imports what, read from the sources (never imported).

`tests/test_architecture.py` holds the house to its plan, `scripts/draw_house.py` draws it.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "targetdp"

FLOW = (
    "_core", "_files", "guarantee", "theorem1", "accounting", "noise", "table", "normalization", "mechanisms",
    "populations", "release", "attacks", "programs", "targeting", "tradeoff", "report", "cli",
)  # fmt: skip
"""From left to right: data move to the right, imports point to the left."""

APART = {"release", "attacks", "programs"}
"""These know nothing of each other."""

BETWEEN = {f"{PACKAGE}.attacks._on_release"}
"""But for the one file that attacks a release."""

_DOOR_LINE = re.compile(r"^from (\S+) import (\w+) as (\w+)$", re.MULTILINE)


@dataclass(frozen=True)
class Import:
    """A name that a module imports from another one: ``via`` is what it says, ``home`` where it leads."""

    line: int
    via: str
    name: str
    home: str


@dataclass(frozen=True)
class House:
    """The modules of a source tree, their doors and imports."""

    source: Path
    modules: Mapping[str, ast.Module] = field(repr=False)
    lines: Mapping[str, int] = field(repr=False)
    doors: Mapping[str, Mapping[str, tuple[str, str]]] = field(repr=False)

    def imports(self, module: str) -> Iterator[Import]:
        """All imports of ours, those inside functions included: they are knowledge all the same."""
        yield from imports_of(self.modules[module], self)

    def home(self, module: str, name: str) -> str:
        """The module that a name of a module leads to, through any number of doors."""
        while module in self.doors and name in self.doors[module]:
            origin, name = self.doors[module][name]
            if origin == module:
                break
            module = origin
        inner = f"{module}.{name}"
        return inner if inner in self.modules else module


def read_house(source: Path = ROOT / "src") -> House:
    """Read every module of the package below a source folder."""
    modules, lines, doors = {}, {}, {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        modules[name], lines[name] = ast.parse(text), text.count("\n")
        stub = path.with_suffix(".pyi")
        if stub.exists():
            names = _DOOR_LINE.findall(stub.read_text(encoding="utf-8"))
            doors[name] = {public: (origin, inner) for origin, inner, public in names}
    return House(source, modules, lines, doors)


def imports_of(tree: ast.Module, house: House) -> Iterator[Import]:
    """The imports of ours in one module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == PACKAGE:
                    yield Import(node.lineno, alias.name, "", alias.name)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield Import(node.lineno, "." * node.level, "", "")  # the plan has no relative imports
            elif node.module and node.module.split(".")[0] == PACKAGE:
                for alias in node.names:
                    home = house.home(node.module, alias.name)
                    yield Import(node.lineno, node.module, alias.name, home)


def room_of(module: str) -> str:
    """The first name below the package: ``attacks`` for ``targetdp.attacks._linkage``."""
    return module.split(".")[1] if "." in module else ""


def wrong_imports(house: House, module: str) -> list[str]:
    """What is wrong with a module's imports, in words."""
    here = room_of(module)
    if here in {"", "__main__"}:
        return []
    if here not in FLOW:
        return [f"{module} is in no room: add its room to FLOW in scripts/house.py"]
    return [
        f"{module}:{found.line} imports {found.via} {found.name}: {reason}"
        for found in house.imports(module) if (reason := _why_wrong(house, module, here, found))
    ]  # fmt: skip


def _why_wrong(house: House, module: str, here: str, found: Import) -> str | None:
    there, door = room_of(found.home), f"{PACKAGE}.{room_of(found.home)}"
    faults = {
        "write the whole name of the module": not found.home,
        "that is in no room": there not in FLOW,
        f"{there} is to the right of {here}, and imports point to the left":
            there in FLOW and FLOW.index(there) > FLOW.index(here),
        f"{here} and {there} know nothing of each other":
            here != there and {here, there} <= APART and module not in BETWEEN,
        f"go through the door: from {door} import {found.name}": here != there and found.via != door,
        f"{found.name} is not in the door, {there}/__init__.pyi":
            here != there and door in house.doors and found.name not in house.doors[door],
    }  # fmt: skip
    return next((fault for fault, is_so in faults.items() if is_so), None)


def cycles(house: House) -> list[tuple[str, ...]]:
    """Modules that import each other when they are imported, each cycle once (Tarjan 1972)."""
    graph: dict[str, set[str]] = {}
    for module, tree in house.modules.items():
        top = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
        graph[module] = {found.home for found in imports_of(top, house)} & set(house.modules)
    found: list[tuple[str, ...]] = []
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            place = stack.index(module)
            if len(stack) - place > 1:
                found.append(tuple(sorted(stack[place:])))
            del stack[place:]

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found


def code_lines(tree: ast.Module, text: str) -> int:
    """Lines of code: without blanks, comments and docstrings (any string that stands by itself)."""
    lines = {
        number for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#")
    }  # fmt: skip
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def class_names(house: House) -> dict[str, list[str]]:
    """For each class that stands at the top of a module, the modules that define one of that name."""
    found = defaultdict(list)
    for module, tree in house.modules.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    return dict(found)
