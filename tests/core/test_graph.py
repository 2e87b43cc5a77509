"""A graph's signature against its kind: each way to differ has its own message."""

from collections.abc import Sequence

import pytest

from core.errors import GraphMismatchError
from core.graph import (
    CLASSIFIER,
    ENCODER,
    EXPLANATION,
    HEAD,
    PAIR,
    GraphKind,
    GraphSpec,
    check_signature,
    read_signature,
)

Side = dict[str, tuple[str, Sequence[int | str | None]]]
SIZES = {"dim": 4, "outputs": 5, "matrices": 2}


def signature(spec: GraphSpec) -> tuple[Side, Side]:
    """The inputs and outputs of a graph that keeps the contract."""
    inputs, outputs = (
        {name: (t.dtype, [SIZES.get(axis, axis) for axis in t.axes]) for name, t in side.items()}
        for side in (spec.inputs, spec.outputs)
    )
    return inputs, outputs


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        (ENCODER, {"dim": 4}),
        (HEAD, {"dim": 4, "outputs": 5}),
        (CLASSIFIER, {"dim": 4, "outputs": 5}),
        (PAIR, {"outputs": 5}),
        (EXPLANATION, {"matrices": 2}),
    ],
)
def test_a_graph_of_its_kind_gives_the_sizes_it_fixes(spec: GraphSpec, sizes: dict[str, int]) -> None:
    assert check_signature(spec, *signature(spec), where="x.onnx") == sizes


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        ("input_ids", ("int32", ["batch", "tokens"]), "x.onnx: input_ids is int32, expected int64"),
        (
            "input_ids",
            ("int64", ["batch"]),
            r"x.onnx: input_ids has shape \['batch'\], expected axes \['batch', 'tokens'\]",
        ),
        (
            "input_ids",
            ("int64", ["batch", 3]),
            "x.onnx: axis 'tokens' of input_ids must be dynamic under that name, the graph has 3",
        ),
        ("input_ids", ("int64", [None, "tokens"]), "axis 'batch' of input_ids must be dynamic.*the graph has None"),
        ("lengths", ("int64", ["rows"]), "axis 'batch' of lengths must be dynamic under that name.*has 'rows'"),
        ("sentence_embedding", ("float16", ["batch", 4]), "sentence_embedding is float16, expected float32"),
        ("sentence_embedding", ("float32", ["batch", "d"]), "axis 'dim' of sentence_embedding must be a number.*'d'"),
        ("sentence_embedding", ("float32", [2, 4]), "axis 'batch' of sentence_embedding must be dynamic.*has 2"),
    ],
)
def test_a_tensor_that_differs_is_named(name: str, entry: tuple[str, list[int | str | None]], message: str) -> None:
    inputs, outputs = signature(ENCODER)
    (inputs if name in inputs else outputs)[name] = entry
    with pytest.raises(GraphMismatchError, match=message):
        check_signature(ENCODER, inputs, outputs, where="x.onnx")


def test_missing_added_renamed_and_swapped_tensors_are_refused() -> None:
    inputs, outputs = signature(HEAD)
    swapped = dict(reversed(inputs.items()))
    renamed = {"a": inputs["embedding_a"], "embedding_b": inputs["embedding_b"]}
    for wrong in (swapped, renamed, {**inputs, "more": inputs["embedding_a"]}, {}):
        with pytest.raises(GraphMismatchError, match=r"x.onnx: inputs of a head graph are \['embedding_a', 'embedd"):
            check_signature(HEAD, wrong, outputs, where="x.onnx")
    with pytest.raises(GraphMismatchError, match=r"outputs of a head graph are \['raw_output'\], this one has \[\]"):
        check_signature(HEAD, inputs, {}, where="x.onnx")


def test_an_axis_fixed_twice_differently_is_refused() -> None:
    inputs, outputs = signature(HEAD)
    inputs["embedding_b"] = ("float32", ["batch", 6])
    with pytest.raises(GraphMismatchError, match="axis 'dim' of embedding_b is 6, elsewhere in the graph it is 4"):
        check_signature(HEAD, inputs, outputs, where="x.onnx")


IDS = ("int64", ["b", "t"])
PLAIN: Side = {"input_ids": IDS, "attention_mask": IDS}


@pytest.mark.parametrize(
    ("kind", "outputs", "output", "states"),
    [
        ("encoder", {"last_hidden_state": ("float32", [None, "t", 4])}, "last_hidden_state", True),
        (
            "encoder",
            {"token_embeddings": ("float32", ["b", "t", 4]), "sentence_embedding": ("float32", ["b", 4])},
            "sentence_embedding",
            False,
        ),
        ("pair", {"logits": ("float32", ["b", 4])}, "logits", False),
    ],
)
def test_a_transformers_graph_is_taken_as_it_is(kind: GraphKind, outputs: Side, output: str, states: bool) -> None:
    found = read_signature(kind, PLAIN | {"token_type_ids": IDS}, outputs, where="x.onnx")
    assert (found.output, found.gives_states, found.is_transformer) == (output, states, True)
    assert found.inputs == ("input_ids", "attention_mask", "token_type_ids")
    assert list(found.sizes.values()) == [4]


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ({"bias": IDS}, {}, r"inputs of a transformer are input_ids, attention_mask .* has \['input_ids', .*'bias'\]"),
        ({"attention_mask": ("int32", ["b", "t"])}, {}, "attention_mask is int32 .*, expected int64 with two dynamic"),
        ({"input_ids": ("int64", ["b", 8])}, {}, r"input_ids is int64 \['b', 8\], expected int64 with two dynamic"),
        ({}, {"pooled": ("float32", ["b", 4])}, "expected one of sentence_embedding, token_embeddings"),
        ({}, {"last_hidden_state": ("float16", ["b", "t", 4])}, "last_hidden_state is float16"),
        ({}, {"last_hidden_state": ("float32", ["b", "t", "d"])}, "last_hidden_state is float32 .*'d'"),
    ],
)
def test_another_transformers_graph_is_refused(inputs: Side, outputs: Side, message: str) -> None:
    with pytest.raises(GraphMismatchError, match=message):
        read_signature("encoder", PLAIN | inputs, outputs, where="x.onnx")
