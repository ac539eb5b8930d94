"""What `targetdp learn` and `targetdp allocate` share: a sample with its labels, private or agreed."""

from pathlib import Path
from typing import Annotated, Any

import typer

TranslatedIds = Annotated[
    Path | None,
    typer.Option(
        "--ids", help="the data holder's list of ids and pseudonyms (targetdp ids), if there are any"
    ),
]


def read_sample(
    sample: Path, labels: Path, settings: Any, *, id_column: str | None, ids: Path | None,
    proof: Path | None, public_key: str | None, progress: Any,
) -> Any:  # fmt: skip
    """A private sample, or rows of people who agreed: whichever of the two stands on record beside it."""
    from targetdp.release import agreement_path
    from targetdp.targeting import read_agreed, read_labelled

    how = {"id_column": id_column, "ids": ids, "public_key": public_key, "progress": progress}
    record = proof or agreement_path(sample)
    if record.name.endswith(".agreement.json") and record.exists():
        return read_agreed(sample, labels, settings, record=record, **how)
    return read_labelled(sample, labels, settings, certificate=proof, **how)
