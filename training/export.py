"""torch modules -> ONNX graphs that keep the contract.

Names, axes and opset come from `contract.graph`; the example sizes are arbitrary, and `training/parity.py` proves
that no other size was frozen in.
"""

import logging
import warnings
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn

from contract.graph import CONTRACT_VERSION, ENCODER, HEAD, OPSET, GraphSpec

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


def _export(module: nn.Module, example: tuple[Tensor, ...], spec: GraphSpec, path: Path, model_id: str) -> None:
    module = module.cpu().eval()
    # `batch` must be one symbol in all inputs, or the exporter would let them differ.
    dims = {axis: torch.export.Dim(axis) for tensor in spec.inputs.values() for axis in tensor.dynamic_axes().values()}
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
    path.write_bytes(model.SerializeToString(deterministic=True))
    logger.info("wrote %s, %d bytes", path, path.stat().st_size)


def _clean(model: onnx.ModelProto, spec: GraphSpec, model_id: str) -> None:
    """Drop the exporter's notes (they hold source paths of this machine) and name the outputs' axes."""
    for owner in (model, model.graph, *model.graph.node, *model.graph.input, *model.graph.output):
        del owner.metadata_props[:]
    for value in (*model.graph.value_info, *model.graph.initializer):
        del value.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
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
