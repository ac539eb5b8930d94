"""Certificates that no release was made for: of a request at a desk whose owner allows it."""

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from support.release import FEATURES, make_desk, new_policy, request_of, write_scales
from targetdp.normalization import ColumnScales
from targetdp.release import Certificate, Desk
from targetdp.release._certificate._certificate import make_certificate
from targetdp.release._certificate._parts import File, LedgerMark, Output
from targetdp.release._prepare import prepare
from targetdp.release._terms import make_terms

RELEASE = "0123456789abcdef" * 2
MARK = LedgerMark(ledger_id="a" * 32, number=3, hash="c" * 64)
OUTPUT = Output(format="parquet", files=(File(name="x", size=1, sha256="0" * 64),), sha256="0" * 64)
_OWNED: list[tempfile.TemporaryDirectory[str]] = []


@cache
def _desk() -> Desk:
    """One desk for all of them: nothing is ever released at it."""
    _OWNED.append(tempfile.TemporaryDirectory(prefix="desk-"))
    return make_desk(Path(_OWNED[-1].name))


def certificate_by(
    rows: int = 999,
    policy: dict[str, Any] | None = None,
    features: Sequence[str] = FEATURES,
    **given: Any,
) -> Certificate:
    """The certificate of a request (``given``) under a policy; drawn scales are 0 and 1."""
    desk = new_policy(_desk(), features, **{"most": (1e6, 0.99)} | (policy or {}))
    write_scales(desk.path / "scales.toml", features=features)
    asked = request_of(**given)
    with desk.ledger() as ledger:
        columns = (desk.policy.id.column, *features, *desk.policy.columns.public)
        prepared = prepare(desk, ledger, asked, columns, "the table", "local")
    assert prepared.problems == (), prepared.problems
    terms = make_terms(prepared, rows)
    scales = prepared.recipe().scales
    if scales is None:
        assert terms.scales is not None
        count = len(prepared.estimated)
        scales = prepared.scales_with(
            ColumnScales(np.zeros(count), np.ones(count), "private", terms.scales.spent)
        )
    return make_certificate(RELEASE, prepared, terms, scales, rows, (), OUTPUT, MARK)
