"""Exports to ONNX that a run of the tests makes, each in less time: what torch builds anew for each is kept."""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch._dynamo.config
from torch import Tensor, nn
from torch.onnx._internal.exporter._registration import ONNXRegistry

from core.graph import GraphSpec

Export = Callable[..., None]  # of `training.publish.export`: module, example, spec, path, and names
_EXPORTED: dict[str, bytes] = {}  # by what was exported


def faster_exports() -> None:
    """Have torch keep what it builds anew for each export, and keep nothing of what costs more to find again.

    It reads all of its five hundred operators each time, and remembers the shape of each output by its sizes, which
    are symbols here: each takes a quarter of an export's time.
    """
    torch._dynamo.config.fake_tensor_cache_enabled = False
    ONNXRegistry.from_torchlib = staticmethod(functools.cache(ONNXRegistry.from_torchlib))  # type: ignore[method-assign]


def remembering(write: Export) -> Export:
    """An export that gives the bytes of an earlier one to the same weights and settings."""

    @functools.wraps(write)
    def export(module: nn.Module, example: tuple[Tensor, ...], spec: GraphSpec, path: Path, *names: Any) -> None:
        weights = [(name, value.cpu().numpy().tobytes()) for name, value in module.state_dict().items()]
        settings = [str(each.__dict__.get("config")) for each in module.modules()]
        what = repr([spec.kind, str(module), settings, names, weights, [each.shape for each in example]])
        key = hashlib.sha256(what.encode()).hexdigest()
        if key not in _EXPORTED:
            write(module, example, spec, path, *names)
            _EXPORTED[key] = path.read_bytes()
        path.write_bytes(_EXPORTED[key])

    return export
