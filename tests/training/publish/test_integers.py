"""Integer products: a row is the same to the last bit in any company, near float32, and on plain arithmetic."""

from functools import cache
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

from core.sequences import Pooling, SequenceFeeds
from core.subwords import SpecialTokens
from training.publish import integers
from training.publish.integers import float_weights, to_half, to_integers
from training.publish.network_graph import for_cuda, network_graph

transformers = pytest.importorskip("transformers", reason="missing here: pip install '.[distill]'")
INPUTS = ("input_ids", "attention_mask")


class States(torch.nn.Module):
    """A tiny BERT of 90 words, with weights far from those of a start."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        sizes = {"vocab_size": 90, "hidden_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4}
        config = transformers.BertConfig(
            **sizes, intermediate_size=192, max_position_embeddings=40, attn_implementation="eager"
        )
        self.network = transformers.BertModel(config, add_pooling_layer=False).eval()
        with torch.no_grad():
            for parameter in self.network.parameters():
                parameter += 0.1 * torch.randn_like(parameter)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.network(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def exported() -> tuple[States, ModelProto]:
    """The network, and a graph of it that may be changed."""
    graph = ModelProto()
    graph.CopyFrom(_graph())
    return States(), graph


@cache
def _graph() -> ModelProto:
    return network_graph(States(), INPUTS, "last_hidden_state", 90, 34, "tiny")


def session(model: ModelProto) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@cache
def runs() -> tuple[SequenceFeeds, Any, Any]:
    """A tiny transformer in float32 and as integers."""
    _, graph = exported()
    whole = session(graph)
    assert to_integers(graph) > 4 * 96 * 96
    stored = session(graph)
    special = SpecialTokens((((1, 0),), ((2, 0),)), (0,))
    feeds = SequenceFeeds(special, INPUTS, Pooling(mode="mean", normalise=True), 32)
    return feeds, lambda f: whole.run(None, f)[0], lambda f: stored.run(None, f)[0]


texts = st.lists(st.lists(st.integers(1, 89), min_size=1, max_size=32).map(tuple), min_size=1, max_size=12)


@settings(deadline=None, max_examples=30)
@given(texts, texts)
def test_an_answer_is_the_same_to_the_last_bit_in_any_company(mine: list[Any], others: list[Any]) -> None:
    feeds, whole, stored = runs()
    together = feeds.rows(stored, [[*mine, *others]])
    for place, text in enumerate(mine):
        assert np.array_equal(together[place], feeds.rows(stored, [[text]])[0])
    assert (together * feeds.rows(whole, [[*mine, *others]])).sum(axis=1).min() > 0.98  # cosines


def products(nodes: list[Any], weight: Any, *others: Any) -> ModelProto:
    """A graph of x [n, 80] -> y and z, which reads a weight as w and w2, and other constants."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 80])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", None]) for name in "yz"],
        [*others, numpy_helper.from_array(weight, "w2")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.mark.parametrize("transposed", [False, True])
def test_the_equation_is_that_of_the_docstring(transposed: bool) -> None:
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=(80, 64)).astype(np.float32), rng.normal(size=64).astype(np.float32)
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1) if transposed else (
        helper.make_node("MatMul", ["x", "w"], ["y"])
    )  # fmt: skip
    constants = [numpy_helper.from_array(weight.T.copy() if transposed else weight, "w")]
    constants += [numpy_helper.from_array(bias, "b")] if transposed else []
    model = products([node, helper.make_node("MatMul", ["x", "w2"], ["z"])], weight, *constants)
    x = (rng.normal(size=(5, 80)) * [[1e-3], [1], [1e3], [0], [1]]).astype(np.float32)
    assert to_integers(model) == 2 * weight.size
    assert [each.op_type for each in model.graph.node].count("QuantizeLinear") == 1  # one for both products
    found, other = session(model).run(None, {"x": x})
    t = np.maximum(np.abs(x).max(axis=1, keepdims=True) / 127, 1e-12)
    s = np.abs(weight).max(axis=0) / 63
    wanted = np.rint(x / t) @ np.rint(weight / s) * t * s
    assert found - (bias if transposed else 0) == pytest.approx(wanted, rel=1e-4, abs=1e-6 * 1e3)
    assert other == pytest.approx(wanted, rel=1e-4, abs=1e-6 * 1e3)
    # No two neighbouring products exceed 16 bits, where a CPU without VNNI would cut them.
    codes = next(numpy_helper.to_array(each) for each in model.graph.initializer if each.name == "w2.codes")
    assert np.abs(codes.astype(int)).max() * 255 * 2 <= np.iinfo(np.int16).max
    assert model.ByteSize() < 3 * weight.size  # each weight once, in a byte


def test_what_a_gelu_gives_has_steps_above_its_least_value() -> None:
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(80, 64)).astype(np.float32)
    nodes = [helper.make_node("Gelu", ["x"], ["g"]), helper.make_node("MatMul", ["g", "w2"], ["y"])]
    model = products([*nodes, helper.make_node("Identity", ["g"], ["z"])], weight)
    to_integers(model)
    x = (rng.normal(size=(4, 80)) * [[1e-3], [1], [5], [100]]).astype(np.float32)
    found, g = session(model).run(None, {"x": x})
    t = np.maximum(g.max(axis=1, keepdims=True), 0.1701 / 24 * 231) / 231
    s = np.abs(weight).max(axis=0) / 63
    wanted = np.rint(g / t) @ np.rint(weight / s) * t * s
    assert found == pytest.approx(wanted, rel=1e-4, abs=1e-4)


def test_the_graph_of_a_gpu_has_the_same_weights_and_multiplies_no_integers() -> None:
    _, on_cpu = exported()
    on_cuda = for_cuda(on_cpu)
    to_integers(on_cpu)
    arrays = [{t.name: numpy_helper.to_array(t) for t in each.graph.initializer} for each in (on_cpu, on_cuda)]
    weights = [float_weights(each) for each in arrays]
    assert any(name.endswith(".codes") for name in arrays[1])
    for name, weight in weights[1].items():
        if weight.ndim == 2:
            assert np.array_equal(weight, weights[0][name]), name
    assert {"MatMulIntegerToFloat", "QuantizeLinear"}.isdisjoint(node.op_type for node in on_cuda.graph.node)
    feeds = {"input_ids": np.arange(1, 13).reshape(2, 6), "attention_mask": np.ones((2, 6), np.int64)}
    ours, other = (session(each).run(None, feeds)[0] for each in (on_cpu, on_cuda))
    assert other == pytest.approx(ours, abs=0.05 * float(np.abs(ours).max()))


def test_no_operator_that_kinds_of_cpu_compute_otherwise_is_left() -> None:
    # Softmax sums eight or sixteen numbers at a time, by the CPU; one digit of it would move a code.
    _, graph = exported()
    whole = session(graph)
    assert "Softmax" in {node.op_type for node in graph.graph.node}
    to_integers(graph)
    assert "Softmax" not in {node.op_type for node in graph.graph.node}
    feeds = {"input_ids": np.arange(1, 13).reshape(2, 6), "attention_mask": np.array([[1] * 6, [1] * 3 + [0] * 3])}
    assert session(graph).run(None, feeds)[0] == pytest.approx(whole.run(None, feeds)[0], abs=0.2)


def test_a_graph_of_an_early_opset_keeps_its_softmax() -> None:
    weight = np.random.default_rng(0).normal(size=(80, 64)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w2"], ["y"]), helper.make_node("Softmax", ["y"], ["z"], axis=-1)]
    model = products(nodes, weight)
    model.opset_import[0].version, model.ir_version = 11, 6
    whole = session(model)
    assert to_integers(model) == weight.size
    x = np.random.default_rng(1).normal(size=(3, 80)).astype(np.float32)
    found, expected = session(model).run(None, {"x": x}), whole.run(None, {"x": x})
    assert found[0] == pytest.approx(expected[0], abs=1.0)
    assert found[1].sum(axis=1) == pytest.approx(np.ones(3), abs=1e-6)


def test_weights_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integers, "MIN_TABLE", 1)
    for store, off in ((to_integers, 1 / 126), (to_half, 1e-3)):
        states, graph = exported()
        store(graph)
        found = float_weights({each.name: numpy_helper.to_array(each) for each in graph.graph.initializer})
        for name, value in states.state_dict().items():
            if name.endswith("key.bias"):  # which no answer depends on: the exporter may merge it with another
                continue
            array = found.get(name)
            array = found[f"{name}.T"].T if array is None else array
            assert array == pytest.approx(value.numpy(), abs=off * float(value.abs().max()) + 1e-9), name
