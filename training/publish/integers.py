"""Weights of a graph in int8, multiplied as integers: an answer is the same in any batch and on any x86 CPU with AVX2.

A `MatMul` or `Gemm` with constant weights W [in, out] becomes, for its input x [..., in]:

    t = max |x| / 127, at least 1e-12        over the last axis: one number for each token
    q = round(x / t) + 128                   uint8
    s = max |W| of each column / 63,  C = round(W / s)      int8, at most 63: 7 bits
    x W = ((q - 128) C) s t                  of integers, exact on every CPU

What a GELU gives is never below -0.1701, so that 128 is 24 there, and t = max(max x, 1.64) / 231.

A token's step is its own, so its row is the same whatever stands beside it, and sums of integers have no order. One
quantisation of x serves all matrices that read it. Two products of 8 and 7 bits fit into the 16 bits in which a CPU
without VNNI adds them; with 8 bits of weights they would not.

What stands between the products is float32. Of ONNX Runtime's operators there, softmax alone sums in another order on
another x86 CPU; one digit that differs would move a code, and later ones. So a softmax becomes e / sum e of operators
that all these CPUs compute alike. On ARM other digits follow, as far off as the rounding itself (`core.golden`).

A table of rows that a `Gather` reads has a scale for each row, and a row becomes float32 once it is gathered. Products
of two activations, norms and biases stay float32.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from training.publish.graphs import graphs_in

CODES, SCALE, HALF = ".codes", ".scale", ".half"  # after the name of the weights
CONTRIB = "com.microsoft"  # ONNX Runtime's own operators
MIN_MATRIX, NARROWEST = 1_024, 16  # weights of a matrix that is worth it, and its shorter side: heads stay exact
MIN_TABLE = 1_000_000  # of a table: one of positions is small beside one of words, and counts in every text
COLUMN_STEPS, TABLE_STEPS = 63, 127  # of the largest value
_LEAST = 1e-12  # of a scale
_GELUS = ("Gelu", "FastGelu", "BiasGelu")
Matrix = npt.NDArray[np.float32]


class _Rows(NamedTuple):
    """How rows are quantised: the code of 0, and the largest value that a step is made for where none is larger."""

    name: str
    zero: int
    largest: float

    @property
    def steps(self) -> int:
        """Of the largest value."""
        return 255 - self.zero


_SIGNED = _Rows("signed", 128, 127 * _LEAST)
_OF_GELU = _Rows("gelu", 24, 0.1701 / 24 * (255 - 24))


class _Use(NamedTuple):
    """How a node reads a constant: as a table, or as a matrix, transposed or not."""

    node: NodeProto
    kind: Literal["table", "matrix", "transposed"] | None  # None: in another way


def to_integers(model: ModelProto, *, products: bool = True) -> int:
    """Give a graph integer products and tables in int8, in place; returns how many weights are int8.

    Without `products` the weights are the same and become float32 when the graph is opened: for a GPU, where ONNX
    Runtime multiplies no integers.
    """
    graph = model.graph
    # From opset 18 on the axes of ReduceMax are an input.
    opset = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    _fold_transposes(graph)
    gelus = {output for node in graph.node if node.op_type in _GELUS for output in node.output}
    builder, count = _Builder(opset, gelus), 0
    for name, values, uses in _weights(graph):
        size, is_table = values.size, uses[0].kind == "table"
        if size < (MIN_TABLE if is_table else MIN_MATRIX) or min(values.shape) < NARROWEST:
            continue
        count += size
        readers = [use.node for use in uses]
        if is_table:
            builder.table(name, values, readers)
        elif products:
            builder.matrix(name, values.T if uses[0].kind == "transposed" else values, readers)
        else:
            builder.codes(name, values, 1 if uses[0].kind == "transposed" else 0)
    if builder.multiplies:
        for node in graph.node:
            if node.op_type == "Softmax":
                builder.softmax(node)
        if all(each.domain != CONTRIB for each in model.opset_import):
            model.opset_import.append(helper.make_opsetid(CONTRIB, 1))
    builder.finish(graph)
    return count


def to_half(model: ModelProto) -> int:
    """Store matrices and tables of a graph in float16, in place; returns how many weights.

    The runtime makes matrices float32 once, when it opens the graph; rows of a table when they are gathered.
    """
    _fold_transposes(model.graph)
    builder, count = _Builder(0, ()), 0
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
        elif not name.endswith(SCALE) and np.issubdtype(array.dtype, np.floating):
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

    def __init__(self, opset: int, gelus: Collection[str]) -> None:
        self._opset = opset
        self._gelus = gelus  # values that are never below -0.1701
        self._instead: dict[str, list[NodeProto]] = {}  # of the node with that output
        self._constants: dict[str, TensorProto] = {}
        self._first: list[NodeProto] = []  # before all others
        self._gone: set[str] = set()
        self._rows: dict[str, tuple[str, str]] = {}  # a value -> its quantised rows, and what a step of each is

    @property
    def multiplies(self) -> bool:
        """Whether any product is one of integers."""
        return bool(self._rows)

    def matrix(self, name: str, values: Matrix, readers: list[NodeProto]) -> None:
        """Replace products with a matrix [in, out]."""
        codes, scale = _codes(values, 0, COLUMN_STEPS)
        self._gone.add(name)
        self._constant(name + CODES, np.ascontiguousarray(codes))
        self._constant(name + SCALE, scale[0])
        for node in readers:
            output, x = node.output[0], node.input[0]
            kind = _OF_GELU if x in self._gelus else _SIGNED
            before, rows, step = self._quantised(x, kind)
            biased = node.op_type == "Gemm" and len(node.input) > 2 and bool(node.input[2])
            product = f"{output}/product" if biased else output
            factors = [rows, name + CODES, self._number("one", 1), name + SCALE, f"rows/{kind.name}/zero"]
            nodes = [
                helper.make_node("MatMulIntegerToFloat", factors, [f"{output}/of_codes"], domain=CONTRIB),
                helper.make_node("Mul", [f"{output}/of_codes", step], [product]),
            ]
            nodes += [helper.make_node("Add", [product, node.input[2]], [output])] if biased else []
            self._instead[output] = before + nodes

    def codes(self, name: str, values: Matrix, axis: int) -> None:
        """Store a matrix by the codes of `matrix`, which become float32 when the graph is opened."""
        codes, scale = _codes(values, axis, COLUMN_STEPS)
        self._gone.add(name)
        self._constant(name + CODES, np.ascontiguousarray(codes))
        self._constant(name + SCALE, scale)
        self._first += [
            helper.make_node("Cast", [name + CODES], [f"{name}/whole"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"{name}/whole", name + SCALE], [name]),
        ]

    def softmax(self, node: NodeProto) -> None:
        """Replace a softmax over the last axis; before opset 13 it had another meaning, and stays."""
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        if self._opset < 13 or attributes.get("axis", -1) not in (-1, 3):  # of attention, which has four axes
            return
        x, output = node.input[0], node.output[0]
        axes, last = self._last_axis()
        self._instead[output] = [
            helper.make_node("ReduceMax", [x, *axes], [f"{output}/most"], keepdims=1, **last),
            helper.make_node("Sub", [x, f"{output}/most"], [f"{output}/below"]),
            helper.make_node("Exp", [f"{output}/below"], [f"{output}/powers"]),
            helper.make_node("ReduceSum", [f"{output}/powers", self._axis()], [f"{output}/sum"], keepdims=1),
            helper.make_node("Div", [f"{output}/powers", f"{output}/sum"], [output]),
        ]

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

    def _quantised(self, x: str, kind: _Rows) -> tuple[list[NodeProto], str, str]:
        """Nodes, none where another product has them already; the rows uint8, and what a step of each is."""
        if x in self._rows:
            return [], *self._rows[x]
        at = f"{x}/rows"
        axes, last = self._last_axis()
        zero = self._constant(f"rows/{kind.name}/zero", np.uint8(kind.zero))
        nodes = [helper.make_node("ReduceMax", [x, *axes], [f"{at}/most"], keepdims=1, **last)]
        bounds = [f"{at}/most", self._number(f"{kind.name}/largest", kind.largest)]
        if kind is _SIGNED:
            nodes += [
                helper.make_node("ReduceMin", [x, *axes], [f"{at}/least"], keepdims=1, **last),
                helper.make_node("Neg", [f"{at}/least"], [f"{at}/below"]),
            ]
            bounds.append(f"{at}/below")
        nodes += [
            helper.make_node("Max", bounds, [f"{at}/width"]),
            helper.make_node("Mul", [f"{at}/width", self._number(f"{kind.name}/part", 1 / kind.steps)], [f"{at}/step"]),
            helper.make_node("Div", [self._number("one", 1), f"{at}/step"], [f"{at}/factor"]),
            helper.make_node("Mul", [x, f"{at}/factor"], [f"{at}/scaled"]),
            helper.make_node("QuantizeLinear", [f"{at}/scaled", self._number("one", 1), zero], [at]),
        ]
        self._rows[x] = at, f"{at}/step"
        return nodes, *self._rows[x]

    def _last_axis(self) -> tuple[list[str], dict[str, Any]]:
        """The last axis for ReduceMax and ReduceMin: as an input from opset 18 on, else as an attribute."""
        return ([self._axis()], {}) if self._opset >= 18 else ([], {"axes": [-1]})

    def _axis(self) -> str:
        return self._constant("rows/last", np.array([-1]))

    def _number(self, name: str, value: float) -> str:
        return self._constant(f"rows/{name}", np.float32(value))

    def _constant(self, name: str, values: npt.ArrayLike) -> str:
        self._constants.setdefault(name, numpy_helper.from_array(np.asarray(values), name))
        return name
