"""Program files for the example tables, ready for a trade-off. A new example is one function and one line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from targetdp import check
from targetdp.programs.aid import QUOTA, TOGO_ADULTS
from targetdp.programs.loan_guess import LoanGuess
from targetdp.programs.proposal import Proposal
from targetdp.programs.text import Terms, checked_text
from targetdp.table.populations import POPULATIONS
from targetdp.table.populations.in_memory import ID

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
    return checked_text(ready.proposal, None, table, terms, ready.heading)


def _togo() -> _Ready:
    people = POPULATIONS["togo"]
    return _Ready(
        Proposal("aid", ID, people.target, people.features, tuple(people.groups), {}),
        Terms(
            "synthetic", QUOTA, TOGO_ADULTS, notes={"population": "adults of Togo, as the paper counts them"}
        ),
        (
            "The paper's aid program on invented subscribers of Togo: nobody in it is real, and no",
            "figure is an estimate about Togo (docs/populations.md).",
        ),
    )


def _nigeria() -> _Ready:
    people = POPULATIONS["nigeria"]
    amount, revenue, interest = people.money
    loans = LoanGuess(amount, revenue, interest)
    return _Ready(
        Proposal(
            "lending", ID, people.target, people.features, tuple(people.groups), loans.columns, loans=loans
        ),
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
        Proposal("aid", ID, "consumption", features, ("head_sex", "area"), {"commune": _CODES}),
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
            "lending", ID, "low_risk", features, ("home", "marital", "job"),
            {"amount": "the amount, the same numbers as loan_amount"}, loans=LoanGuess("amount", 0.4, 0.02),
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
