"""Exports to ONNX that a run of the tests makes: each once, whichever process asks for it, and in less time."""

import functools
import gc
import hashlib
import os
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import onnx
import pytest
import torch._dynamo.config
from onnxscript.rewriter import RewriteRule
from torch import Tensor, nn
from torch._export import utils
from torch.onnx._internal.exporter._registration import ONNXRegistry

EXPORT = torch.onnx.export  # as it is
REWRITE = RewriteRule.try_rewrite


def faster_exports() -> None:
    """Have torch keep what it builds anew for each export, and keep nothing of what costs more to find again.

    It reads all of its five hundred operators each time, and remembers the shape of each output by its sizes, which
    are symbols here: each takes a quarter of an export's time. A tenth goes to its optimiser, which tries each rule at
    each node, though most are for another operator.
    """
    torch._dynamo.config.fake_tensor_cache_enabled = False
    ONNXRegistry.from_torchlib = staticmethod(functools.cache(ONNXRegistry.from_torchlib))  # type: ignore[method-assign]
    utils._collect_all_valid_cia_ops_for_namespace = functools.cache(utils._collect_all_valid_cia_ops_for_namespace)
    RewriteRule.try_rewrite = _rewritten  # type: ignore[assignment,method-assign]


def _rewritten(rule: RewriteRule, model: Any, graph: Any, node: Any, **options: Any) -> Any:
    """What a rule makes of a node, of which it is only asked where its first operator is the node's."""
    wanted = rule._target_pattern.output_nodes[0].op_identifier()
    if wanted is not None and wanted != node.op_identifier():
        return None
    return REWRITE(rule, model, graph, node, **options)


@pytest.fixture(autouse=True, scope="session")
def exports_are_kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The same weights, code and settings give the same graph (which `test_export.py` makes sure of): it lies in a
    folder that all processes of the run read. A graph of something else would fail the check against its module."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "exported-graphs"
    folder.mkdir(exist_ok=True)

    def export(module: nn.Module, example: tuple[Tensor, ...], **settings: Any) -> SimpleNamespace:
        path = folder / f"{_key(module, example, settings)}.onnx"
        if not path.exists():
            gc.disable()  # it would look through all that an export builds, again and again
            try:
                program = EXPORT(module, example, **settings)
            finally:
                gc.enable()
            assert program is not None
            written = path.with_suffix(f".{os.getpid()}")
            written.write_bytes(program.model_proto.SerializeToString(deterministic=True))
            written.replace(path)
        return SimpleNamespace(model_proto=onnx.load(path))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.onnx, "export", export)
        yield


def _key(module: nn.Module, example: Sequence[Tensor], settings: dict[str, Any]) -> str:
    found = hashlib.sha256(repr([settings, *example]).encode())
    for name, each in module.named_modules():
        # transformers' modules say where they were read from.
        own = {
            key: _without_names(value)
            for key, value in vars(each).items()
            if not key.startswith("_") and key != "name_or_path"
        }
        plain = {key: value for key, value in own.items() if _is_plain(value)}
        code = getattr(each.forward, "__qualname__", ""), type(each).__module__, type(each).__qualname__
        found.update(repr([name, code, repr(each), plain]).encode())
    for name, value in module.state_dict().items():
        found.update(repr([name, value.dtype, value.shape]).encode() + value.cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


def _without_names(value: Any) -> Any:
    """Of transformers' settings those that a graph can follow from: not where they lay, nor what outputs are called."""
    if not hasattr(value, "to_diff_dict"):
        return value
    return {key: each for key, each in value.to_dict().items() if key not in ("_name_or_path", "id2label", "label2id")}


def _is_plain(value: object) -> bool:
    """Whether its text says all of it."""
    return " at 0x" not in repr(value) and not isinstance(value, Tensor | nn.Module)
