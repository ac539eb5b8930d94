"""What the shell offers when somebody presses Tab: names that a command takes, next to files.

The names are written down here once more, since importing their registers takes a second, and Tab must not.
A test holds them against the registers.
"""

from collections.abc import Iterable
from pathlib import Path

NOISES = ("spherical-laplace", "staircase", "gaussian", "projection-exact", "projection")
AUDITED = ("least-noise", *NOISES)
RELEASED = (*AUDITED, "mondrian")
ATTACKS = (
    "singling_out",
    "attribute_inference",
    "distinguishing",
    "linkage",
    "linkability",
    "membership",
    "reconstruction",
)
PROGRAMS = ("togo", "nigeria")
SCALES = ("private", "data")
SCORE_SCALES = ("sample", *SCALES)


def audited(incomplete: str) -> list[str]:
    """Mechanisms that can be audited."""
    return _beginning(AUDITED, incomplete)


def released(incomplete: str) -> list[str]:
    """Mechanisms that a table can be released by."""
    return _beginning(RELEASED, incomplete)


def attacks(incomplete: str) -> list[str]:
    """Attacks, separated by commas: the last one is completed, and none is offered twice."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    left = (name for name in ATTACKS if name not in given)
    return [before + comma + name for name in _beginning(left, last)]


def programs(incomplete: str) -> list[str]:
    """Built-in programs, and program files."""
    return _or_files(PROGRAMS, incomplete)


def scales(incomplete: str) -> list[str]:
    """Ways to get scales, and scales files."""
    return _or_files(SCALES, incomplete)


def score_scales(incomplete: str) -> list[str]:
    """Ways to get scales for scores, and scales files."""
    return _or_files(SCORE_SCALES, incomplete)


def _or_files(names: Iterable[str], incomplete: str) -> list[str]:
    """Names, and the TOML files of the folder that is being typed."""
    typed, folder = incomplete.rpartition("/")[2], incomplete.rpartition("/")[0]
    within = f"{folder}/" if "/" in incomplete else ""
    here = Path(within or ".")
    entries = sorted(here.iterdir()) if here.is_dir() else []
    found = [f"{within}{entry.name}{'/' * entry.is_dir()}" for entry in entries if _offered(entry, typed)]
    return [*_beginning(names, incomplete), *found]


def _offered(entry: Path, typed: str) -> bool:
    hidden = entry.name.startswith(".") and not typed.startswith(".")
    return entry.name.startswith(typed) and not hidden and (entry.suffix == ".toml" or entry.is_dir())


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
