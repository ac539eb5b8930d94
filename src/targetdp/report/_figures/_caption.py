"""The words under a figure: what was compared, on whom, and on which conditions a guarantee stands."""

from collections.abc import Sequence

from targetdp.report._figures._choice import Chosen
from targetdp.report._figures._style import delta_words, epsilon_words, printable
from targetdp.tradeoff import PROJECTION

_HOLDS = "A guarantee (B, ε, δ) is for a release, one row per person, between people within B of each other."


def guarantees(shown: Sequence[Chosen]) -> str:
    """The ε and δ of each program, what the printed noise truly gives, and the conditions."""
    noisy = [one for one in shown if one.epsilon is not None and one.delta is not None]
    parts = [_claim(one) for one in noisy if one.program.rows == "clip"]
    claimed = [f"Claimed: {'; '.join(parts)}.", _HOLDS] if parts else []
    conditions = dict.fromkeys(one.program.condition for one in noisy)
    return " ".join([*claimed, *(text for text in conditions if text)])


def without_guarantee(shown: Sequence[Chosen]) -> str:
    """What of a figure promises nothing."""
    if all(one.program.rows != "clip" for one in shown):
        return "Nothing that is drawn here has a guarantee."
    more = any(one.program.rows != "clip" for one in shown)
    which = (
        "The status quo, k-anonymity and rows that are not clipped"
        if more
        else "The status quo and k-anonymity"
    )
    return f"{which} have no guarantee."


def intervals(shown: Sequence[Chosen], *, attacks: bool) -> str:
    """What the intervals know; an attack on a release that was tried once has its own."""
    counts = list(dict.fromkeys(one.program.simulations for one in shown))
    if counts == [1]:
        once = "Every release was tried once: how others would vary is not known"
        return f"{once}, and whiskers are the attacks' own 95% intervals." if attacks else f"{once}."
    told = " and ".join(f"{count:,}" for count in counts)
    means = f"Whiskers: 95% intervals for the mean over {told} simulations (other noise, not other people)"
    return f"{means}; those of releases tried once are the attacks' own." if attacks else f"{means}."


def heading(one: Chosen) -> str:
    """A program and its kind."""
    kind = f": {printable(one.program.kind, 16)} program" if one.program.kind else ""
    return f"{one.program.label}{kind}"


def whose(shown: Sequence[Chosen]) -> str:
    """How many people each program has, and whose rows they are."""
    return "; ".join(f"{one.program.label}: {one.program.whom}" for one in shown) + "."


def _claim(one: Chosen) -> str:
    assert one.epsilon is not None  # noqa: S101 (the caller looked)
    assert one.delta is not None  # noqa: S101
    told = f"{one.program.label} {epsilon_words(one.epsilon)}, {delta_words(one.delta)}"
    true = [release.figure("exact_epsilon").mean for release in one.curves.get(PROJECTION, ())]
    known = [epsilon for epsilon in true if epsilon is not None]
    return f"{told} (the noise as printed truly gives {epsilon_words(max(known))})" if known else told
