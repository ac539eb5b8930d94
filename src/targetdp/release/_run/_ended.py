"""How runs end that make no release: what stays charged, and the line in the desk's log."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from targetdp._core import NotYetError
from targetdp.normalization import UntoldScalesError
from targetdp.release._desk import Desk
from targetdp.release._draws import TableChangedError
from targetdp.release._engine._base import Engine
from targetdp.release._ledger._book import Ledger
from targetdp.release._look._look import Refused
from targetdp.release._output import PublishedButUnsettledError
from targetdp.release._request import Request
from targetdp.release._run._already import AlreadyReleased
from targetdp.release._run._reservation import FREED, Reservation


@dataclass(frozen=True)
class Begun:
    """The release that a failed run had charged; ``goes_on``: the same call finishes it, at no cost."""

    release: str
    drawn: bool
    goes_on: bool


@contextmanager
def on_record(desk: Desk, request: Request) -> Iterator[None]:
    """One line in the desk's log for however a run ends that makes no release.

    Of most errors only their kind goes on record: their text may hold an id or a value.
    """
    try:
        yield
    except BaseException as error:
        begun: Begun | None = getattr(error, "begun", None)
        event, facts = "failed", dict[str, Any](kind=type(error).__name__)
        if begun is not None:
            facts |= {"release": begun.release, "drawn": begun.drawn}
        if isinstance(error, Refused):
            event = "refused"
            facts = {
                "kind": request.release, "B": request.B, "epsilon": request.epsilon,
                "asked_by": request.asked_by, "why": [one.what for one in error.look.problems],
            }  # fmt: skip
        elif isinstance(error, AlreadyReleased):
            event, facts = "already released", {"release": error.certificate.release}
        elif isinstance(error, PublishedButUnsettledError):
            event = "not settled"
        elif isinstance(error, NotYetError) and begun is None:
            event = "waiting"
        with suppress(OSError):  # a full disk, say, that the error speaks of already
            desk.log(event, request=request.sha256, **facts)
        raise


def end_without_publishing(
    ledger: Ledger, reservation: Reservation, source: Engine, error: BaseException
) -> None:
    """A run failed: what nothing was drawn for is free, and what noise was drawn for can go on."""
    release, draws, kind = reservation.release, reservation.draws, type(error).__name__
    drawn, row = draws.begun, ledger.release(release)
    goes_on = False
    try:
        if not drawn and row.state == "reserved":
            ledger.free(release, f"the run ended before any noise was drawn: {kind}")
            draws.erase()
            error.add_note(FREED)
        elif (
            isinstance(error, TableChangedError)
            or not (source.can_repeat or draws.in_any_order)
            or row.state != "reserved"
        ):
            draws.erase()
            error.add_note(f"Noise was drawn: release {release[:12]} stays charged")
        elif isinstance(error, UntoldScalesError):
            error.add_note(
                f"Nothing was published, and release {release[:12]} stays charged: its draws have told this; "
                "the same command repeats it, at no further cost"
            )
        else:
            goes_on = True
            error.add_note(
                f"Noise was drawn: release {release[:12]} stays charged; run the same command again, and it "
                "is finished with the same noise, at no further cost"
            )
    finally:
        draws.close()
        error.begun = Begun(release, drawn, goes_on)  # type: ignore[attr-defined]
