"""A sample and scores in one ledger: two releases that may have somebody in common must add up there.

The ledger adds up releases of one population, but not those that are charged to different named parts. So
of any two releases that are tied by one sample (the sample itself, and all scores that name it), both must be
charged to one population, and to one part or at least one of them to none. The one exception is known from
the files: nobody is both in a sample and in scores that leave its people out. Whatever else different names
claim is the data holder's word, who is told what it is.
"""

from collections.abc import Sequence

from targetdp.release._certificate._certificate import Certificate
from targetdp.release._certificate._verify import verify_in_ledger
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._spending import ReleaseRow
from targetdp.release._settings import Settings

_MOST_NAMED = 8


def must_say_who_is_in_it(settings: Settings) -> None:
    """Whoever scores people must know who of them is in the release that the weights were learned from."""
    if settings.asked is None or settings.sample is not None or settings.no_sample:
        return
    learned_from = settings.asked.release
    if learned_from is not None:
        raise ValueError(
            f"the weights were learned from release {learned_from!r}: give that release (sample), so that "
            "its people are left out, or scored at the price of both (score_sample); or say that nobody in "
            "the table is in it (no_sample)"
        )
    if settings.part is not None:
        raise ValueError(
            f"part = {settings.part!r} says that nobody here is in another part, and the weights may be "
            "learned from one: give that release (sample), or say that nobody in the table is in it "
            "(no_sample); or leave out part, so that everything adds up"
        )


def must_have_it_as_it_is(ledger: Ledger, sample: Certificate) -> None:
    """A ledger that knows the sample, or that its certificate names, must have charged what that says."""
    named = sample.ledger is not None and sample.ledger.ledger_id == ledger.head().ledger_id
    if not named and all(row.release != sample.release for row in ledger.releases()):
        return
    wrong = [f"{c.what}: {c.detail}" for c in verify_in_ledger(sample, ledger.path) if c.holds is False]
    if wrong:
        raise ValueError(
            f"the ledger does not have the sample, release {sample.release!r}, as it is ({'; '.join(wrong)})"
        )


def must_count(ledger: Ledger, sample: Certificate) -> None:
    """Scores are about to build on a sample that can be read: no one may say any more that it never was."""
    row = next((row for row in ledger.releases() if row.release == sample.release), None)
    if row is not None and row.state != "published":
        ledger.settle(sample.release, sample.output.sha256)


def check_parts(
    settings: Settings, sample: Certificate | None, releases: Sequence[ReleaseRow]
) -> tuple[str, ...]:
    """Refuse to charge a release in a way that hides what somebody spends; warnings otherwise.

    ``releases`` are all that the ledger has, and ``sample`` is the release whose people are known.

    Guarantees: no two releases tied by this sample, with somebody in both, are charged apart.
    Does not guarantee: anything about releases that the sample has no tie to. That named parts share nobody,
    and populations neither, is the data holder's word.
    """
    if settings.population is None:
        return ()
    counted = [row for row in releases if row.counts]
    if sample is None:
        return (*_without_a_sample(settings, counted), *_on_your_word(settings, counted, None))
    for row in counted:
        apart = row.release == sample.release and not settings.score_sample
        if sample.release in _ties(row) and not apart and not _adds_up(row, settings):
            raise ValueError(
                f"somebody may be in these scores and in release {row.release!r}, which was charged to "
                f"population {row.population!r}, part {row.part!r}: the ledger would not add that up; charge "
                "the same population, and the same part or none"
            )
    own = next((row for row in counted if row.release == sample.release), None)
    found: tuple[str, ...] = ()
    if own is None:
        found = _not_in_the_ledger(settings, sample)
    elif settings.leaves_sample_out and _adds_up(own, settings):
        found = (
            "nobody is in both releases, but the ledger adds them up, since both are not charged to parts of "
            "different names: charge the sample to a part (such as --part sample) and the others to another",
        )
    return (*found, *_on_your_word(settings, counted, sample.release))


def _ties(row: ReleaseRow) -> set[str]:
    """The samples that a release is tied to: itself, and that whose people it leaves out or scores, too."""
    return {row.release, row.sample or row.release}


def _adds_up(row: ReleaseRow, settings: Settings) -> bool:
    """Whether the ledger composes a release with the one that is asked for."""
    return row.population == settings.population and (
        row.part == settings.part or None in {row.part, settings.part}
    )


def _not_in_the_ledger(settings: Settings, sample: Certificate) -> tuple[str, ...]:
    what = f"the sample, release {sample.release!r}, does not count in this ledger"
    if settings.score_sample:
        raise ValueError(
            f"{what}: it would not add up what its people spend; leave them out, or charge both releases to "
            "the ledger that has it"
        )
    return (f"{what}: what its people spent is not in its sum",)


def _on_your_word(settings: Settings, counted: Sequence[ReleaseRow], known: str | None) -> tuple[str, ...]:
    """What the name of a part claims that nobody checked: all but the release of people who are left out."""
    others = [
        row
        for row in counted
        if row.population == settings.population and row.release != known and not _adds_up(row, settings)
    ]
    if not others:
        return ()
    named = _listed([f"entry {row.entry} (part {row.part!r})" for row in others])
    return (
        f"part {settings.part!r} declares that nobody in this table is in these releases of the ledger: "
        f"{named}; nobody checks that, and whoever is spends more than the ledger says",
    )


def _without_a_sample(settings: Settings, counted: Sequence[ReleaseRow]) -> tuple[str, ...]:
    """Releases tied to the one that the weights name, and charged elsewhere: with that sample, refused."""
    learned_from = None if settings.asked is None else settings.asked.release
    tied = [row for row in counted if learned_from in _ties(row) and not _adds_up(row, settings)]
    if not tied:
        return ()
    named = _listed([f"entry {row.entry} (population {row.population!r}, part {row.part!r})" for row in tied])
    return (
        f"no_sample declares that nobody in this table is in release {learned_from!r}, from which the "
        f"weights were learned, nor in scores that name it: {named}; nobody checks that, and whoever is "
        "spends more than the ledger says; to have it checked, give that release (sample)",
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
