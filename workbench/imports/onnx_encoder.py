"""An ONNX encoder with a `tokenizer.json`: its graph, between nodes that make it read and answer as the contract says.

Before it: ids without special tokens and lengths -> [CLS] ids [SEP], the mask, the segments. After it: the pooling that
the folder names, if the graph gives the states of its tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import tokenizers
import torch
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, version_converter
from torch import Tensor, nn

from contract.graph import CONTRACT_VERSION, ENCODER, OPSET
from contract.manifest import Limits
from contract.wordpiece import WordPiece
from training.architectures.transformer import Pooling
from training.publishing.export import rename_values
from training.publishing.families.siamese import ENCODER as FILE
from training.publishing.families.words import TOKENIZER
from training.publishing.parity import check_encoder
from training.publishing.shared_files import share
from training.words.storage import Storage
from workbench.imports.bert import pooling_of
from workbench.imports.files import ImportRefused, id_of, read_modules, read_object, tokenizer_file
from workbench.imports.model import COSINE, Facts, Floats, Labelled, embeddings

_THEIRS = "theirs/"  # before the names of their graph that ours needs
_IDS, _MASK, _SEGMENTS = "input_ids", "attention_mask", "token_type_ids"
_LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class ONNXEncoder:
    """A graph that reads ids and a mask."""

    folder: Path
    graph: Path
    output: str  # name of the one that is read
    inputs: tuple[str, ...]
    dim: int
    pooling: Pooling | None  # None: the graph gives the embedding
    normalise: bool
    tokenizer: Path
    max_tokens: int

    library = "onnxruntime"
    storages: tuple[Storage, ...] = ("float32",)  # as its weights are in the graph
    label = None

    @property
    def facts(self) -> Facts:
        """What is said of it."""
        pooled = f"{self.pooling} pooling added" if self.pooling else "its own pooling"
        settings = {"output": self.output, "pooling": self.pooling, "normalise": self.normalise}
        return Facts("onnx_encoder", f"an encoder that came as ONNX, {pooled}", settings, ())

    def ours(self, a: Sequence[str], b: Sequence[str], storage: Storage) -> Floats:
        """Embeddings of a, then of b [2 n, D]; by the nodes around the graph, as it is published."""
        run = onnxruntime.InferenceSession(self.assembled("check").SerializeToString(), _options())

        class _Assembled(nn.Module):
            def forward(self, ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
                feeds = {"input_ids": ids_BT.numpy(), "lengths": lengths_B.numpy()}
                return torch.from_numpy(run.run(None, feeds)[0])

        return embeddings(_Assembled(), WordPiece.load(self.tokenizer), [*a, *b], self.max_tokens)

    def theirs(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """The same by the unmodified graph, each text alone, tokens by the library `tokenizers` with special ones."""
        session = _Source(self)
        read = tokenizers.Tokenizer.from_file(str(self.tokenizer))
        read.no_padding()
        read.no_truncation()
        cls, sep = id_of(self.tokenizer, "[CLS]"), id_of(self.tokenizer, "[SEP]")
        ids = [[cls, *read.encode(text, add_special_tokens=False).ids, sep] for text in (*a, *b)]
        return np.concatenate([session.embed(np.array([row])) for row in ids]).astype(np.float64)

    def write(self, folder: Path, model_id: str, storage: Storage, labelled: Labelled | None) -> dict[str, Any]:
        """The graph with its new ends."""
        model = self.assembled(model_id)
        onnx.checker.check_model(model)
        (folder / FILE).write_bytes(model.SerializeToString(deterministic=True))
        tokenizer = WordPiece.load(self.tokenizer)
        check_encoder(folder / FILE, _Source(self), len(tokenizer), limit=self.max_tokens)
        tokenizer.save(folder / TOKENIZER)
        return {
            "family": "siamese",
            "dim": self.dim,
            "encoder": FILE,
            "tokenizer": TOKENIZER,
            "limits": Limits(max_tokens=self.max_tokens),
            "similarity": COSINE,
            "shared": {TOKENIZER: share(folder / TOKENIZER, folder.parent)},
        }

    def assembled(self, model_id: str) -> ModelProto:
        """The graph that is published."""
        theirs = _at_our_opset(onnx.load(self.graph), self.graph)
        model, names = theirs, (_IDS, _MASK, _SEGMENTS, "lengths", self.output, *ENCODER.outputs)
        rename_values(model.graph, {name: _THEIRS + name for name in names})
        special = id_of(self.tokenizer, "[CLS]"), id_of(self.tokenizer, "[SEP]")
        before, constants = _before(special, self.inputs)
        after, more = _after(_THEIRS + self.output, self.pooling, self.normalise)
        graph = model.graph
        nodes = [*before, *graph.node, *after]
        del graph.node[:], graph.input[:], graph.output[:], graph.value_info[:]
        graph.node.extend(nodes)
        graph.initializer.extend([*constants, *more])
        graph.input.append(helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"]))
        graph.input.append(helper.make_tensor_value_info("lengths", TensorProto.INT64, ["batch"]))
        (output,) = ENCODER.outputs
        graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", self.dim]))
        model.producer_name, model.producer_version = "semblance", ""
        del model.metadata_props[:]
        helper.set_model_props(model, {"semblance.model": model_id, "semblance.contract": str(CONTRACT_VERSION)})
        return model


class _Source(nn.Module):
    """The unmodified graph, ids and lengths -> embeddings."""

    def __init__(self, model: ONNXEncoder) -> None:
        super().__init__()
        self.model = model
        self.session = onnxruntime.InferenceSession(str(model.graph), _options())
        self.special = id_of(model.tokenizer, "[CLS]"), id_of(model.tokenizer, "[SEP]")

    def forward(self, ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        cls, sep = self.special
        rows = [
            self.embed(np.array([[cls, *row[:length], sep]]))
            for row, length in zip(ids_BT.tolist(), lengths_B.tolist(), strict=True)
        ]
        return torch.from_numpy(np.concatenate(rows))

    def embed(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Rows of ids without padding -> embeddings."""
        feeds = {_IDS: ids, _MASK: np.ones_like(ids), _SEGMENTS: np.zeros_like(ids)}
        wanted = {name: feeds[name] for name in self.model.inputs}
        found: npt.NDArray[np.float32] = self.session.run([self.model.output], wanted)[0]
        match self.model.pooling:
            case "mean":
                found = found.mean(axis=1)
            case "max":
                found = found.max(axis=1)
            case "cls":
                found = found[:, 0]
        if self.model.normalise:
            found = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return found.astype(np.float32)


def read_onnx(folder: Path, drafts: Path, max_tokens: int | None = None) -> ONNXEncoder:
    """Read a folder with `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`.

    Raises:
        ImportRefused: it cannot be taken; names the file and the input or output.
    """
    path = next(p for p in (folder / "model.onnx", folder / "onnx" / "model.onnx") if p.is_file())
    tokenizer = tokenizer_file(folder, drafts)
    try:
        session = onnxruntime.InferenceSession(str(path), _options())
    except Exception as error:  # onnxruntime's own exceptions share no public base class
        raise ImportRefused(f"{path}: onnxruntime cannot open it: {str(error).strip()}") from error
    inputs = {each.name: each.type for each in session.get_inputs()}
    if not {_IDS, _MASK} <= set(inputs) <= {_IDS, _MASK, _SEGMENTS} or set(inputs.values()) != {"tensor(int64)"}:
        found = ", ".join(f"{name} {kind}" for name, kind in inputs.items())
        raise ImportRefused(f"{path}: inputs {found}; taken are int64 {_IDS}, {_MASK} and perhaps {_SEGMENTS}")
    output, rank = _output(session, path)
    pooling, normalise = _pooling(folder, path, rank)
    limit = _longest(folder) - 2
    if max_tokens is not None and max_tokens > limit:
        raise ImportRefused(f"--max-tokens {max_tokens}: the model reads at most {limit} tokens of a text")
    ids = np.full((1, (max_tokens or limit) + 2), id_of(tokenizer, "[UNK]"))
    feeds = {_IDS: ids, _MASK: np.ones_like(ids), _SEGMENTS: np.zeros_like(ids)}
    try:
        dim = session.run([output], {name: feeds[name] for name in inputs})[0].shape[-1]
    except Exception as error:  # as above
        raise ImportRefused(f"{path}: cannot run with {ids.shape[1]} tokens: {str(error).splitlines()[0]}") from error
    return ONNXEncoder(
        folder, path, output, tuple(inputs), int(dim), pooling, normalise, tokenizer, max_tokens or limit
    )


def _output(session: onnxruntime.InferenceSession, path: Path) -> tuple[str, int]:
    """The name and rank of the output to read: an embedding, or else the states of the tokens."""
    floats = {each.name: len(each.shape) for each in session.get_outputs() if each.type == "tensor(float)"}
    for name, rank in (("sentence_embedding", 2), ("token_embeddings", 3), ("last_hidden_state", 3)):
        if floats.get(name) == rank:
            return name, rank
    raise ImportRefused(
        f"{path}: outputs {', '.join(each.name for each in session.get_outputs())}; taken is a float32 "
        "sentence_embedding, token_embeddings or last_hidden_state"
    )


def _pooling(folder: Path, path: Path, rank: int) -> tuple[Pooling | None, bool]:
    if rank == 2:
        return None, False
    if not (folder / "modules.json").is_file():
        raise ImportRefused(f"{path}: gives the states of tokens, and no modules.json says how they are pooled")
    modules = read_modules(folder)
    names = [name for name, _ in modules]
    if names[:2] != ["Transformer", "Pooling"] or names[2:] not in ([], ["Normalize"]):
        raise ImportRefused(
            f"{folder / 'modules.json'}: modules {', '.join(names)}; taken are Transformer, Pooling and Normalize"
        )
    return pooling_of(modules[1][1]), len(names) == 3


def _longest(folder: Path) -> int:
    """Most tokens of a sequence: the least that the folder's files say."""
    found = [512]
    for name, field in (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
        ("config.json", "max_position_embeddings"),
    ):
        value = read_object(folder / name).get(field) if (folder / name).is_file() else None
        if isinstance(value, int) and value >= 4:
            found.append(value)
    return min(found)


def _at_our_opset(model: ModelProto, path: Path) -> ModelProto:
    version = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
    if version == OPSET:
        return model
    try:
        return version_converter.convert_version(model, OPSET)
    except Exception as error:  # the converter raises its own, without a public base class
        raise ImportRefused(f"{path}: opset {version} cannot be converted to {OPSET}: {error}") from error


def _constant(name: str, values: object, kind: Any = np.int64) -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype=kind), name)


def _before(special: tuple[int, int], inputs: Sequence[str]) -> tuple[list[NodeProto], list[TensorProto]]:
    """ids, lengths -> what their graph reads."""
    constants = [
        _constant("ours/zero", 0),
        _constant("ours/one", 1),
        _constant("ours/first", [0]),
        _constant("ours/second", [1]),
        _constant("ours/cls", special[0]),
        _constant("ours/sep", special[1]),
    ]
    node = helper.make_node
    nodes = [
        node("Mul", ["lengths", "ours/zero"], ["ours/zeros"]),
        node("Unsqueeze", ["ours/zeros", "ours/second"], ["ours/column"]),
        node("Concat", ["ours/column", "input_ids", "ours/column"], ["ours/wide"], axis=1),
        node("Shape", ["ours/wide"], ["ours/shape"]),
        node("Gather", ["ours/shape", "ours/one"], ["ours/width"], axis=0),
        node("Range", ["ours/zero", "ours/width", "ours/one"], ["ours/places"]),
        node("Unsqueeze", ["ours/places", "ours/first"], ["ours/row"]),
        node("Add", ["lengths", "ours/one"], ["ours/ends"]),
        node("Unsqueeze", ["ours/ends", "ours/second"], ["ours/end"]),
        node("Equal", ["ours/row", "ours/end"], ["ours/is_sep"]),
        node("Equal", ["ours/row", "ours/zero"], ["ours/is_cls"]),
        node("LessOrEqual", ["ours/row", "ours/end"], ["ours/real"]),
        node("Where", ["ours/is_sep", "ours/sep", "ours/wide"], ["ours/ended"]),
        node("Where", ["ours/is_cls", "ours/cls", "ours/ended"], ["ours/whole"]),
        node("Where", ["ours/real", "ours/whole", "ours/zero"], [_THEIRS + _IDS]),
        node("Cast", ["ours/real"], [_THEIRS + _MASK], to=TensorProto.INT64),
    ]
    if _SEGMENTS in inputs:
        nodes.append(node("Mul", [_THEIRS + _MASK, "ours/zero"], [_THEIRS + _SEGMENTS]))
    return nodes, constants


def _after(output: str, pooling: Pooling | None, normalise: bool) -> tuple[list[NodeProto], list[TensorProto]]:
    """Their output -> the embedding."""
    node = helper.make_node
    constants = [_constant("ours/last", [2])]
    pooled = "ours/pooled"
    match pooling:
        case None:
            nodes = [node("Identity", [output], [pooled])]
        case "cls":
            nodes = [node("Gather", [output, "ours/zero"], [pooled], axis=1)]
        case "mean":
            nodes = [
                node("Cast", [_THEIRS + _MASK], ["ours/weights"], to=TensorProto.FLOAT),
                node("Unsqueeze", ["ours/weights", "ours/last"], ["ours/weight"]),
                node("Mul", [output, "ours/weight"], ["ours/weighted"]),
                node("ReduceSum", ["ours/weighted", "ours/second"], ["ours/sum"], keepdims=0),
                node("ReduceSum", ["ours/weight", "ours/second"], ["ours/count"], keepdims=0),
                node("Div", ["ours/sum", "ours/count"], [pooled]),
            ]
        case "max":
            constants.append(_constant("ours/lowest", _LOWEST, np.float32))
            nodes = [
                node("Unsqueeze", ["ours/real", "ours/last"], ["ours/kept"]),
                node("Where", ["ours/kept", output, "ours/lowest"], ["ours/masked"]),
                node("ReduceMax", ["ours/masked", "ours/second"], [pooled], keepdims=0),
            ]
    (final,) = ENCODER.outputs
    if not normalise:
        return [*nodes, node("Identity", [pooled], [final])], constants
    constants.append(_constant("ours/least", 1e-12, np.float32))
    return [
        *nodes,
        node("ReduceL2", [pooled, "ours/second"], ["ours/length"], keepdims=1),
        node("Max", ["ours/length", "ours/least"], ["ours/divisor"]),
        node("Div", [pooled, "ours/divisor"], [final]),
    ], constants


def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return options
