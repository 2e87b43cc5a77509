"""A transformer's module -> an ONNX graph with ordinary inputs, checked against the module and stored as wanted.

By torch's own exporter: optimum's releases ask for transformers before 5. Attention is the plain one ("eager"), whose
graph has nothing that depends on the sizes of the example.
"""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import torch
from onnx import ModelProto, numpy_helper
from torch import Tensor, nn

from core.graph import IDS, MASK, SEGMENTS, SLOW_FUSIONS
from core.manifest import Manifest
from core.tensors import load_tensors
from training.publish.export import exported
from training.publish.graphs import ParityError, clean, graphs_in, rename_values
from training.publish.integers import CODES, HALF, float_weights, to_half, to_integers

GraphStorage = Literal["int8", "float16", "float32"]
CUDA_SUFFIX = ".cuda.onnx"  # of the file that a GPU opens, after the name of the graph
TRANSPOSED = ".T"  # after the name of a matrix that the graph holds as [inputs, outputs]
TOLERANCE = 1e-5  # of ours
SIZES = ((1, 1), (1, 7), (5, 40), (3, 129))  # (batch, longest) that a graph is held against its module with


def network_graph(
    module: nn.Module,
    inputs: Sequence[str],
    output: str,
    vocabulary: int,
    longest: int,
    model_id: str,
    *,
    tolerance: float = TOLERANCE,
) -> ModelProto:
    """Export a module that reads sequences.

    Args:
        module: ids, a mask and perhaps segments [B, L] -> one tensor [B, ...].
        inputs: their names.
        output: its name.
        vocabulary: how many ids there are.
        longest: tokens that a sequence may have.
        model_id: what the graph says of itself.
        tolerance: how far a value may be from the module's; beyond 1 relative to it.

    Raises:
        ParityError: the graph does not compute what the module does.
    """
    module = module.cpu().eval()
    dims = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    rng = np.random.default_rng(0)
    example = tuple(
        torch.from_numpy(value) for value in _example(rng, inputs, vocabulary, 3, min(11, longest)).values()
    )
    with torch.no_grad():
        model = exported(module, example, inputs, [output], tuple(dims for _ in inputs))
    clean(model, model_id)
    _name_matrices(model, module)
    _check(model, module, inputs, vocabulary, longest, tolerance)
    return model


def store(model: ModelProto, storage: GraphStorage) -> int:
    """Give a graph its storage, in place; returns how many weights are no longer float32."""
    return 0 if storage == "float32" else (to_integers if storage == "int8" else to_half)(model)


def for_cuda(graph: ModelProto) -> ModelProto:
    """A copy of a graph with the weights that `store` gives it in int8, for a GPU, which multiplies no integers."""
    copied = ModelProto()
    copied.CopyFrom(graph)
    to_integers(copied, products=False)
    return copied


class StoredNetwork(nn.Module):
    """A network that runs as it is stored: its states come from its graph in ONNX Runtime."""

    def __init__(self, graph: ModelProto, storage: GraphStorage) -> None:
        """Take a graph of `StatesOfTokens`, which is stored in place."""
        super().__init__()
        store(graph, storage)
        self._session = _session(graph)
        self._inputs = [each.name for each in self._session.get_inputs()]

    def forward(self, **feeds: Tensor) -> Any:
        """Sequences [B, L] by the names of the inputs -> what has `last_hidden_state` [B, L, H]."""
        given = {name: feeds[name].cpu().numpy() for name in self._inputs}
        (states,) = self._session.run(None, given)
        return SimpleNamespace(last_hidden_state=torch.from_numpy(states))


def stored_weights(
    folder: Path, manifest: Manifest, graph: str
) -> tuple[dict[str, npt.NDArray[np.float32]], GraphStorage]:
    """All weights of a graph of a model folder in float32, by the names of the module they were exported from, and how
    they are stored. Of int8 they are their codes times their scales."""
    arrays: dict[str, npt.NDArray[np.generic]] = dict(load_tensors(folder, manifest))
    held = onnx.load(manifest.path_of(folder, graph), load_external_data=False).graph.initializer
    named = {tensor.name for tensor in held}
    arrays = {name: array for name, array in arrays.items() if name in named}
    arrays |= {tensor.name: numpy_helper.to_array(tensor) for tensor in held if tensor.name not in arrays}
    storage: GraphStorage = "float32"
    if any(name.endswith((CODES, HALF)) for name in arrays):
        storage = "int8" if any(name.endswith(CODES) for name in arrays) else "float16"
    weights = {
        name.removesuffix(TRANSPOSED): array.T if name.endswith(TRANSPOSED) else array
        for name, array in float_weights(arrays).items()
    }
    return weights, storage


def _session(model: ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"], disabled_optimizers=SLOW_FUSIONS
    )


def _name_matrices(model: ModelProto, module: nn.Module) -> None:
    """Name the matrices, which the exporter has turned round, by the module's names."""
    own = module.state_dict()
    known = {
        value.detach().float().T.contiguous().numpy().tobytes(): name + TRANSPOSED
        for name, value in own.items()
        if value.ndim == 2
    }
    named = {each.name for graph in graphs_in(model.graph) for each in graph.initializer}
    names = {
        tensor.name: known[tensor.raw_data]
        for tensor in model.graph.initializer
        # A matrix of one row has the bytes of its transpose: what has a name of the module keeps it.
        if len(tensor.dims) == 2 and tensor.name not in own
        if tensor.raw_data in known and known[tensor.raw_data] not in named
    }
    rename_values(model.graph, names)


def _example(
    rng: np.random.Generator, inputs: Sequence[str], vocabulary: int, batch: int, longest: int
) -> dict[str, npt.NDArray[np.int64]]:
    lengths = rng.integers(1, longest + 1, batch)
    lengths[0] = longest
    mask = (np.arange(longest) < lengths[:, None]).astype(np.int64)
    ids = rng.integers(3, vocabulary, (batch, longest)) * mask
    found = {IDS: ids, MASK: mask, SEGMENTS: mask * (np.arange(longest) > longest // 2)}
    return {name: found[name] for name in inputs}


def _check(
    model: ModelProto, module: nn.Module, inputs: Sequence[str], vocabulary: int, longest: int, tolerance: float
) -> None:
    session, rng = _session(model), np.random.default_rng(1)
    for batch, tokens in SIZES:
        feeds = _example(rng, inputs, vocabulary, batch, min(tokens, longest))
        try:
            (found,) = session.run(None, feeds)
            with torch.no_grad():
                wanted = module(*map(torch.from_numpy, feeds.values())).numpy()
        except Exception as error:  # onnxruntime's own share no public base class
            reason = str(error).splitlines()[0]
            raise ParityError(f"cannot run with {batch} x {min(tokens, longest)} tokens: {reason}") from error
        real = feeds[MASK].astype(bool) if found.ndim == 3 else slice(None)
        gap = float((np.abs(found - wanted) / np.maximum(1.0, np.abs(wanted)))[real].max())
        if not gap <= tolerance:  # NaN fails too
            raise ParityError(f"the graph differs from its module by {gap:.1e} with {batch} x {tokens} tokens")
