"""Linkage by id: who joins tables on the id needs no values at all.

Noise hides what a row says, not whose it is. A release carries ids, in clear or as pseudonyms, because a
program must know whom it decides about: so whoever can tell the ids has everybody's row without any search.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import check
from targetdp.attacks._declaration import LINKABILITY, SINGLING_OUT, Answer, Case, attack, people_spared
from targetdp.attacks._protection import Protection, Setting, worst

ORIGINAL = "the original table"
BY_THE_KEY = (
    ", by whoever has the key of the pseudonyms or was told them (as the official is who gets the translated "
    "list); nobody else can join them with a table that does not have them"
)


def _headline(p: Protection) -> str:
    matched = people_spared(p.score, "matched to their released row by joining on the id")
    by = BY_THE_KEY if p.detail.get("pseudonyms") else ""
    return " ".join((f"{matched}{by}.", *p.detail.get("sentences", ())))


def in_common(ids: pa.StringArray, others: pa.StringArray) -> int:
    """How many of some ids stand among others."""
    return int(pc.sum(pc.is_in(ids, value_set=others)).as_py() or 0)


def _on_tables(case: Case) -> Protection:
    t = case.tables
    ids = case.require(t.ids, "Not run: the tables are without ids.")
    hashed = t.ids_are == "pseudonyms"
    sentences: list[str] = []
    others = {ORIGINAL: ids}  # the two tables were joined on them: all are there
    for number, release in enumerate(case.further, 2):
        if release.ids is None:
            continue
        others[f"release {number}"] = release.ids
        shared = in_common(ids, release.ids)
        by = "pseudonyms: joining on them, without any key," if hashed else "ids: joining on them"
        sentences.append(
            f"Release {number} has the same {by} brings together the rows of {shared:,} people."
            if shared
            else f"Release {number} has no id in common with this one."
        )
    found = linkage_by_id(ids, others, sentences=tuple(sentences), pseudonyms=hashed)
    linked = {name: one for name, one in found.settings.items() if name != ORIGINAL and one.score < 1}
    return replace(found, detail={**found.detail, "without_key": linked if hashed else {}})


@attack(
    place=8,
    answers=Answer(
        criteria=(LINKABILITY, SINGLING_OUT),
        adversary="Has the released table with its ids, and any other table about the same people; where ids "
        "are pseudonyms, also their key, or a list of them.",
        reaches="Whose row is whose, and who is in the table, wherever ids can be read.",
        does_not_reach="What the rows say: the noise protects values, not ids.",
    ),
    headline=_headline,
    on_tables=_on_tables,
    ids="used",
)
def linkage_by_id(ids: Any, others: Mapping[str, Any], **detail: Any) -> Protection:
    """Share of people whose released row is *not* matched by joining the release with other tables on the id.

    Args:
        ids: The ids in the release, one for each person.
        others: Ids of other tables by the table's name, written as the release writes them: where it has
            pseudonyms, by somebody who has their key.
        detail: What else the result should say.

    Returns:
        Protection, an upper bound, exact for these tables: 1 − the share of people who are in the table that
        matches most of them.

    Raises:
        ValueError: There are no ids, or no other tables.

    Example:
        >>> linkage_by_id(["ann", "bob"], {"a phone book": ["bob", "eve"]}).score
        0.5
    """
    named = pa.array(ids, pa.string())
    check.integer("number of ids", len(named), at_least=1)
    settings = {}
    for name, other in others.items():
        spared = 1 - in_common(named, pa.array(other, pa.string())) / len(named)
        settings[name] = Setting(spared, (spared, spared))
    return worst(settings, "upper", confidence=1.0, people=len(named), **detail)
