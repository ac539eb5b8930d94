"""People of a release who agreed to be handed over as they are: who is told of them, and in which words."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from targetdp._files import Reason

AGREEMENT_ID = "^[0-9a-f]{32}$"
MEANS = (
    "Whoever gets the rows sees each of them as it is. A model that is learned from them goes to the data "
    "holder, and labels of these people can be guessed from it: where that was measured, plain guesses about "
    "people whom it was learned from were right in 0.87 of all cases, about others in 0.78, and with small "
    "leaves in 0.96. Whoever has the rows, too, as the data holder does, can do better, and of few people "
    "compute labels exactly: take it that she knows them. Nothing is promised to these people about these "
    "columns: what is released of them does not count for their limit, now or later."
)
"""What it means to be handed over: in the look, in the ledger's terms and in every agreement."""
_NO_PROMISE = (
    "{people:,} of {rows:,} people agreed to be handed over as they are (“{to}”, agreement {agreement}): "
    "nothing is promised to them."
)
_LEARNED = (
    "{what} learned, as was declared, from people who agreed to be handed over as they are (“{to}”, "
    "agreement {agreement}): their labels can be guessed from it, and nothing is promised to them."
)
_LEFT_OUT = "People of {agreements} were left out: nothing of their rows was looked at here."
_STATEMENT = (
    " {people:,} {people_are} agreed to be handed over as they are: nothing of this is promised to them "
    "about the columns that they agreed to."
)


class WithoutPromise(BaseModel):
    """People of a release who agreed to be handed over with its columns, so that it promises them nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    agreement: Annotated[str, Field(pattern=AGREEMENT_ID)]
    to: Reason = Field(description="what they agreed to")
    people: Annotated[int, Field(ge=0, strict=True)] = Field(
        description="how many people of this release; who is in several agreements counts once; 0 where the "
        "release only names it, as learned from or left out"
    )


def no_promise(agreed: Sequence[WithoutPromise], rows: int) -> tuple[str, ...]:
    """To whom nothing is promised, agreement by agreement."""
    return tuple(
        _NO_PROMISE.format(people=one.people, rows=rows, to=one.to, agreement=one.agreement)
        for one in agreed
        if one.people
    )


def learned_from_agreed(what: str, release: str | None, agreed: Sequence[WithoutPromise]) -> str | None:
    """That a question was learned from people who agreed, if it was."""
    found = [one for one in agreed if release is not None and one.agreement.startswith(release)]
    return _LEARNED.format(what=what, to=found[0].to, agreement=found[0].agreement) if found else None


def agreed_left_out(left_out: Sequence[str], agreed: Sequence[WithoutPromise]) -> tuple[tuple[str, ...], str]:
    """Of what was left out the releases, and what is said of agreements among it."""
    named = [one.agreement for one in agreed if one.agreement in left_out]
    agreements = f"agreement{'s' if len(named) > 1 else ''} {', '.join(named)}"
    releases = tuple(one for one in left_out if one not in named)
    return releases, _LEFT_OUT.format(agreements=agreements) if named else ""


def agreed_in_all(people: int) -> str:
    """What a desk's promise of all its releases says of people who agreed."""
    if not people:
        return ""
    return _STATEMENT.format(people=people, people_are="people" if people > 1 else "person")


def is_consistent(agreed: Sequence[WithoutPromise], rows: int, in_all: int) -> bool:
    """Whether what is said of people who agreed can be true of a release, and of all of them."""
    names, people = [one.agreement for one in agreed], sum(one.people for one in agreed)
    return len({*names}) == len(names) and people <= min(rows, in_all) and (in_all > 0 or not names)
