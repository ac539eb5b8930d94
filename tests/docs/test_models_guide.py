"""docs/decisions.md, "Models that the data holder runs": its model is made, judged, and run as it says."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.docs import DOCS, blocks, printed_by
from targetdp.release._model._child import ROW_SECONDS
from targetdp.release._model._confine import MEMORY
from targetdp.release._model._file import read_model
from targetdp.release._model._invented import COMPARISONS, try_model
from targetdp.release._model._judge import MOST_NUMBERS
from targetdp.release._model._pipe import MOST_BYTES
from targetdp.release._model._runner import ModelRunner
from targetdp.release._policy import ModelPolicy


def test_its_model_is_converted_let_in_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    (block,) = [one for one in blocks("decisions.md", "python") if "to_onnx" in one.text]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        printed_by(block, names)
    model = read_model("model.onnx")
    assert try_model(model, microseconds=100_000) > 0
    X = names["X"]
    with ModelRunner(model, ["age", "calls", "topups"], jobs=1) as runner:
        found = runner.scores(pa.table(dict(zip(runner.columns, X.T, strict=True))))
    assert np.allclose(found, names["model"].predict_proba(X)[:, 1], atol=2e-6)


def test_its_figures_are_those_of_the_code() -> None:
    text = (DOCS / "decisions.md").read_text(encoding="utf-8")
    assert MOST_NUMBERS == 2**24
    assert f"at most {MOST_BYTES >> 20} MiB" in text
    assert f"{COMPARISONS} for each microsecond" in text
    assert f"(`microseconds` under `[models]`, {ModelPolicy().microseconds} by itself)" in text
    assert f"more than {ROW_SECONDS} seconds of the processor" in text
    assert f"a limit of {MEMORY >> 30} GiB" in text
