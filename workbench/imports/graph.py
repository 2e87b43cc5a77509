"""A transformer's ONNX graph between nodes that make it read and answer as the contract says.

Before it: ids without special tokens, and lengths -> the whole sequence with its special tokens, the mask, the
segments, padding behind all of it. After it: pooling, dense layers and length 1, or the answers of a task.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from core.graph import CLASSIFIER, ENCODER, OPSET, PAIR, GraphSpec
from training.publishing.graphs import clean, rename_values

Pooling = Literal["mean", "cls", "max", "lasttoken", "mean_sqrt_len_tokens", "weightedmean"]
POOLINGS: tuple[Pooling, ...] = ("mean", "cls", "max", "lasttoken", "mean_sqrt_len_tokens", "weightedmean")
IDS, MASK, SEGMENTS, POSITIONS = "input_ids", "attention_mask", "token_type_ids", "position_ids"
_THEIRS, _OURS = "theirs/", "ours/"  # before the names of values
_LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class Template:
    """The special tokens around one text or two, each with its segment: (id, segment)."""

    parts: tuple[tuple[tuple[int, int], ...], ...]  # before the first text, after it, after the second
    segments: tuple[int, ...]  # of each text
    pad: int

    @property
    def width(self) -> int:
        """How many special tokens there are."""
        return sum(map(len, self.parts))


class Dense(NamedTuple):
    """A layer after the pooling: weight [outputs, inputs]."""

    weight: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32] | None
    activation: Literal["Identity", "Tanh"]


@dataclass(frozen=True)
class PoolingStage:
    """From the states of the tokens to the embedding."""

    pooling: Pooling | None  # None: the graph gives the embedding
    dense: tuple[Dense, ...] = ()
    normalise: bool = False

    def apply(self, states: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """States of one text without padding [T, H] -> its embedding [D]; with `pooling` None from [D]."""
        n = len(states)
        match self.pooling:
            case None:
                found = states
            case "max":
                found = states.max(axis=0)
            case "cls":
                found = states[0]
            case "lasttoken":
                found = states[-1]
            case "weightedmean":
                weights = np.arange(1, n + 1, dtype=np.float32)
                found = (states * weights[:, None]).sum(axis=0) / weights.sum()
            case mean:
                found = states.sum(axis=0) / (n if mean == "mean" else np.sqrt(n))
        for layer in self.dense:
            found = layer.weight @ found + (0 if layer.bias is None else layer.bias)
            found = np.tanh(found) if layer.activation == "Tanh" else found
        return np.asarray(found / max(float(np.linalg.norm(found)), 1e-12) if self.normalise else found, np.float32)


AS_IT_IS = PoolingStage(None)


@dataclass(frozen=True)
class Answers:
    """From logits to what tasks read."""

    kind: Literal["entailment", "similarity", "relevance"]
    columns: tuple[int, ...]  # of the logits, in our order; of a relevance with two: the right one, then the other
    temperature: float = 1.0  # of entailment

    @property
    def width(self) -> int:
        """How many outputs there are."""
        return {"relevance": 2, "similarity": 1}.get(self.kind, len(self.columns))

    def apply(self, logits: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
        """Logits [n, K] -> log-probabilities, a similarity in 0..1, or that and the value itself [n, width]."""
        found = np.asarray(logits, dtype=np.float64)[:, list(self.columns)]
        if self.kind == "entailment":
            found = found / self.temperature
            return np.asarray(found - np.logaddexp.reduce(found, axis=1, keepdims=True))
        if len(self.columns) == 2:  # the softmax of two is the sigmoid of their difference
            found = found[:, :1] - found[:, 1:]
        unit = 1 / (1 + np.exp(-found))
        return np.asarray(unit if self.kind == "similarity" else np.concatenate([unit, found], axis=1))


@dataclass
class _Nodes:
    """Nodes and constants under construction."""

    opset: int
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{_OURS}{next(self.numbers)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def constant(self, values: object, kind: Any = np.int64) -> str:
        name = f"{_OURS}constant/{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, dtype=kind), name))
        return name

    def reduce(self, op: str, value: str, axis: int) -> str:
        """Over one axis, which stays with size 1; where axes stand depends on the opset."""
        if op == "ReduceSum" or self.opset >= 18:
            return self(op, value, self.constant([axis]), keepdims=1)
        return self(op, value, axes=[axis], keepdims=1)

    def unit(self, value: str) -> str:
        """Rows brought to length 1."""
        length = self("Sqrt", self.reduce("ReduceSum", self("Mul", value, value), 1))
        return self("Div", value, self("Max", length, self.constant(1e-12, np.float32)))


class _SequenceNames(NamedTuple):
    ids: str  # [B, L]
    mask: str
    segments: str
    row: str  # places [1, L]
    real: str  # bool [B, L]
    total: str  # lengths with special tokens [B, 1]


def encoder_graph(
    model: ModelProto, template: Template, ending: PoolingStage, output: str, dim: int, model_id: str
) -> ModelProto:
    """An ENCODER graph around one that gives states or embeddings as `output`."""
    b = _begin(model, (output, *ENCODER.inputs, *ENCODER.outputs))
    sequence = _sequence(b, template, [("input_ids", "lengths")])
    before = _feeds(b, model, sequence)
    found = b("Cast", _THEIRS + output, to=TensorProto.FLOAT)
    found = _pooled(b, found, sequence, ending.pooling)
    for layer in ending.dense:
        found = b("MatMul", found, b.constant(layer.weight.T, np.float32))
        if layer.bias is not None:
            found = b("Add", found, b.constant(layer.bias, np.float32))
        found = b(layer.activation, found)
    if ending.normalise:
        found = b.unit(found)
    return _finish(b, model, before, found, ENCODER, dim, model_id)


def pair_graph(model: ModelProto, template: Template, answers: Answers, output: str, model_id: str) -> ModelProto:
    """A PAIR graph around one that gives logits as `output`."""
    b = _begin(model, (output, *PAIR.inputs, *PAIR.outputs))
    sequence = _sequence(b, template, [("input_ids_a", "lengths_a"), ("input_ids_b", "lengths_b")])
    before = _feeds(b, model, sequence)
    found = b("Cast", _THEIRS + output, to=TensorProto.FLOAT)
    found = b("Gather", found, b.constant(list(answers.columns)), axis=1)
    if answers.kind == "entailment":
        found = b("LogSoftmax", b("Div", found, b.constant(answers.temperature, np.float32)), axis=1)
    elif len(answers.columns) == 2:
        right, other = (b("Gather", found, b.constant([place]), axis=1) for place in (0, 1))
        difference = b("Sub", right, other)
        found = b("Concat", b("Sigmoid", difference), difference, axis=1)
    elif answers.kind == "similarity":
        found = b("Sigmoid", found)
    else:
        found = b("Concat", b("Sigmoid", found), found, axis=1)
    return _finish(b, model, before, found, PAIR, answers.width, model_id)


def classes_graph(labels: int, model_id: str) -> ModelProto:
    """A CLASSIFIER graph whose embedding is the logits."""
    b = _Nodes(OPSET)
    return _finish(b, _empty(), [], b("LogSoftmax", "sentence_embedding", axis=1), CLASSIFIER, labels, model_id)


def mean_graph(rows: npt.NDArray[np.float32], left_out: int | None, normalise: bool, model_id: str) -> ModelProto:
    """An ENCODER graph of a table of rows: their mean, without those of one id; 0 where every token is left out."""
    b = _Nodes(OPSET)
    width = b("Gather", b("Shape", IDS), b.constant(1))
    row = b("Unsqueeze", b("Range", b.constant(0), width, b.constant(1)), b.constant([0]))
    read = b("Less", row, b("Unsqueeze", "lengths", b.constant([1])))
    if left_out is not None:
        read = b("And", read, b("Not", b("Equal", IDS, b.constant(left_out))))
    weights = b("Cast", read, to=TensorProto.FLOAT)
    states = b("Gather", b.constant(rows, np.float32), IDS)
    sums = b("Squeeze", b("MatMul", b("Unsqueeze", weights, b.constant([1])), states), b.constant([1]))
    found = b("Div", sums, b("Max", b.reduce("ReduceSum", weights, 1), b.constant(1, np.float32)))
    return _finish(b, _empty(), [], b.unit(found) if normalise else found, ENCODER, rows.shape[1], model_id)


def _empty() -> ModelProto:
    graph = helper.make_graph([], "graph", [], [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def opset_of(model: ModelProto) -> int:
    """Its version of ONNX's own operators."""
    return next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)


def _begin(model: ModelProto, names: Sequence[str]) -> _Nodes:
    taken = dict.fromkeys([*names, IDS, MASK, SEGMENTS, POSITIONS])
    rename_values(model.graph, {name: _THEIRS + name for name in taken})
    for each in [*model.graph.input, *model.graph.output]:
        each.name = _THEIRS + each.name if each.name in taken else each.name
    return _Nodes(opset_of(model))


def _sequence(b: _Nodes, template: Template, sides: Sequence[tuple[str, str]]) -> _SequenceNames:
    """ids [B, T] and lengths [B] of each text -> the sequence, as long as the longest of the batch.

    All parts stand side by side, each as wide as its longest, and last a column of padding. The token at place r of a
    row is `padding` columns further on: what the texts before it are shorter than the longest ones.
    """
    one, zero = b.constant([1]), b.constant(0)
    column = b("Unsqueeze", b("Mul", sides[0][1], zero), one)  # zeros [B, 1]
    lengths = [b("Unsqueeze", length, one) for _, length in sides]
    parts, segments, ends = [], [], []
    place = b.constant([[len(template.parts[0])]])
    for i, special in enumerate(template.parts):
        if special:
            parts.append(b("Add", column, b.constant([[token for token, _ in special]])))
            segments.append(b("Add", column, b.constant([[segment for _, segment in special]])))
        if i < len(sides):
            ids = sides[i][0]
            parts.append(ids)
            segments.append(b("Add", b("Mul", ids, zero), b.constant(template.segments[i])))
            place = b("Add", place, lengths[i])
            ends.append((place, b("Sub", b("Gather", b("Shape", ids), one), lengths[i])))
            place = b("Add", place, b.constant([[len(template.parts[i + 1])]]))
    parts.append(b("Add", column, b.constant([[template.pad]])))
    segments.append(column)
    total = place
    every = b("Concat", *parts, axis=1)
    longest = b("ReduceMax", total, keepdims=0)
    row = b("Unsqueeze", b("Range", zero, longest, b.constant(1)), b.constant([0]))
    real = b("Less", row, total)
    index = row
    for end, padding in ends:
        index = b("Add", index, b("Where", b("Less", row, end), zero, padding))
    last = b("Sub", b("Gather", b("Shape", every), one), one)
    index = b("Where", real, index, last)
    mask = b("Cast", real, to=TensorProto.INT64)
    if any(template.segments) or any(segment for part in template.parts for _, segment in part):
        found = b("GatherElements", b("Concat", *segments, axis=1), index, axis=1)
    else:
        found = b("Mul", mask, zero)
    return _SequenceNames(b("GatherElements", every, index, axis=1), mask, found, row, real, total)


def _feeds(b: _Nodes, model: ModelProto, sequence: _SequenceNames) -> list[NodeProto]:
    """Name the values as the graph's inputs; returns the nodes so far, which stand before its own."""
    positions = b("Mul", sequence.row, sequence.mask)
    values = {IDS: sequence.ids, MASK: sequence.mask, SEGMENTS: sequence.segments, POSITIONS: positions}
    wanted = {each.name.removeprefix(_THEIRS) for each in model.graph.input}
    for name, value in values.items():
        if name in wanted:
            b.nodes.append(helper.make_node("Identity", [value], [_THEIRS + name]))
    before, b.nodes = b.nodes, []
    return before


def _pooled(b: _Nodes, states: str, sequence: _SequenceNames, pooling: Pooling | None) -> str:
    """States [B, L, H] -> [B, H]."""
    if pooling is None:
        return states
    if pooling == "max":
        kept = b("Unsqueeze", sequence.real, b.constant([2]))
        found = b.reduce("ReduceMax", b("Where", kept, states, b.constant(_LOWEST, np.float32)), 1)
        return b("Squeeze", found, b.constant([1]))
    total = b("Cast", sequence.total, to=TensorProto.FLOAT)
    mask = b("Cast", sequence.mask, to=TensorProto.FLOAT)
    match pooling:
        case "cls":
            weights = b("Mul", mask, b("Cast", b("Equal", sequence.row, b.constant(0)), to=TensorProto.FLOAT))
        case "lasttoken":
            last = b("Equal", sequence.row, b("Sub", sequence.total, b.constant(1)))
            weights = b("Cast", last, to=TensorProto.FLOAT)
        case "weightedmean":
            later = b("Mul", b("Cast", b("Add", sequence.row, b.constant(1)), to=TensorProto.FLOAT), mask)
            weights = b("Div", later, b.reduce("ReduceSum", later, 1))
        case "mean":
            weights = b("Div", mask, total)
        case _:
            weights = b("Div", mask, b("Sqrt", total))
    return b("Squeeze", b("MatMul", b("Unsqueeze", weights, b.constant([1])), states), b.constant([1]))


def _finish(
    b: _Nodes, model: ModelProto, before: Sequence[NodeProto], found: str, spec: GraphSpec, size: int, model_id: str
) -> ModelProto:
    (output,) = spec.outputs
    b.nodes.append(helper.make_node("Identity", [found], [output]))
    graph = model.graph
    nodes = [*before, *graph.node, *b.nodes]
    del graph.node[:], graph.input[:], graph.output[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend(b.constants)
    for name, tensor in spec.inputs.items():
        kind = TensorProto.INT64 if tensor.dtype == "int64" else TensorProto.FLOAT
        axes = [size if axis == "dim" else axis for axis in tensor.axes]
        graph.input.append(helper.make_tensor_value_info(name, kind, axes))
    graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", size]))
    clean(model, model_id)
    return model
