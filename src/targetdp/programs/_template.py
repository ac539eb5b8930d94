"""A proposed program as a commented file."""

import json
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from targetdp._core import check
from targetdp.populations import ID, invented_populations
from targetdp.programs._aid import QUOTA, TOGO_ADULTS
from targetdp.programs._aid_settings import AidGuess
from targetdp.programs._lending_settings import LendingGuess
from targetdp.programs._proposal import Proposal, Terms, as_toml
from targetdp.programs._settings import Grid, make_program_settings
from targetdp.table import Column, TableProfile

_SOURCES = {
    "public": "Anyone may see these rows, and any figure made of them.",
    "synthetic": "No real person is in the table.",
    "confidential": "Figures made from these rows are for the data holder only.",
}


_PROPOSED = ("Everything here was proposed from names and types of columns: check each line.",)


def unchecked_template(
    proposal: Proposal,
    profile: TableProfile | None,
    table: Path,
    terms: Terms,
    heading: Iterable[str] = _PROPOSED,
) -> str:
    """A program file, commented.

    Ranges of columns, which are statistics, are in it only if the table was looked at and its rows are not
    confidential.
    """
    ranges = {} if profile is None or terms.source == "confidential" else {c.name: c for c in profile.columns}
    lines = [
        "# A program for targetdp. Schema: targetdp schema program.",
        *(f"# {line}" for line in heading),
        "",
        f"kind = {as_toml(proposal.guess.kind)}",
        f"table = {as_toml(table.as_posix())}  # relative to this file",
        f"source = {as_toml(terms.source)}  # {_SOURCES[terms.source]}",
        "# public, synthetic or confidential: the first two only if that is true of every row.",
        "",
        *_id_lines(proposal, terms),
        f"target = {as_toml(proposal.target)}{_beside(proposal.target, ranges) or terms.note('target')}",
        *proposal.guess.lines(proposal.target, terms),
        *_population_lines(terms),
        *_group_lines(proposal),
        "",
        "# The columns that a release would privatize. Leave out whatever is known only after the decision.",
        "features = [",
        *(f"  {as_toml(name)},{_beside(name, ranges)}" for name in proposal.features),
        "]",
        *(f"# left out: {as_toml(name)} ({reason})" for name, reason in proposal.left_out.items()),
        '# impute = { column = 0.0 }  # declared constants for missing values, not learned from the table',
        '# scales = "scales.toml"     # public scales, in place of means and deviations of the table',
        "",
        *_method_lines(proposal, terms),
        *proposal.guess.tables(terms),
        *_grid_lines(),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def program_template(
    proposal: Proposal,
    profile: TableProfile | None,
    table: Path,
    terms: Terms,
    heading: Iterable[str] = _PROPOSED,
) -> str:
    """`unchecked_template`, once it is known that the file would be accepted."""
    text = unchecked_template(proposal, profile, table, terms, heading)
    make_program_settings(tomllib.loads(text) | {"table": table})
    return text


def table_as_named(table: Path, file: Path) -> Path:
    """A table as a program file names it: relative to the file."""
    return Path(os.path.relpath(table.absolute(), file.absolute().parent))


def describe(profile: TableProfile) -> Iterable[str]:
    """One line for each column, for the eyes of whoever holds the table."""
    yield f"{profile.rows:,} rows" + ("" if profile.whole else " looked at; the table has more")
    for column in profile.columns:
        missing = f", {column.missing:,} missing" if column.missing else ""
        many = "all different" if column.different == profile.rows else f"{column.different:,} different"
        yield f"  {column.name}: {column.kind}, {many}{missing}{_range(column, mark=',')}"


def _id_lines(proposal: Proposal, terms: Terms) -> list[str]:
    if proposal.id is None:
        return ['# id = "…"  # no column has a different value in every row; a release needs one']
    return [f"id = {as_toml(proposal.id)}{terms.note('id', 'a different value in every row looked at')}"]


def _population_lines(terms: Terms) -> list[str]:
    if terms.population is None:
        return ["# population = 4950000  # how many people the table stands for; default: its own"]
    whole = terms.population
    shown = int(whole) if float(whole).is_integer() else whole
    return [f"population = {shown!r}{terms.note('population', 'how many people the table stands for')}"]


def _group_lines(proposal: Proposal) -> list[str]:
    shown = ", ".join(as_toml(name) for name in proposal.groups)
    return [f"groups = [{shown}]  # every figure is also given for each of these groups"]


def _method_lines(proposal: Proposal, terms: Terms) -> list[str]:
    ours, other = proposal.guess.estimators
    return [
        f"estimator = {as_toml(ours)}  # or any of scikit-learn's, such as {as_toml(other)}",
        "# estimator_settings = { n_estimators = 100 }",
        "folds = 5",
        "seed = 0",
        "simulations = 50",
        f"parts = {terms.parts}{terms.note('parts', 'random parts: δ is 1/(⌈rows/parts⌉ + 1)')}",
    ]


def _grid_lines() -> list[str]:
    fields = Grid().model_dump()
    return [
        "",
        "[grid]  # the paper's",
        *(f"{name} = {json.dumps(list(values))}" for name, values in fields.items()),
    ]


def _beside(name: str, ranges: Mapping[str, Column]) -> str:
    return _range(ranges[name]) if name in ranges else ""


def _range(column: Column, mark: str = "  #") -> str:
    if column.lowest is None or column.highest is None:
        return ""
    return f"{mark} {column.lowest:g} to {column.highest:g}"


# Program files for the example tables, ready for a trade-off. A new example is one function and one line.

_NOTES = {"id": "one row for each person", "quota": "the paper's"}
_CODES = "numbers of communes are codes, not amounts"


@dataclass(frozen=True)
class _Ready:
    proposal: Proposal
    terms: Terms
    heading: tuple[str, ...]


def example_program(name: str, table: Path) -> str:
    """The program file of an example (`togo`, `nigeria`, `vietnam`, `credit`) whose table is at a path.

    Guarantees: of `togo` and `nigeria`, written with their usual number of rows and seed, a trade-off has
    the same figures as that of the built-in program of this name.
    """
    ready = EXAMPLES[check.choice("name", name, EXAMPLES)]()
    terms = replace(ready.terms, notes=_NOTES | dict(ready.terms.notes))
    return program_template(ready.proposal, None, table, terms, ready.heading)


def _togo() -> _Ready:
    people = invented_populations()["togo"]
    return _Ready(
        Proposal(AidGuess(), ID, people.target, people.features, tuple(people.groups), {}),
        Terms(
            "synthetic", QUOTA, TOGO_ADULTS, notes={"population": "adults of Togo, as the paper counts them"}
        ),
        (
            "The paper's aid program on invented subscribers of Togo: nobody in it is real, and no",
            "figure is an estimate about Togo (docs/populations.md).",
        ),
    )


def _nigeria() -> _Ready:
    people = invented_populations()["nigeria"]
    amount, revenue, interest = people.money
    loans = LendingGuess(amount, revenue, interest)
    return _Ready(
        Proposal(loans, ID, people.target, people.features, tuple(people.groups), loans.columns),
        Terms(
            "synthetic", currency="$", parts=6,
            notes={"parts": "as the paper does; δ is 1/(⌈rows/parts⌉ + 1), about six times that of 1 part"},
        ),
        (
            "The paper's lending program on invented applicants of Nigeria: nobody in it is real, the money",
            "is invented, too, and no figure is an estimate about Nigeria (docs/populations.md).",
        ),
    )  # fmt: skip


def _vietnam() -> _Ready:
    features = (
        "commune_farm", "educ_x_urban", "hhsize", "educyr", "head_age", "ln_med", "farm", "urban",
        "head_male", "commune_hhsize",
    )  # fmt: skip
    return _Ready(
        Proposal(AidGuess(), ID, "consumption", features, ("head_sex", "area"), {"commune": _CODES}),
        Terms(
            "public", QUOTA, TOGO_ADULTS,
            notes={
                "id": "one row for each household",
                "target": "per head and year, in thousand dong",
                "population": "NOT Vietnam's: the paper's Togo, so that figures can be set beside its own",
            },
        ),
        (
            "An aid program on households of a public survey, Vietnam 1997/98 (Ecdat's VietNamH). They are",
            "counted as if they stood for the adults of the paper's Togo (docs/populations.md).",
        ),
    )  # fmt: skip


def _credit() -> _Ready:
    features = (
        "seniority", "time", "age", "expenses", "income", "assets", "debt", "price", "has_records",
        "owns_home", "married", "fixed_job", "freelance_job", "part_time_job", "loan_amount",
    )  # fmt: skip
    assumed = "AN ASSUMPTION: the table has none; put yours"
    return _Ready(
        Proposal(
            LendingGuess("amount", 0.4, 0.02), ID, "low_risk", features, ("home", "marital", "job"),
            {"amount": "the amount, the same numbers as loan_amount"},
        ),
        Terms(
            "public",
            notes={
                "revenue": f"{assumed} (without privacy the program breaks even at about 0.28)",
                "interest": assumed,
            },
        ),
        (
            "A lending program on applicants of a public table (modeldata's credit_data). What the lender",
            "earns is not in it: revenue and interest below are assumptions (docs/populations.md).",
        ),
    )  # fmt: skip


EXAMPLES: Mapping[str, Callable[[], _Ready]] = MappingProxyType(
    {"togo": _togo, "nigeria": _nigeria, "vietnam": _vietnam, "credit": _credit}
)
"""By the name that the command line uses."""
