"""Transformers of any family: encoders, rerankers and entailment models, by a graph that the folder holds in ONNX or
that torch exports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import ModelProto, version_converter

from core.graph import OPSET
from core.manifest import (
    ClassificationTask,
    EntailmentLabel,
    EntailmentTask,
    Limits,
    ProbabilityTask,
    Prompts,
    SimilarityTask,
)
from core.measures import Logistic
from core.subwords import Subwords
from workbench.imports.described import (
    DescribedTokenizer,
    labels_of,
    most_tokens,
    pair_of,
    read_dimensions,
    read_ending,
    read_prompts,
    read_tokens,
    refuse_code,
)
from workbench.imports.files import TOKENIZER, ImportRefused, read_modules
from workbench.imports.graph import (
    AS_IT_IS,
    IDS,
    MASK,
    POSITIONS,
    SEGMENTS,
    Answers,
    PoolingStage,
    classes_graph,
    encoder_graph,
    opset_of,
    pair_graph,
)
from workbench.imports.ids import check_ids
from workbench.imports.int8 import quantise
from workbench.imports.model import COSINE, LABELS, NO_PROMPTS, Floats, ImportFacts, ImportOptions, Storage

Task = Literal["embedding", "similarity", "relevance", "entailment", "labels"]
ENCODER, PAIR, CLASSES = "encoder.onnx", "pair.onnx", "classes.onnx"
GRAPHS = ("onnx/model.onnx", "model.onnx")  # where such folders have it
_LEAST_OPSET = 13  # from which the nodes around the graph are the same
_STATES = (("sentence_embedding", 2), ("token_embeddings", 3), ("last_hidden_state", 3))
_LONGEST_RUN = 512  # tokens of the run that tries a graph


@dataclass(frozen=True)
class PlainGraph:
    """A plain graph: ids, a mask and perhaps segments and positions -> states, embeddings or logits."""

    folder: Path
    path: Path
    exported: bool  # by torch, from the folder's weights
    inputs: tuple[str, ...]
    output: str
    rank: int
    width: int  # of its last axis
    tokens: DescribedTokenizer

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
class Transformer:
    """A transformer that embeds a text, reads two together, or labels one."""

    source: PlainGraph
    task: Task
    max_tokens: int  # of a text, or of both texts of a pair together
    ending: PoolingStage = AS_IT_IS  # from states to an embedding
    prompts: Prompts | None = None
    order: tuple[int, ...] = (0,)  # of entailment: the place in the folder's outputs of each of our labels
    # Of entailment, in the order of the graph's outputs; of a classifier, whose logits take the place of an embedding.
    labels: tuple[Any, ...] = ()

    @property
    def sides(self) -> int:
        """How many texts it reads together."""
        return 2 if self.task in ("similarity", "relevance", "entailment") else 1

    @property
    def library(self) -> str:
        """The folder's own, or the runtime of its graph."""
        if not self.source.exported:
            return "onnxruntime"
        return "sentence-transformers" if self.task == "embedding" else "transformers"

    @property
    def label(self) -> str | None:
        """Labels of entailment, or of relevance (1 and 0); scores of similarity."""
        return None if self.task in ("embedding", "similarity") else "label"

    @property
    def dim(self) -> int:
        """Of its embeddings, or how many logits there are."""
        return len(self.ending.dense[-1].weight) if self.ending.dense else self.source.width

    @property
    def facts(self) -> ImportFacts:
        """What is said of it."""
        graph = self.source.path.name if not self.source.exported else "exported by torch"
        kind = f"a {refuse_code(self.source.folder).get('model_type', 'transformer')}"
        if self.task == "labels":
            what = f"{kind} classifier of single texts"
            return ImportFacts("transformer_classifier", what, {"labels": list(self.labels)}, ())
        if self.task != "embedding":
            what = f"{kind} cross-encoder, for {self.task}"
            return ImportFacts("transformer_pair", what, {"head": self.task, "graph": graph}, ())
        ending = self.ending
        how = f"{ending.pooling} pooling" if ending.pooling else "pooled by its own graph"
        length = ", brought to length 1" if ending.normalise else ""
        settings = {"pooling": ending.pooling, "dense": len(ending.dense), "normalise": ending.normalise}
        return ImportFacts("transformer_encoder", f"{kind} encoder, {how}{length}", {**settings, "graph": graph}, ())

    def theirs(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """The library's own answers, as in `ImportedModel.theirs`."""
        prompts = self.prompts or NO_PROMPTS
        texts = [*(prompts.query + text for text in a), *(prompts.passage + text for text in b)]
        if self.task == "embedding" and self.source.exported:
            found = self._sentence_transformer().encode(texts, prompt="", show_progress_bar=False)
            return np.asarray(found, dtype=np.float64)
        run = self._classifier() if self.source.exported else self.source.runner(self.sides, self.max_tokens)
        rows = list(zip(a, b, strict=True)) if self.sides == 2 else [(text,) for text in texts]
        read = [run(*row) for row in rows]
        if self.task == "embedding":
            read = [self.ending.apply(states) for states in read]
        outputs = np.stack(read).astype(np.float64)
        return self._answers().apply(outputs) if self.sides == 2 else outputs

    def _sentence_transformer(self) -> Any:
        from sentence_transformers import SentenceTransformer

        folder = self.source.folder
        if read_modules(folder):
            model = SentenceTransformer(str(folder), local_files_only=True, device="cpu")
        else:
            from sentence_transformers.models import Pooling as TheirPooling
            from sentence_transformers.models import Transformer as TheirTransformer

            inner = TheirTransformer(str(folder))
            pooled = TheirPooling(self.source.width, pooling_mode=str(self.ending.pooling))
            model = SentenceTransformer(modules=[inner, pooled], device="cpu")
        model.max_seq_length = self.max_tokens + self.source.tokens.template(1).width
        return model

    def _classifier(self) -> Callable[..., npt.NDArray[np.float32]]:
        """The library's logits of a text or of a pair."""
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        folder = self.source.folder
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True).float().eval()
        most = self.max_tokens + self.source.tokens.template(self.sides).width

        def run(*texts: str) -> npt.NDArray[np.float32]:
            with torch.inference_mode():
                read = tokenizer(*texts, truncation=True, max_length=most, return_tensors="pt")
                return np.asarray(model(**read).logits[0].numpy())

        return run

    def _answers(self, temperature: float = 1.0) -> Answers:
        assert self.task in ("similarity", "relevance", "entailment")
        return Answers(self.task, self.order, temperature)

    def write(self, folder: Path, model_id: str, storage: Storage, temperature: float = 1.0) -> dict[str, Any]:
        """Write graphs and tokenizer, as in `ImportedModel.write`."""
        model, template, output = self.source.load(), self.source.tokens.template(self.sides), self.source.output
        self.source.tokens.save(folder / TOKENIZER)
        fields: dict[str, Any] = {"tokenizer": TOKENIZER, "limits": Limits(max_tokens=self.max_tokens)}
        if self.sides == 2:
            whole = pair_graph(model, template, self._answers(temperature), output, model_id)
            save_graph(whole, folder / PAIR, storage)
            limits = Limits(max_tokens=self.max_tokens, max_pair_tokens=max(self.max_tokens, 2))
            return fields | {
                "contract_version": 2,
                "family": "interaction",
                "limits": limits,
                **_tasks(self.task, self.labels),
            }
        whole = encoder_graph(model, template, self.ending, output, self.dim, model_id)
        save_graph(whole, folder / ENCODER, storage)
        fields |= {"family": "siamese", "dim": self.dim, "encoder": ENCODER}
        if self.task == "labels":
            save_graph(classes_graph(self.dim, model_id), folder / CLASSES, "float32")
            return fields | {"classification": ClassificationTask(graph=CLASSES, labels=self.labels)}
        dimensions = read_dimensions(self.source.folder, self.dim)
        version = 2 if self.prompts or dimensions else 1
        more = {"similarity": COSINE, "prompts": self.prompts, "dimensions": dimensions}
        return fields | {"contract_version": version, **more}


def read_transformer(folder: Path, drafts: Path, options: ImportOptions) -> Transformer:
    """Read a folder of transformers or sentence-transformers, or one with a graph in ONNX.

    Args:
        folder: with `config.json`, and weights in safetensors or a graph.
        drafts: a folder for files made on the way.
        options: what the folder does not say, or says otherwise.

    Raises:
        ImportRefused: it cannot be taken; names the file and the field.
    """
    config = refuse_code(folder)
    kinds = [str(name) for name in config.get("architectures") or ()]
    tokens = read_tokens(folder)
    together = any(name.endswith("ForSequenceClassification") for name in kinds)
    source = _source(folder, drafts, options.graph, tokens, together)
    embeds = source.output != "logits"
    special = tokens.template(1 if embeds else 2).width
    limit = most_tokens(folder, special, options.max_tokens)
    _try(source, limit + special)
    if embeds:
        ending = read_ending(folder, options.pooling) if source.rank == 3 else AS_IT_IS
        read = Transformer(source, "embedding", limit, ending, read_prompts(folder, options.prompts))
    else:
        read = _with_head(source, options, limit)
    check_ids(folder, tokens.template(read.sides), Subwords(tokens.tokenizer.to_str()), read.max_tokens)
    return read


def _with_head(source: PlainGraph, options: ImportOptions, limit: int) -> Transformer:
    """What a graph of logits answers.

    Raises:
        ImportRefused: the folder does not say what its outputs are.
    """
    folder, tokens = source.folder, source.tokens
    if source.width == 1:
        return Transformer(source, options.head, limit)
    named = tuple(options.labels or labels_of(folder))
    if options.pairs_head is not False and (meant := pair_of(named)) is not None:
        task, order, labels = meant
        return Transformer(source, task, limit, order=order, labels=labels)
    if options.pairs_head is None and len(set(named)) == source.width and "LABEL_0" not in named:
        raise ImportRefused(
            f"{folder / 'config.json'}: id2label is {', '.join(map(repr, named))}: nothing says whether the model "
            "reads two texts together or one: give --pairs-head yes or no"
        )
    if options.pairs_head:
        raise ImportRefused(
            f"{folder / 'config.json'}: id2label is {', '.join(map(repr, named))}; of a model that reads two texts "
            f"expected {', '.join(LABELS)}; entailment, not_entailment; or relevant, irrelevant, in any order "
            "(--labels names them)"
        )
    if len(set(named)) != source.width or "LABEL_0" in named:
        raise ImportRefused(
            f"{folder / 'config.json'}: id2label is {', '.join(map(repr, named))}; expected a name for each of "
            f"{source.width} outputs (--labels names them)"
        )
    limit = most_tokens(folder, tokens.template(1).width, options.max_tokens)
    return Transformer(source, "labels", limit, labels=named)


def _source(folder: Path, drafts: Path, graph: str | None, tokens: DescribedTokenizer, together: bool) -> PlainGraph:
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
    return PlainGraph(folder, path, exported, tuple(inputs), name, rank, int(width), tokens)


def _try(source: PlainGraph, tokens: int) -> None:
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


def _tasks(head: str, labels: tuple[EntailmentLabel, ...]) -> dict[str, Any]:
    """The manifest's entries of a graph's tasks; a relevance is a similarity as well."""
    if head == "entailment":
        return {"entailment": EntailmentTask(graph=PAIR, labels=labels)}
    similarity = SimilarityTask(graph=PAIR, columns=(0, 1), raw_range=(0.0, 1.0), symmetric=False)
    if head == "similarity":
        return {"similarity": similarity}
    relevance = ProbabilityTask(graph=PAIR, columns=(1, 2), calibration=Logistic(slope=1.0), symmetric=False)
    return {"similarity": similarity, "relevance": relevance}
