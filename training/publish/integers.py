"""Weights of a graph in int8, multiplied as integers, so that an answer does not depend on the others of its batch.

A `MatMul` or `Gemm` with constant weights W [in, out] becomes, for its input x [..., in]:

    l = min x, t = (max x - min x) / 255, at least 1e-12    over the last axis: two numbers for each token
    q = round((x - l) / t)                                  uint8
    s = max |W| of each column / 63,  C = round(W / s)      int8, at most 63: 7 bits
    x W = (q C) t s + l (1 C) s                             q C is of integers, exact on every CPU

A token's least value and step are its own, so its row is the same whatever stands beside it, and sums of integers have
no order. One quantisation of x serves all matrices that read it. Two products of 8 and 7 bits fit into the 16 bits in
which a CPU without VNNI adds them; with 8 bits of weights they would not.

What stands between the products is float32, whose last digits follow from the CPU's kernels; where one moves a code,
later ones move too. So another CPU gives other answers, as far off as the rounding itself (`core.golden`).

A table of rows that a `Gather` reads has a scale for each row, and a row becomes float32 once it is gathered. Products
of two activations, norms and biases stay float32.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from training.publish.graphs import graphs_in

CODES, SCALE, SUMS, HALF = ".codes", ".scale", ".sums", ".half"  # after the name of the weights
MIN_MATRIX, NARROWEST = 1_024, 16  # weights of a matrix that is worth it, and its shorter side: heads stay exact
MIN_TABLE = 1_000_000  # of a table: one of positions is small beside one of words, and counts in every text
ROW_STEPS, COLUMN_STEPS, TABLE_STEPS = 255, 63, 127  # of a row's range; of the largest value
_LEAST = 1e-12  # of a scale
Matrix = npt.NDArray[np.float32]


class _Use(NamedTuple):
    """How a node reads a constant: as a table, or as a matrix, transposed or not."""

    node: NodeProto
    kind: Literal["table", "matrix", "transposed"] | None  # None: in another way


def to_integers(model: ModelProto) -> int:
    """Give a graph integer products and tables in int8, in place; returns how many weights are int8."""
    graph = model.graph
    # From opset 18 on the axes of ReduceMax are an input.
    opset = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    _fold_transposes(graph)
    builder, count = _Builder(opset), 0
    for name, values, uses in _weights(graph):
        size, is_table = values.size, uses[0].kind == "table"
        if size < (MIN_TABLE if is_table else MIN_MATRIX) or min(values.shape) < NARROWEST:
            continue
        count += size
        if is_table:
            builder.table(name, values, [use.node for use in uses])
        else:
            builder.matrix(name, values.T if uses[0].kind == "transposed" else values, [use.node for use in uses])
    builder.finish(graph)
    return count


def to_half(model: ModelProto) -> int:
    """Store matrices and tables of a graph in float16, in place; returns how many weights.

    The runtime makes matrices float32 once, when it opens the graph; rows of a table when they are gathered.
    """
    _fold_transposes(model.graph)
    builder, count = _Builder(0), 0
    for name, values, uses in _weights(model.graph):
        count += values.size
        builder.half(name, values, [use.node for use in uses] if uses[0].kind == "table" else [])
    builder.finish(model.graph)
    return count


def float_weights(arrays: Mapping[str, npt.NDArray[np.generic]]) -> dict[str, Matrix]:
    """The weights of a graph as float32, by their names before `to_integers` or `to_half`, or as they are."""
    found: dict[str, Matrix] = {}
    for name, array in arrays.items():
        if name.endswith(CODES):
            owner = name.removesuffix(CODES)
            found[owner] = array.astype(np.float32) * np.asarray(arrays[owner + SCALE], np.float32)
        elif not name.endswith((SCALE, SUMS)) and np.issubdtype(array.dtype, np.floating):
            found[name.removesuffix(HALF)] = array.astype(np.float32)
    return found


def _fold_transposes(graph: GraphProto) -> None:
    """Turn constants round where a node would; a constant may be read both ways."""
    constants = {tensor.name: tensor for tensor in graph.initializer if len(tensor.dims) == 2}
    for node in list(graph.node):
        if node.op_type == "Transpose" and node.input[0] in constants:
            values = numpy_helper.to_array(constants[node.input[0]])
            graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values.T), node.output[0]))
            graph.node.remove(node)
    read = {name for node in graph.node for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in read or tensor.name not in constants]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _weights(graph: GraphProto) -> list[tuple[str, Matrix, list[_Use]]]:
    """The constants of float32 in the file with two axes that every node reads in the same way, and their readers."""
    uses: dict[str, list[_Use]] = defaultdict(list)
    for node in graph.node:
        for place, name in enumerate(node.input):
            uses[name].append(_Use(node, _kind(node, place)))
    for body in [each for each in graphs_in(graph) if each is not graph]:
        for node in body.node:
            for name in node.input:
                uses[name].append(_Use(node, None))
    found = []
    for tensor in graph.initializer:
        kinds, inside = {use.kind for use in uses[tensor.name]}, not tensor.external_data
        is_matrix = tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 2
        if is_matrix and inside and len(kinds) == 1 and None not in kinds:
            found.append((tensor.name, numpy_helper.to_array(tensor), uses[tensor.name]))
    return found


def _kind(node: NodeProto, place: int) -> Literal["table", "matrix", "transposed"] | None:
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    match node.op_type, place:
        case "Gather", 0 if attributes.get("axis", 0) == 0:
            return "table"
        case "MatMul", 1:
            return "matrix"
        case "Gemm", 1 if not attributes.get("transA") and attributes.get("alpha", 1.0) == 1.0 == attributes.get(
            "beta", 1.0
        ):
            return "transposed" if attributes.get("transB") else "matrix"
    return None


def _codes(values: Matrix, axis: int, steps: int) -> tuple[npt.NDArray[np.int8], Matrix]:
    """code = round(steps * value / the largest along the axis), and what a step is."""
    scale = np.maximum(np.abs(values).max(axis=axis, keepdims=True), _LEAST).astype(np.float32) / np.float32(steps)
    return np.round(values / scale).astype(np.int8), scale


class _Builder:
    """The nodes that take the place of others, and the constants that they read."""

    def __init__(self, opset: int) -> None:
        self._opset = opset
        self._instead: dict[str, list[NodeProto]] = {}  # of the node with that output
        self._constants: dict[str, TensorProto] = {}
        self._first: list[NodeProto] = []  # before all others
        self._gone: set[str] = set()
        self._rows: dict[str, tuple[str, str, str]] = {}  # a value -> its quantised rows, their steps and least values

    def matrix(self, name: str, values: Matrix, readers: list[NodeProto]) -> None:
        """Replace products with a matrix [in, out]."""
        codes, scale = _codes(values, 0, COLUMN_STEPS)
        self._gone.add(name)
        self._constant(name + CODES, np.ascontiguousarray(codes))
        self._constant(name + SCALE, scale[0])
        self._constant(name + SUMS, codes.sum(axis=0, dtype=np.float32) * scale[0])
        for node in readers:
            output, x = node.output[0], node.input[0]
            before, rows, step, least = self._quantised(x)
            biased = node.op_type == "Gemm" and len(node.input) > 2 and bool(node.input[2])
            product = f"{output}/product" if biased else output
            nodes = [
                helper.make_node("MatMulInteger", [rows, name + CODES], [f"{output}/sums"], name=f"{output}/sums"),
                helper.make_node("Cast", [f"{output}/sums"], [f"{output}/whole"], to=TensorProto.FLOAT),
                helper.make_node("Mul", [f"{output}/whole", step], [f"{output}/of_token"]),
                helper.make_node("Mul", [f"{output}/of_token", name + SCALE], [f"{output}/above"]),
                helper.make_node("Mul", [least, name + SUMS], [f"{output}/least"]),
                helper.make_node("Add", [f"{output}/above", f"{output}/least"], [product]),
            ]
            nodes += [helper.make_node("Add", [product, node.input[2]], [output])] if biased else []
            self._instead[output] = before + nodes

    def table(self, name: str, values: Matrix, readers: list[NodeProto]) -> None:
        """Replace the gathering of rows [rows, width]."""
        codes, scale = _codes(values, 1, TABLE_STEPS)
        self._gone.add(name)
        self._constant(name + CODES, codes)
        self._constant(name + SCALE, scale)
        for node in readers:
            output = node.output[0]
            self._instead[output] = [
                helper.make_node("Gather", [name + CODES, node.input[1]], [f"{output}/codes"]),
                helper.make_node("Gather", [name + SCALE, node.input[1]], [f"{output}/scale"]),
                helper.make_node("Cast", [f"{output}/codes"], [f"{output}/whole"], to=TensorProto.FLOAT),
                helper.make_node("Mul", [f"{output}/whole", f"{output}/scale"], [output]),
            ]

    def half(self, name: str, values: Matrix, gathers: list[NodeProto]) -> None:
        """Store weights in float16; `gathers`: what reads them as a table."""
        largest = np.finfo(np.float16).max
        self._gone.add(name)
        half = self._constant(name + HALF, np.clip(values, -largest, largest).astype(np.float16))
        if not gathers:
            self._first.append(helper.make_node("Cast", [half], [name], to=TensorProto.FLOAT))
        for node in gathers:
            output = node.output[0]
            self._instead[output] = [
                helper.make_node("Gather", [half, node.input[1]], [f"{output}/half"]),
                helper.make_node("Cast", [f"{output}/half"], [output], to=TensorProto.FLOAT),
            ]

    def finish(self, graph: GraphProto) -> None:
        """Put all of it into the graph."""
        nodes = [*self._first]
        for node in graph.node:
            nodes += self._instead.get(node.output[0], [node])
        kept = [tensor for tensor in graph.initializer if tensor.name not in self._gone]
        values = list(graph.value_info)
        del graph.initializer[:], graph.node[:], graph.value_info[:]
        graph.initializer.extend([*kept, *self._constants.values()])
        graph.node.extend(nodes)
        made = {output for node in nodes for output in node.output}
        graph.value_info.extend(info for info in values if info.name in made)

    def _quantised(self, x: str) -> tuple[list[NodeProto], str, str, str]:
        """Nodes, none where another product has them already; the rows uint8, what a step of each is, and its least."""
        if x in self._rows:
            return [], *self._rows[x]
        at = f"{x}/rows"
        last: dict[str, Any] = {} if self._opset >= 18 else {"axes": [-1]}
        axes = [self._constant("rows/last", np.array([-1]))] if self._opset >= 18 else []
        narrowest = self._constant("rows/narrowest", np.float32(_LEAST * ROW_STEPS))
        part, one = self._constant("rows/part", np.float32(1 / ROW_STEPS)), self._constant("rows/one", np.float32(1))
        nodes = [
            helper.make_node("ReduceMin", [x, *axes], [f"{at}/least"], keepdims=1, **last),
            helper.make_node("ReduceMax", [x, *axes], [f"{at}/most"], keepdims=1, **last),
            helper.make_node("Sub", [f"{at}/most", f"{at}/least"], [f"{at}/range"]),
            helper.make_node("Max", [f"{at}/range", narrowest], [f"{at}/width"]),
            helper.make_node("Mul", [f"{at}/width", part], [f"{at}/step"]),
            helper.make_node("Div", [one, f"{at}/step"], [f"{at}/factor"]),
            helper.make_node("Sub", [x, f"{at}/least"], [f"{at}/above"]),
            helper.make_node("Mul", [f"{at}/above", f"{at}/factor"], [f"{at}/scaled"]),
            helper.make_node("QuantizeLinear", [f"{at}/scaled", one, self._constant("rows/zero", np.uint8(0))], [at]),
        ]
        self._rows[x] = at, f"{at}/step", f"{at}/least"
        return nodes, *self._rows[x]

    def _constant(self, name: str, values: npt.ArrayLike) -> str:
        self._constants.setdefault(name, numpy_helper.from_array(np.asarray(values), name))
        return name
