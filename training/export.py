"""torch modules -> ONNX graphs that keep the contract.

Names, axes and opset come from `contract.graph`; the example sizes are arbitrary, and `training/parity.py` proves
that no other size was frozen in. Words that several models share can be left outside a graph: it then keeps their
names, types and shapes only (`contract.tensors`).
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx
import torch
from onnx import AttributeProto, GraphProto, TensorProto
from torch import Tensor, nn

from contract.graph import CONTRACT_VERSION, ENCODER, EXPLANATION, HEAD, OPSET, PAIR, GraphSpec
from training.architectures import InteractionNetwork
from training.models import InteractionModel

logger = logging.getLogger(__name__)
# It warns of each torchvision operator it cannot register; we have none.
logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)


def export_encoder(encoder: nn.Module, path: Path, model_id: str) -> None:
    """Write a siamese encoder as an ENCODER graph."""
    example = (torch.tensor([[1, 2, 3], [4, 5, 0]]), torch.tensor([3, 2]))
    _export(encoder, example, ENCODER, path, model_id)


def export_head(head: nn.Module, dim: int, path: Path, model_id: str) -> None:
    """Write a head over two embeddings of width `dim` as a HEAD graph."""
    _export(head, (torch.randn(3, dim), torch.randn(3, dim)), HEAD, path, model_id)


def export_pair(model: InteractionModel, path: Path, model_id: str, outside: Sequence[str] = ()) -> None:
    """Write an interaction model as a PAIR graph; both orders, where it reads both, are in it.

    `outside`: names of the initializers that stay outside the graph.
    """
    _export(model, _PAIRS, PAIR, path, model_id, outside)


def export_explanation(network: InteractionNetwork, path: Path, model_id: str, outside: Sequence[str] = ()) -> None:
    """Write what an interaction network shows as an EXPLANATION graph; initializers are called as in its PAIR graph."""
    _export(Matrices(network), _PAIRS, EXPLANATION, path, model_id, outside)


class Matrices(nn.Module):
    """An interaction network that answers with its matrices [B, M, S, T]."""

    def __init__(self, network: InteractionNetwork) -> None:
        """`network` is called as an `InteractionModel` calls its own."""
        super().__init__()
        self.network = network

    def forward(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """Ids and lengths of both sentences -> matrices."""
        return self.network.matrices(input_ids_a_BS, lengths_a_B, input_ids_b_BT, lengths_b_B)


_PAIRS = (
    torch.tensor([[1, 2, 3, 4, 5], [4, 5, 0, 0, 0], [1, 1, 2, 0, 0]]),
    torch.tensor([5, 2, 3]),
    torch.tensor([[5, 4, 3, 2], [1, 0, 0, 0], [2, 1, 1, 2]]),
    torch.tensor([4, 1, 4]),
)


def _export(
    module: nn.Module,
    example: tuple[Tensor, ...],
    spec: GraphSpec,
    path: Path,
    model_id: str,
    outside: Sequence[str] = (),
) -> None:
    module = module.cpu().eval()
    # `batch` must be one symbol in all inputs, or the exporter would let them differ.
    axes = dict.fromkeys(axis for tensor in spec.inputs.values() for axis in tensor.dynamic_axes().values())
    dims = {axis: torch.export.Dim(axis) for axis in axes}
    shapes = tuple({i: dims[axis] for i, axis in tensor.dynamic_axes().items()} for tensor in spec.inputs.values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own deprecations
        program = torch.onnx.export(
            module,
            example,
            input_names=list(spec.inputs),
            output_names=list(spec.outputs),
            dynamic_shapes=shapes,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    _clean(model, spec, model_id)
    onnx.checker.check_model(model, full_check=True)
    _leave_outside(model.graph, outside)
    path.write_bytes(model.SerializeToString(deterministic=True))
    logger.info("wrote %s, %d bytes", path, path.stat().st_size)


def _clean(model: onnx.ModelProto, spec: GraphSpec, model_id: str) -> None:
    """Drop the exporter's notes (they hold source paths of this machine) and name the outputs' axes."""
    del model.metadata_props[:]
    for graph in _graphs(model.graph):
        for owner in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
            del owner.metadata_props[:]
            owner.doc_string = ""
        _merge_equal(graph)
        _drop_unused(graph)
    model.doc_string = ""
    model.producer_name, model.producer_version = "semblance", ""
    for value in model.graph.output:
        axes = spec.outputs[value.name].dynamic_axes()
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            # Only a symbol gets its name: a number here is a frozen axis, which the parity check must see.
            if i in axes and not dim.HasField("dim_value"):
                dim.dim_param = axes[i]
    for key, content in (("semblance.model", model_id), ("semblance.contract", str(CONTRACT_VERSION))):
        entry = model.metadata_props.add()
        entry.key, entry.value = key, content


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and the bodies of its loops."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _merge_equal(graph: GraphProto) -> None:
    """Have readers of equal initializers read one of them: runtimes merge nodes only where all inputs are the same.

    A model that reads a pair in both orders would run each of its LSTMs twice, for their biases are folded one by one.
    """
    first: dict[bytes, str] = {}
    renamed = {}
    for tensor in graph.initializer:
        name, tensor.name = tensor.name, ""
        renamed[name] = first.setdefault(tensor.SerializeToString(deterministic=True), name)
        tensor.name = name
    for inner in _graphs(graph):
        for node in inner.node:
            for i, name in enumerate(node.input):
                node.input[i] = renamed.get(name, name)


def _drop_unused(graph: GraphProto) -> None:
    """Initializers that nothing reads; ONNX Runtime would drop them too, with a warning for each."""
    read = {name for each in _graphs(graph) for node in each.node for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _leave_outside(graph: GraphProto, names: Sequence[str]) -> None:
    """Keep of these initializers only name, type and shape.

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
        # ONNX asks for one; no runtime looks there that is given the tensor under its name.
        entry.key, entry.value = "location", name
