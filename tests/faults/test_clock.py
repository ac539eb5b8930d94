"""A clock that was moved: what was released keeps its order and its price, and all of it verifies."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from support.faults import count, some, times
from support.release import ASKED, certificate_of, cli, table_of, words, write_parquet, write_scales
from targetdp.release import Ledger, certificate_path, verify_in_ledger, verify_release

JUMPS = {
    "back a second": timedelta(seconds=-1),
    "back a day": timedelta(days=-1),
    "back 30 years": timedelta(days=-30 * 365),
    "to before 1970": timedelta(days=-80 * 365),
    "forward 500 years": timedelta(days=500 * 365),
    "forward a day": timedelta(days=1),
}
BOOK = ("--ledger", "ledger.db", "--population", "people")


@pytest.fixture
def move(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta, timedelta], None]:
    """Move the clock for certificates and for the ledger, each by its own."""

    def by(certificate: timedelta, ledger: timedelta) -> None:
        for module, jump in (("_certificate._certificate", certificate), ("_ledger._chain", ledger)):

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
    monkeypatch.chdir(tmp_path)
    write_parquet(Path("in.parquet"), table_of(50))
    write_scales(Path("scales.toml"))
    limit = ("--B", "0.25", "--epsilon", "8", "--delta", "1e-3")
    assert cli("ledger", "limit", *BOOK, *limit).code == 0

    def release(name: str) -> int:
        return cli(
            "privatize", "in.parquet", name, *ASKED, "--delta", "1e-5", "--scales", "scales.toml",
            "--mechanism", "gaussian", *BOOK,
        ).code  # fmt: skip

    spent = []
    by = JUMPS[jump]
    for name, jumps in {
        "a.parquet": (timedelta(0),) * 2,
        "b.parquet": (by, by),
        "c.parquet": (0 * by, by),
    }.items():
        move(*jumps)
        assert release(name) == 0
        spent.append(Ledger.existing("ledger.db").standing("people").spent)
    assert spent == sorted(set(spent)), "each release costs something, whenever it was"
    ledger = Ledger.existing("ledger.db")
    assert ledger.verify([c.ledger.head() for c in map(certificate_of, OUTPUTS) if c.ledger]) == []
    assert [row.release for row in ledger.releases()] == [certificate_of(path).release for path in OUTPUTS]
    for path in OUTPUTS:
        c = certificate_of(path)
        found = verify_release(path, c).also(verify_in_ledger(c, Path("ledger.db")))
        assert found.holds, [check for check in found.checks if check.holds is False]
    now = datetime.now(UTC)
    written = datetime.fromisoformat(certificate_of(OUTPUTS[1]).time)
    assert abs(written - now - by) < timedelta(minutes=10), "the clock was moved"
    refused = cli(
        "privatize", "in.parquet", "d.parquet", *ASKED, "--scales", "scales.toml", "--epsilon", "60", *BOOK
    )
    assert refused.code == 2
    assert "this release is refused" in words(refused.err)
    assert not certificate_path(Path("d.parquet")).exists()
    count("clock", jump)


OUTPUTS = [Path(f"{name}.parquet") for name in "abc"]
