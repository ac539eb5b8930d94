"""The certificate for people: one page of Markdown. Pure: certificate in, text out."""

from collections.abc import Sequence

import numpy as np

from targetdp._core import percent_up, up
from targetdp.release._certificate._caveats import told
from targetdp.release._certificate._certificate import Certificate
from targetdp.release._keys import fingerprint_of
from targetdp.release._weights_file import in_words

_ORIGINS = {
    "declared": "declared public",
    "private": "estimated from the data under classic differential privacy, and paid for",
    "sample": "those of the sample, estimated there under classic differential privacy, and paid for there",
    "sample-declared": "those of the sample, declared public there, and for these people, too",
    "confidential": "learned from other data about the same people (not printed)",
    "data": "the data's own means and deviations (not printed)",
}


_CONDITIONAL = {
    "confidential": "learned from other data about the same people",
    "data": "the data's own means and deviations",
}
"""Scales that no one paid for: what the guarantee rests on then is more than the usual conditions."""


def page(certificate: Certificate) -> str:
    """The certificate as one page."""
    sections = (
        _head(certificate), _promise(certificate), _sample(certificate), _distances(certificate),
        _scores(certificate), _conditions(certificate), _made(certificate), _proof(certificate),
    )  # fmt: skip
    return "\n".join("\n".join(map(_one_line, lines)) for lines in sections if lines) + "\n"


def _one_line(text: str) -> str:
    """Names may hold anything: none of it may begin a line of its own, or be taken for HTML."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text).replace("<", "&lt;")


def _head(c: Certificate) -> list[str]:
    return [
        "# Certificate of a private release",
        "",
        f"{c.rows:,} rows, {_columns(c)}, released {c.time} with targetdp {c.library}.",
        "",
    ]


def _columns(c: Certificate) -> str:
    protected = f"{len(c.features)} protected columns"
    if c.scores is None:
        return protected
    return f"{len(c.scores)} score{'s' if len(c.scores) > 1 else ''} of {protected}"


def _promise(c: Certificate) -> list[str]:
    if c.guarantee is None:
        return ["## No guarantee", "", c.conditions[0], ""]
    g = c.guarantee
    return [
        "## The guarantee" + (" (conditional)" if c.scales.source in _CONDITIONAL else ""),
        "",
        f"**(B = {g.B:g}, ε = {up(g.epsilon, 6)}, δ = {up(g.delta)})-targeted differential privacy**, on the "
        "conditions below. Whatever is computed from the released table, its probability would change by at "
        f"most a factor e^{up(g.epsilon, 6)}, plus {up(g.delta)}, had one person's row been any other row "
        f"within distance {g.B:g} of it.",
        "",
        "People who are farther apart may be told apart: that is what targeting needs. As classic "
        f"differential privacy (any two rows), {_classic(c)}.",
        "",
        *_alone(c),
    ]


def _alone(c: Certificate) -> list[str]:
    """Where somebody is in two releases, what is derived from this one's noise is not all of it."""
    if c.sample is None or not c.sample.scored:
        return []
    return [
        "This is for this release alone. People of the sample are in two releases, which add up: what holds "
        "for them is under *Inside and outside the sample*, and no more than that.",
        "",
    ]


def _classic(c: Certificate) -> str:
    if c.scales.source in _CONDITIONAL:
        return "nothing is promised: the guarantee holds given the column scales only"
    exact, switched = c.classic.exact, c.classic.switch_lemma
    by_noise = (
        "no finite ε holds at this δ" if exact is None else f"the noise gives ε = {up(exact.epsilon, 4)}"
    )
    by_lemma = (
        "the switch lemma gives nothing"
        if switched is None
        else f"the switch lemma gives ε = {up(switched.epsilon, 4)}, δ = {up(switched.delta)}"
    )
    delta = "" if exact is None else f" at δ = {up(exact.delta)}"
    return f"{by_noise}{delta}; {by_lemma}"


def _sample(c: Certificate) -> list[str]:
    """Who spends what, where weights were learned from an earlier release."""
    spending = c.sample_spending()
    if spending is None:
        return []
    by = "this release and the sample, together" if spending.scored else "the sample"
    source = spending.first.source
    given = f"; conditional: its scales were {_CONDITIONAL[source]}" if source in _CONDITIONAL else ""
    rows = [
        ("outside the sample", "this release", told(spending.outside)),
        ("inside it", by, told(spending.inside) + given),
    ]
    return [
        "### Inside and outside the sample",
        "",
        f"The weights were learned, as was declared, from release {spending.first.release}, a private "
        f"sample of {spending.first.rows:,} people. They are "
        f"{'scored, too' if spending.scored else 'left out here'}.",
        "",
        *_table(("people", "released about them by", "guarantee"), rows),
        "",
    ]


def _scores(c: Certificate) -> list[str]:
    """What each score is made of, in words."""
    if c.scores is None or c.mechanism.law is None:
        return []
    weights = [np.array(row, dtype=float) for row in c.mechanism.law["weights"]]
    return [
        "## What the scores tell",
        "",
        *(f"- **{name}**: {in_words(c.features, w)}" for name, w in zip(c.scores, weights, strict=True)),
        "",
        "Percentages are shares of the squared weights, on columns as they were scaled. The weights "
        "themselves are in the JSON certificate.",
        "",
    ]


def _distances(c: Certificate) -> list[str]:
    if c.guarantee is None:
        return []
    rows = [
        (
            f"{at.distance:g}" + (" (B)" if at.distance == c.guarantee.B else ""),
            "none" if at.epsilon is None else up(at.epsilon, 4),
            percent_up(at.best_guess),
        )
        for at in c.distances
    ]
    return [
        f"### What it means at other distances (δ = {up(c.guarantee.delta)})",
        "",
        *_table(("distance between two people", "true ε", "best guess is right"), rows),
        "",
        "*Best guess*: which of two equally likely rows a person has, by somebody who knows all other rows; "
        "a coin is right in 50%.",
        "",
        *_alone(c),
    ]


def _conditions(c: Certificate) -> list[str]:
    return ["## Conditions", "", *(f"- {condition}" for condition in c.conditions), ""]


def _made(c: Certificate) -> list[str]:
    lines = ["## How it was made", ""]
    m = c.mechanism
    lines.append(f"- Mechanism: {m.name}" + (f", groups of {m.group_size} or more" if m.group_size else ""))
    if m.deviation_per_column is not None and m.noise_length is not None and m.law is not None:
        law, of = (m.law, "column") if c.scores is None else (m.law["noise"], "score")
        numbers = ", ".join(f"{k} = {v}" for k, v in law.items() if k != "family")
        lines.append(
            f"- Noise: deviation {m.deviation_per_column:.4g} per {of}, typical "
            f"length {m.noise_length:.3g} on a row (rows have length at most 1); {law['family']}: "
            f"{numbers}"
        )
    lines.append(f"- Column scales: {_ORIGINS[c.scales.source]}")
    if c.scales.spent is not None:
        spent = c.scales.spent
        lines.append(
            f"- Paid for the scales (included above): ε = {up(spent.epsilon, 6)}, δ = {up(spent.delta, 2)}"
        )
    lines.append(f"- Rows: {'in the order of the input' if c.order == 'as given' else 'sorted by id'}")
    if c.made_for is not None:
        lines.append(f"- Shaped for {c.made_for}: released columns were standardized by their own moments")
    lines.append("")
    if c.scales.values is not None:
        rows = [(n, f"{s.center:.6g}", f"{s.scale:.6g}") for n, s in c.scales.values.items()]
        shown = rows if len(rows) <= 50 else rows[:50]
        lines += [*_table(("protected column", "center", "scale"), shown), ""]
        if len(shown) < len(rows):
            lines += [f"and {len(rows) - len(shown)} more, in the JSON certificate.", ""]
    else:
        lines += [f"Protected columns: {', '.join(c.features)}.", ""]
    if c.not_protected:
        lines += [f"**Not protected: {', '.join(c.not_protected)}.**", ""]
    return lines


def _proof(c: Certificate) -> list[str]:
    lines = ["## Proof", "", f"- Release {c.release}", f"- SHA-256 {c.output.sha256}"]
    if c.ledger is not None:
        part = "" if c.ledger.part is None else f", part {c.ledger.part}"
        lines.append(
            f"- Charged to population {c.ledger.population}{part}: entry {c.ledger.number} of ledger "
            f"{c.ledger.ledger_id}, hash {c.ledger.hash}"
        )
        if c.ledger.override is not None:
            lines.append(f"- **The limit of this population was overridden**: {c.ledger.override}")
    if c.signature is not None:
        lines.append(
            f"- Signed with Ed25519 key {fingerprint_of(c.signature.key)}: compare it with the data holder's"
        )
    lines.append("- `targetdp verify` checks all of this against the released file.")
    return lines


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(heads)} |",
        f"|{'|'.join('---' if i == 0 else '---:' for i in range(len(heads)))}|",
        *(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows),
    ]
