"""Published schemas are those of the code, and fit what the code writes."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pytest

from targetdp import declared_scales, privatize_frame
from targetdp.cli._holder_tools import schemas

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"


@pytest.mark.parametrize("name", schemas())
def test_a_published_schema_is_the_codes(name: str) -> None:
    """Refresh with: targetdp schema NAME > docs/schemas/NAME.schema.json."""
    published = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    assert published == schemas()[name].model_json_schema()


def test_nothing_else_is_published() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.schema.json" for name in schemas()}


def test_a_certificate_fits_its_schema_and_a_damaged_one_does_not() -> None:
    table = pa.table({"name": ["a", "b", "c"], "x": np.array([0.1, 0.2, 0.3])})
    made = privatize_frame(
        table, id="name", features=["x"], B=0.5, epsilon=1.0, scales=declared_scales([0.0], [1.0])
    )
    schema = json.loads((FOLDER / "certificate.schema.json").read_text(encoding="utf-8"))
    certificate = json.loads(made.certificate.text())
    jsonschema.validate(certificate, schema)
    del certificate["guarantee"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(certificate, schema)
