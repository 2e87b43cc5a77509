"""Weights of a graph in int8 or float16.

Of int8, matrices have a scale for every 32 weights of an output, tables one for each row.

The runtime makes matrices float32 again once, when it opens the graph; activations stay float32. With int8 activations
(`DequantizeLinear`, which ONNX Runtime turns into `MatMulNBits`, or that itself) a run takes a fifth to a third less
time and a third of the memory, but the other texts of a batch move a score by 4e-3 to 8e-3 (here: 1e-7): padding moves
a sum's last bit, and the layers enlarge it. With one scale for each output the cross-encoder's logits move by .28 to
1.68, with blocks of 32 by .02 to .10.
"""

import math
from collections import defaultdict
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

BLOCK = 32  # weights that share a scale; fewer where the inputs are no multiple of it
_LEAST = 1024  # weights of what is worth it


def quantise(model: ModelProto, storage: Literal["int8", "float16"] = "int8") -> int:
    """Give a graph weights in int8 or float16, in place; returns how many weights."""
    graph = model.graph
    uses: dict[str, list[tuple[NodeProto, int]]] = defaultdict(list)
    for node in graph.node:
        for i, name in enumerate(node.input):
            uses[name].append((node, i))
    count = 0
    kept: list[TensorProto] = []
    nodes: list[NodeProto] = []
    instead: dict[str, list[NodeProto]] = {}  # of the node with that output
    for tensor in graph.initializer:
        axis = _axis(uses[tensor.name])
        if tensor.data_type != TensorProto.FLOAT or len(tensor.dims) != 2 or axis is None or _size(tensor) < _LEAST:
            kept.append(tensor)
            continue
        values = numpy_helper.to_array(tensor)
        count += values.size
        if axis == "rows":
            readers = [node for node, _ in uses[tensor.name]]
            constants, replaced = (_table if storage == "int8" else _half_table)(tensor.name, values, readers)
            instead |= replaced
        elif storage == "int8":
            constants, before = _matrix(tensor.name, values, axis)
            nodes += before
        else:
            constants = [_half(tensor.name, values)]
            nodes.append(helper.make_node("Cast", [constants[0].name], [tensor.name], to=TensorProto.FLOAT))
        kept += constants
    for node in graph.node:
        nodes += instead.get(node.output[0], [node])
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(kept)
    graph.node.extend(nodes)
    return count


def _axis(uses: list[tuple[NodeProto, int]]) -> Any:
    """How a table is read: "rows", or the axis of a matrix's inputs; None: otherwise, or in several ways."""
    found: set[str | int | None] = set()
    for node, i in uses:
        transposed = any(each.name == "transB" and each.i for each in node.attribute)
        match node.op_type, i:
            case "Gather", 0:
                axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
                found.add("rows" if axis == 0 else None)
            case "MatMul", 1:
                found.add(0)
            case "Gemm", 1:
                found.add(1 if transposed else 0)
            case "Transpose", 0:
                found.add(1)
            case _:
                found.add(None)
    return found.pop() if len(found) == 1 else None


def _size(tensor: TensorProto) -> int:
    return math.prod(tensor.dims)


def _codes(values: npt.NDArray[Any], axis: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """code = round(127 * value / the largest along the axis), and what a step is."""
    scale = np.maximum(np.abs(values).max(axis=axis, keepdims=True), 1e-12).astype(np.float32) / np.float32(127)
    return np.round(values / scale).astype(np.int8), scale


def _matrix(name: str, values: npt.NDArray[Any], axis: int) -> tuple[list[TensorProto], list[NodeProto]]:
    size = math.gcd(values.shape[axis], BLOCK)
    shape = [*values.shape[:axis], values.shape[axis] // size, size, *values.shape[axis + 1 :]]
    codes, scale = _codes(values.reshape(shape), axis + 1)
    constants = [
        numpy_helper.from_array(codes, f"{name}/codes"),
        numpy_helper.from_array(scale, f"{name}/scale"),
        numpy_helper.from_array(np.array(values.shape), f"{name}/shape"),
    ]
    nodes = [
        helper.make_node("Cast", [f"{name}/codes"], [f"{name}/whole"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{name}/whole", f"{name}/scale"], [f"{name}/blocks"]),
        helper.make_node("Reshape", [f"{name}/blocks", f"{name}/shape"], [name]),
    ]
    return constants, nodes


def _table(
    name: str, values: npt.NDArray[Any], readers: list[NodeProto]
) -> tuple[list[TensorProto], dict[str, list[NodeProto]]]:
    """Rows are made float32 after they are gathered: the table stays small in memory."""
    codes, scale = _codes(values, 1)
    instead = {}
    for i, reader in enumerate(readers):
        ids, output, at = reader.input[1], reader.output[0], f"{name}/{i}"
        instead[output] = [
            helper.make_node("Gather", [f"{name}/codes", ids], [f"{at}/codes"]),
            helper.make_node("Gather", [f"{name}/scale", ids], [f"{at}/scale"]),
            helper.make_node("Cast", [f"{at}/codes"], [f"{at}/whole"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"{at}/whole", f"{at}/scale"], [output]),
        ]
    parts = [numpy_helper.from_array(codes, f"{name}/codes"), numpy_helper.from_array(scale, f"{name}/scale")]
    return parts, instead


def _half(name: str, values: npt.NDArray[Any]) -> TensorProto:
    largest = np.finfo(np.float16).max
    return numpy_helper.from_array(np.clip(values, -largest, largest).astype(np.float16), f"{name}/half")


def _half_table(
    name: str, values: npt.NDArray[Any], readers: list[NodeProto]
) -> tuple[list[TensorProto], dict[str, list[NodeProto]]]:
    """The table as `_table` makes it, with rows in float16."""
    half = _half(name, values)
    instead = {
        reader.output[0]: [
            helper.make_node("Gather", [half.name, reader.input[1]], [f"{name}/{i}/half"]),
            helper.make_node("Cast", [f"{name}/{i}/half"], [reader.output[0]], to=TensorProto.FLOAT),
        ]
        for i, reader in enumerate(readers)
    }
    return [half], instead
