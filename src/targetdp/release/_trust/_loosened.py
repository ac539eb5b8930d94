"""What differs between two policies, and in which ways one allows more than the other."""

from collections.abc import Mapping
from typing import Any

from targetdp.release._policy import AgreedPolicy, Policy


def changes(before: Mapping[str, Any], after: Mapping[str, Any], place: str = "") -> dict[str, list[Any]]:
    """What differs between two policies as plain data: by place, what stood there and what stands there."""
    found: dict[str, list[Any]] = {}
    for name in sorted({*before, *after}):
        one, other, here = before.get(name), after.get(name), f"{place}{name}"
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            found |= changes(one, other, f"{here}.")
        elif one != other:
            found[here] = [one, other]
    return found


def loosened(before: Policy, after: Policy) -> list[str]:
    """In which ways a policy allows more than the one before it."""
    old, new = before.limit, after.limit
    named, now = before.columns, after.columns
    columns = {*now.release} - {*named.release}
    # A pattern may stand for what only decisions could look at before, or what identified people.
    columns |= {one for one in (*named.decide, before.id.column) if now.allows(one) and not named.allows(one)}
    decide = sorted(one for one in {*now.decide} - {*named.decide} if not named.allows(one))
    public = [name for name, why in after.columns.public.items() if before.columns.public.get(name) != why]
    scales = [one.scales.model_dump(exclude={"share"}) for one in (before, after)]
    kinds = sorted(
        name for name in {*before.kinds, *after.kinds} if before.kinds.get(name) != after.kinds.get(name)
    )
    one, other = before.release, after.release
    agreed = _more_agreed(before.agreed, after.agreed)
    ways = {
        f"the limit was {old.value()} and becomes {new.value()}, and δ of both is stated": old != new,
        "one release may ask for more": other.epsilon > one.epsilon or other.delta > one.delta,
        "δ may be above 1 in the number of rows": other.large_delta not in {None, one.large_delta},
        "ids go out in clear": before.id.pseudonyms and not after.id.pseudonyms,
        "people are identified in another way, so that the ledger may not know them again": (
            before.id.column != after.id.column or before.id.spelling != after.id.spelling
        ),
        f"{', '.join(sorted(columns))} may be released": bool(columns),
        f"decisions may look at {', '.join(decide)}": bool(decide),
        "models may take longer, and are published later": (
            after.models.microseconds > before.models.microseconds
        ),
        f"{', '.join(public)} goes out as it is, or for another reason": bool(public),
        f"people who agreed are handed over as they are: {agreed}": bool(agreed),
        "columns are scaled in another way": scales[0] != scales[1],
        f"{', '.join(kinds)} becomes numbers in another way": bool(kinds),
        "missing values are filled in another way": before.gaps != after.gaps,
        "officials are told what would be accepted": after.requests.tell and not before.requests.tell,
        "the plan of releases is another one": before.plan != after.plan,
        "other requests are answered": (
            before.requests.accept == "signed" and before.requests != after.requests
        ),
        "other people approve, or nobody does": bool(before.approvers)
        and before.approvers != after.approvers,
    }
    return [way for way, is_so in ways.items() if is_so]


def _more_agreed(before: AgreedPolicy | None, after: AgreedPolicy | None) -> str:
    """What is new about people who agreed, in words; nothing if no more is allowed."""
    if after is None:
        return ""
    old, most = (set[str](), 0) if before is None else ({*before.columns}, before.at_most)
    columns = [name for name in after.columns if name not in old]
    said = [
        *([", ".join(columns)] if columns else []),
        *([f"up to {after.at_most:,} of them"] if after.at_most > most else []),
        *([f"they agreed to “{after.to}”"] if before is None or before.to != after.to else []),
    ]
    return "; ".join(said)
