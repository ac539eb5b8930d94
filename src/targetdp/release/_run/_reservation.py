"""Charging a release, or going on with one that an earlier run has charged and not finished."""

import uuid
from contextlib import suppress
from dataclasses import dataclass

from targetdp._core import NotYetError
from targetdp.release._desk import Desk
from targetdp.release._draws import Draws
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._entries import Head
from targetdp.release._ledger._history import History
from targetdp.release._look._look import Look
from targetdp.release._planned import planned
from targetdp.release._terms import ReleaseTerms, bound_of

FREED = "Nothing was drawn: the release is not charged"


@dataclass(frozen=True)
class Reservation:
    """A release that is charged, and the draws that belong to it."""

    release: str
    head: Head
    draws: Draws


def reserve(
    desk: Desk, ledger: Ledger, seen: Look, terms: ReleaseTerms, place: str, table: str | None
) -> Reservation:
    """Charge the release, or go on with one that an earlier run has charged and not finished."""
    prepared, people = seen.prepared, seen.inspection.people
    if prepared.limit is None:
        raise RuntimeError("a release without a limit: please report this")
    bound = bound_of(prepared, terms, people)
    if seen.goes_on is not None:
        draws = Draws.reopen(desk.drafts, seen.goes_on, bound)
        if draws is None:
            raise NotYetError(
                f"release {seen.goes_on[:12]}, which this run would have finished, is being made by another "
                "run: wait for it"
            )
        try:
            head = ledger.go_on(seen.goes_on, *prepared.ruling)
            _must_have_the_same_agreed(ledger.history, seen)
        except BaseException:
            draws.close()
            raise
        desk.log("goes on", release=seen.goes_on)
        return Reservation(seen.goes_on, head, draws)
    release = uuid.uuid4().hex
    draws = Draws.create(desk.drafts, release, bound)
    request = prepared.request
    title = {
        "guarantee": {
            "B": terms.guarantee.B, "epsilon": terms.guarantee.epsilon, "delta": terms.guarantee.delta,
        },
        "mechanism": terms.name, "rows": seen.inspection.rows, "columns": len(prepared.released),
        "kind": request.release, "scores": list(request.scores),
        "decisions": [one.name for one in request.decisions], "features": list(prepared.features),
        "public": list(prepared.public),
        "left_out": list(prepared.left_out_releases), "output": place, "bound": bound,
        "request": request.sha256, "asked_by": request.asked_by, "program": request.program,
        "why": request.why, "signer": prepared.signer, "engine": prepared.engine,
        "new_people": prepared.new_people, "table": table,
        "agreed": {one.agreement: one.people for one in terms.agreed},
    }  # fmt: skip

    def as_seen(history: History) -> None:
        _must_have_the_same_agreed(history, seen)
        if planned(prepared, history) != seen.planned:
            raise NotYetError("another run has just made a release of the plan: look again, with --check")

    try:
        head = ledger.reserve(
            release, terms.charge, prepared.limit, people, title, space=prepared.space(release),
            planned=seen.planned, look=as_seen, policy=prepared.ruling,
        )  # fmt: skip
    except BaseException as error:
        # An interruption may come when the entry is written already. What cannot be freed now has drawn
        # nothing, and its draws say so: the next run frees it.
        with suppress(Exception):
            ledger.refresh()
            if release in ledger.history.releases:
                ledger.free(release, "the run ended before any noise was drawn")
                error.add_note(FREED)
            else:
                ledger.forget(release)
            draws.erase()
        draws.close()
        raise
    return Reservation(release, head, draws)


def _must_have_the_same_agreed(history: History, seen: Look) -> None:
    """A ValueError if people agreed since, or were erased: it was said to whom nothing is promised."""
    if history.agreements != seen.history.agreements:
        raise ValueError("agreements were made or changed meanwhile: look again, with --check")
