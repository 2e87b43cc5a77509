"""What an exported file says about itself, and what it keeps to itself."""

from pathlib import Path

import onnx
import pytest
import torch
from onnx import helper
from torch import Tensor, nn

import training
from contract.errors import GraphMismatchError
from contract.graph import ENCODER, HEAD, OPSET, GraphSpec
from tests import toys
from training.export import _clean, export_encoder, export_head
from training.runtime import open_graph


def shapes(values: list[onnx.ValueInfoProto]) -> dict[str, list[str | int]]:
    return {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder and a head."""
    folder = tmp_path_factory.mktemp("exported")
    model = toys.model(heads=True)
    export_encoder(model.encoder, folder / "encoder.onnx", "toy-model")
    export_head(model.heads["similarity"], toys.DIM, folder / "head.onnx", "toy-model")
    return folder


@pytest.mark.parametrize(("name", "spec"), [("encoder", ENCODER), ("head", HEAD)])
def test_names_axes_and_opset_are_those_of_the_contract(exported: Path, name: str, spec: GraphSpec) -> None:
    model = onnx.load(exported / f"{name}.onnx")
    sizes = {"dim": toys.DIM, "outputs": 5}
    for values, tensors in ((model.graph.input, spec.inputs), (model.graph.output, spec.outputs)):
        assert shapes(values) == {n: [sizes.get(axis, axis) for axis in t.axes] for n, t in tensors.items()}
    assert [(o.domain, o.version) for o in model.opset_import] == [("", OPSET)]
    open_graph(exported / f"{name}.onnx", spec.kind)


def test_the_file_knows_its_model_and_contract(exported: Path) -> None:
    for name in ("encoder", "head"):
        model = onnx.load(exported / f"{name}.onnx")
        assert {p.key: p.value for p in model.metadata_props} == {
            "semblance.model": "toy-model",
            "semblance.contract": "1",
        }
        assert model.producer_name == "semblance"


def test_the_file_tells_nothing_of_the_machine_it_was_made_on(exported: Path) -> None:
    checkout = str(Path(training.__file__).parent.parent)
    for name in ("encoder", "head"):
        content = (exported / f"{name}.onnx").read_bytes()
        for trace in (checkout, "site-packages", ".py", "File ", "torch", "nn_module"):
            assert trace.encode() not in content


def test_the_same_module_gives_the_same_bytes(exported: Path, tmp_path: Path) -> None:
    model = toys.model(heads=True)
    export_encoder(model.encoder, tmp_path / "encoder.onnx", "toy-model")
    export_head(model.heads["similarity"], toys.DIM, tmp_path / "head.onnx", "toy-model")
    for name in ("encoder.onnx", "head.onnx"):
        assert (tmp_path / name).read_bytes() == (exported / name).read_bytes()


def test_dropout_is_not_exported(tmp_path: Path) -> None:
    class Dropping(nn.Module):
        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return nn.functional.dropout(a - b, 0.5, self.training)[:, :2]

    module = Dropping().train()
    export_head(module, 4, tmp_path / "head.onnx", "toy")
    run = open_graph(tmp_path / "head.onnx", "head")
    a = torch.randn(6, 4).numpy()
    assert run({"embedding_a": a, "embedding_b": 0 * a}).tolist() == a[:, :2].tolist()


def test_a_frozen_output_axis_is_not_painted_over(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    inputs = [value(name, onnx.TensorProto.FLOAT, ["batch", 2]) for name in HEAD.inputs]
    output = value("raw_output", onnx.TensorProto.FLOAT, [3, 2])
    node = helper.make_node("Sub", list(HEAD.inputs), ["raw_output"])
    graph = helper.make_graph([node], "frozen", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    _clean(model, HEAD, "toy")
    onnx.save(model, tmp_path / "head.onnx")
    with pytest.raises(GraphMismatchError, match=r"axis 'batch' of raw_output must be dynamic.*the graph has 3"):
        open_graph(tmp_path / "head.onnx", "head")
