"""Transformers of any family: encoders, rerankers and entailment models, by a graph that the folder holds in ONNX or
that torch exports."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import ModelProto, version_converter

from contract.calibration import Logistic
from contract.graph import OPSET
from contract.manifest import ClassificationTask, EntailmentTask, Limits, ProbabilityTask, Prompts, SimilarityTask
from workbench.imports.described import (
    Tokens,
    labels_of,
    most_tokens,
    order_of_entailment,
    read_dimensions,
    read_ending,
    read_prompts,
    read_tokens,
    refuse_code,
)
from workbench.imports.files import TOKENIZER, ImportRefused, read_modules
from workbench.imports.graph import (
    IDS,
    MASK,
    POSITIONS,
    SEGMENTS,
    Answers,
    Ending,
    Pooling,
    classes_graph,
    encoder_graph,
    opset_of,
    pair_graph,
)
from workbench.imports.int8 import quantise
from workbench.imports.model import COSINE, LABELS, NO_PROMPTS, Facts, Floats, Storage

Head = Literal["similarity", "relevance"]
ENCODER, PAIR, CLASSES = "encoder.onnx", "pair.onnx", "classes.onnx"
GRAPHS = ("onnx/model.onnx", "model.onnx")  # where such folders have it
_LEAST_OPSET = 13  # from which the nodes around the graph are the same
_STATES = (("sentence_embedding", 2), ("token_embeddings", 3), ("last_hidden_state", 3))
_LONGEST_RUN = 512  # tokens of the run that tries a graph


@dataclass(frozen=True)
class Source:
    """A plain graph: ids, a mask and perhaps segments and positions -> states, embeddings or logits."""

    folder: Path
    path: Path
    exported: bool  # by torch, from the folder's weights
    inputs: tuple[str, ...]
    output: str
    rank: int
    width: int  # of its last axis
    tokens: Tokens

    def load(self) -> ModelProto:
        """The graph, with operators of a version that ours go with.

        Raises:
            ImportRefused: it cannot be made so.
        """
        model = onnx.load(self.path)
        if (version := opset_of(model)) >= _LEAST_OPSET:
            return model
        try:
            return version_converter.convert_version(model, OPSET)
        except Exception as error:  # the converter raises its own, without a public base class
            raise ImportRefused(f"{self.path}: opset {version} cannot be converted to {OPSET}: {error}") from error

    def runner(self, sides: int, most: int) -> Callable[..., npt.NDArray[np.float32]]:
        """The unmodified graph by itself: one text, or two, read by the folder's own tokenizer -> its output."""
        session = _open(self.path)
        self.tokens.tokenizer.enable_truncation(most + self.tokens.template(sides).width)

        def run(text: str, second: str | None = None) -> npt.NDArray[np.float32]:
            read = self.tokens.tokenizer.encode(text, second)
            feeds = _feeds(np.array([read.ids]), np.array([read.type_ids]), self.inputs)
            return np.asarray(session.run([self.output], feeds)[0][0], dtype=np.float32)

        return run


@dataclass(frozen=True)
class Encoder:
    """A transformer whose pooled states are a text's embedding."""

    source: Source
    ending: Ending
    max_tokens: int
    prompts: Prompts | None

    label = None

    @property
    def library(self) -> str:
        """sentence-transformers, or the runtime of the folder's own graph."""
        return "sentence-transformers" if self.source.exported else "onnxruntime"

    @property
    def dim(self) -> int:
        """Of its embeddings."""
        return len(self.ending.dense[-1].weight) if self.ending.dense else self.source.width

    @property
    def facts(self) -> Facts:
        """What is said of it."""
        how = f"{self.ending.pooling} pooling" if self.ending.pooling else "pooled by its own graph"
        length = ", brought to length 1" if self.ending.normalise else ""
        settings = {
            "pooling": self.ending.pooling,
            "dense": len(self.ending.dense),
            "normalise": self.ending.normalise,
            "graph": self.source.path.name if not self.source.exported else "exported by torch",
        }
        return Facts("transformer_encoder", f"{_kind(self.source)} encoder, {how}{length}", settings, ())

    def theirs(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """Embeddings of a, as queries, then of b, as passages."""
        prompts = self.prompts or NO_PROMPTS
        sides = ((a, prompts.query), (b, prompts.passage))
        if not self.source.exported:
            run = self.source.runner(1, self.max_tokens)
            rows = [self.ending.apply(run(prompt + text)) for texts, prompt in sides for text in texts]
            return np.stack(rows).astype(np.float64)
        model = self._library()
        found = [
            model.encode(list(texts), prompt=prompt, show_progress_bar=False, convert_to_numpy=True)
            for texts, prompt in sides
        ]
        return np.concatenate(found).astype(np.float64)

    def _library(self) -> Any:
        from sentence_transformers import SentenceTransformer

        folder = self.source.folder
        if read_modules(folder):
            model = SentenceTransformer(str(folder), local_files_only=True, device="cpu")
        else:
            from sentence_transformers.models import Pooling as TheirPooling
            from sentence_transformers.models import Transformer

            inner = Transformer(str(folder))
            pooled = TheirPooling(self.source.width, pooling_mode=str(self.ending.pooling))
            model = SentenceTransformer(modules=[inner, pooled], device="cpu")
        model.max_seq_length = self.max_tokens + self.source.tokens.template(1).width
        return model

    def write(self, folder: Path, model_id: str, storage: Storage, temperature: float = 1.0) -> dict[str, Any]:
        """See `ImportedModel.write`."""
        model = self.source.load()
        template = self.source.tokens.template(1)
        whole = encoder_graph(model, template, self.ending, self.source.output, self.dim, model_id)
        save_graph(whole, folder / ENCODER, storage)
        self.source.tokens.save(folder / TOKENIZER)
        dimensions = read_dimensions(self.source.folder, self.dim)
        return {
            "contract_version": 2 if self.prompts or dimensions else 1,
            "family": "siamese",
            "dim": self.dim,
            "encoder": ENCODER,
            "tokenizer": TOKENIZER,
            "limits": Limits(max_tokens=self.max_tokens),
            "similarity": COSINE,
            "prompts": self.prompts,
            "dimensions": dimensions,
        }


@dataclass(frozen=True)
class PairClassifier:
    """A transformer that reads two texts together (a model for sequence classification)."""

    source: Source
    head: Head | Literal["entailment"]
    order: tuple[int, ...]  # of entailment: the place in the folder's outputs of each of our labels
    max_tokens: int  # of both texts together

    @property
    def library(self) -> str:
        """transformers by sentence-transformers, or the runtime of the folder's own graph."""
        return "sentence-transformers" if self.source.exported else "onnxruntime"

    @property
    def label(self) -> str | None:
        """Labels of entailment, or of relevance (1 and 0); scores of similarity."""
        return None if self.head == "similarity" else "label"

    @property
    def facts(self) -> Facts:
        """What is said of it."""
        settings = {"head": self.head, "graph": self.source.path.name if not self.source.exported else "torch's"}
        return Facts("transformer_pair", f"{_kind(self.source)} cross-encoder, for {self.head}", settings, ())

    def _answers(self, temperature: float = 1.0) -> Answers:
        return Answers(self.head, self.order, temperature)

    def theirs(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """Its outputs, as our graph has them: log-probabilities in our order of labels, or one value."""
        if not self.source.exported:
            run = self.source.runner(2, self.max_tokens)
            logits = np.stack([run(x, y) for x, y in zip(a, b, strict=True)])
        else:
            from sentence_transformers import CrossEncoder
            from torch import nn

            width = self.source.tokens.template(2).width
            model = CrossEncoder(str(self.source.folder), local_files_only=True, device="cpu")
            model.max_seq_length = self.max_tokens + width
            pairs = list(zip(a, b, strict=True))
            found = model.predict(pairs, activation_fn=nn.Identity(), show_progress_bar=False)
            logits = np.asarray(found).reshape(len(pairs), -1)
        return self._answers().apply(logits)

    def write(self, folder: Path, model_id: str, storage: Storage, temperature: float = 1.0) -> dict[str, Any]:
        """See `ImportedModel.write`."""
        answers = self._answers(temperature)
        whole = pair_graph(self.source.load(), self.source.tokens.template(2), answers, self.source.output, model_id)
        save_graph(whole, folder / PAIR, storage)
        self.source.tokens.save(folder / TOKENIZER)
        limit = self.max_tokens
        return {
            "contract_version": 2,
            "family": "interaction",
            "tokenizer": TOKENIZER,
            "limits": Limits(max_tokens=limit, max_pair_tokens=max(limit, 2)),
            **_tasks(self.head),
        }


@dataclass(frozen=True)
class Classifier:
    """A transformer that labels one text; its logits take the place of an embedding."""

    source: Source
    labels: tuple[str, ...]
    max_tokens: int

    label = "label"

    @property
    def library(self) -> str:
        """transformers, or the runtime of the folder's own graph."""
        return "transformers" if self.source.exported else "onnxruntime"

    @property
    def facts(self) -> Facts:
        """What is said of it."""
        settings = {"labels": list(self.labels)}
        return Facts("transformer_classifier", f"{_kind(self.source)} classifier of single texts", settings, ())

    def theirs(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """Logits of a, then of b [2 n, K]."""
        if not self.source.exported:
            run = self.source.runner(1, self.max_tokens)
            return np.stack([run(text) for text in (*a, *b)]).astype(np.float64)
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.source.folder, local_files_only=True)
        model = AutoModelForSequenceClassification.from_pretrained(self.source.folder, local_files_only=True).eval()
        most = self.max_tokens + self.source.tokens.template(1).width
        with torch.inference_mode():
            rows = [
                model(**tokenizer(text, truncation=True, max_length=most, return_tensors="pt")).logits[0]
                for text in (*a, *b)
            ]
        return np.asarray(torch.stack(rows).double().numpy())

    def write(self, folder: Path, model_id: str, storage: Storage, temperature: float = 1.0) -> dict[str, Any]:
        """See `ImportedModel.write`."""
        count, template = len(self.labels), self.source.tokens.template(1)
        whole = encoder_graph(self.source.load(), template, Ending(None), self.source.output, count, model_id)
        save_graph(whole, folder / ENCODER, storage)
        save_graph(classes_graph(count, model_id), folder / CLASSES, "float32")
        self.source.tokens.save(folder / TOKENIZER)
        return {
            "family": "siamese",
            "dim": count,
            "encoder": ENCODER,
            "tokenizer": TOKENIZER,
            "limits": Limits(max_tokens=self.max_tokens),
            "classification": ClassificationTask(graph=CLASSES, labels=self.labels),
        }


def read_transformer(
    folder: Path,
    drafts: Path,
    *,
    graph: str | None = None,
    max_tokens: int | None = None,
    head: Head = "relevance",
    labels: Sequence[str] | None = None,
    pooling: Pooling | None = None,
    prompts: Mapping[str, str | None] | None = None,
) -> Encoder | PairClassifier | Classifier:
    """Read a folder of transformers or sentence-transformers, or one with a graph in ONNX.

    Args:
        folder: with `config.json`, and weights in safetensors or a graph.
        drafts: a folder for files made on the way.
        graph: the file of the graph, within the folder; None: where such folders have it, else it is exported.
        max_tokens: of a text, or of both texts of a pair together, fewer than the folder says.
        head: what one output for a pair means.
        labels: names of the outputs, where the folder names none.
        pooling: of the states, where no `modules.json` says it.
        prompts: by role, instead of the folder's.

    Raises:
        ImportRefused: it cannot be taken; names the file and the field.
    """
    config = refuse_code(folder)
    kinds = [str(name) for name in config.get("architectures") or ()]
    tokens = read_tokens(folder)
    together = any(name.endswith("ForSequenceClassification") for name in kinds)
    source = _source(folder, drafts, graph, tokens, together)
    if source.output != "logits":
        ending = read_ending(folder, pooling) if source.rank == 3 else Ending(None)
        limit = most_tokens(folder, tokens.template(1).width, max_tokens)
        _try(source, limit + tokens.template(1).width)
        return Encoder(source, ending, limit, read_prompts(folder, prompts or {}))
    limit = most_tokens(folder, tokens.template(2).width, max_tokens)
    _try(source, limit + tokens.template(2).width)
    if source.width == 1:
        return PairClassifier(source, head, (0,), limit)
    named = tuple(labels or labels_of(folder))
    if source.width == len(LABELS) and (sorted(map(str.lower, named)) == sorted(LABELS) or "LABEL_0" in named):
        return PairClassifier(source, "entailment", order_of_entailment(folder, named), limit)
    if len(set(named)) != source.width or "LABEL_0" in named:
        raise ImportRefused(
            f"{folder / 'config.json'}: id2label is {', '.join(map(repr, named))}; expected a name for each of "
            f"{source.width} outputs (--labels names them)"
        )
    return Classifier(source, named, most_tokens(folder, tokens.template(1).width, max_tokens))


def _source(folder: Path, drafts: Path, graph: str | None, tokens: Tokens, together: bool) -> Source:
    names = (graph,) if graph is not None else GRAPHS
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None and graph is not None:
        raise ImportRefused(f"--graph {graph}: {folder / graph}: no such file")
    exported = path is None
    if path is None:
        try:
            from workbench.imports.exporting import LOGITS, STATES, export
        except ModuleNotFoundError as error:
            raise ImportRefused(
                f"{folder}: no {' or '.join(GRAPHS)}, and {error.name}, which exports one, is not installed: "
                "pip install -e '.[training,distill]'"
            ) from None
        path = drafts / "exported.onnx"
        export(folder, path, LOGITS if together else STATES)
    session = _open(path)
    inputs = {each.name: each.type for each in session.get_inputs()}
    if not {IDS, MASK} <= set(inputs) <= {IDS, MASK, SEGMENTS, POSITIONS} or set(inputs.values()) != {"tensor(int64)"}:
        found = ", ".join(f"{name} {kind}" for name, kind in inputs.items())
        raise ImportRefused(f"{path}: inputs {found}; taken are int64 {IDS}, {MASK} and perhaps {SEGMENTS}")
    outputs = {each.name: len(each.shape) for each in session.get_outputs()}
    wanted = (("logits", 2),) if together else (*_STATES, ("logits", 2))
    output = next((each for each in wanted if outputs.get(each[0]) == each[1]), None)
    if output is None:
        raise ImportRefused(
            f"{path}: outputs {', '.join(outputs)}; taken is one of {', '.join(name for name, _ in wanted)}"
        )
    name, rank = output
    feeds = _feeds(np.full((1, 8), tokens.pad + 1), np.zeros((1, 8), dtype=np.int64), tuple(inputs))
    width = session.run([name], feeds)[0].shape[-1]
    return Source(folder, path, exported, tuple(inputs), name, rank, int(width), tokens)


def _try(source: Source, tokens: int) -> None:
    """Run a graph with as many tokens as it is said to read, or many.

    Raises:
        ImportRefused: it cannot.
    """
    ids = np.full((1, min(tokens, _LONGEST_RUN)), source.tokens.pad + 1)
    try:
        _open(source.path).run([source.output], _feeds(ids, np.zeros_like(ids), source.inputs))
    except Exception as error:  # onnxruntime's own exceptions share no public base class
        raise ImportRefused(
            f"{source.path}: cannot run with {ids.shape[1]} tokens: {str(error).splitlines()[0]}"
        ) from error


def _feeds(
    ids: npt.NDArray[np.int64], segments: npt.NDArray[np.int64], inputs: Sequence[str]
) -> dict[str, npt.NDArray[np.int64]]:
    """Of rows without padding."""
    places = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    every = {IDS: ids, MASK: np.ones_like(ids), SEGMENTS: segments, POSITIONS: places}
    return {name: every[name] for name in inputs}


def _open(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions share no public base class
        raise ImportRefused(f"{path}: onnxruntime cannot open it: {str(error).strip()}") from error


def save_graph(model: ModelProto, path: Path, storage: Storage) -> None:
    """Write a graph, its weights as they are, in float16 or in int8.

    Raises:
        ImportRefused: it is too large for one file, or has no weights in float32.
    """
    if storage != "float32" and not quantise(model, storage):
        raise ImportRefused(f"--{storage}: {path.name} has no weights in float32: its graph is quantised already")
    try:
        onnx.checker.check_model(model)
        path.write_bytes(model.SerializeToString(deterministic=True))
    except ValueError as error:  # protobuf's limit
        raise ImportRefused(f"a graph of 2 GB or more cannot be written in one file: give --int8 ({error})") from error


def _tasks(head: str) -> dict[str, Any]:
    """The manifest's entries of a graph's tasks; a relevance is a similarity as well."""
    if head == "entailment":
        return {"entailment": EntailmentTask(graph=PAIR, labels=LABELS)}
    columns = (0, 1)
    similarity = SimilarityTask(graph=PAIR, columns=columns, raw_range=(0.0, 1.0), symmetric=False)
    if head == "similarity":
        return {"similarity": similarity}
    logistic = Logistic(slope=1.0)
    relevance = ProbabilityTask(graph=PAIR, columns=(1, 2), calibration=logistic, symmetric=False)
    return {"similarity": similarity, "relevance": relevance}


def _kind(source: Source) -> str:
    config = refuse_code(source.folder)
    return f"a {config.get('model_type', 'transformer')}"
