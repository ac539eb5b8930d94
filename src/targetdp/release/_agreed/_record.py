"""The record of people who agreed, beside their rows: what they agreed to, and what it means; signed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, ValidationError, model_validator

from targetdp._core import check
from targetdp._files import Number, Reason, canonical, explain
from targetdp.normalization import ColumnScales
from targetdp.release._certificate._agreed import AGREEMENT_ID
from targetdp.release._certificate._parts import (
    MOST_SUCCESSIONS,
    CertificatePart,
    DeskRecord,
    LedgerMark,
    Output,
    Scale,
    Signature,
)
from targetdp.release._trust._keys import SigningKey, Succession

AGREEMENT_SUFFIX = ".agreement.json"
_LARGEST_FILE = 1 << 22
"""Bytes: as many columns as any table has, each with its scale and constant."""


class AgreementRecord(CertificatePart):
    """What a data holder hands over with the rows of people who agreed."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="targetdp agreement")

    format: Literal["targetdp agreement 1"] = "targetdp agreement 1"
    agreement: Annotated[str, Field(pattern=AGREEMENT_ID)]
    library: str
    time: str
    desk: DeskRecord
    to: Reason = Field(description="what the people agreed to, in the data holder's words")
    means: str = Field(description="what it means to them")
    rows: Annotated[int, Field(ge=1, strict=True)]
    in_all: Annotated[int, Field(ge=1, strict=True)] = Field(
        description="how many people this desk has handed over as they are, with these"
    )
    id: Annotated[str, Field(min_length=1)]
    pseudonyms: bool
    columns: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="columns that are there as they are; what is missing is null"
    )
    gaps: dict[str, Number] = Field(description="declared constants that stand for missing values, by column")
    scales_source: Literal["declared", "earlier"] | None = Field(
        description="where scales come from: declared public, or paid for by an earlier release"
    )
    scales: dict[str, Scale] | None = Field(description="by column, as far as there are any; null for none")
    output: Output
    ledger: LedgerMark = Field(description="the entry by which these people were handed over")
    signature: Signature | None = None

    @model_validator(mode="after")
    def _agree(self) -> "AgreementRecord":
        if twice := check.twice([self.id, *self.columns]):
            raise ValueError(f"columns names {twice[0]!r} twice")
        if unknown := sorted({*self.gaps, *(self.scales or {})} - {*self.columns}):
            raise ValueError(f"gaps or scales name {unknown[0]!r}, which is not among the columns")
        if bool(self.scales) != (self.scales_source is not None) or self.scales == {}:
            raise ValueError("scales and scales_source belong together: both, or neither")
        if self.output.format == "frame" or len(self.output.files) != 1:
            raise ValueError("output is not one file")
        if self.output.files[0].sha256 != self.output.sha256 or self.in_all < self.rows:
            raise ValueError("output, rows or in_all contradict each other")
        return self

    @property
    def table_columns(self) -> tuple[str, ...]:
        """All columns of the table."""
        return (self.id, *self.columns)

    def scales_of(self, columns: Sequence[str]) -> ColumnScales | None:
        """The scales of some columns; None unless each has one."""
        known = self.scales or {}
        if self.scales_source is None or not {*columns} <= {*known}:
            return None
        both = np.array([(known[name].center, known[name].scale) for name in columns])
        return ColumnScales(both[:, 0], both[:, 1], self.scales_source)

    def text(self) -> str:
        """The record as JSON."""
        return json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"

    def message(self) -> bytes:
        """What is signed. The words keep a signature from passing for one of something else."""
        plain = self.model_dump(mode="json", exclude={"signature": {"value"}})
        return f"targetdp agreement {canonical(plain)}".encode()

    def signed(self, key: SigningKey, succession: Sequence[Succession] = ()) -> "AgreementRecord":
        """The record with the data holder's signature; steps between her keys are signed, too."""
        steps = tuple(succession)[-MOST_SUCCESSIONS:]
        draft = self.model_copy(update={"signature": Signature(key=key.public, succession=steps, value="")})
        signature = Signature(key=key.public, succession=steps, value=key.sign(draft.message()))
        return self.model_copy(update={"signature": signature})


def read_agreement(path: str | Path) -> AgreementRecord:
    """Read the record of people who agreed; nothing of it is believed by that.

    Args:
        path: The record.

    Returns:
        What it says.

    Raises:
        ValueError: It is none, or not byte for byte as targetdp writes it.

    Example:
        >>> read_agreement("nowhere.agreement.json")
        Traceback (most recent call last):
        ValueError: agreement nowhere.agreement.json cannot be read: No such file or directory
    """
    place = Path(path)
    try:
        with place.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
        if len(data) > _LARGEST_FILE:
            raise ValueError(f"agreement {place} has more than {_LARGEST_FILE:,} bytes: it is none")
        found = AgreementRecord.model_validate_json(data)
    except OSError as error:
        raise ValueError(f"agreement {place} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise ValueError(f"agreement {place} is none: {explain(error)}") from error
    if found.text().encode() != data:
        raise ValueError(f"agreement {place} was edited: it is not in the form that targetdp writes")
    return found


def plain_scales(source: str, known: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Scales as fields of a record."""
    values = {name: Scale(center=center, scale=scale) for name, (center, scale) in known.items()}
    return {"scales_source": source if values else None, "scales": values or None}
