"""Architecture is a test: the rooms and their doors, what points where, and what may only get less.

The sources are parsed, never imported: one that cannot be imported here is checked all the same. The plan of
the house is in `scripts/house.py`, drawn in `docs/architecture.md`.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from statistics import median

import pytest

import draw_house
from house import (
    FLOW,
    PACKAGE,
    ROOT,
    House,
    class_names,
    code_lines,
    cycles,
    imports_of,
    read_house,
    room_of,
    wrong_imports,
)

RANDOM_KINDS = {"Generator", "BitGenerator", "SeedSequence", "PCG64", "PCG64DXSM", "Philox"}
"""Parts of numpy.random that hold no process-wide state; `default_rng` too, inside a function."""


@cache
def house() -> House:
    return read_house()


def text_of(module: str) -> str:
    path = ROOT / "src" / module.replace(".", "/")
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")


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


# The rooms


def test_every_room_is_in_the_plan_and_has_a_door() -> None:
    rooms = {room_of(module) for module in house().modules} - {"", "__main__"}
    assert rooms == set(FLOW)
    folders = {room for room in rooms if (ROOT / "src" / PACKAGE / room).is_dir()}
    assert {f"{PACKAGE}.{room}" for room in folders} | {PACKAGE} == set(house().doors)
    assert rooms - folders == {"guarantee", "theorem1"}


def test_imports_go_through_doors_and_point_to_the_left() -> None:
    wrong = [text for module in house().modules for text in wrong_imports(house(), module)]
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other() -> None:
    assert cycles(house()) == []


def test_modules_behind_a_door_are_private() -> None:
    """`check` is a module that everybody uses by its name; the rest is behind a door."""
    public = [
        module
        for module in house().modules
        if any(not part.startswith("_") for part in module.split(".")[2:])
        and module != f"{PACKAGE}._core.check"
    ]
    assert public == []


def test_doors_lead_to_names_that_exist() -> None:
    for room, names in house().doors.items():
        for public, (module, name) in names.items():
            assert public == name, f"{room}: {name} is called {public} in its door; a thing has one name"
            home = house().home(module, name)
            assert home.endswith(f".{name}") or name in bound_names(house().modules[home]), (
                f"{room}: {module} has no {name}"
            )


def test_doors_hold_only_what_somebody_uses() -> None:
    """A name that no other room, test, benchmark or page uses is nobody's business."""
    users = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    users += [*(ROOT / "examples").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    outside = set(re.findall(r"\w+", " ".join(path.read_text(encoding="utf-8") for path in users)))
    for room, names in house().doors.items():
        used = {
            found.name for module in house().modules if room_of(module) != room_of(room)
            for found in house().imports(module) if found.via == room
        } | {name for module, (_, name) in house().doors[PACKAGE].items() if module}  # fmt: skip
        idle = sorted(set(names) - used - outside)
        assert not idle, f"{room}/__init__.pyi offers {idle}, which nobody uses"


def bound_names(tree: ast.Module) -> set[str]:
    """What a module defines at its top."""
    names: set[str] = set()
    for node in ast.walk(
        ast.Module([n for n in tree.body if not isinstance(n, ast.ClassDef | ast.FunctionDef)], [])
    ):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names | {n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}


# What may only get less. Each number is what stands there today: lower it with every change that can.


def count(pattern: str, *, rooms: set[str] | None = None) -> dict[str, int]:
    """Lines that match, by module."""
    found = {
        module: sum(bool(re.search(pattern, line)) for line in text_of(module).splitlines())
        for module in house().modules if rooms is None or room_of(module) in rooms
    }  # fmt: skip
    return {module: lines for module, lines in found.items() if lines}


LAWS = (
    "RowLaw|NoiseLaw|GaussianLaw|SphericalLaplaceLaw|StaircaseLaw|ProjectionLaw|LinearLaw|DecisionLaw|"
    "Mechanism|NoiseMechanism"
)
MECHANISMS = "GaussianNoise|SphericalLaplace|Staircase|PrivateProjection|Mondrian|Partitioned|Scores|Decision"


def test_what_a_law_or_mechanism_is_it_says_itself() -> None:
    """Left are checks of what a caller gave, which may be anything, and a formula for one algorithm alone.

    `Partitioned` refuses what adds no noise; `check_noise` and `distinguishing` refuse what is neither a
    mechanism nor a law, and `check_noise` a law for another number of columns; the formulas of the paper's
    distinguishing score are for its private projection alone.
    """
    found = count(rf"isinstance\([^)]*\b({LAWS}|{MECHANISMS})\b")
    assert sum(found.values()) <= ISINSTANCE, found


def test_what_a_program_is_it_says_itself() -> None:
    """No line asks of which kind a program is, and no other room knows the kinds by their names."""
    found = count(
        r"""isinstance\([^)]*\b(Aid|Lending|AidSettings|LendingSettings)\b|[=!]= "(aid|lending)\""""
    )
    assert found == {}
    assert count(r'"(aid|lending)"', rooms=set(FLOW) - {"programs"}) == {}


def test_files_are_few_and_full() -> None:
    lines = {module: number for module, number in house().lines.items() if module not in house().doors}
    assert max(lines.values()) <= 400, max(lines, key=lambda module: lines[module])
    assert len(house().modules) <= FILES
    assert 130 <= median(lines.values()) <= 235  # a public name has arguments, results and an example
    small = {module: number for module, number in lines.items() if number < 50 and number > 1}
    assert len(small) <= SMALL, small
    folders: dict[str, int] = {}
    for module in lines:
        if not (ROOT / "src" / module.replace(".", "/")).is_dir():
            folder = module.rpartition(".")[0]
            folders[folder] = folders.get(folder, 0) + 1
    assert max(folders.values()) <= 15, max(folders, key=lambda folder: folders[folder])


def test_there_is_no_more_code_than_there_was() -> None:
    total = sum(code_lines(tree, text_of(module)) for module, tree in house().modules.items())
    assert total <= CODE_LINES, f"{total:,} lines of code: say the same with fewer"


def test_a_class_name_stands_for_one_thing() -> None:
    twice = {name: modules for name, modules in class_names(house()).items() if len(modules) > 1}
    assert len(twice) <= SAME_CLASS_NAME, twice


ISINSTANCE, FILES, SMALL, CODE_LINES, SAME_CLASS_NAME = 5, 330, 14, 37_900, 0


def test_libraries_do_not_print() -> None:
    lines = {module: prints(house().modules[module]) for module in house().modules}
    wrong = [f"{module} prints in lines {at}: return it instead" for module, at in lines.items() if at]
    assert not wrong, "\n".join(wrong)


def test_randomness_is_an_argument() -> None:
    found = {module: process_wide_randomness(house().modules[module]) for module in house().modules}
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


# Its picture


def test_the_drawn_house_is_the_one_that_stands() -> None:
    """Draw it anew with: python scripts/draw_house.py."""
    assert draw_house.main(["--check"]) == 0


def test_every_file_that_a_page_names_is_there() -> None:
    """As ``room/_file.py``, or from the project's own folder; the changelog tells of files that were."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {
        (page.name, name)
        for page in pages if page.name != "CHANGELOG.md"
        for name in re.findall(r"`(\w+/[\w/]+\.py)", page.read_text(encoding="utf-8"))
    }  # fmt: skip
    assert len(named) > 150
    places = (ROOT / "src" / PACKAGE, ROOT)
    assert [at for at in sorted(named) if not any((place / at[1]).is_file() for place in places)] == []


# The checks themselves must catch what they are for


def wrong(module: str, code: str) -> list[str]:
    """What is said of a module of ours if it had this code."""
    changed = House(
        house().source, {**house().modules, module: ast.parse(code)}, house().lines, house().doors
    )
    return wrong_imports(changed, module)


@pytest.mark.parametrize(
    ("module", "code", "reason"),
    [
        ("_core.check", "from targetdp.guarantee import Guarantee", "imports point to the left"),
        ("_core.check", "import targetdp.guarantee", "imports point to the left"),
        (
            "_core.check",
            "def f():\n    from targetdp.guarantee import Guarantee",
            "imports point to the left",
        ),
        (
            "_core.check",
            "if TYPE_CHECKING:\n    from targetdp.noise import grid_for",
            "imports point to the left",
        ),
        (
            "accounting._laplace",
            "from targetdp.noise import row_growth",
            "noise is to the right of accounting",
        ),
        (
            "mechanisms._gaussian",
            "from targetdp.accounting._gaussian import GaussianLoss",
            "through the door",
        ),
        ("mechanisms._gaussian", "from targetdp.accounting import _gaussian", "not in the door"),
        ("mechanisms._gaussian", "import targetdp.accounting._gaussian", "through the door"),
        ("mechanisms._gaussian", "from targetdp.accounting import unheard_of", "not in the door"),
        ("mechanisms._gaussian", "from ._base import Mechanism", "the whole name"),
        ("mechanisms._gaussian", "from targetdp import Guarantee, accounting", "through the door"),
        ("attacks._linkage", "from targetdp.release import Certificate", "know nothing of each other"),
        ("programs._aid", "from targetdp.attacks import linkage", "know nothing of each other"),
        ("programs._aid", "from targetdp.release import Certificate", "know nothing of each other"),
        ("guarantee", "from targetdp.unheard_of import x", "in no room"),
        ("unheard_of._part", "", "in no room"),
    ],
)
def test_a_wrong_import_is_caught(module: str, code: str, reason: str) -> None:
    assert any(reason in text for text in wrong(f"{PACKAGE}.{module}", code))


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("_core.check", "import math\nimport numpy as np\nfrom targetdp._core._types import Floats"),
        ("theorem1", "from targetdp._core import check\nfrom targetdp.guarantee import Guarantee"),
        ("mechanisms._gaussian", "from targetdp.mechanisms._base import NoiseMechanism"),
        ("mechanisms._gaussian", "from targetdp.accounting import GaussianLoss, largest_mu"),
        ("attacks._on_release", "from targetdp.release import Certificate"),
        ("cli._main", "from targetdp.release import Certificate\nfrom targetdp.programs import Aid"),
    ],
)
def test_a_right_import_is_left_alone(module: str, code: str) -> None:
    assert wrong(f"{PACKAGE}.{module}", code) == []


def test_a_cycle_is_caught() -> None:
    loop = {
        "targetdp.noise._a": ast.parse("from targetdp.noise._b import y"),
        "targetdp.noise._b": ast.parse("def f():\n    from targetdp.noise._a import x"),
    }
    assert cycles(House(ROOT, loop, {}, {})) == []
    loop["targetdp.noise._b"] = ast.parse("from targetdp.noise._a import x")
    assert cycles(House(ROOT, loop, {}, {})) == [("targetdp.noise._a", "targetdp.noise._b")]


def test_code_is_counted_without_words() -> None:
    text = '"""Doc."""\n\n# why\nx = 1\n"""About x,\nat length."""\n\ndef f():\n    """D."""\n    return x\n'
    assert code_lines(ast.parse(text), text) == 3
    assert [found.name for found in imports_of(ast.parse("from targetdp.noise import grid_for"), house())]


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
