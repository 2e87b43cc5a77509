"""ONNX graphs in memory: renamed, and cleaned of what exporters leave. Needs no torch."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, helper, numpy_helper

from core.graph import CONTRACT_VERSION
from training.errors import UserError

SHARED_BYTES = 65_536  # weights smaller than this stay in each graph


class ParityError(UserError):
    """A graph that differs from what it was made of; it is not published."""


def clean(model: ModelProto, model_id: str) -> None:
    """Remove the exporter's metadata (it contains local source paths) and what nothing reads, and name the model."""
    del model.metadata_props[:]
    for graph in graphs_in(model.graph):
        for owner in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
            del owner.metadata_props[:]
            owner.doc_string = ""
        _merge_equal(graph)
        _drop_unused(graph)
    model.doc_string = ""
    model.producer_name, model.producer_version = "semblance", ""
    helper.set_model_props(model, {"semblance.model": model_id, "semblance.contract": str(CONTRACT_VERSION)})


def graphs_in(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and the bodies of its loops."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from graphs_in(attribute.g)


def rename_values(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Give values other names wherever nodes, the bodies of loops too, read or write them, and to initializers."""
    for each in graphs_in(graph):
        for node in each.node:
            for values in (node.input, node.output):
                for i, name in enumerate(values):
                    values[i] = names.get(name, name)
        for tensor in each.initializer:
            tensor.name = names.get(tensor.name, tensor.name)


def leave_outside(graph: GraphProto, names: Sequence[str]) -> None:
    """Remove the data of these initializers; name, type and shape remain.

    Raises:
        ValueError: the graph has no such initializer.
    """
    inside = {tensor.name: tensor for tensor in graph.initializer}
    if missing := set(names) - set(inside):
        raise ValueError(f"no initializer {', '.join(sorted(missing))} to leave outside")
    for name in names:
        tensor = inside[name]
        for data in ("raw_data", "int32_data", "float_data"):
            tensor.ClearField(data)
        tensor.data_location = TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        # Required by ONNX; not used by a runtime that is given the tensor by name.
        entry.key, entry.value = "location", name


def share_weights(folder: Path) -> dict[str, str]:
    """Store weights that several graphs of a model's folder hold once, as `.npy` files outside of them.

    Returns:
        The files by the names of their initializers, for `Manifest.tensors`.
    """
    graphs = {path: onnx.load(path, load_external_data=False) for path in sorted(folder.glob("*.onnx"))}
    holders: dict[str, list[tuple[Path, TensorProto]]] = {}
    for path, model in graphs.items():
        for tensor in model.graph.initializer:
            holders.setdefault(tensor.name, []).append((path, tensor))
    files: dict[str, str] = {}
    for name, found in holders.items():
        tensor = found[0][1]
        # A graph with other weights of this name would be given these.
        alike = all(other.raw_data == tensor.raw_data and other.dims == tensor.dims for _, other in found)
        if len(found) > 1 and alike and len(tensor.raw_data) >= SHARED_BYTES:
            files[name] = f"weights.{len(files)}.npy"  # the initializer's name may be no file's
            np.save(folder / files[name], numpy_helper.to_array(tensor))
            for path, _ in found:
                leave_outside(graphs[path].graph, [name])
                path.write_bytes(graphs[path].SerializeToString(deterministic=True))
    return files


def _merge_equal(graph: GraphProto) -> None:
    """Replace equal initializers by one: runtimes merge nodes only if all inputs are the same initializers.

    A model that reads a pair in both orders would otherwise run each LSTM twice, as the exporter folds its biases
    twice.
    """
    first: dict[bytes, str] = {}
    renamed = {}
    for tensor in graph.initializer:
        name, tensor.name = tensor.name, ""
        renamed[name] = first.setdefault(tensor.SerializeToString(deterministic=True), name)
        tensor.name = name
    for inner in graphs_in(graph):
        for node in inner.node:
            for i, name in enumerate(node.input):
                node.input[i] = renamed.get(name, name)


def _drop_unused(graph: GraphProto) -> None:
    """Remove unused initializers; ONNX Runtime would warn about each."""
    read = {name for each in graphs_in(graph) for node in each.node for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)
