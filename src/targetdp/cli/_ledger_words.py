"""What `targetdp ledger` and `targetdp status` say of entries, releases and budgets, in few words."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from targetdp._core import exact, up

_MOST_LEVELS, _LONGEST, _MANY = 12, 200, 1000
_WHAT = {
    "opened": "ledger opened",
    "reserved": "charged",
    "voided": "freed",
    "erased": "people erased",
    "agreed": "handed over",
    "key": "key changed",
}
"""Kinds of entries that go by another name among people."""
SILENT = {"made", "released", "goes on", "handed over", "already released", "waiting"}
"""Lines of the desk's log that only say again what the ledger does, or that nothing was done."""


def what_of(kind: str) -> str:
    """What happened."""
    return _WHAT.get(kind, kind)


def levels_for_people(levels: Sequence[tuple[float, int]]) -> list[tuple[str, int]]:
    """How many people have spent how much, the most first; many levels become ranges of tenths."""
    from targetdp.release import percent

    if len(levels) <= _MOST_LEVELS:
        return [(percent(share), people) for share, people in levels]
    tenths: dict[int, int] = {}
    for share, people in levels:
        tenth = min(9, int(share * 10))
        tenths[tenth] = tenths.get(tenth, 0) + people
    return [(f"{10 * one}% to {10 * one + 10}%", tenths[one]) for one in sorted(tenths, reverse=True)]


def limit_words(together: Any) -> str:
    """What is promised of all releases together, in a line."""
    if together is None:
        return "nothing is promised"
    near, classic = together
    return (
        f"ε = {up(near.epsilon, 6)} within distance {exact(near.B)}, ε = {up(classic.epsilon, 6)} at "
        f"distance 2, δ = {up(near.delta)}"
    )


def together_record(together: Any) -> dict[str, Any] | None:
    """The same as plain data."""
    return None if together is None else dict(zip(("near", "classic"), map(asdict, together), strict=True))


def pure_words(epsilon: float, B: float) -> str:
    """A running total, which only pure releases have."""
    return f"ε = {up(epsilon, 4)} within distance {exact(B)} so far: the sum of pure releases"


def plan_words(limit: Any, history: Any) -> list[str]:
    """How far a plan is, line by line, where there is one."""
    from targetdp.release import left_of_plan, line_words

    left = left_of_plan(limit, limit.plan, history)
    total = sum(line.times for line, _ in left)
    made = total - sum(count for _, count in left)
    said = f"{made} of {total} releases made; all are charged already, and the next takes nothing more"
    return [said, *(line_words(*one) for one in left)] if left else []


def next_words(again: Mapping[str, Any]) -> str:
    """What one more release costs that is as the newest one."""
    from targetdp.release import percent

    times = again["times"]
    fits = "none fits" if not times else f"{'more than ' * (times >= _MANY)}{times} such fit"
    takes = math.inf if again["takes"] is None else again["takes"]
    return f"one more like the newest takes {percent(takes)} of it; {fits}, for those who have spent most"


def next_record(limit: Any, standing: Any, history: Any) -> dict[str, Any] | None:
    """The same as plain data; None where a plan has charged it, or nothing was released."""
    newest = None if limit.plan else next(reversed(history.counted), None)
    if newest is None:
        return None
    takes, times = limit.share(limit.cost(newest.charge)), standing.spending.times(newest.charge)
    return {"as_release": newest.release, "takes": takes if takes < math.inf else None, "times": times}


def state_of(row: Any) -> str:
    """How a release stands."""
    if row.withdrawn is not None:
        return "withdrawn"
    return {"reserved": "unsettled", "published": "published", "voided": "freed", "lost": "lost"}[row.state]


def release_words(title: Mapping[str, Any]) -> str:
    """What a release is: its kind, its guarantee, its noise."""
    said = [str(title.get("kind", "–"))]
    said += [_guarantee(title["guarantee"])] if title.get("guarantee") else []
    if decided := title.get("decisions"):  # which have names, and no noise
        return ", ".join([f"{said[0]} ({', '.join(decided)})", *said[1:]])
    return ", ".join([*said, str(title["mechanism"])] if title.get("mechanism") else said)


def notes_of(row: Any) -> list[str]:
    """What else there is to know about a release, line by line."""
    title = row.title
    public, left_out = title.get("public") or (), title.get("left_out") or ()
    notes = (
        (title.get("asked_by"), f"asked by {title.get('asked_by')}"),
        (left_out, f"without the people of {', '.join(r[:12] for r in left_out)}"),
        (row.scales is not None, "estimated the scales"),
        (title.get("plan"), "planned"),
        (public, f"not protected: {', '.join(public)}"),
        (title.get("new_people"), f"new people: {title.get('new_people')}"),
        (title.get("agreed"), f"{sum((title.get('agreed') or {}).values()):,} people agreed: no promise"),
        (row.everybody, "counts for everybody"),
        (row.reason, f"freed because: {row.reason}"),
        (row.withdrawn, f"withdrawn because: {row.withdrawn}"),
        (row.state == "reserved", "counts as spent"),
    )
    return [short(text) for holds, text in notes if holds]


def agreement_words(row: Any) -> str:
    """What an agreement is, and how many of its people are off its list."""
    erased = "; some of them were erased, and count as everybody" if row.list_changed else ""
    return f"“{row.to}”: {', '.join(row.columns)}{erased}"


def details_of(kind: str, body: Mapping[str, Any], titles: Mapping[str, Any], release: str) -> list[str]:
    """An entry, or a line of the log, in a few lines: what a person would ask first."""
    about: dict[str, Any] = {
        "policy": _policy, "reserved": _charged, "published": _published, "refused": _refused,
        "erased": _erased, "ids translated": _translated, "failed": _failed, "resumed": _resumed,
        "key": _key, "agreed": _agreed,
    }  # fmt: skip
    try:
        said = about[kind](body, titles.get(release, {})) if kind in about else []
    except (AttributeError, KeyError, TypeError, ValueError):  # the log is a file that anything may stand in
        said = [json.dumps(body, ensure_ascii=False)]
    reason = body.get("reason")
    return [short(line) for line in [*said, *([f"because: {reason}"] if reason else [])]]


def _policy(body: Mapping[str, Any], _: Mapping[str, Any]) -> list[str]:
    changed, policy = dict(body["changed"]), body["policy"]
    if not changed:
        limit, plan = policy["limit"], policy.get("plan")
        first = f"limit {_guarantee(limit)}, filter {limit['filter']}"
        return [f"{first}, with a plan" if plan else first, f"{len(policy['columns']['release'])} columns"]
    _, why = changed.pop("reason", (None, policy.get("reason")))
    said = [f"{place}: {_value(one)} → {_value(other)}" for place, (one, other) in changed.items()]
    if approval := body.get("approval"):
        from targetdp.release import fingerprint_of

        said.append(f"approved with key {fingerprint_of(approval['key'])}")
    return [*said, *([f"because: {why}"] if why else [])]


def _charged(body: Mapping[str, Any], _: Mapping[str, Any]) -> list[str]:
    title = body["title"]
    asked = f"asked by {title['asked_by']}, " if title.get("asked_by") else ""
    request = str(title.get("request") or "")[:12]
    return [
        f"{title.get('rows', 0):,} people: {release_words(title)}",
        *([f"{asked}request {request}"] if request else []),
        *([f"new people: {title['new_people']}"] if title.get("new_people") else []),
    ]


def _published(_: Mapping[str, Any], title: Mapping[str, Any]) -> list[str]:
    return [str(title["output"])] if title.get("output") else []


def _refused(body: Mapping[str, Any], _: Mapping[str, Any]) -> list[str]:
    asked = f" by {body['asked_by']}" if body.get("asked_by") else ""
    what = f"{body['kind']}, B={exact(body['B'])} ε={exact(body['epsilon'])}, " if "epsilon" in body else ""
    why = body.get("why") or ()
    return [
        f"asked for{asked}: {what}request {str(body.get('request', ''))[:12]}",
        *(f"- {one}" for one in ([why] if isinstance(why, str) else why)),
    ]


def _erased(body: Mapping[str, Any], _: Mapping[str, Any]) -> list[str]:
    return [f"{', '.join(release[:12] for release in body['people'])} count for everybody since"]


def _agreed(body: Mapping[str, Any], _: Mapping[str, Any]) -> list[str]:
    return [
        f"{body['rows']:,} people as they are, {body['in_all']:,} in all: {', '.join(body['columns'])}",
        f"they agreed to “{body['to']}”, and nothing is promised to them",
        *([str(body["title"]["output"])] if body["title"].get("output") else []),
    ]


def _translated(body: Mapping[str, Any], _: Mapping[str, Any]) -> list[str]:
    into = "pseudonyms into ids" if body.get("back") else "ids into pseudonyms"
    return [f"{body.get('people', 0):,} people, {into}"]


def _failed(body: Mapping[str, Any], _: Mapping[str, Any]) -> list[str]:
    after = "after noise was drawn: it stays charged" if body.get("drawn") else "before any noise was drawn"
    return [f"{body.get('kind', 'an error')}, {after}"]


def _resumed(body: Mapping[str, Any], _: Mapping[str, Any]) -> list[str]:
    lost = [str(one["release"])[:12] for one in body.get("lost") or ()]
    return [*(str(one) for one in body["found"]), *(f"charged to everybody: {one}" for one in lost)]


def _key(body: Mapping[str, Any], _: Mapping[str, Any]) -> list[str]:
    from targetdp.release import fingerprint_of

    lost = "which was lost, without its word" if body["succession"] is None else "on its word"
    return [f"{fingerprint_of(body['newer'])} signs in place of {fingerprint_of(body['older'])}, {lost}"]


def _guarantee(record: Mapping[str, Any]) -> str:
    return f"B={exact(record['B'])} ε={up(record['epsilon'], 6)} δ={up(record['delta'], 2)}"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return exact(value)
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return short(text, 60)


def short(text: str, longest: int = _LONGEST) -> str:
    """No more than fits a few lines; `--json` has all of it."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
