"""What the page says at first sight: the question, why a setting is recommended, five rows, and a finding."""

import math
from collections.abc import Callable
from string import Formatter

from targetdp._core import percent_up
from targetdp.report._page._limits import near_in_words
from targetdp.report._page._words import Figures, Subject, group_name, points_up, signed
from targetdp.tradeoff import (
    CLASSIC,
    STATUS_QUO,
    Cell,
    Comparison,
    Estimate,
    Exposure,
    Recommendation,
    SettingFigures,
    shown,
)


def in_millions(value: float) -> str:
    """A count of people as somebody would say it."""
    return f"{value / 1e6:.3g} million" if value >= 1e6 else shown(value)


def of_100(share: float) -> str:
    """A share of people who are missed, or of guesses that are right, rounded up."""
    return f"{percent_up(share).removesuffix('%').removesuffix('.0')} of 100"


def exposed(share: float) -> str:
    """People of 1,000 who are exposed, rounded up: protection of 0.7719 exposes 229."""
    return f"{math.ceil(share * 1000 - 1e-9):,} of 1,000"


def today_in_words(subject: Subject, today: Figures, rows: int, population: float) -> str:
    """The program as it is, in a sentence, as far as its figures are known; and who stands for everybody."""

    def told(metric: str) -> str | None:
        value = today[metric].mean if metric in today else None
        if value is None:
            return None
        if metric.endswith("_rate"):
            return of_100(value)
        return subject.amount(value) if subject.is_money(metric) else in_millions(value)

    sentence = subject.objective.today
    wanted = {name: told(name) for _, name, _, _ in Formatter().parse(sentence) if name}
    sample = "" if rows == round(population) else f" All figures: from {rows:,} people."
    return "" if None in wanted.values() else sentence.format(**wanted) + sample


def question(subject: Subject, population: float) -> str:
    """What the page asks."""
    many = f"{in_millions(population)} {subject.counted}"
    return f"How much may protecting {many} cost {subject.objective.payer}?"


def flags(comparison: Comparison, subject: Subject) -> list[str]:
    """What must be known before anything is read."""
    advice = comparison.recommendation
    found = []
    if comparison.run["source"] == "synthetic":
        found.append("Invented people: not an estimate about a real place")
    reasons = [one for one in advice.first_look if "invented" not in one]
    if reasons:
        short = "; ".join(one.partition(", where")[0] for one in reasons)
        found.append(f"Quick look, nothing to decide by: {short}")
    if near := near_in_words(subject, comparison):
        found.append(f"Near miss: {near}")
    if advice.on_condition:
        found.append("A sample that agreed, and would have no promise, could do better: see step 4")
    elif any(one.cell.technology.condition for one in comparison.settings):
        found.append("Compared with a sample that agreed: those people would have no promise")
    return found


def why(comparison: Comparison, subject: Subject) -> str:
    """Why the recommended setting is; or that none is."""
    advice = comparison.recommendation
    if advice.chosen is None:
        if not any(one.choosable for one in comparison.settings):
            return (
                "This sweep has no setting that could be released with a guarantee: today's table and "
                "k-anonymity promise nothing. Run the sweep again with a mechanism that adds noise."
            )
        return f"Nothing is recommended: no setting meets the limits. {advice.reason}"
    name = next((one.name for one in comparison.options if one.recommended), "The chosen setting")
    begin = "Under default limits, which nobody has set (step 1), " if comparison.defaults else ""
    return f"{begin}{name} {advised_in_words(advice)}: {_because(advice, best_in_words(subject))}"


def advised_in_words(advice: Recommendation) -> str:
    """That a setting is recommended, or would be if there were something to decide by."""
    return "would be recommended" if advice.first_look else "is recommended"


def best_in_words(subject: Subject) -> str:
    """What the recommended setting has that others have not."""
    if subject.objective.people is not None:
        whom, verb = subject.objective.people
        return f"the fewest {whom} are {verb} with it"
    if subject.objective.is_money:
        return f"it leaves {subject.objective.payer} the largest {subject.objective.metric}"
    return "it serves the program best"


def _because(advice: Recommendation, best: str) -> str:
    if advice.fitting == 1:
        return "it is the only setting that meets the limits."
    if advice.equals > 1:
        return (
            f"of the {advice.fitting} settings that meet the limits {advice.equals} serve the program "
            "equally well up to chance; of these it leaves least to anybody's best guess, then to an insider."
        )
    return f"of the {advice.fitting} settings that meet the limits, {best}."


def row_headings(subject: Subject) -> list[tuple[str, str]]:
    """What the rows of the first screen are about."""
    objective, rate = subject.objective, subject.objective.rate
    if objective.people is not None:
        whom, verb = objective.people
        first = (f"{whom[:1].upper()}{whom[1:]} {verb}", "and how many more")
    else:
        first = (
            objective.subject or subject.axis[:1].upper() + subject.axis[1:],
            "and its change against today",
        )
    return [
        first,
        ("A stranger singles out", "gets the table without ids"),
        ("An insider guesses a hidden value", "knows whose row it is, and all else of it"),
        ("Which of two people is it?", "the most that anybody can tell; a coin: 50 of 100"),
        (
            "The worst-hit group",
            "where the share rises most" if rate is None else f"{rate.words}: the largest rise",
        ),
    ]


Said = tuple[str, tuple[str, ...]]
"""What a field of the first screen says: in large letters, and in small ones below, a line each; an interval,
in parentheses, stands in the line before it."""

UNKNOWN: Said = ("–", ("not measured",))


def what_it_costs(subject: Subject, figures: Figures, *, is_today: bool) -> Said:
    """People who are missed, or money."""
    objective, value = subject.objective, figures.get(subject.objective.metric, Estimate())
    if value.mean is None:
        return UNKNOWN
    if objective.people is None or objective.rate is None:
        if is_today:
            return subject.in_words(value.mean), ()
        change = figures.get(f"extra_{objective.metric}", Estimate())
        return subject.in_words(value.mean), () if change.mean is None else (
            subject.changed(objective.metric, change.mean), *_between(change, subject.changed_amount),
        )  # fmt: skip
    share = figures.get(objective.rate.metric, Estimate()).mean
    more = figures.get(subject.metric, Estimate())
    said = [f"{in_millions(value.mean)} {subject.counted}"] if is_today else []
    if not is_today and more.mean is not None:
        said += [signed(more.mean), *_between(more, signed)]
    # What goes to others, where it is known what a transfer costs.
    paid = [(one, figures[one].mean) for one in objective.money[:1] if one in figures]
    said += [f"{subject.amount(amount)} {one}" for one, amount in paid if amount is not None]
    return "–" if share is None else of_100(share), tuple(said)


def _between(value: Estimate, told: Callable[[float], str]) -> tuple[str, ...]:
    if value.low is None or value.high is None or value.low == value.high:
        return ()
    return (f"({told(value.low)} to {told(value.high)})".replace("-", "−"),)


def what_a_stranger_gets(one: SettingFigures) -> Said:
    """People who are singled out."""
    share = one.exposure.singled_out
    return UNKNOWN if share is None else (exposed(share), _whose(one))


def _whose(one: SettingFigures) -> tuple[str, ...]:
    """Of scores and decisions the worse counts, and of an agreed sample nothing is told."""
    if one.cell.technology.condition:
        return ("outside the sample only",)
    return ("in a sample as large as all, or outside it",) if one.cell.technology.about_attacks else ()


def what_an_insider_gets(exposure: Exposure) -> Said:
    """Guesses at a hidden value that are right, in the column that is given away most."""
    if exposure.gained is None:
        return UNKNOWN
    if exposure.gained >= 1:
        return exposed(1.0), ()
    about = (f"column {exposure.column}",) if exposure.column else ()
    who = ("by a stranger",) if exposure.by_stranger else ()
    if exposure.learned is None or exposure.anyway is None:
        return exposed(exposure.gained), ("guesses fewer fail than without it", *about, *who)
    base = "outside the release" if exposure.by_stranger else "without the release"
    most = exposure.learned_at_most
    more = (f"any column: {exposed(most).removesuffix(' of 1,000')} at most",) if most is not None and (
        most > exposure.learned + 1e-9
    ) else ()  # fmt: skip
    return exposed(exposure.learned), (
        f"{base}: {math.floor(exposure.anyway * 1000 + 1e-9):,}", *about, *who, *more,
    )  # fmt: skip


def what_is_guessed(exposure: Exposure, cell: Cell, alone: float | None) -> Said:
    """How often anybody's best guess is right, of two rows that are alike, and of any two.

    ``alone`` is the share of people who have nobody alike.
    """
    B, whom = cell.B, cell.technology.told_apart
    near, far = exposure.best_guess, exposure.best_guess_at_2
    if near is None or far is None:
        return UNKNOWN
    if B is None:
        return of_100(far), ("nothing is promised",)
    if B >= CLASSIC:
        return of_100(far), (f"any two people {whom}".rstrip(),)
    nobody = () if alone is None else (f"{percent_up(alone)} have nobody alike",)
    alike = f"if they are alike{f', {whom}' * bool(whom)}; else {of_100(far).removesuffix(' of 100')}"
    return of_100(near), (alike, *nobody)


def who_is_hit(comparison: Comparison, subject: Subject, one: SettingFigures) -> Said:
    """Where the share of those who are missed rises the most, and the group of which most are."""
    figures, is_today = one.figures, one.cell.name == STATUS_QUO
    worst, rise = figures.get("worst_group_rate"), figures.get("worst_group_rise")
    if subject.objective.rate is None or worst is None or worst.mean is None:
        return "–", ("no groups, or too few people in them",)
    few = [group_name(group.setting) for group in comparison.groups.too_few]
    left_out = (f"too few to tell: {', '.join(few[:3])}{', …' * (len(few) > 3)}",) if few else ()
    where = group_name(worst.strongest)
    most = f"{of_100(worst.mean)} in {where}"
    if is_today:
        return of_100(worst.mean), (f"in {where}, today's worst", *left_out)
    if rise is None or rise.mean is None:
        return of_100(worst.mean), (f"in {where}", *left_out)
    if rise.mean <= 0:
        return "no rise", (f"most are in {where}: {of_100(worst.mean)}", *left_out)
    there = group_name(rise.strongest)
    more = _more_there(comparison, subject, one, rise.strongest)
    return f"{points_up(rise.mean)} points", (f"in {there}{more}", f"the most: {most}", *left_out)


def _more_there(comparison: Comparison, subject: Subject, one: SettingFigures, setting: str | None) -> str:
    """How much a setting costs the group whose share rises the most."""
    group = next((group for group in comparison.groups.each if group.setting == setting), None)
    metric = subject.by_group[0][0]
    change = Estimate() if group is None else comparison.groups.change(one.cell.name, metric, group)
    if change.mean is None:
        return ""
    unit = "" if subject.is_money(metric) else f" {subject.counted}"
    return f": {subject.changed(metric, change.mean).replace('-', '−')}{unit}"


# What the chart shows, in a sentence.


def finding(comparison: Comparison, subject: Subject) -> str:
    """What each kind of release costs the program where attacks reached no more than at one of the options.

    Of the options the one is taken at which most kinds can be compared, and of these the safest.
    """
    found: list[tuple[int, float, dict[str, float]]] = []
    for option in comparison.options:
        most = _of(comparison, option.cell).exposure.exposed
        if most is not None:
            best = _best_of_each(comparison, subject, most)
            found.append((len(best), -most, best))
    if not found:
        return "What each setting costs, and what the attacks that we ran reached"
    _, safest, best = max(found, key=lambda each: each[:2])
    in_order = sorted(best, key=lambda form: best[form], reverse=subject.better == "largest")
    told = [_told(subject, form, best[form], is_first=i == 0) for i, form in enumerate(in_order)]
    return f"Where the attacks that we ran reached no more than {exposed(-safest)}, {', '.join(told)}"


def _of(comparison: Comparison, cell: str) -> SettingFigures:
    return next(one for one in comparison.settings if one.cell.name == cell)


def _best_of_each(comparison: Comparison, subject: Subject, most: float) -> dict[str, float]:
    """By kind of release, the figure of the setting that serves best and exposes no more people."""
    found: dict[str, float] = {}
    better = min if subject.better == "smallest" else max
    for one in comparison.settings:
        value = one.figures[subject.metric].mean if subject.metric in one.figures else None
        is_as_safe = one.exposure.exposed is not None and one.exposure.exposed <= most + 1e-12
        if one.choosable and value is not None and is_as_safe:
            form = one.cell.technology.form
            found[form] = better(found.get(form, value), value)
    return found


def _told(subject: Subject, form: str, value: float, *, is_first: bool) -> str:
    kind = form if form == "rows" else f"a {form}"
    if subject.objective.people is None:
        amount = subject.in_words(value)
        what = f"a {subject.objective.metric}" if subject.objective.is_money else subject.axis
        leaves = f"{kind} {'leave' if form == 'rows' else 'leaves'} {what} of {amount}"
        return leaves if is_first else f"{kind} {amount}"
    whom, _ = subject.objective.people
    if not is_first:
        return f"{kind} {signed(value)}"
    direction = "more" if value >= 0 else "fewer"
    return f"{kind} {'miss' if form == 'rows' else 'misses'} {shown(abs(value))} {direction} {whom}"
