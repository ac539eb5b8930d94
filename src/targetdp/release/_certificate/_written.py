"""The files of a release, as certificates and records of agreements tell of them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from targetdp.table import Dialect

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class CertificatePart(BaseModel):
    """Frozen, and of no other fields than these."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class File(CertificatePart):
    """A file of the release."""

    name: str
    size: int
    sha256: Sha256


class Output(CertificatePart):
    """What was released. ``sha256`` is the file's own, or that of the list of parts or of the frame."""

    format: Literal["parquet", "csv", "frame"]
    files: tuple[File, ...]
    sha256: Sha256
    csv: Dialect | None = Field(default=None, description="how CSV files are written, if not plainly")

    @property
    def dialect(self) -> Dialect | None:
        """How its files are read, if they are CSV; None where nothing says it."""
        return self.csv or (Dialect() if self.format == "csv" else None)

    @model_serializer(mode="wrap")
    def _said(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Plain files say nothing of it: so older certificates hold."""
        found: dict[str, Any] = dump(self)
        if self.csv is None:
            del found["csv"]
        return found
