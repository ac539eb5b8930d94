"""The models that a data holder is given beside a request: judged, held against it, and run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from targetdp._core import Floats
from targetdp.release._decision._asked import AskedDecision
from targetdp.release._model._columns import check_columns, kind_of
from targetdp.release._model._file import ModelFile, read_model
from targetdp.release._model._invented import try_model
from targetdp.release._model._runner import ModelRunner


@dataclass(frozen=True)
class GivenModels:
    """Models by their SHA-256, and what is wrong with those that were given.

    Example:
        >>> GivenModels().texts(())
        ()
    """

    files: Mapping[str, ModelFile] = field(default_factory=dict, repr=False)
    problems: tuple[str, ...] = ()

    def texts(self, decisions: Sequence[AskedDecision]) -> tuple[str, ...]:
        """The columns that models take as text."""
        return tuple(
            name
            for one in decisions
            if one.model is not None and one.model in self.files
            for name in one.takes
            if kind_of(self.files[one.model], name) == "string"
        )

    def do_not_take(self, decisions: Sequence[AskedDecision], schema: pa.Schema) -> Iterator[str]:
        """Why models do not take the columns of a table, told by their types alone."""
        for one in decisions:
            if one.model is not None and one.model in self.files:
                try:
                    check_columns(self.files[one.model], one.takes, schema)
                except ValueError as error:
                    yield f"{one.name}: {error}"

    @contextmanager
    def running(self, decisions: Sequence[AskedDecision]) -> Iterator[dict[str, "ModelRunner"]]:
        """The models of some decisions, by the decisions' names, running until the end of the block."""
        with ExitStack() as stack:
            yield {
                one.name: stack.enter_context(ModelRunner(self.files[one.model], one.takes))
                for one in decisions
                if one.model is not None
            }


def models_for(
    decisions: Sequence[AskedDecision], paths: Sequence[Path | str], microseconds: int
) -> GivenModels:
    """Judge the models that were given for some decisions: by their files, and on invented rows.

    Args:
        decisions: What is asked for.
        paths: Files of models.
        microseconds: How long a row may take, by the policy.
    """
    found: dict[str, ModelFile] = {}
    problems: list[str] = []
    wanted = {one.model for one in decisions if one.model is not None}
    for path in paths:
        try:
            model = read_model(path)
            if model.sha256 not in wanted:
                problems.append(f"model {path} has SHA-256 {model.sha256}, which the request does not name")
                continue
            try_model(model, microseconds=microseconds)
        except (ValueError, OSError) as error:
            problems.append(str(error))
            continue
        found[model.sha256] = model
    for one in decisions:
        if one.model is not None and one.model not in found and not problems:
            problems.append(
                f"decision {one.name!r} is made by a model with SHA-256 {one.model}, which is not here: give "
                "its file (--model FILE), as you got it"
            )
        elif one.model in found:
            try:
                check_columns(found[one.model], one.takes)
            except ValueError as error:
                problems.append(f"decision {one.name!r}: {error}")
    return GivenModels(found, tuple(problems))


def scores_by_model(path: Path, asked: AskedDecision, rows: pa.Table) -> Floats:
    """What a decision's model says of rows: run as a data holder runs it, one row at a time and confined.

    Args:
        path: The model's file.
        asked: The decision, which names the model by its SHA-256, and its columns.
        rows: A table with these columns.

    Returns:
        The score of each row; NaN where it has none.

    Raises:
        ValueError: It is another file, or it may not be run.

    Example:
        >>> scores_by_model(Path("model.onnx"), asked, rows)  # doctest: +SKIP
        array([0.31, 0.77])
    """
    model = read_model(path)
    if model.sha256 != asked.model:
        raise ValueError(f"model {path} has SHA-256 {model.sha256}: the decision was made by {asked.model}")
    with ModelRunner(model, asked.takes) as runner:
        return runner.scores(rows)
