"""Architecture is a test: imports point one way, libraries are quiet, randomness is an argument.

The sources are parsed, never imported: one that cannot be imported here is checked all the same.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = "targetdp"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE

ROOMS: tuple[frozenset[str], ...] = tuple(
    frozenset(names.split())
    for names in (
        "version typing compiled progress check rounding",
        "guarantee",
        "conditions",
        "accounting",
        "ziggurat words noise",
        "moments scales normalization",
        "mechanisms",
        "plan",
        "transformer",
        "table",
        "release",
        "attacks",
        "programs",
        "tradeoff",
        "report",
        "demo cli __main__",
    )
)
"""From left to right: a module imports from rooms to its left, or from its own."""

SPEAKING = {"demo"}
"""The only modules that may print: a library's caller decides what is shown."""

RANDOM_KINDS = {"Generator", "BitGenerator", "SeedSequence", "PCG64", "PCG64DXSM", "Philox"}
"""Parts of numpy.random that hold no process-wide state; `default_rng` too, inside a function."""

MODULES = sorted(
    path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", ".") for path in SOURCE.rglob("*.py")
)


@cache
def read(module: str) -> ast.Module:
    return ast.parse((SOURCE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))


def place(name: str) -> int | None:
    """The room of a top-level module or package, counted from the left."""
    return next((i for i, room in enumerate(ROOMS) if name in room), None)


def internal_imports(tree: ast.Module, module: str) -> Iterator[tuple[int, str]]:
    """Line and first name below the package of every import from within it; "" is the package.

    Imports inside functions and under TYPE_CHECKING count too: they are knowledge all the same.
    """
    folder = [PACKAGE, *module.split(".")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            targets = [f"{origin}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            parts = target.split(".")
            if parts[0] == PACKAGE:
                yield node.lineno, parts[1] if len(parts) > 1 else ""


def wrong_imports(tree: ast.Module, module: str) -> list[str]:
    """What is wrong with a module's imports, in words."""
    if module == "__init__":
        return []
    here = place(module.split(".", maxsplit=1)[0])
    if here is None:
        return [
            f"{module} is in no room: add it to ROOMS in {Path(__file__).name}, "
            "to the right of what it imports and to the left of what imports it"
        ]
    wrong = []
    for line, name in internal_imports(tree, module):
        there = place(name)
        if there is None and here < len(ROOMS) - 1:
            wrong.append(
                f"{module}:{line} imports {name or 'the package itself'}, which is no module "
                f"of {PACKAGE} in a room: import it from where it is defined, or add it to ROOMS"
            )
        elif there is not None and there > here:
            wrong.append(
                f"{module}:{line} imports {name}, which is to its right: data moves to the right, "
                "imports point to the left"
            )
    return wrong


def prints(tree: ast.Module) -> list[int]:
    """The lines that call print."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that importing a module evaluates: no function bodies, no annotations."""
    for field, value in ast.iter_fields(node):
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if (function and field == "body") or field in {"annotation", "returns"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from run_at_import(child)


def random_part(node: ast.AST) -> str | None:
    """The X of np.random.X or numpy.random.X."""
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) in {"np.random", "numpy.random"}:
        return node.attr
    return None


def process_wide_randomness(tree: ast.Module) -> list[str]:
    """Uses of random state that nobody passed in: a module's own generator, or the process's."""
    wrong = []
    for node in ast.walk(tree):
        part = random_part(node)
        if part is not None and part not in RANDOM_KINDS | {"default_rng"}:
            wrong.append(f"np.random.{part} draws from the process's own state")
        if isinstance(node, ast.Import) and any(
            alias.name in {"random", "numpy.random"} for alias in node.names
        ):
            wrong.append("import random: its functions share the process's own state")
        if isinstance(node, ast.ImportFrom) and (
            node.module == "random"
            or (node.module == "numpy" and any(alias.name == "random" for alias in node.names))
            or (node.module == "numpy.random" and not {alias.name for alias in node.names} <= RANDOM_KINDS)
        ):
            wrong.append(f"{ast.unparse(node)}: write np.random.default_rng where it is used")
    wrong += [
        "np.random.default_rng at the module's level is a process-wide generator"
        for node in run_at_import(tree)
        if random_part(node) == "default_rng"
        or (isinstance(node, ast.Call) and random_part(node.func) is not None)
    ]
    return wrong


# The project's own sources


def test_there_is_something_to_check() -> None:
    assert {"__init__", "check", "guarantee", "conditions"} <= set(MODULES)


def test_no_module_is_in_two_rooms() -> None:
    names = [name for room in ROOMS for name in room]
    assert len(names) == len(set(names))


def test_imports_point_to_the_left() -> None:
    wrong = [text for module in MODULES for text in wrong_imports(read(module), module)]
    assert not wrong, "\n".join(wrong)


def test_libraries_do_not_print() -> None:
    lines = {module: prints(read(module)) for module in MODULES if module not in SPEAKING}
    wrong = [f"{module} prints in lines {at}: return it instead" for module, at in lines.items() if at]
    assert not wrong, "\n".join(wrong)


def test_randomness_is_an_argument() -> None:
    found = {module: process_wide_randomness(read(module)) for module in MODULES}
    wrong = [
        f"{module}: {'; '.join(uses)}; take rng= as an argument" for module, uses in found.items() if uses
    ]
    assert not wrong, "\n".join(wrong)


def test_the_package_starts_quickly() -> None:
    """`targetdp --help` must answer at once: the slow libraries are imported only where used."""
    slow = ["numba", "scipy", "sklearn"]
    script = f"import sys, {PACKAGE}; print(*[name for name in {slow} if name in sys.modules])"
    run = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert not run.stdout.split(), (
        f"import {PACKAGE} also imports {run.stdout.strip()}, a second or more each: "
        "import it inside the function that needs it, or load the module on first use"
    )


# The checks themselves must catch what they are for


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("check", "from targetdp import guarantee"),
        ("check", "from targetdp.guarantee import Guarantee"),
        ("check", "import targetdp.guarantee"),
        ("check", "import targetdp.guarantee as g"),
        ("check", "from . import guarantee"),
        ("check", "from .guarantee import Guarantee"),
        ("check", "def f():\n    from targetdp.guarantee import Guarantee"),
        ("check", "if TYPE_CHECKING:\n    from targetdp.guarantee import Guarantee"),
        ("accounting.laplace", "from targetdp.noise import row_growth"),
        ("accounting.__init__", "from targetdp import noise"),
        ("accounting.laplace", "from .. import noise"),
        ("accounting.laplace", "from ..noise import row_growth"),
        ("conditions", "from targetdp.accounting.laplace import curve"),
        ("mechanisms.gaussian", "from targetdp.release.certificate import Certificate"),
        ("attacks.net", "from targetdp.programs import aid"),
        ("report.figures", "from targetdp import cli"),
        ("conditions", "from targetdp import Guarantee"),
        ("conditions", "import targetdp"),
        ("conditions", "from targetdp.unheard_of import x"),
        ("unheard_of", ""),
        ("unheard_of.part", "import math"),
    ],
)
def test_a_wrong_import_is_caught(module: str, code: str) -> None:
    assert len(wrong_imports(ast.parse(code), module)) == 1


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("check", "import math\nimport numpy as np\nfrom targetdp.typing import Floats"),
        ("conditions", "from targetdp import check\nfrom targetdp.guarantee import Guarantee"),
        ("mechanisms.gaussian", "from targetdp.accounting.laplace import curve\nimport random"),
        ("mechanisms.gaussian", "from .base import Mechanism\nfrom . import base"),
        ("mechanisms.gaussian", "from ..noise import draw\nfrom .. import check"),
        (
            "mechanisms.__init__",
            "from .gaussian import Gaussian\nfrom targetdp.mechanisms import x",
        ),
        ("noise", "from targetdp import words, ziggurat\nfrom targetdp.accounting import curve"),
        ("cli", "from targetdp import Guarantee, demo\nimport targetdp"),
        ("__init__", "from targetdp.guarantee import Guarantee\nfrom targetdp import cli"),
        ("check", "from targetdpx import guarantee"),
        ("check", "from typing import Any"),
    ],
)
def test_a_right_import_is_left_alone(module: str, code: str) -> None:
    assert wrong_imports(ast.parse(code), module) == []


def test_a_module_in_no_room_is_told_where_to_go() -> None:
    (message,) = wrong_imports(ast.parse(""), "unheard_of")
    assert "unheard_of is in no room: add it to ROOMS in test_architecture.py" in message


def test_a_print_is_caught() -> None:
    assert prints(ast.parse("x = 1\ndef f():\n    print(x)")) == [3]
    assert prints(ast.parse("'print(x)'  # print(x)\nfingerprint(x)\nconsole.print(x)")) == []


@pytest.mark.parametrize(
    "code",
    [
        "rng = np.random.default_rng()",
        "rng = numpy.random.default_rng(0)",
        "class A:\n    rng = np.random.default_rng(0)",
        "def f(rng=np.random.default_rng(0)): pass",
        "def f(*, rng=np.random.Generator(np.random.PCG64())): pass",
        "f = np.random.default_rng",
        "def f():\n    return np.random.normal()",
        "def f():\n    np.random.seed(0)",
        "def f():\n    return np.random.RandomState(0)",
        "import random",
        "import numpy.random as r",
        "from random import choice",
        "from numpy import random",
        "from numpy.random import normal",
        "from numpy.random import default_rng",
    ],
)
def test_process_wide_randomness_is_caught(code: str) -> None:
    assert process_wide_randomness(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "def f(rng: np.random.Generator) -> np.random.Generator: return rng",
        "def f(seed): return np.random.default_rng(seed)",
        "f = lambda seed: np.random.default_rng(seed)",
        "class A:\n    rng: np.random.Generator | None = None",
        "Source = np.random.Generator | None",
        "from numpy.random import Generator, Philox",
        "def f(rng): return rng.random(3)",
        "import secrets",
    ],
)
def test_passed_randomness_is_left_alone(code: str) -> None:
    assert process_wide_randomness(ast.parse(code)) == []
