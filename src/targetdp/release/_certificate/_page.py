"""The certificate for people: one page of Markdown. Pure: certificate in, text out."""

from collections.abc import Sequence
from html import escape

import numpy as np

from targetdp._core import Floats, exact, percent_up, up
from targetdp.mechanisms import DecisionLaw, law_of
from targetdp.release._certificate._agreed import no_promise
from targetdp.release._certificate._caveats import DELTA
from targetdp.release._certificate._certificate import Certificate
from targetdp.release._certificate._contents import questions_of
from targetdp.release._decision._asked import describe_decision
from targetdp.release._decision._cuts import FIRST_BATCH
from targetdp.release._policy import CLASSIC
from targetdp.release._trust._keys import fingerprint_of

_MOST_WEIGHTS = 12
_ORIGINS = {
    "declared": "declared public",
    "private": "estimated from the data under classic differential privacy, and paid for",
    "none": "none: columns were taken as they are",
    "earlier": "estimated and paid for by an earlier release of the desk, under classic differential privacy",
}


_OF = {"scores": "of", "decisions": "about each person from"}


def page(certificate: Certificate) -> str:
    """The certificate as one page."""
    sections = (
        _head(certificate), _asked(certificate), _promise(certificate), _distances(certificate),
        _within(certificate), _scores(certificate), _conditions(certificate),
        _made(certificate), _proof(certificate),
    )  # fmt: skip
    return "\n".join("\n".join(map(_one_line, lines)) for lines in sections if lines) + "\n"


def _one_line(text: str) -> str:
    """Names may hold anything: none of it may begin a line of its own, or be taken for HTML."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text).replace("<", "&lt;")


def _head(c: Certificate) -> list[str]:
    return [
        "# Certificate of a private release",
        "",
        f"{c.rows:,} rows, {_columns(c)}, released {c.time} by the desk *{c.desk.name}* with targetdp "
        f"{c.library}.",
        "",
    ]


def _asked(c: Certificate) -> list[str]:
    """Who asked for it, in her own words."""
    said = [
        f"{what} “{value}”"
        for what, value in (("Asked for by", c.request.asked_by), ("for the program", c.request.program))
        if value is not None
    ]
    why = [] if c.request.why is None else ["", f"> {c.request.why}", "", "(the words of whoever asked)"]
    return (
        [*([", ".join(said) + " (the words of whoever asked)."] if said else []), *why, ""]
        if said or why
        else []
    )


def _columns(c: Certificate) -> str:
    protected, count = f"{len(c.features)} protected columns", len(c.released)
    if c.kind == "rows":
        return protected
    return f"{count} {c.kind.removesuffix('s')}{'s' if count > 1 else ''} {_OF[c.kind]} {protected}"


def _promise(c: Certificate) -> list[str]:
    said = no_promise(c.agreed, c.rows)
    return [*_guarantee(c), *(f"**No promise**: {one}" for one in said), *([""] if said else [])]


def _guarantee(c: Certificate) -> list[str]:
    g = c.guarantee
    if c.decisions and g.B == CLASSIC:
        return [
            "## The guarantee",
            "",
            f"**ε-differential privacy in the classic sense, ε = {up(g.epsilon, 6)}** (B = 2, "
            f"δ = {up(g.delta)}), on the conditions below. Whatever is computed from the released answers, "
            f"its probability would change by at most a factor e^{up(g.epsilon, 6)} had one row been "
            f"any other row at all. {_same_side(c)}",
            "",
        ]
    return [
        "## The guarantee",
        "",
        f"**(B = {exact(g.B)}, ε = {up(g.epsilon, 6)}, δ = {up(g.delta)})-targeted differential privacy**, "
        "on the conditions below. Whatever is computed from the released table, its probability would change "
        f"by at most a factor e^{up(g.epsilon, 6)}, plus {up(g.delta)}, had one person's row been any other "
        f"row within distance {exact(g.B)} of it.",
        "",
        *([] if c.decisions else [DELTA, ""]),
        "People who are farther apart may be told apart: that is what targeting needs. As classic "
        f"differential privacy (any two rows), {_classic(c)}.",
        "",
    ]


def _same_side(c: Certificate) -> str:
    """Between which rows nothing is told. Where cuts are found on the way, that is known only afterwards."""
    if len(c.decisions) > 1:
        return (
            "Between two rows that are on the same sides of all cuts that the person was held against, this "
            "release tells nothing."
        )
    return (
        "Between two rows on the same side of the cut that the person was held against, this release tells "
        "nothing."
    )


def _classic(c: Certificate) -> str:
    exact, switched = c.classic.exact, c.classic.switch_lemma
    by_noise = (
        "no finite ε holds at this δ" if exact is None else f"its own law gives ε = {up(exact.epsilon, 4)}"
    )
    by_lemma = (
        "the switch lemma gives nothing"
        if switched is None
        else f"the switch lemma gives ε = {up(switched.epsilon, 4)}, δ = {up(switched.delta)}"
    )
    delta = "" if exact is None else f" at δ = {up(exact.delta)}"
    return f"{by_noise}{delta}; {by_lemma}"


def _scores(c: Certificate) -> list[str]:
    """The weights of each score: what these make of the columns only the data holder can measure."""
    if c.decisions:
        return _decisions(c)
    if not c.scores:
        return []
    weights = [np.array(row, dtype=float) for row in c.mechanism.law["weights"]]
    return [
        "## What the scores tell",
        "",
        *(f"- **{name}**: {_weights(c.features, w)}" for name, w in zip(c.scores, weights, strict=True)),
        "",
        "These are weights on columns as they were scaled, the largest first; all are in the JSON "
        "certificate. How much of a score a column makes up depends on the people, and is not told here.",
        "",
    ]


def _decisions(c: Certificate) -> list[str]:
    """What was decided, and how often an answer is right."""
    law = law_of(c.mechanism.law).decision
    if law is None:
        return []
    right = f"{1 - float(law.chance_of_error(np.zeros(1, np.int64))[0]):.1%}"
    lines = ["## What was decided", "", *(f"- **{one.name}**: {_decision(c, place, law)}"
        for place, one in enumerate(c.decisions)), ""]  # fmt: skip
    lines.append(
        f"A drawn answer is the true one with probability {right}"
        + ("" if law.cells is None else " next to the cut, and more often the farther a score is from it")
        + ". It serves this decision, once: it tells no order among people, and lots settle what is left of "
        "a quota."
    )
    return [*lines, ""]


def _decision(c: Certificate, place: int, law: DecisionLaw) -> str:
    asked, told = c.decisions[place], describe_decision(c.decisions[place]).partition(": ")[2]
    cuts = c.cuts[place] if place < len(c.cuts) else ()
    if asked.cut is not None or not cuts:
        return f"{told}."
    question = questions_of(c, law)[place]
    first, last = (question.in_own_units(cuts[at]) for at in (0, -1))
    return (
        f"{told}. The first {FIRST_BATCH} people or more were held against {first:.6g}, the last against "
        f"{last:.6g}."
    )


def _weights(features: tuple[str, ...], weights: Floats) -> str:
    """The largest weights, and how many more there are."""
    largest = np.argsort(-np.abs(weights), kind="stable")[:_MOST_WEIGHTS]
    shown = ", ".join(f"{weights[j]:.3g} × {features[j]}" for j in largest)
    more = len(features) - len(largest)
    return f"{shown} and {more:,} more" if more else shown


def _distances(c: Certificate) -> list[str]:
    if c.decisions and c.guarantee.B == CLASSIC:  # the same at every distance
        best = percent_up(max(at.best_guess for at in c.distances))
        return [
            f"Which of two rows with different answers a person has, the best guess tells in {best}, by "
            "somebody who knows all other rows; a coin is right in 50%.",
            "",
        ]
    rows = [
        (
            exact(at.distance) + (" (B)" if at.distance == c.guarantee.B else ""),
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
    ]


def _within(c: Certificate) -> list[str]:
    """What distance B means for columns that are no plain numbers."""
    if not c.kinds or c.scales.source == "none":
        return []
    lines = (f"- {line}" for line in c.encoding.within(c.features, c.guarantee.B))
    return [
        f"### What is within B = {exact(c.guarantee.B)}",
        "",
        "Which values are within B of each other:",
        "",
        *lines,
        "",
    ]


def _conditions(c: Certificate) -> list[str]:
    return ["## Conditions", "", *(f"- {condition}" for condition in c.conditions), ""]


def _made(c: Certificate) -> list[str]:
    m = c.mechanism
    lines = ["## How it was made", "", f"- Mechanism: {m.name}"]
    if m.deviation_per_column is not None and m.noise_length is not None:
        law, of = (m.law["noise"], "score") if c.scores else (m.law, "column")
        numbers = ", ".join(f"{k} = {v}" for k, v in law.items() if k != "family")
        lines.append(
            f"- Noise: deviation {m.deviation_per_column:.4g} per {of}, typical length {m.noise_length:.3g} "
            f"on a row (rows have length at most 1); {law['family']}: {numbers}"
        )
    lines.append(
        f"- Column scales: {_ORIGINS[c.scales.source]}"
        + ("" if c.scales.reason is None else f": “{c.scales.reason}” (the data holder's words)")
    )
    if c.scales.spent is not None:
        spent = c.scales.spent
        lines.append(
            f"- Paid for the scales (included above): ε = {up(spent.epsilon, 6)}, δ = {up(spent.delta, 2)}"
        )
    lines.append("")
    rows = [(n, f"{s.center:.6g}", f"{s.scale:.6g}") for n, s in c.scales.values.items()]
    if rows:
        lines += [*_table(("protected column", "center", "scale"), rows[:50]), ""]
    if len(rows) > 50:
        lines += [f"and {len(rows) - 50} more, in the JSON certificate.", ""]
    if c.public:
        lines += ["**Not protected**, since the data holder declared them public:", ""]
        lines += [*_table(("column", "the data holder's reason"), list(c.public.items())), ""]
    return lines


def _proof(c: Certificate) -> list[str]:
    asked = f"- Request {c.request.sha256}" + (
        "" if c.request.signer is None else f", signed with key {fingerprint_of(c.request.signer)}"
    )
    lines = [
        "## Proof",
        "",
        f"- Release {c.release}",
        f"- SHA-256 {c.output.sha256}",
        asked,
        f"- Desk {c.desk.id}, version {c.desk.policy} of its policy",
        f"- Charged: entry {c.ledger.number} of ledger {c.ledger.ledger_id}, hash {c.ledger.hash}",
    ]
    if c.signature is not None:
        lines.append(
            f"- Signed with Ed25519 key {fingerprint_of(c.signature.key)}: compare it with the data holder's"
        )
        if c.signature.succession:
            older = ", ".join(fingerprint_of(step.older) for step in c.signature.succession)
            lines.append(f"- That key follows {older}, each on the word of the one before it")
    lines.append("- `targetdp verify` checks all of this against the released file.")
    return lines


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(heads)} |",
        f"|{'|'.join('---' if i == 0 else '---:' for i in range(len(heads)))}|",
        *(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows),
    ]


def page_html(certificate: Certificate) -> str:
    """The beginning of the page, for a notebook."""
    g = certificate.guarantee
    return (
        f"<p><b>{certificate.rows:,} rows</b>, {escape(_columns(certificate))}: (B = {exact(g.B)}, "
        f"ε = {up(g.epsilon, 6)}, δ = {up(g.delta)})-targeted differential privacy, on "
        f"{len(certificate.conditions)} conditions</p><ul>"
        + "".join(f"<li>{escape(condition)}</li>" for condition in certificate.conditions)
        + "</ul>"
    )
