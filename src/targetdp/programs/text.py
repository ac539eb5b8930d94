"""A proposed program as a commented file."""

import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from targetdp.programs.file import Grid, Source, make_program_settings
from targetdp.programs.look import Column, Look
from targetdp.programs.proposal import Proposal

_SOURCES = {
    "public": "Anyone may see these rows, and any figure made of them.",
    "synthetic": "No real person is in the table.",
    "confidential": "Figures made from these rows are for the data holder only.",
}


@dataclass(frozen=True)
class Terms:
    """What a table cannot tell: given by a person, or an assumption that the file says is one."""

    source: Source
    quota: float | None = None
    population: float | None = None
    revenue: float | None = None
    interest: float | None = None


QUOTA, REVENUE, INTEREST = 0.29, 0.15, 0.02
"""Where nobody said otherwise; of these the paper prints only the quota."""


def program_text(proposal: Proposal, look: Look, table: Path, terms: Terms) -> str:
    """A program file. Ranges, which are statistics, are in it only if the rows are not confidential."""
    open_rows = terms.source != "confidential"
    lines = [
        "# A program for targetdp. Schema: targetdp schema program.",
        "# Everything here was proposed from names and types of columns: check each line.",
        "",
        f"kind = {_toml(proposal.kind)}",
        f"table = {_toml(table.as_posix())}  # relative to this file",
        f"source = {_toml(terms.source)}  # {_SOURCES[terms.source]}",
        "# public, synthetic or confidential: the first two only if that is true of every row.",
        "",
        *_id_lines(proposal),
        *_target_lines(proposal, look, open_rows),
        *(_aid_lines(proposal, terms) if proposal.kind == "aid" else _lending_lines(proposal)),
        *_population_lines(terms),
        *_group_lines(proposal),
        "",
        "# The columns that a release would privatize. Leave out whatever is known only after the decision.",
        "features = [",
        *(f"  {_toml(name)},{_range(look[name], open_rows)}" for name in proposal.features),
        "]",
        *(f"# left out: {_toml(name)} ({reason})" for name, reason in proposal.left_out.items()),
        '# impute = { column = 0.0 }  # declared constants for missing values, not learned from the table',
        '# scales = "scales.toml"     # public scales, in place of means and deviations of the table',
        "",
        *_method_lines(proposal),
        *(_loan_lines(proposal, terms) if proposal.kind == "lending" else _welfare_lines()),
        *_grid_lines(),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def checked_text(proposal: Proposal, look: Look, table: Path, terms: Terms) -> str:
    """`program_text`, once it is known that the file would be accepted."""
    text = program_text(proposal, look, table, terms)
    make_program_settings(tomllib.loads(text) | {"table": table})
    return text


def describe(look: Look) -> Iterable[str]:
    """One line for each column, for the eyes of whoever holds the table."""
    yield f"{look.rows:,} rows" + ("" if look.whole else " looked at; the table has more")
    for column in look.columns:
        missing = f", {column.missing:,} missing" if column.missing else ""
        many = "all different" if column.different == look.rows else f"{column.different:,} different"
        yield f"  {column.name}: {column.kind}, {many}{missing}{_range(column, shown=True, mark=',')}"


def _id_lines(proposal: Proposal) -> list[str]:
    if proposal.id is None:
        return ['# id = "…"  # no column has a different value in every row; a release needs one']
    return [f"id = {_toml(proposal.id)}  # a different value in every row looked at"]


def _target_lines(proposal: Proposal, look: Look, open_rows: bool) -> list[str]:
    return [f"target = {_toml(proposal.target)}{_range(look[proposal.target], open_rows)}"]


def _aid_lines(proposal: Proposal, terms: Terms) -> list[str]:
    assumed = "" if terms.quota is not None else "  # the paper's; put yours"
    lines = [f"quota = {terms.quota if terms.quota is not None else QUOTA!r}{assumed}"]
    return lines + ([f"weights = {_toml(proposal.weights)}  # survey weights"] if proposal.weights else [])


def _lending_lines(proposal: Proposal) -> list[str]:
    shown = proposal.repaid
    if isinstance(shown, float) and shown.is_integer():
        shown = int(shown)
    return [
        f"repaid = {_toml(shown)}  # the value of the target that means: repaid",
        "threshold = 0.5  # a loan is given above this predicted chance to repay",
    ]


def _population_lines(terms: Terms) -> list[str]:
    if terms.population is None:
        return ["# population = 4950000  # how many people the table stands for; default: its own"]
    return [f"population = {terms.population!r}  # how many people the table stands for"]


def _group_lines(proposal: Proposal) -> list[str]:
    shown = ", ".join(_toml(name) for name in proposal.groups)
    return [f"groups = [{shown}]  # every figure is also given for each of these groups"]


def _method_lines(proposal: Proposal) -> list[str]:
    ours, other = {
        "aid": ("ridge", "sklearn.ensemble.GradientBoostingRegressor"),
        "lending": ("logistic", "sklearn.ensemble.GradientBoostingClassifier"),
    }[proposal.kind]
    return [
        f"estimator = {_toml(ours)}  # or any of scikit-learn's, such as {_toml(other)}",
        "# estimator_settings = { n_estimators = 100 }",
        "folds = 5",
        "seed = 0",
        "simulations = 50",
        f"parts = {6 if proposal.kind == 'lending' else 1}  # random parts: δ is 1/(⌈rows/parts⌉ + 1)",
    ]


def _loan_lines(proposal: Proposal, terms: Terms) -> list[str]:
    lines = ["", "[loans]  # columns, or rates of the amount", f"amount = {_toml(str(proposal.amount))}"]
    for name, given, default in (("revenue", terms.revenue, REVENUE), ("interest", terms.interest, INTEREST)):
        assumed = "" if given is not None else "  # AN ASSUMPTION: the paper prints none; put yours"
        lines.append(f"{name} = {default if given is None else given!r}{assumed}")
    return lines


def _welfare_lines() -> list[str]:
    return [
        "",
        "# [welfare]  # adds social welfare (CRRA utility) to the metrics",
        "# transfer = 1.0  # what an eligible person gets, in units of the target",
        "# aversion = 3.0",
    ]


def _grid_lines() -> list[str]:
    fields = Grid().model_dump()
    return [
        "",
        "[grid]  # the paper's",
        *(f"{name} = {json.dumps(list(values))}" for name, values in fields.items()),
    ]


def _range(column: Column, shown: bool, mark: str = "  #") -> str:
    if not shown or column.lowest is None or column.highest is None:
        return ""
    return f"{mark} {column.lowest:g} to {column.highest:g}"


def _toml(value: str | float) -> str:
    """A string or number of TOML: JSON's escapes are TOML's, but for the delete character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
