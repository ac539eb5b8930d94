"""Every kind of file that targetdp reads or writes, by name: their JSON schemas are in `docs/schemas`."""

from pydantic import BaseModel

from targetdp.programs.file import ProgramFile
from targetdp.release.certificate import Certificate
from targetdp.release.scales_file import BoundsFile, ScalesFile
from targetdp.release.settings import Settings
from targetdp.release.weights_file import WeightsFile

SCHEMAS: dict[str, type[BaseModel]] = {
    "release": Settings,
    "certificate": Certificate,
    "scales": ScalesFile,
    "bounds": BoundsFile,
    "program": ProgramFile,
    "weights": WeightsFile,
}
