"""What the guarantee of a setting rests on: in plain words, and as a certificate would state it."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from targetdp._files import append_line
from targetdp.programs import MARK as FOR_THE_HOLDER
from targetdp.release import Facts, conditions_of
from targetdp.tradeoff import MARK, TUNED_ON, read_run

_SCALES = {
    "data": (
        "Each column was measured in units of the table's own spread, which nobody paid for with privacy. "
        "The guarantee then holds only between tables that have the same spread. Better: scales from public "
        "knowledge, or private ones."
    ),
    "declared": "Each column is measured in units that were declared public, not learned from these people.",
    "private": "Each column is measured in units that were estimated privately; their price adds to ε and δ.",
    "confidential": (
        "Each column was measured in units learned from other data about the same people. The guarantee "
        "holds given these units, and says nothing about what they tell."
    ),
}

PLAIN = (
    "It protects a person's row, among rows that are similar. It does not hide who is in the table, nor how "
    "many people there are.",
    "People who are clearly different stay different: that is what targeting needs, and it can be seen.",
    "It is about one release. Every further release about the same people adds up; the data holder's ledger "
    "counts them.",
    "One row for each person. Someone with several rows is protected less.",
    "What is true of a whole group can still be learned, also about people who are not in the table.",
    "Columns that the data holder passes on unchanged (the id, and whatever is named so) are not protected.",
    "Attacks that we ran show what they found. They do not show what a cleverer attacker would find: only "
    "the guarantee speaks of all attackers.",
    "Figures of the program come from simulations on the people of this sweep. Intervals tell how much the "
    "noise would change them, not how much other people would.",
)


def plain_conditions(run: Mapping[str, Any]) -> tuple[str, ...]:
    """For an official, the most important first."""
    parts = run["made_of"]["grid"].get("parts")
    more = () if parts is None else (
        f"δ is the paper's for {parts} random parts of the table: about {parts} times the usual, a weaker "
        "promise to each person.",
    )  # fmt: skip
    return (_SCALES[_scales_source(run)], *more, *PLAIN)


def stated_conditions(run: Mapping[str, Any]) -> tuple[str, ...]:
    """As a certificate of a release with a guarantee and a ledger would state them."""
    impute = run["release"].get("impute")
    features = run["features"]
    imputed = dict(impute) if isinstance(impute, Mapping) else (
        {} if impute is None else dict.fromkeys(features, float(impute))
    )  # fmt: skip
    return conditions_of(
        Facts(
            scales=_scales_source(run), has_guarantee=True, keeps_order=False, kept=(),
            features=len(features), imputed=imputed, pseudonyms=False,
            partitions=None, tuned_on=TUNED_ON[run["source"]], engine="local",
            has_ledger=True, part=None,
        )
    )  # fmt: skip


def _scales_source(run: Mapping[str, Any]) -> str:
    """Where the scales came from; a sweep that does not say used the table's own."""
    known = run["made_of"].get("scales")
    return "data" if known is None else str(known["source"])


# Who may read a page: figures of confidential rows are for the data holder, unless it decides otherwise.

OVERRIDES = "overrides.jsonl"
"""In the folder of a sweep: every page of confidential rows that was made for others, with the reason."""


def check_audience(folder: Path, audience: str | None, override: str | None) -> None:
    """Refuse a page that its reader must not see, before any work is done."""
    marked = bool(read_run(folder)[MARK])
    if override is not None and not marked:
        raise ValueError("show-confidential was given, but these rows are not confidential: leave it out")
    if override is not None and not override.strip():
        raise ValueError("show-confidential = '' gives no reason: say who decided, and why")
    if override is not None and audience == "data-holder":
        raise ValueError("show-confidential is for a page that others see: leave it out for the data holder")
    if audience == "official" and marked and override is None:
        raise ValueError(
            f"for = official: {FOR_THE_HOLDER[0].lower()}{FOR_THE_HOLDER[1:]} Run the sweep on a public or "
            "older survey, an invented population or people who agreed; or, if the data holder decides to "
            "show them all the same, give the reason with --show-confidential"
        )


def record_override(folder: Path, reason: str, page: str) -> None:
    """Put on record that a page of confidential rows was made for others: when, why, and which."""
    line = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "reason": reason,
        "sha256": hashlib.sha256(page.encode()).hexdigest(),
    }
    append_line(folder / OVERRIDES, json.dumps(line, ensure_ascii=False))
