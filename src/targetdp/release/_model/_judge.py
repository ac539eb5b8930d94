"""Whether a model may be run, by its file alone: what it is made of, and how large everything gets.

This runs in a confined process, too: a file is somebody else's bytes before it is somebody else's program.
Every operator is on a list, and the size of every tensor follows from the file for one row of the table. So
no row has more work than another, trees apart, whose longest paths are bounded.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import TensorProto

from targetdp.release._model._learned import LEARNED, MOST_COMPARISONS, Tensor, comparisons, learned
from targetdp.release._model._operators import PLAIN, why_not
from targetdp.release._model._pipe import MOST_TEXT

MOST_NODES = 10_000
MOST_COLUMNS = 16_384
MOST_NUMBERS = 1 << 24
"""Numbers in all tensors together that are made of one row: a text is as many as its bytes may be."""
COSTS = {"remainder": 40, "text": 10, "number as text": 60}
"""How many comparisons something takes at most that is quick for most rows and slow for some."""
KINDS: dict[int, str] = {
    TensorProto.FLOAT: "float",
    TensorProto.DOUBLE: "double",
    TensorProto.INT64: "int64",
    TensorProto.INT32: "int32",
    TensorProto.BOOL: "bool",
    TensorProto.STRING: "string",
}
INPUT_KINDS = {"float", "double", "int64", "bool", "string"}


@dataclass
class Judgement:
    """What was found in a file.

    Args:
        problems: In words, each with its remedy; if there are any, the rest may be missing.
        inputs: Name, kind and width of each.
        score: The output whose last number is the score.
        comparisons: With how many nodes of trees a row is compared at most, or work that is as much.
        graph: What is to be run: the part of the file that leads to the score, written anew.
    """

    problems: list[str]
    inputs: list[tuple[str, str, int]] = field(default_factory=list)
    score: str = ""
    comparisons: int = 0
    graph: bytes = b""


def judge(data: bytes) -> Judgement:
    """Judge a model by the bytes of its file."""
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception:  # noqa: BLE001 (whatever the library raises: these bytes are no model)
        return Judgement(["it is not an ONNX file: give what skl2onnx or another converter has written"])
    inputs, problems = _inputs(model.graph)
    score, found = _score(model.graph)
    needed = _needed(model, score)
    problems += [*found, *dict.fromkeys([*_parts(model), *_contents(needed)])]
    if problems:
        return Judgement(problems)
    try:
        onnx.checker.check_model(needed)
    except Exception as error:  # noqa: BLE001 (whatever the library raises: it says what is wrong)
        return Judgement([f"it breaks ONNX's own rules ({_short(error)}): convert the model again"])
    problems, tensors = _sizes(needed, {name: Tensor(kind, (1, width)) for name, kind, width in inputs})
    if not problems and (score not in tensors or not tensors[score].size):
        problems = [f"output {_short(score)} has no number that could be the score: convert the model again"]
    try:
        compared = 0 if problems else sum(_compared(node, tensors) for node in needed.graph.node)
    except ValueError as error:
        return Judgement([_short(error)])
    if compared > MOST_COMPARISONS:
        problems.append(
            f"it may compare one row more than {MOST_COMPARISONS:,} times (the longest paths of all its "
            "trees, its categories and texts, together): limit their depth or number"
        )
    return Judgement(problems, inputs, score, compared, needed.SerializeToString())


def _compared(node: onnx.NodeProto, tensors: dict[str, Tensor]) -> int:
    """How often an operator compares a row at most, or work that is as much: what takes longer on some."""
    taken, made = ([tensors[name] for name in names if name] for names in (node.input, node.output))
    texts = sum(one.size for one in (*taken, *made) if one.kind == "string")
    if node.op_type == "OneHotEncoder":
        # Whoever wrote the file may have put all categories where one value is looked for.
        return sum(one.size for one in made) + COSTS["text"] * texts
    if node.op_type == "Mod" and made[0].kind in {"float", "double"}:
        return COSTS["remainder"] * made[0].size
    cost = COSTS["number as text" if node.op_type == "Cast" else "text"]
    return comparisons(node) + cost * texts


def _needed(model: onnx.ModelProto, score: str) -> onnx.ModelProto:
    """The part of a model that leads to its score, and its inputs: nothing else is run."""
    graph, names, nodes = model.graph, {score}, []
    for node in reversed(graph.node):
        if names & {name for name in node.output if name}:
            nodes.append(node)
            names |= set(node.input)
    inputs = {one.name for one in graph.input}
    kept = onnx.helper.make_graph(
        nodes[::-1],
        "score",
        list(graph.input),
        [one for one in graph.output if one.name == score],
        [one for one in graph.initializer if one.name in names | inputs],
    )
    versions = [one for one in model.opset_import if one.domain in {"", "ai.onnx", "ai.onnx.ml"}]
    return onnx.helper.make_model(kept, opset_imports=versions, ir_version=model.ir_version)


def _parts(model: onnx.ModelProto) -> Iterator[str]:
    """What must not be in a file at all."""
    graph = model.graph
    if model.functions:
        yield "it defines operators of its own (functions): convert it without them"
    if model.training_info:
        yield "it holds what is needed to train it further: convert the finished model"
    if graph.sparse_initializer:
        yield "it holds sparse numbers: convert the model with dense ones"
    if len({one.domain or "ai.onnx" for one in model.opset_import}) != len(_versions(model)):
        yield "it names two versions of the same operators: convert the model again"
    made = [*(one.name for one in graph.initializer), *(name for node in graph.node for name in node.output)]
    made = [name for name in made if name]
    if len(set(made)) != len(made):
        yield "two of its tensors have the same name: convert the model again"


def _contents(model: onnx.ModelProto) -> Iterator[str]:
    """What must not be in the part that is run."""
    graph = model.graph
    if len(graph.node) > MOST_NODES:
        yield f"it has {len(graph.node):,} operators, at most {MOST_NODES:,} are run: make it smaller"
    stored = [
        *graph.initializer,
        *(one.t for node in graph.node for one in node.attribute if one.HasField("t")),
    ]
    stored += [tensor for node in graph.node for one in node.attribute for tensor in one.tensors]
    for tensor in stored:
        if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
            yield "part of it is in another file (external data): save the model in one file"
        elif tensor.data_type not in KINDS:
            yield f"it holds numbers of type {_type_name(tensor.data_type)}: {_KINDS_IN_WORDS}"
        elif any(len(text) > MOST_TEXT for text in tensor.string_data):
            yield _LONG_TEXT
    for node in graph.node:
        yield from _node(node)


def _versions(model: onnx.ModelProto) -> set[tuple[str, int]]:
    return {(one.domain or "ai.onnx", one.version) for one in model.opset_import}


def _node(node: onnx.NodeProto) -> Iterator[str]:
    """What is wrong with an operator before its sizes are looked at."""
    allowed = {"": PLAIN, "ai.onnx": PLAIN, "ai.onnx.ml": LEARNED}.get(node.domain)
    if any(one.HasField("g") or one.graphs for one in node.attribute):
        yield f"{_short(node.op_type)} holds a graph (control flow): a model must be one plain graph"
    elif allowed is None:
        yield (
            f"{_short(node.op_type)} is of {_short(node.domain)}, which is not part of ONNX: only ai.onnx "
            "and ai.onnx.ml are run"
        )
    elif node.op_type not in allowed:
        yield why_not(node.op_type)
    elif any(one.HasField("sparse_tensor") or one.sparse_tensors for one in node.attribute):
        yield f"{node.op_type} holds sparse numbers: convert the model with dense ones"
    elif any(len(text) > MOST_TEXT for one in node.attribute for text in (*one.strings, one.s)):
        yield _LONG_TEXT
    elif len({one.name for one in node.attribute}) != len(node.attribute):
        yield f"{node.op_type} has an attribute twice: convert the model again"
    elif node.op_type == "BatchNormalization" and _trains(node):
        yield "BatchNormalization is in training mode: convert the finished model"


_LONG_TEXT = f"it holds a text of more than {MOST_TEXT:,} bytes: use shorter ones"
_KINDS_IN_WORDS = "only float, double, int64, int32, bool and string are run; convert the model with floats"


def _trains(node: onnx.NodeProto) -> bool:
    mode = sum(one.i for one in node.attribute if one.name == "training_mode")
    return mode != 0 or len([name for name in node.output if name]) > 1


def _inputs(graph: onnx.GraphProto) -> tuple[list[tuple[str, str, int]], list[str]]:
    """Name, kind and width of what a row is put into."""
    constants = {tensor.name for tensor in graph.initializer}
    inputs: list[tuple[str, str, int]] = []
    problems = []
    for one in graph.input:
        if one.name in constants:
            continue
        kind = KINDS.get(one.type.tensor_type.elem_type) if one.type.HasField("tensor_type") else None
        if kind not in INPUT_KINDS:
            problems.append(
                f"input {_short(one.name)} is {kind or 'of another kind'}: it must be a tensor of float, "
                "double, int64, bool or string"
            )
            continue
        dims = list(one.type.tensor_type.shape.dim)
        first_free = len(dims) == 2 and (not dims[0].HasField("dim_value") or dims[0].dim_value in {0, 1})
        if not first_free or not 1 <= dims[1].dim_value <= MOST_COLUMNS:
            problems.append(
                f"input {_short(one.name)} has shape {_dims(dims)}: it must be [None, columns] or "
                f"[1, columns], as every row is run by itself, with at most {MOST_COLUMNS:,} columns"
            )
            continue
        inputs.append((one.name, str(kind), dims[1].dim_value))
    if not inputs and not problems:
        problems.append("it has no input: give a model that takes the columns of a row")
    alone = len(inputs) == 1 and inputs[0][1] in {"float", "double"}
    problems += [
        f"input {_short(name)} takes {width} columns: with several inputs, or of another kind than float and "
        "double, each must take one column, [None, 1], and have its name"
        for name, _, width in inputs
        if width > 1 and not alone
    ]
    return inputs, problems


def _sizes(model: onnx.ModelProto, tensors: dict[str, Tensor]) -> tuple[list[str], dict[str, Tensor]]:
    """Kind and shape of everything that is made of one row."""
    (version,) = {number for domain, number in _versions(model) if domain == "ai.onnx"} or {1}
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    made = 0
    for tensor in model.graph.initializer:
        tensors[tensor.name] = Tensor(KINDS[tensor.data_type], tuple(tensor.dims))
    for node in model.graph.node:
        if any(name and name not in tensors for name in node.input):
            return [f"{node.op_type} uses what nothing before it has made: convert the model again"], tensors
        try:
            if node.domain == "ai.onnx.ml":
                outputs = learned(node, tensors, constants)
            else:
                outputs = _plain(node, tensors, constants, version, model)
        except (
            ValueError, onnx.shape_inference.InferenceError, onnx.checker.ValidationError,
        ) as error:  # fmt: skip
            return [f"{node.op_type}: {_short(error)}"], tensors
        for name, tensor in zip(node.output, outputs, strict=False):
            if name:
                tensors[name] = tensor
                made += tensor.size * (MOST_TEXT // 8 if tensor.kind == "string" else 1)
        if made > MOST_NUMBERS:
            return [
                f"it makes more than {MOST_NUMBERS:,} numbers of one row: at most so many are computed; make "
                "the model smaller"
            ], tensors
    return [], tensors


def _plain(
    node: onnx.NodeProto,
    tensors: dict[str, Tensor],
    constants: dict[str, TensorProto],
    version: int,
    model: onnx.ModelProto,
) -> list[Tensor]:
    """What an operator of ONNX's own makes; a constant is remembered with its values."""
    if node.op_type == "Constant":
        value = next((one.t for one in node.attribute if one.name == "value"), None)
        if value is not None:
            constants[node.output[0]] = value
    schema = onnx.defs.get_schema(node.op_type, max_inclusive_version=version, domain="")
    names = {name for name in node.input if name}
    types = {
        name: onnx.helper.make_tensor_type_proto(
            TensorProto.DataType.Value(tensors[name].kind.upper()), tensors[name].shape
        )
        for name in names
    }
    found = onnx.shape_inference.infer_node_outputs(
        schema,
        node,
        types,
        {name: constants[name] for name in names & set(constants)},
        opset_imports=list(model.opset_import),
        ir_version=model.ir_version,
    )
    made = [_tensor(node, found.get(name)) for name in node.output]
    if node.op_type in {"Div", "Mod"} and tensors[node.input[1]].kind in {"int64", "int32"}:
        _check_divisor(constants.get(node.input[1]))
    if node.op_type == "Reshape" and made[0].size != tensors[node.input[0]].size:
        raise ValueError(
            f"{tensors[node.input[0]].size} numbers of one row cannot be put into the shape "
            f"{list(made[0].shape)}: convert the model for single rows"
        )
    return made


def _check_divisor(divisor: TensorProto | None) -> None:
    """The smallest whole number by -1 ends a process, anything by 0 is an error: both cost time on a row."""
    values = None if divisor is None else onnx.numpy_helper.to_array(divisor)
    if values is None or ((values == 0) | (values == -1)).any():
        raise ValueError("it divides whole numbers by what may be 0 or -1: convert the model with floats")


def _tensor(node: onnx.NodeProto, found: onnx.TypeProto | None) -> Tensor:
    """A tensor whose shape is known to the last number."""
    if found is None or not found.HasField("tensor_type"):
        raise ValueError(f"what {node.op_type} makes is not known beforehand: only tensors are")
    kind = KINDS.get(found.tensor_type.elem_type)
    if kind is None:
        raise ValueError(
            f"makes numbers of type {_type_name(found.tensor_type.elem_type)}: {_KINDS_IN_WORDS}"
        )
    dims = found.tensor_type.shape.dim
    if not found.tensor_type.HasField("shape") or not all(dim.HasField("dim_value") for dim in dims):
        raise ValueError(
            "how many numbers it makes is not fixed by the file: give its shape, axes or indices as constants"
        )
    return Tensor(kind, tuple(dim.dim_value for dim in dims))


def _score(graph: onnx.GraphProto) -> tuple[str, list[str]]:
    """The output that has the score, and what is wrong with outputs."""
    remedy = "convert a classifier with options={'zipmap': False}"
    problems = [
        f"output {_short(one.name)} is not a tensor: {remedy}"
        for one in graph.output
        if not one.type.HasField("tensor_type")
    ]
    numbers = [
        one.name
        for one in graph.output
        if one.type.tensor_type.elem_type in {TensorProto.FLOAT, TensorProto.DOUBLE}
    ]
    if not problems and not numbers:
        problems.append("no output is a tensor of float or double: the last one's last number is the score")
    return (numbers[-1] if numbers else ""), problems


def _dims(dims: list[Any]) -> str:
    return "[" + ", ".join(str(one.dim_value) if one.HasField("dim_value") else "None" for one in dims) + "]"


def _type_name(kind: int) -> str:
    return (
        str(TensorProto.DataType.Name(kind)).lower() if kind in TensorProto.DataType.values() else str(kind)
    )


def _short(words: object) -> str:
    """Words of a stranger, on one line and not too many."""
    text = " ".join(str(words).split())
    return "".join(letter if letter.isprintable() else "?" for letter in text[:200])
