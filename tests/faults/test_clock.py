"""A clock that was moved: what was released keeps its order and its price, and all of it verifies."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from support.faults import count, some, times
from support.release import certificate_of, place_with, release, request_of
from support.staged import room_for
from targetdp.release import Desk, Refused, certificate_path, verify_in_ledger, verify_release

JUMPS = {
    "back a second": timedelta(seconds=-1),
    "back a day": timedelta(days=-1),
    "back 30 years": timedelta(days=-30 * 365),
    "to before 1970": timedelta(days=-80 * 365),
    "forward 500 years": timedelta(days=500 * 365),
    "forward a day": timedelta(days=1),
}
OUTPUTS = ("a.parquet", "b.parquet", "c.parquet")


@pytest.fixture
def move(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta, timedelta], None]:
    """Move the clock for certificates and for the ledger (and the desk's log), each by its own."""

    def by(certificate: timedelta, ledger: timedelta) -> None:
        clocks = {"_certificate._certificate": certificate, "_ledger._chain": ledger, "_desk": ledger}
        for module, jump in clocks.items():

            class Clock(datetime):
                _jump = jump

                @classmethod
                def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                    return datetime.now(tz) + cls._jump

            monkeypatch.setattr(f"targetdp.release.{module}.datetime", Clock)

    return by


@pytest.mark.parametrize("jump", some(list(JUMPS), times("clock")))
def test_the_clock_is_moved(tmp_path: Path, move: Callable[[timedelta, timedelta], None], jump: str) -> None:
    folder = place_with(tmp_path / "place", 50, limit=room_for(3))
    asked = request_of(mechanism="gaussian", delta=1e-5)
    by, spent = JUMPS[jump], []
    for name, jumps in zip(OUTPUTS, ((0 * by, 0 * by), (by, by), (0 * by, by)), strict=True):
        move(*jumps)
        release(folder, name, request=asked)
        desk = Desk.open(folder / "desk")
        with desk.ledger() as ledger:
            spent.append(ledger.standing(desk.policy.limit.value()).spent)
    assert spent == sorted(set(spent)), "each release costs something, whenever it was"
    outputs = [folder / name for name in OUTPUTS]
    certificates = [certificate_of(path) for path in outputs]
    with desk.ledger() as ledger:
        assert ledger.verify([c.ledger.head() for c in certificates]) == []
        assert list(ledger.history.releases) == [c.release for c in certificates]
        for path, c in zip(outputs, certificates, strict=True):
            found = verify_release(path, c).also(verify_in_ledger(c, ledger))
            assert found.holds, [check for check in found.checks if check.holds is False]
        times_on_record = [row.reserved for row in ledger.history.releases.values()]
    now = datetime.now(UTC)
    for written in (certificates[1].time, *times_on_record[1:]):
        assert abs(datetime.fromisoformat(written) - now - by) < timedelta(minutes=10), "it was moved"
    with pytest.raises(Refused, match="the limit would be passed"):
        release(folder, "d.parquet", request=asked)
    assert not (folder / "d.parquet").exists()
    assert not certificate_path(folder / "d.parquet").exists()
    count("clock", jump)
