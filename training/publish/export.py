"""torch modules -> ONNX graphs that keep the contract.

Names, axes and opset come from `core.graph`; the example sizes are arbitrary, and `training.publish.parity`
checks that no size became fixed. Word vectors that several models share can be left outside a graph, which then has
only their names, types and shapes (`core.tensors`).
"""

import copy
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor, nn

from core.graph import ENCODER, EXPLANATION, HEAD, OPSET, PAIR, TOKENS, GraphSpec
from training.models import InteractionNetwork
from training.publish.graphs import clean, leave_outside

logger = logging.getLogger(__name__)
# It warns about each torchvision operator that it cannot register; none is used.
logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)


def export_encoder(encoder: nn.Module, path: Path, model_id: str, outside: Sequence[str] = ()) -> None:
    """Write a siamese encoder as an ENCODER graph; `outside`: names of the initializers that stay outside it."""
    _export(encoder, _SENTENCES, ENCODER, path, model_id, outside)


def export_tokens(encoder: nn.Module, path: Path, model_id: str, outside: Sequence[str] = ()) -> None:
    """Write the contribution of each token to a siamese encoder's embedding as a TOKENS graph; initializers have the
    same names as in its ENCODER graph."""
    _export(token_reader(encoder), _SENTENCES, TOKENS, path, model_id, outside)


def token_reader(encoder: nn.Module) -> nn.Module:
    """The same encoder, with the same names of its weights, whose output is `token_parts` [B, T, D]."""
    reader = copy.copy(encoder)
    reader.forward = reader.token_parts  # type: ignore[assignment]
    return reader


def export_head(head: nn.Module, dim: int, path: Path, model_id: str, spec: GraphSpec = HEAD) -> None:
    """Write a head over embeddings of width `dim` as a HEAD graph, or over one as a CLASSIFIER graph."""
    _export(head, tuple(torch.randn(3, dim) for _ in spec.inputs), spec, path, model_id)


def export_pair(model: nn.Module, path: Path, model_id: str, outside: Sequence[str] = ()) -> None:
    """Write an interaction model as a PAIR graph, with both orders if the model reads both.

    `outside`: names of the initializers that stay outside the graph.
    """
    _export(model, _PAIRS, PAIR, path, model_id, outside)


def export_explanation(network: InteractionNetwork, path: Path, model_id: str, outside: Sequence[str] = ()) -> None:
    """Write the matrices of an interaction network as an EXPLANATION graph; names are as in its PAIR graph."""
    _export(Matrices(network), _PAIRS, EXPLANATION, path, model_id, outside)


class Matrices(nn.Module):
    """An interaction network whose output is its matrices [B, M, S, T]."""

    def __init__(self, network: InteractionNetwork) -> None:
        """The attribute is named `network` as in `InteractionModel`, so that weights have the same names."""
        super().__init__()
        self.network = network

    def forward(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """Ids and lengths of both sentences -> matrices."""
        return self.network.matrices(input_ids_a_BS, lengths_a_B, input_ids_b_BT, lengths_b_B)


_SENTENCES = (torch.tensor([[1, 2, 3], [4, 5, 0]]), torch.tensor([3, 2]))
_PAIRS = (
    torch.tensor([[1, 2, 3, 4, 5], [4, 5, 0, 0, 0], [1, 1, 2, 0, 0]]),
    torch.tensor([5, 2, 3]),
    torch.tensor([[5, 4, 3, 2], [1, 0, 0, 0], [2, 1, 1, 2]]),
    torch.tensor([4, 1, 4]),
)


def exported(
    module: nn.Module,
    example: tuple[Tensor, ...],
    inputs: Sequence[str],
    outputs: Sequence[str],
    shapes: tuple[dict[int, Any], ...],
) -> onnx.ModelProto:
    """What torch's exporter makes of a module; `shapes`: of each input its axes of any size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own deprecations
        program = torch.onnx.export(
            module,
            example,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=shapes,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    return program.model_proto


def _export(
    module: nn.Module,
    example: tuple[Tensor, ...],
    spec: GraphSpec,
    path: Path,
    model_id: str,
    outside: Sequence[str] = (),
) -> None:
    module = module.cpu().eval()
    # `batch` must be the same symbol in all inputs; otherwise the exporter would allow different sizes.
    axes = dict.fromkeys(axis for tensor in spec.inputs.values() for axis in tensor.dynamic_axes().values())
    dims = {axis: torch.export.Dim(axis) for axis in axes}
    shapes = tuple({i: dims[axis] for i, axis in tensor.dynamic_axes().items()} for tensor in spec.inputs.values())
    model = exported(module, example, list(spec.inputs), list(spec.outputs), shapes)
    _clean(model, spec, model_id)
    onnx.checker.check_model(model, full_check=True)
    leave_outside(model.graph, outside)
    path.write_bytes(model.SerializeToString(deterministic=True))
    logger.info("wrote %s, %d bytes", path, path.stat().st_size)


def _clean(model: onnx.ModelProto, spec: GraphSpec, model_id: str) -> None:
    """Remove what the exporter left, and name the outputs' axes."""
    clean(model, model_id)
    for value in model.graph.output:
        axes = spec.outputs[value.name].dynamic_axes()
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            # Only a symbol is renamed: a number is a fixed axis, which the parity check must find.
            if i in axes and not dim.HasField("dim_value"):
                dim.dim_param = axes[i]
