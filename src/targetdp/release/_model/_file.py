"""A model's file, as it was judged: what it takes, and which of its outputs is the score."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from targetdp.release._model._pipe import MOST_BYTES
from targetdp.release._model._process import ConfinedProcess, plain


@dataclass(frozen=True)
class ModelInput:
    """What a model takes: a tensor of one row.

    Args:
        name: Its name, which is a column's if there is one input for each.
        kind: ``"float"``, ``"double"``, ``"int64"``, ``"bool"`` or ``"string"``.
        width: How many columns it takes.
    """

    name: str
    kind: str
    width: int


@dataclass(frozen=True)
class ModelFile:
    """A model that may be run.

    Args:
        data: The file's bytes.
        graph: What is run: the part of the file that leads to the score, as it was judged.
        inputs: What it takes.
        score: Name of the output whose last number is the score.
        comparisons: With how many nodes of trees a row is compared at most.
    """

    data: bytes
    graph: bytes
    inputs: tuple[ModelInput, ...]
    score: str
    comparisons: int = 0

    @property
    def sha256(self) -> str:
        """What it is known by in a request: the hash of its bytes."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def is_one_table(self) -> bool:
        """Whether one input takes all columns, which are numbers, in their order."""
        return len(self.inputs) == 1 and self.inputs[0].kind in {"float", "double"}


def read_model(path: Path | str) -> ModelFile:
    """Read a model in ONNX's format, and judge it by its file, in a confined process.

    Args:
        path: The file.

    Returns:
        The model, with what it takes.

    Raises:
        ValueError: It may not be run: everything that is wrong with it.
        ImportError: What is needed for models is not installed.
        OSError: The file cannot be read, or models cannot be confined here.

    Guarantees: every operator is on a list of deterministic ones, everything that is made of one row has a
    size that the file fixes, and no table of the model reaches beyond the row.
    Does not guarantee: that the model is any good, or fair; `importance` tells what it looks at.
    """
    with Path(path).open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    return judge_model(data, str(path))


def judge_model(data: bytes, name: str = "the model") -> ModelFile:
    """Judge a model by the bytes of its file: see `read_model`."""
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"{name} cannot be run: it has more than {MOST_BYTES >> 20} MiB; give one with fewer parts"
        )
    process = ConfinedProcess("judge")
    try:
        process.tell(data)
        judged, graph = process.reply(), process.data(MOST_BYTES)
    except EOFError:
        judged = {"problems": ["the process that judged it has ended: it is too large, or no model at all"]}
        graph = b""
    finally:
        process.close()
    if judged["problems"]:
        listed = "".join(f"\n  {plain(problem)}" for problem in judged["problems"])
        raise ValueError(f"{name} cannot be run:{listed}")
    inputs = [ModelInput(str(called), str(kind), int(width)) for called, kind, width in judged["inputs"]]
    return ModelFile(data, graph, tuple(inputs), str(judged["score"]), int(judged["comparisons"]))
