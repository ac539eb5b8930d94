"""`targetdp allocate`: who gets aid, or a loan, from released scores."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from targetdp.cli._console import Bar, emit, must_be_free, tell, warn


def allocate(
    scores: Annotated[Path, typer.Argument(help="private scores, as targetdp score released them")],
    sample: Annotated[Path, typer.Argument(help="the private sample that the weights were learned from")],
    labels: Annotated[Path, typer.Argument(help="your labels, as targetdp learn took them")],
    program: Annotated[
        Path, typer.Option(help="program file: kind, target, quota or threshold are used of it")
    ],
    output: Annotated[
        Path, typer.Option("--out", help="decisions to write, *.csv or *.parquet: id, chance, decision")
    ],
    id: Annotated[  # noqa: A002
        str | None, typer.Option(help="id column of LABELS; default: the program's, or the sample's")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="the scores' certificate; default: SCORES.certificate.json")
    ] = None,
    sample_certificate: Annotated[
        Path | None, typer.Option(help="the sample's certificate; default: SAMPLE.certificate.json")
    ] = None,
    public_key: Annotated[
        str | None, typer.Option(help="the data holder's public key, as `targetdp key` prints it")
    ] = None,
    seed: Annotated[int, typer.Option(help="of the draw among people with equal chances at the cut")] = 0,
    force: Annotated[bool, typer.Option(help="replace a file of decisions that exists")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress and no words")] = False,
) -> None:
    """Decide about everybody: by the score, or for people of the sample by their private row."""
    import numpy as np

    from targetdp._core import check
    from targetdp.programs import read_program_file
    from targetdp.targeting import allocate as allocate_by
    from targetdp.targeting import read_labelled, read_scores

    check.integer("seed", seed, at_least=0)
    must_be_free("out", output, force=force)
    kind = _format(output)
    if output.resolve() in {path.resolve() for path in (scores, sample, labels, program)}:
        raise ValueError(f"out = {output} is one of the inputs: choose another name")
    settings = read_program_file(program)
    with Bar(quiet=quiet) as bar:
        released = read_scores(scores, certificate, public_key, bar)
        found = read_labelled(
            sample, labels, settings, id_column=id, certificate=sample_certificate, public_key=public_key,
            progress=bar,
        )  # fmt: skip
        bar.phase("deciding", None)
        decisions = allocate_by(released, found, np.random.default_rng(seed))
    _save(decisions.table(), output, kind, force=force)
    record = _record(decisions)
    if as_json:
        emit(json.dumps(record | {"notes": [*found.notes, *decisions.notes]}, indent=2, ensure_ascii=False))
    if not quiet:
        for note in found.notes:
            tell(note)
        _tell(decisions.program.words, record, output)
    warn(decisions.notes)


def _record(decisions: Any) -> dict[str, Any]:
    chances = decisions.chances
    return {
        "format": "targetdp decisions 1",
        "program": decisions.program.kind,
        "people": len(chances),
        "by_score": int(decisions.by_score.sum()),
        "by_row_of_the_sample": int((~decisions.by_score).sum()),
        "chosen": int(decisions.chosen.sum()),
        "chosen_rightly_by_the_chances": round(float(chances[decisions.chosen].sum()), 1),
        "missed_by_the_chances": round(float(chances[~decisions.chosen].sum()), 1),
    }


def _tell(words: Any, record: dict[str, Any], output: Path) -> None:
    right, missed = record["chosen_rightly_by_the_chances"], record["missed_by_the_chances"]
    tell(
        f"{words.article} for {record['chosen']:,} of {record['people']:,} people ({record['by_score']:,} "
        f"decided by their score, {record['by_row_of_the_sample']:,} by their row of the sample) → {output}"
    )
    tell(f"as far as the chances tell, {words.outcome.format(right=right, missed=missed)}")


def _format(path: Path) -> Any:
    from targetdp.table import format_of

    kind = format_of(path)
    if kind is None or path.name.lower().endswith(".gz"):
        raise ValueError(f"out = {path} has no known suffix: use .csv or .parquet")
    return kind


def _save(table: Any, path: Path, kind: Any, *, force: bool) -> None:
    """All of it or nothing, for its owner's eyes: it says of people whether they are taken to be poor."""
    import pyarrow as pa

    from targetdp._files import whole_file
    from targetdp.table import Sink

    with (
        whole_file(path, force=force) as place,
        Sink(place, kind, table.schema, ids=table.schema.names[0], private=True) as sink,
    ):
        for batch in table.to_batches(max_chunksize=1 << 20):
            sink.write(pa.Table.from_batches([batch]))
        sink.finish()
