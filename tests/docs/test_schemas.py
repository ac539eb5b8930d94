"""Published schemas are those of the code, and fit what the code writes."""

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from support.release import make_desk, table_of
from targetdp import Request, privatize
from targetdp.cli._holder_tools import schemas

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"


@pytest.mark.parametrize("name", schemas())
def test_a_published_schema_is_the_codes(name: str) -> None:
    """Refresh with: targetdp schema NAME > docs/schemas/NAME.schema.json."""
    published = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    assert published == schemas()[name].model_json_schema()


def test_nothing_else_is_published() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.schema.json" for name in schemas()}


def test_a_certificate_fits_its_schema_and_a_damaged_one_does_not(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    made = privatize(table_of(), desk=desk, request=Request(B=0.5, epsilon=1.0))
    schema = json.loads((FOLDER / "certificate.schema.json").read_text(encoding="utf-8"))
    certificate = json.loads(made.certificate.text())
    jsonschema.validate(certificate, schema)
    del certificate["guarantee"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(certificate, schema)


def test_a_policy_and_a_request_fit_their_schemas(tmp_path: Path) -> None:
    policy = tomllib.loads((make_desk(tmp_path).path / "policy.toml").read_text(encoding="utf-8"))
    asked = Request(release="scores", B=0.5, epsilon=1.0, weights={"calls": (1.0,), "texts": (2.0,)})
    for name, content in (("policy", policy), ("request", tomllib.loads(asked.text("a comment")))):
        schema = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
        jsonschema.validate(content, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(content | {"override": "as agreed"}, schema)
