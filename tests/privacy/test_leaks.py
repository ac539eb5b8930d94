"""What is published beside a table tells nothing that was not paid for.

Two tables that differ in one person (a neighbor within B, or somebody extreme) are released alike. Their
certificates, pages and printed words may differ in what every release has of its own (its name, time, hashes,
signature), and in nothing else.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.leaks import masked, tables, without_own
from support.release import ASKED, FEATURES, cli, read_back, write_parquet, write_scales
from targetdp.release import certificate_path
from targetdp.release._staging import page_path

WAYS = {
    "plain": (),
    "order kept": ("--keep-order",),
    "pseudonyms": ("--pseudonymize", "secret.key"),
    "private scales": ("--scales", "private", "--scales-epsilon", "1"),
    "gaussian": ("--mechanism", "gaussian", "--delta", "1e-4"),
    "CSV": (),
}


@pytest.mark.parametrize("way", WAYS)
def test_certificates_and_pages_differ_in_nothing_but_their_own(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_scales(tmp_path / "scales.toml")
    if way == "pseudonyms":
        Path("secret.key").write_text(bytes(range(32)).hex())
        Path("secret.key").chmod(0o600)
    seen: dict[str, tuple[Any, str]] = {}
    for name, table in tables(3_000 if way == "private scales" else 60).items():
        source = write_parquet(Path("in.parquet"), table)
        output = Path("out.csv" if way == "CSV" else "out.parquet")
        scales = () if "--scales" in WAYS[way] else ("--scales", "scales.toml")
        bounds = _bounds() if way == "private scales" else ()
        ran = cli("privatize", source, output, *ASKED, *scales, *WAYS[way], *bounds, "--force")
        assert ran.code == 0, ran.err
        certificate = json.loads(certificate_path(output).read_text(encoding="utf-8"))
        seen[name] = (without_own(certificate), masked(page_path(output).read_text(encoding="utf-8")))
        assert read_back(output).num_rows == table.num_rows
    if way == "private scales":  # the scales were paid for: their values may differ, nothing else
        for certificate, _ in seen.values():
            assert certificate["scales"].pop("values") is not None
        pages = {re.sub(r"[-−]?\d[\d.,e+-]*", "N", text) for _, text in seen.values()}
    else:
        pages = {text for _, text in seen.values()}
    assert len({json.dumps(certificate, sort_keys=True) for certificate, _ in seen.values()}) == 1
    assert len(pages) == 1


def _bounds() -> tuple[str, ...]:
    Path("bounds.toml").write_text(
        "[features]\n" + "\n".join(f"{name} = {{ lower = -1e3, upper = 1e3 }}" for name in FEATURES),
        encoding="utf-8",
    )
    return ("--bounds", "bounds.toml")


def test_what_is_for_the_holder_only_stays_with_the_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many rows were clipped is told to the holder, and is in nothing that is handed over."""
    monkeypatch.chdir(tmp_path)
    write_scales(tmp_path / "scales.toml")
    told = {}
    for name in ("as it is", "extreme"):
        source = write_parquet(Path("in.parquet"), tables()[name])
        ran = cli("privatize", source, "out.parquet", *ASKED, "--scales", "scales.toml", "--force", "--json")
        told[name] = ran.json["for_the_data_holder_only"]["rows_clipped"]
        for path in (certificate_path(Path("out.parquet")), page_path(Path("out.parquet"))):
            assert not re.search(
                rf"\b{told[name]}\b.{{0,40}}clipped|clipped.{{0,40}}\b{told[name]}\b", path.read_text()
            )
    assert told["as it is"] != told["extreme"] or told["as it is"] > 0


def test_a_refusal_for_budget_tells_nothing_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_scales(tmp_path / "scales.toml")
    book = ("--ledger", "ledger.db", "--population", "people")
    assert cli("ledger", "limit", *book, "--B", "0.25", "--epsilon", "1", "--delta", "0.01").code == 0
    said = set()
    for table in tables().values():
        source = write_parquet(Path("in.parquet"), table)
        ran = cli("privatize", source, "out.parquet", *ASKED, "--scales", "scales.toml", *book)
        assert ran.code == 2
        said.add(masked(ran.err))
    assert len(said) == 1
