"""A clock that was moved: what was released keeps its order and its price, and all of it verifies."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from support.faults import count, some, times
from support.release import certificate_of, cli, words
from support.staged import RUN, place, room_for
from targetdp.release import Desk, Limit, certificate_path, verify_in_ledger, verify_release
from targetdp.release._certificate._witnesses import witness

JUMPS = {
    "back a second": timedelta(seconds=-1),
    "back a day": timedelta(days=-1),
    "back 30 years": timedelta(days=-30 * 365),
    "to before 1970": timedelta(days=-80 * 365),
    "forward 500 years": timedelta(days=500 * 365),
    "forward a day": timedelta(days=1),
}


@pytest.fixture
def move(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta, timedelta], None]:
    """Move the clock for certificates and for the ledger, each by its own."""

    def by(certificate: timedelta, ledger: timedelta) -> None:
        for module, jump in (
            ("_certificate._certificate", certificate),
            ("_ledger._chain", ledger),
            ("_desk", ledger),
        ):

            class Clock(datetime):
                _jump = jump

                @classmethod
                def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                    return datetime.now(tz) + cls._jump

            monkeypatch.setattr(f"targetdp.release.{module}.datetime", Clock)

    return by


@pytest.mark.parametrize("jump", some(list(JUMPS), times("clock")))
def test_the_clock_is_moved(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    move: Callable[[timedelta, timedelta], None],
    jump: str,
) -> None:
    monkeypatch.chdir(place(tmp_path / "place", 50, limit=room_for(3)))

    def release(name: str) -> int:
        return cli(*(name if a == "out.parquet" else a for a in RUN)).code

    def standing() -> float:
        desk = Desk.open("desk")
        with desk.ledger() as ledger:
            return ledger.standing(Limit.of(desk.policy)).spending.spent

    spent = []
    by = JUMPS[jump]
    for name, jumps in {
        "a.parquet": (timedelta(0),) * 2,
        "b.parquet": (by, by),
        "c.parquet": (0 * by, by),
    }.items():
        move(*jumps)
        assert release(name) == 0
        spent.append(standing())
    assert spent == sorted(set(spent)), "each release costs something, whenever it was"
    desk = Desk.open("desk")
    with desk.ledger() as ledger:
        assert ledger.verify([witness(certificate_path(path), desk, ledger) for path in OUTPUTS]) == []
        assert list(ledger.history.releases) == [certificate_of(path).release for path in OUTPUTS]
        for path in OUTPUTS:
            c = certificate_of(path)
            found = verify_release(path, c).also(verify_in_ledger(c, ledger))
            assert found.holds, [check for check in found.checks if check.holds is False]
    now = datetime.now(UTC)
    written = datetime.fromisoformat(certificate_of(OUTPUTS[1]).time)
    assert abs(written - now - by) < timedelta(minutes=10), "the clock was moved"
    refused = cli(*("d.parquet" if a == "out.parquet" else a for a in RUN))
    assert refused.code == 7
    assert "the limit would be passed" in words(refused.err)
    assert not certificate_path(Path("d.parquet")).exists()
    count("clock", jump)


OUTPUTS = [Path(f"{name}.parquet") for name in "abc"]
