"""The six kinds of ONNX graphs: tensor names, dtypes, dynamic axes and opset.

Export names tensors and axes by these specs, and the service checks each graph against its spec.

An axis is either *dynamic* (in `DYNAMIC`; symbolic in the graph, under this name) or *fixed by the model* (`dim`,
`outputs`; a number in the graph).

Encoders and graphs of pairs may also be transformers, with the inputs and outputs that such graphs have everywhere
(`read_signature`): they read whole sequences, special tokens among them (`core.sequences`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from core.errors import GraphMismatchError

CONTRACT_VERSION: Literal[3] = 3
OPSET = 20
# Of ONNX Runtime, left out on a CPU: these take longer there than the operators that they replace (a fifth of MiniLM).
SLOW_FUSIONS = ("SkipLayerNormFusion", "BiasGeluFusion")

DType = Literal["int64", "float32"]
GraphKind = Literal["encoder", "tokens", "head", "classifier", "pair", "explanation"]
Signature = Mapping[str, tuple[str, Sequence[int | str | None]]]  # name -> (dtype, shape as ONNX gives it)

DYNAMIC = frozenset({"batch", "tokens", "tokens_a", "tokens_b"})


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output: its dtype and the names of its axes."""

    dtype: DType
    axes: tuple[str, ...]

    def dynamic_axes(self) -> dict[int, str]:
        """Position -> name of the dynamic axes, as the exporter takes them."""
        return {i: axis for i, axis in enumerate(self.axes) if axis in DYNAMIC}


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """All inputs and outputs of one kind of graph, in order."""

    kind: GraphKind
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]


# ids and lengths of B sentences -> their embeddings. Position t of row b is padding when t >= lengths[b].
ENCODER = GraphSpec(
    kind="encoder",
    inputs={"input_ids": TensorSpec("int64", ("batch", "tokens")), "lengths": TensorSpec("int64", ("batch",))},
    outputs={"sentence_embedding": TensorSpec("float32", ("batch", "dim"))},
)

# the same sentences -> a vector for each token, whose mean over the real tokens is the embedding; for explanations.
# Values at padding are not read.
TOKENS = GraphSpec(
    kind="tokens",
    inputs=ENCODER.inputs,
    outputs={"token_embeddings": TensorSpec("float32", ("batch", "tokens", "dim"))},
)

# two embeddings -> raw output: log-probabilities of classes, or one value.
HEAD = GraphSpec(
    kind="head",
    inputs={
        "embedding_a": TensorSpec("float32", ("batch", "dim")),
        "embedding_b": TensorSpec("float32", ("batch", "dim")),
    },
    outputs={"raw_output": TensorSpec("float32", ("batch", "outputs"))},
)

# one embedding -> log-probabilities of the classes of its sentence.
CLASSIFIER = GraphSpec(
    kind="classifier",
    inputs={"sentence_embedding": TensorSpec("float32", ("batch", "dim"))},
    outputs={"raw_output": TensorSpec("float32", ("batch", "outputs"))},
)

# both sentences together (interaction models) -> the raw output of a head.
PAIR = GraphSpec(
    kind="pair",
    inputs={
        "input_ids_a": TensorSpec("int64", ("batch", "tokens_a")),
        "lengths_a": TensorSpec("int64", ("batch",)),
        "input_ids_b": TensorSpec("int64", ("batch", "tokens_b")),
        "lengths_b": TensorSpec("int64", ("batch",)),
    },
    outputs={"raw_output": TensorSpec("float32", ("batch", "outputs"))},
)

# both sentences together -> matrices with a number for each pair of tokens, as the manifest describes them. A graph of
# its own, so that a score does not compute them.
EXPLANATION = GraphSpec(
    kind="explanation",
    inputs=PAIR.inputs,
    outputs={"matrices": TensorSpec("float32", ("batch", "matrices", "tokens_a", "tokens_b"))},
)

SPECS: Mapping[GraphKind, GraphSpec] = {
    spec.kind: spec for spec in (ENCODER, TOKENS, HEAD, CLASSIFIER, PAIR, EXPLANATION)
}

# A transformer's inputs, int64 [batch, tokens]; the last two are optional.
IDS, MASK, SEGMENTS, POSITIONS = "input_ids", "attention_mask", "token_type_ids", "position_ids"
# What is read of a transformer's outputs, the first of these that it has: embeddings or logits, or states of tokens.
TRANSFORMER_OUTPUTS: Mapping[GraphKind, Mapping[str, tuple[str, ...]]] = {
    "encoder": {
        "sentence_embedding": ("batch", "dim"),
        "token_embeddings": ("batch", "tokens", "dim"),
        "last_hidden_state": ("batch", "tokens", "dim"),
        "logits": ("batch", "dim"),
    },
    "pair": {"raw_output": ("batch", "outputs"), "logits": ("batch", "outputs")},
}


class GraphSignature(NamedTuple):
    """What a graph reads and gives, of what its file says."""

    inputs: tuple[str, ...]
    output: str
    sizes: dict[str, int]  # of the axes that the model fixes, such as `{"dim": 256}`
    is_transformer: bool = False
    gives_states: bool = False  # of each token, which are still to be pooled


def read_signature(kind: GraphKind, inputs: Signature, outputs: Signature, *, where: str) -> GraphSignature:
    """The signature of a graph of this kind; a transformer is known by its attention mask.

    Args:
        kind: of the graph.
        inputs: name -> (dtype, shape); an axis of the shape is a number, a symbol, or None.
        outputs: likewise.
        where: the file, for messages.

    Raises:
        GraphMismatchError: as `check_signature`.
    """
    if MASK not in inputs or kind not in TRANSFORMER_OUTPUTS:
        spec = SPECS[kind]
        sizes = check_signature(spec, inputs, outputs, where=where)
        (output,) = spec.outputs
        return GraphSignature(tuple(spec.inputs), output, sizes)
    if not {IDS, MASK} <= set(inputs) <= {IDS, MASK, SEGMENTS, POSITIONS}:
        raise GraphMismatchError(
            f"{where}: inputs of a transformer are {IDS}, {MASK} and perhaps {SEGMENTS} and {POSITIONS}, "
            f"this one has {list(inputs)}"
        )
    for name, (dtype, shape) in inputs.items():
        if dtype != "int64" or len(shape) != 2 or any(isinstance(size, int) for size in shape):
            raise GraphMismatchError(f"{where}: {name} is {dtype} {list(shape)}, expected int64 with two dynamic axes")
    wanted = TRANSFORMER_OUTPUTS[kind]
    found = next((name for name in wanted if name in outputs), None)
    if found is None:
        raise GraphMismatchError(f"{where}: outputs {list(outputs)}, expected one of {', '.join(wanted)}")
    output = found
    (dtype, shape), axes = outputs[output], wanted[output]
    size = shape[-1] if shape else None
    if dtype != "float32" or len(shape) != len(axes) or not isinstance(size, int):
        raise GraphMismatchError(f"{where}: {output} is {dtype} {list(shape)}, expected float32 {list(axes)}")
    return GraphSignature(tuple(inputs), output, {axes[-1]: size}, True, "tokens" in axes)


def check_signature(spec: GraphSpec, inputs: Signature, outputs: Signature, *, where: str) -> dict[str, int]:
    """Check the signature of a graph against its kind.

    Args:
        spec: the kind.
        inputs: name -> (dtype, shape); an axis of the shape is a number, a symbol, or None.
        outputs: likewise.
        where: the file, for messages.

    Returns:
        The sizes of the axes that the model fixes, such as `{"dim": 256}`.

    Raises:
        GraphMismatchError: other names, dtype or rank, a fixed dynamic axis, or a symbolic or contradictory fixed axis.
    """
    sizes: dict[str, int] = {}
    for side, wanted, found in (("inputs", spec.inputs, inputs), ("outputs", spec.outputs, outputs)):
        if list(found) != list(wanted):
            raise GraphMismatchError(
                f"{where}: {side} of a {spec.kind} graph are {list(wanted)}, this one has {list(found)}"
            )
        for name, tensor in wanted.items():
            dtype, shape = found[name]
            if dtype != tensor.dtype:
                raise GraphMismatchError(f"{where}: {name} is {dtype}, expected {tensor.dtype}")
            if len(shape) != len(tensor.axes):
                raise GraphMismatchError(f"{where}: {name} has shape {list(shape)}, expected axes {list(tensor.axes)}")
            for axis, size in zip(tensor.axes, shape, strict=True):
                _check_axis(axis, size, sizes, f"{where}: axis {axis!r} of {name}")
    return sizes


def _check_axis(axis: str, size: int | str | None, sizes: dict[str, int], what: str) -> None:
    if axis in DYNAMIC:
        if size != axis:
            raise GraphMismatchError(f"{what} must be dynamic under that name, the graph has {size!r}")
        return
    if not isinstance(size, int):
        raise GraphMismatchError(f"{what} must be a number, the graph has {size!r}")
    if sizes.setdefault(axis, size) != size:
        raise GraphMismatchError(f"{what} is {size}, elsewhere in the graph it is {sizes[axis]}")
