"""The release job: from a table to a certified, charged, private one, or to nothing at all.

One order for files, frames and Spark: prepare, look, charge, write, certify, publish, settle.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from targetdp._core import Progress, Silent, check
from targetdp.normalization import ColumnScales
from targetdp.release._certificate._certificate import Certificate, make_certificate
from targetdp.release._certificate._page import page_html
from targetdp.release._certificate._parts import LedgerMark
from targetdp.release._certificate._witnesses import estimated_by, witnesses
from targetdp.release._desk import Desk
from targetdp.release._draws import Draws, erase
from targetdp.release._engine._base import (
    NOTHING_INSPECTED,
    Engine,
    ReleaseJob,
    fingerprint_of,
    output_schema,
)
from targetdp.release._engine._tables import found_for, opened_table
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._entries import Head
from targetdp.release._ledger._journal import sealed, settle_earlier
from targetdp.release._look._importance import people_in_sample
from targetdp.release._look._look import Look, look
from targetdp.release._model._runner import publication_moment
from targetdp.release._output import PublishedButUnsettledError, Publisher, open_output, output_dialect
from targetdp.release._prepare import Prepared, prepare
from targetdp.release._remote._in_store import fetched
from targetdp.release._request import Request
from targetdp.release._run._already import already_released
from targetdp.release._run._ended import end_without_publishing, on_record
from targetdp.release._run._reservation import reserve
from targetdp.release._staging import OutputExistsError
from targetdp.release._terms import ReleaseTerms
from targetdp.release._trust._approval import write_proposal
from targetdp.table import Source, TableError

Confirm = Callable[[Look], None]
"""Is shown everything before anything is charged, and raises to stop."""


@dataclass(frozen=True)
class Released:
    """A finished release: a path of files, or a frame of the kind that was given; ``place`` says where it is.

    ``look``, ``clipped`` and ``without_answer`` (of how many rows a model made nothing) are for the data
    holder only.
    """

    path: Path | None
    frame: Any = field(repr=False)
    certificate: Certificate
    look: Look = field(repr=False)
    clipped: int
    without_answer: int = 0
    place: str = ""

    def _repr_html_(self) -> str:
        return page_html(self.certificate)


def check_release(
    table: Any, *, desk: Desk | str | Path | None = None, request: Request, engine: str | None = None,
    new_people: str | None = None, models: Sequence[str | Path] = (), progress: Progress | None = None,
) -> Look:  # fmt: skip
    """Look at everything that a release would be, and at all that keeps it from being made. Nothing changes.

    Args:
        table: As for `privatize`.
        desk: As for `privatize`.
        request: What is asked for.
        engine: As for `privatize`.
        new_people: As for `privatize`.
        models: As for `privatize`.
        progress: Is told how far reading is.

    Returns:
        What would go out, at what price, and all problems.

    Example:
        >>> check_release("features.parquet", request=Request(B=0.25, epsilon=4)).problems  # doctest: +SKIP
        ()
    """
    check.instance("request", request, Request)
    opened = _opened(desk)
    table = found_for(request, table, opened)
    with opened.ledger() as ledger:
        ledger.must_be_newest(witnesses(opened, ledger))
        with opened_table(table, opened, engine, progress) as source:
            return _look(opened, ledger, request, source, new_people, models, progress or Silent())


def privatize(
    table: Any,
    output: str | Path | None = None,
    *,
    desk: Desk | str | Path | None = None,
    request: Request,
    engine: str | None = None,
    new_people: str | None = None,
    models: Sequence[str | Path] = (),
    confirm: Confirm | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Released:
    """Release a private version of a table.

    Args:
        table: A path (Parquet or CSV: a file, a folder of parts, or a pattern such as ``part-*.csv``),
            several, or an address (``s3://…``), a `targetdp.table.Database`, a pandas, polars or pyarrow
            table, a lazy one of polars or DuckDB, or a Spark frame. A CSV is read as [csv] of the policy
            says.
        output: Where the release goes: a file (``.parquet``, ``.csv``) or a folder, also in a store. None,
            for a table in memory, gives back a table of the same kind (for DuckDB's, one of pyarrow).
        desk: The data holder's desk, or its folder; by default it is found as git finds its folder.
        request: What is asked for.
        engine: ``"local"`` or ``"spark"``; by default that of the table.
        new_people: Why people whom the ledger does not know, or another desk does, are other people: it goes
            on record.
        models: Files of the models (ONNX) that the request names by their SHA-256.
        confirm: Is shown a `Look` before anything is charged, and raises to stop.
        force: Whether an output that is a release is replaced.
        progress: Is told how far the work is.

    Returns:
        The release, with its certificate.

    Raises:
        Refused: Something keeps the release from being made; the message says all of it. `NothingLeft` if
            that is the limit, or the plan, alone.
        AlreadyReleased: The output is this very release, whole: the same call again does nothing.
        NotYetError: The table is not there yet, or another run is at work: try again later.
        UntoldScalesError: Private scales were drawn, and a column has none that could be used. The release
            stays charged, and the same call repeats this.
        ValueError: The table, the desk or the output cannot be used.
        PublishedButUnsettledError: It is published, and the ledger could not be told.

    Guarantees: what the certificate says. The ledger is charged before any noise is drawn. Under the
    output's name there is the whole release with its certificate, or what was there before. A run that ends
    before the first draw costs nothing; one that ends after it is finished by the same call, with the same
    noise, at no further cost.
    Edges: a Spark frame's release is begun anew, and charged anew, when it ended after rows, or scores, got
    noise; decisions are drawn when all people are scored, and go on as anywhere.

    Example:
        >>> asked = Request(B=0.25, epsilon=4)
        >>> privatize("in.parquet", "out.parquet", request=asked).certificate.rows  # doctest: +SKIP
        60
    """
    check.instance("request", request, Request)
    progress, opened = progress or Silent(), _opened(desk)
    table, taken = found_for(request, table, opened), None
    csv = output_dialect(opened.policy, table, request.released)
    with (
        on_record(opened, request),
        opened.ledger() as ledger,
        open_output(table, output, opened.path, force=force, csv=csv) as publisher,
    ):
        try:
            publisher.begin(lambda journal: settle_earlier(opened, ledger, journal))
        except OutputExistsError as error:
            taken = error
        near = () if publisher.path is None else (publisher.path.parent,)
        told = witnesses(opened, ledger, *near)
        ledger.must_be_newest(told)
        done = [one for one in told if one.release and not opened.is_at_work(one.release)]
        for settled in ledger.settle_what_is_published(done):
            erase(opened.drafts / settled)
        opened.free_what_was_not_drawn(ledger)
        if taken is not None:
            told_apart = fingerprint_of(table, opened.pseudonym_key) if isinstance(table, Source) else None
            place = str(publisher.path or publisher.place)
            try:
                with fetched(place) as there:
                    raise already_released(opened, ledger, request, told_apart, there, place) from taken
            except TableError:  # a certificate in a store, without its table
                raise taken from None
        with opened_table(table, opened, engine, progress) as source:
            begun = monotonic()
            seen = _look(opened, ledger, request, source, new_people, models, progress)
            looked = monotonic() - begun
            if seen.problems:
                write_proposal(opened, ledger.history)
                raise seen.refusal
            if confirm is not None:
                confirm(seen)
            return _release(opened, ledger, source, seen, publisher, progress, looked)


def _opened(desk: Desk | str | Path | None) -> Desk:
    """The desk as it is now: its policy may have changed since somebody opened it."""
    return Desk.open(desk.path if isinstance(desk, Desk) else desk)


def _look(
    desk: Desk, ledger: Ledger, request: Request, source: Engine, new_people: str | None,
    models: Sequence[str | Path], progress: Progress,
) -> Look:  # fmt: skip
    """Everything that is known before anything is drawn."""
    prepared = prepare(desk, ledger, request, source.columns, source.place, source.name, new_people, models)
    if prepared.names.column not in source.columns or not prepared.features:
        return Look(prepared, NOTHING_INSPECTED, None, None, prepared.problems, read_as=source.read_as)
    inspection = source.inspect(prepared.recipe(), progress)
    return look(prepared, source, inspection, ledger)


def _release(
    desk: Desk, ledger: Ledger, source: Engine, seen: Look, publisher: Publisher, progress: Progress,
    looked: float,
) -> Released:  # fmt: skip
    """Charge, write, certify, publish, settle: in this order."""
    # The look has run models on people's rows, too; how long somebody thought about it tells nothing of them.
    begun = monotonic() - looked
    prepared, terms, inspection = seen.prepared, seen.terms, seen.inspection
    if terms is None:
        raise RuntimeError("a release without terms: please report this")
    recipe = prepared.recipe()
    schema = output_schema(recipe, source.types(recipe.public))
    publisher.accept(schema, inspection.formulas)
    # Somebody may have thought for an hour: what was looked at must still be so.
    source.check_unchanged()
    desk.check_unchanged()
    if not desk.was_known:  # before anything goes out: other desks must know whom this one knows
        desk.remember()
    desk.scales.keep_people()
    told_apart = source.fingerprint(desk.pseudonym_key)
    reservation = reserve(desk, ledger, seen, terms, publisher.place, told_apart)
    release, draws = reservation.release, reservation.draws
    try:
        scales = _scales(seen, terms, source, draws, progress)
        with prepared.models.running(prepared.request.decisions) as run, publisher.sink(schema) as sink:
            models = {name: runner.scores for name, runner in run.items()}
            job = ReleaseJob(release, recipe, scales, terms.law, inspection, draws, publisher.folder, models)
            wrote = source.write(job, sink, schema, progress)
            without_answer = sum(runner.without_answer for runner in run.values())
            output = publisher.written(sink)
        source.check_unchanged()
        if models:
            _wait(prepared, inspection.rows, begun, progress)
        certificate = make_certificate(
            release, prepared, terms, scales, inspection.rows, wrote.cuts, output, _mark(reservation.head)
        ).signed(desk.key, ledger.reading.successions)
        estimated = estimated_by(certificate)
        journal = {"desk": desk.id, "release": release, "sha256": output.sha256, "scales": estimated}
        publisher.publish(certificate, sealed(journal, desk.key))
        ledger.settle(release, output.sha256, estimated)
        draws.erase()
        draws.close()
        desk.log("released", release=release, request=prepared.request.sha256, output=publisher.place)
    except BaseException as error:
        if publisher.published:
            draws.close()
            raise PublishedButUnsettledError(publisher.place, error) from error
        end_without_publishing(ledger, reservation, source, error)
        raise
    at = publisher.place if publisher.path is None else str(publisher.path)
    return Released(publisher.path, publisher.frame, certificate, seen, wrote.clipped, without_answer, at)


def _wait(prepared: Prepared, rows: int, begun: float, progress: Progress) -> None:
    """Wait until a moment that rows have no part in: how long a model works may tell of one of them."""
    scored = sum(
        rows + people_in_sample(rows, len(one.takes)) * (len(one.takes) + 1)
        for one in prepared.request.decisions
        if one.model is not None
    )
    taken = monotonic() - begun
    moment = publication_moment(scored, prepared.policy.models.microseconds, seconds_taken=taken)
    progress.phase("waiting, so that the time tells nothing of a model's rows", None)
    sleep(max(0.0, begun + moment - monotonic()))


def _scales(
    seen: Look, terms: ReleaseTerms, source: Engine, draws: Draws, progress: Progress
) -> ColumnScales | None:
    """The scales that are known, or drawn here, once: centers, then how far people are from them."""
    prepared, values = seen.prepared, seen.inspection.counts
    recipe, plan = prepared.recipe(), terms.scales
    if recipe.scales is not None or recipe.as_they_are:
        return recipe.scales
    if plan is None or values is None:
        raise RuntimeError("a release without scales: please report this")
    centers = plan.draw_centers(values, draws.for_scales("centers", values))
    distances = source.count(recipe, centers, progress)
    source.check_unchanged()
    if (distances.sum(axis=1) != plan.rows).any():
        raise ValueError(
            f"{source.place} had {plan.rows:,} rows at first, and not so many then: it changed meanwhile; "
            "try again when nobody writes to it"
        )
    drawn = draws.for_scales("scales", distances)
    scales = plan.draw_scales(centers, distances, drawn, prepared.estimated)
    return prepared.scales_with(ColumnScales(centers, scales, "private", plan.spent))


def _mark(head: Head) -> LedgerMark:
    return LedgerMark(ledger_id=head.ledger_id, number=head.number, hash=head.hash)
