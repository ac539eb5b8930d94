"""Program files for the example tables, ready for a trade-off. A new example is one function and one line."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from targetdp._core import check
from targetdp.populations import ID, invented_populations
from targetdp.programs._aid import QUOTA, TOGO_ADULTS
from targetdp.programs._aid_settings import AidGuess
from targetdp.programs._lending_settings import LendingGuess
from targetdp.programs._proposal import ProgramTerms, Proposal, program_template

_Example = tuple[Proposal, ProgramTerms]

_TOGO = """The paper's aid program on invented subscribers of Togo: nobody in it is real, and no
figure is an estimate about Togo (docs/populations.md)."""
_NIGERIA = """The paper's lending program on invented applicants of Nigeria: nobody in it is real, the money
is invented, too, and no figure is an estimate about Nigeria (docs/populations.md)."""
_VIETNAM = """An aid program on households of a public survey, Vietnam 1997/98 (Ecdat's VietNamH). They are
counted as if they stood for the adults of the paper's Togo (docs/populations.md)."""
_CREDIT = """A lending program on applicants of a public table (modeldata's credit_data). What the lender
earns is not in it: revenue and interest below are assumptions (docs/populations.md)."""

_NOTES = {"id": "one row for each person", "quota": "the paper's"}
_CODES = "numbers of communes are codes, not amounts"


def example_program(name: str, table: Path) -> str:
    """The program file of an example.

    Args:
        name: ``"togo"``, ``"nigeria"``, ``"vietnam"`` or ``"credit"``.
        table: Where its table is, relative to the program file.

    Returns:
        The file's text.

    Raises:
        ValueError: There is no such example.

    Guarantees: of `togo` and `nigeria`, written with their usual number of rows and seed, a trade-off has
    the same figures as that of the built-in program of this name.

    Example:
        >>> example_program("togo", Path("togo.csv")).splitlines()[4]
        'kind = "aid"'
    """
    proposal, terms = EXAMPLES[check.choice("name", name, EXAMPLES)]()
    return program_template(proposal, None, table, replace(terms, notes=_NOTES | dict(terms.notes)))


def example_terms(name: str) -> ProgramTerms:
    """What the program file of an example says beside its columns.

    Args:
        name: ``"togo"``, ``"nigeria"``, ``"vietnam"`` or ``"credit"``.

    Returns:
        Its title, source, quota, population, currency and parts.

    Raises:
        ValueError: There is no such example.

    Example:
        >>> example_terms("nigeria").currency
        '$'
    """
    return EXAMPLES[check.choice("name", name, EXAMPLES)]()[1]


def _togo() -> _Example:
    people = invented_populations()["togo"]
    return (
        Proposal(AidGuess(), ID, people.target, people.features, tuple(people.groups), {}),
        ProgramTerms(
            "synthetic", QUOTA, TOGO_ADULTS, title="Aid in Togo (invented people)", heading=_TOGO,
            notes={"population": "adults of Togo, as the paper counts them"},
        ),
    )  # fmt: skip


def _nigeria() -> _Example:
    people = invented_populations()["nigeria"]
    amount, revenue, interest = people.money
    loans = LendingGuess(amount, revenue, interest)
    return (
        Proposal(loans, ID, people.target, people.features, tuple(people.groups), loans.columns),
        ProgramTerms(
            "synthetic", currency="$", title="Loans in Nigeria (invented people)", parts=6, heading=_NIGERIA,
            notes={"parts": "as the paper does; δ is 1/(⌈rows/parts⌉ + 1), about six times that of 1 part"},
        ),
    )  # fmt: skip


def _vietnam() -> _Example:
    features = (
        "commune_farm", "educ_x_urban", "hhsize", "educyr", "head_age", "ln_med", "farm", "urban",
        "head_male", "commune_hhsize",
    )  # fmt: skip
    return (
        Proposal(AidGuess(), ID, "consumption", features, ("head_sex", "area"), {"commune": _CODES}),
        ProgramTerms(
            "public", QUOTA, TOGO_ADULTS, title="Aid in Vietnam (survey of 1997/98)", heading=_VIETNAM,
            notes={
                "id": "one row for each household",
                "target": "per head and year, in thousand dong",
                "population": "NOT Vietnam's: the paper's Togo, so that figures can be set beside its own",
            },
        ),
    )  # fmt: skip


def _credit() -> _Example:
    features = (
        "seniority", "time", "age", "expenses", "income", "assets", "debt", "price", "has_records",
        "owns_home", "married", "fixed_job", "freelance_job", "part_time_job", "loan_amount",
    )  # fmt: skip
    assumed = "AN ASSUMPTION: the table has none; put yours"
    return (
        Proposal(
            LendingGuess("amount", 0.4, 0.02), ID, "low_risk", features, ("home", "marital", "job"),
            {"amount": "the amount, the same numbers as loan_amount"},
        ),
        ProgramTerms(
            "public", currency="units", title="Loans (a public table of applicants)", heading=_CREDIT,
            notes={
                "currency": "the table does not say which money it is in",
                "revenue": f"{assumed} (without privacy the program breaks even at about 0.28)",
                "interest": assumed,
            },
        ),
    )  # fmt: skip


EXAMPLES: Mapping[str, Callable[[], _Example]] = MappingProxyType(
    {"togo": _togo, "nigeria": _nigeria, "vietnam": _vietnam, "credit": _credit}
)
"""By the name that the command line uses."""
