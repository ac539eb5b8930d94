"""`targetdp allocate`: from a release of scores or decisions to the list of a program."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from targetdp.cli._console import (
    Bar,
    PublicKey,
    emit,
    fetches,
    must_be_a_table,
    must_be_free,
    must_be_no_input,
    path_or_address,
    save_table,
    tell,
    warn,
)
from targetdp.cli._targeting._sample import TranslatedIds, read_sample


@fetches("release", "sample")
def allocate(
    release: Annotated[Path, typer.Argument(help="private decisions, or scores", parser=path_or_address)],
    sample: Annotated[
        Path | None,
        typer.Argument(
            help="what was learned from: a private sample, or rows of people who agreed",
            parser=path_or_address,
        ),
    ] = None,
    labels: Annotated[Path | None, typer.Argument(help="your labels, as targetdp learn took them")] = None,
    *,
    program: Annotated[Path, typer.Option(help="program file: kind, target and, for aid, quota")],
    output: Annotated[
        Path, typer.Option("--out", help="list to write, *.csv or *.parquet: id, chance or answer, decision")
    ],
    decision: Annotated[
        str | None, typer.Option(help="which decision of the release, if there are several")
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(help="people whose truth is known, to test decisions on: id, and score or answer"),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="the model's file, where one decides and people of SAMPLE agreed")
    ] = None,
    id: Annotated[  # noqa: A002
        str | None,
        typer.Option(help="id column of LABELS or of --known; default: the program's, or the release's"),
    ] = None,
    ids: TranslatedIds = None,
    certificate: Annotated[
        Path | None, typer.Option(help="that of RELEASE; default: RELEASE.certificate.json")
    ] = None,
    sample_certificate: Annotated[
        Path | None, typer.Option(help="the sample's certificate, or record; default: beside SAMPLE")
    ] = None,
    public_key: PublicKey = None,
    seed: Annotated[int, typer.Option(help="of the lots among people who are equal at the cut")] = 0,
    force: Annotated[bool, typer.Option(help="replace a list that exists")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress and no words")] = False,
) -> None:
    """Decide about everybody: by drawn decisions or scores, and people of the sample by their own row.

    Exactly the quota, or everybody above the threshold. Nobody's own label counts. Drawn decisions of people
    who agreed are held against what they should have been.
    """
    import numpy as np

    from targetdp._core import check
    from targetdp.programs import read_decision_rule
    from targetdp.release import certificate_path, read_certificate
    from targetdp.targeting import read_scores

    check.integer("seed", seed, at_least=0)
    must_be_free("out", output, force=force)
    must_be_a_table(output)
    must_be_no_input(output, release, sample, labels, program, ids, known)
    if (sample is None) != (labels is None) or (sample is None and sample_certificate is not None):
        raise ValueError("SAMPLE and LABELS belong together: give both, or none of them")
    settings = read_decision_rule(program)
    proof = read_certificate(certificate or certificate_path(release))
    # With the release's id: whoever is unlucky in one list would be so in every list of the same people.
    rng = np.random.default_rng([seed, *proof.release.encode()])
    with Bar(quiet=quiet) as bar:
        how: dict[str, Any] = {"certificate": certificate, "public_key": public_key, "progress": bar}
        found, scores = None, None
        if not proof.decisions:  # what a table holds is told before it is joined with another
            scores = read_scores(release, **how)
        if sample is not None and labels is not None:
            found = read_sample(
                sample, labels, settings, id_column=id, ids=ids, proof=sample_certificate,
                public_key=public_key, progress=bar,
            )  # fmt: skip
        if scores is None:
            known_by = {"id_column": id, "ids": ids}
            made = _by_answers(release, settings, rng, decision, (known, known_by), (found, model), how)
        else:
            wrong = {"--decision": decision, "--known": known, "--model": model}
            if given := [name for name, value in wrong.items() if value is not None]:
                raise ValueError(f"{', '.join(given)}: for a release of decisions; leave it out")
            if found is None:
                raise ValueError("scores need SAMPLE and LABELS: those that they were learned from")
            bar.phase("deciding", None)
            made = _by_scores(scores, found, rng)
    save_table(made.table, output, force=force)
    if as_json:
        emit(made.record | {"seed": seed, "notes": [*made.notes, *made.warnings]})
    if not quiet:
        for line in (*made.notes, *made.words, f"lots were drawn with seed {seed}; the list → {output}"):
            tell(line)
        if made.pseudonyms:
            tell(
                "people have pseudonyms: the data holder translates the list of those who get "
                f"{settings.given} back (targetdp ids --back)"
            )
    warn(made.warnings)


@dataclass(frozen=True)
class _Allocated:
    """A list, and what is said of it."""

    table: Any
    record: dict[str, Any]
    words: tuple[str, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    pseudonyms: bool


def _by_scores(scores: Any, sample: Any, rng: Any) -> _Allocated:
    from targetdp.targeting import allocate as allocate_by

    decisions = allocate_by(scores, sample, rng)
    record, words = decisions.record(), decisions.program.words
    right, missed = record["chosen_rightly_by_the_chances"], record["missed_by_the_chances"]
    said = (
        f"{words.article} for {record['chosen']:,} of {record['people']:,} people ({record['by_score']:,} "
        f"decided by their score, {record['by_row_of_the_sample']:,} by their row of the sample)",
        f"as far as the chances tell, {words.outcome.format(right=right, missed=missed)}",
    )
    return _Allocated(
        decisions.table(), record, said, sample.notes, decisions.notes, scores.certificate.pseudonyms
    )


def _by_answers(
    path: Path, settings: Any, rng: Any, decision: str | None, known: Any, sample: Any, how: Any
) -> _Allocated:
    from targetdp.targeting import (
        decide_by_row,
        known_people_check,
        list_people,
        read_decisions,
        read_known,
    )

    answers = read_decisions(path, decision, **how)
    (table, by), (people, model), tests = known, sample, []
    found = None if people is None else decide_by_row(people, answers, rng, model)
    if found is not None and found.known is not None:
        tests.append(known_people_check(answers, found.known))
    if table is not None:
        tests.append(known_people_check(answers, read_known(table, answers, progress=how["progress"], **by)))
    elif by["ids"] is not None and people is None:
        raise ValueError("--ids translates the ids of --known, or of LABELS: leave it out")
    warnings = tuple(warning for test in tests for warning in test.warnings())
    made = list_people(answers, settings, rng, None if found is None else found.own)
    record = made.record() | {"program": settings.kind, "known": [test.record() for test in tests]}
    said = (*made.words, *(line for test in tests for line in (test.words, test.meaning)))
    notes = () if people is None else (*people.notes, *made.notes)
    return _Allocated(made.table(), record, said, notes, warnings, answers.certificate.pseudonyms)
