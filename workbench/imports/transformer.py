"""Transformers of any family: encoders, rerankers and entailment models, by a graph in ONNX that torch exports of the
weights, or by one that the folder holds, which runs as it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto

from core.graph import IDS, MASK, POSITIONS, SEGMENTS, GraphSignature
from core.manifest import (
    ClassificationTask,
    Limits,
    Prompts,
)
from core.sequences import Pooling
from core.subwords import Subwords
from training.publish.graphs import clean
from workbench.imports.described import (
    check_head,
    labels_of,
    max_tokens,
    pair_of,
    read_dimensions,
    read_pooling,
    read_prompts,
    read_settings,
    read_tokenizer,
)
from workbench.imports.files import (
    CONFIG,
    LOGITS,
    TOKENIZER,
    WEIGHTS,
    ImportRefused,
    check_weights,
    has_weights,
    object_or_none,
    read_modules,
    sentence_model,
)
from workbench.imports.folder_graph import exported, graph_in, open_graph, signature_of
from workbench.imports.model import (
    COSINE,
    LABELS,
    Floats,
    ImportFacts,
    ImportOptions,
    Storage,
    Task,
    distance,
    encoded,
    prompted,
    tasks_of,
)
from workbench.imports.small_graphs import classes_graph, save_graph

ENCODER, PAIR, CLASSES = "encoder.onnx", "pair.onnx", "classes.onnx"
# Texts of each role by a graph and by the weights beside it, and how far it may be from them, of their spread: it may
# have another precision.
_COMPARED, _NEAR = 10, 0.3
_ADVICE = f"import it by its weights, {WEIGHTS}"
Outputs = Callable[..., npt.NDArray[np.float32]]  # one text or two -> what the library's graph or network gives


@dataclass(frozen=True)
class Transformer:
    """A transformer that embeds a text, reads two together, or labels one."""

    folder: Path
    path: Path | None  # of the graph that the folder holds; None: it was exported
    graph: ModelProto
    signature: GraphSignature
    tokenizer: Subwords
    task: Task
    max_tokens: int  # of a text, or of both texts of a pair together, without special tokens
    pooling: Pooling | None = None  # of an encoder's states
    prompts: Prompts | None = None
    labels: tuple[Any, ...] = ()  # of the outputs, in the graph's order; entailment's by our names

    @property
    def sides(self) -> int:
        """How many texts it reads together."""
        return 2 if self.task in ("similarity", "relevance", "entailment") else 1

    @property
    def library(self) -> str:
        """The folder's own, or the runtime of its graph."""
        if self.path is not None:
            return "onnxruntime"
        return "sentence-transformers" if self.task == "embedding" else "transformers"

    @property
    def label(self) -> str | None:
        """Labels of entailment, or of relevance (1 and 0); scores of similarity."""
        return None if self.task in ("embedding", "similarity") else "label"

    @property
    def facts(self) -> ImportFacts:
        """What is said of it."""
        graph = self.path.name if self.path is not None else "exported by torch"
        kind = f"a {object_or_none(self.folder / CONFIG).get('model_type', 'transformer')}"
        if self.task == "labels":
            what = f"{kind} classifier of single texts"
            return ImportFacts("transformer_classifier", what, {"labels": list(self.labels), "graph": graph}, ())
        if self.task != "embedding":
            what = f"{kind} cross-encoder, for {self.task}"
            return ImportFacts("transformer_pair", what, {"head": self.task, "graph": graph}, ())
        how = f"{self.pooling.mode} pooling" if self.pooling else "pooled by its own graph"
        length = ", brought to length 1" if self.pooling and self.pooling.normalise else ""
        return ImportFacts("transformer_encoder", f"{kind} encoder, {how}{length}", {"graph": graph}, ())

    def library_answers(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """The library's own answers, as in `ImportedModel.library_answers`; of a graph the graph's own.

        Raises:
            ImportRefused: the folder's weights, where there are some beside its graph, or its modules say otherwise.
        """
        if self.path is None:
            return self._by_weights(a, b)
        run = self._by_graph(self.path)
        if self.task != "embedding":
            made = np.stack([run(*row) for row in self._rows(a, b)]).astype(np.float64)
        else:
            made = np.stack([self._pooled(run(text)) for text in prompted(self.prompts, a, b)]).astype(np.float64)
        self._check_graph(made, a, b)
        return made

    def _rows(self, a: Sequence[str], b: Sequence[str]) -> list[tuple[str, ...]]:
        return list(zip(a, b, strict=True)) if self.sides == 2 else [(text,) for text in [*a, *b]]

    def _by_weights(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        if self.task == "embedding":
            return self._by_sentence_transformers(a, b)
        run = self._by_transformers()
        return np.stack([run(*row) for row in self._rows(a, b)]).astype(np.float64)

    def _check_graph(self, made: Floats, a: Sequence[str], b: Sequence[str]) -> None:
        """Whether a graph says what the folder says beside it: a few of its answers, by the weights where they are."""
        modules, where = [name for name, _ in read_modules(self.folder)], self.folder / "modules.json"
        part = slice(max(0, len(a) // 2 - _COMPARED), len(a) // 2 + _COMPARED)  # in both roles of a
        if modules[-1:] == ["Normalize"] and not np.allclose(np.linalg.norm(made, axis=1), 1.0, atol=1e-3):
            raise ImportRefused(
                f"{where}: a Normalize module follows, and the folder's graph gives vectors of other lengths: {_ADVICE}"
            )
        if not has_weights(self.folder) or find_spec("torch") is None:
            if "Dense" in modules:
                raise ImportRefused(f"{where}: nothing tells whether the folder's graph has the Dense layer: {_ADVICE}")
            return
        if self.task == "embedding" and self.pooling is None and not modules:
            return  # nothing says what the weights' answer would be
        check_weights(self.folder)
        ours = np.concatenate([each[part] for each in np.split(made, len(made) // len(a))])
        off = distance(ours, self._by_weights(a[part], b[part]), directions=self.task == "embedding")
        if not off <= _NEAR:
            raise ImportRefused(
                f"{self.path}: the graph gives other answers than the weights beside it, by {off:.1%}: {_ADVICE}"
            )

    def _pooled(self, states: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return states if self.pooling is None else self.pooling.apply(states[None], [len(states)])[0]

    def _reader(self) -> Callable[..., dict[str, Any]]:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False)
        lower = bool(read_settings(self.folder).get("do_lower_case"))
        most = self.max_tokens + self.tokenizer.special_tokens(self.sides).number

        def read(*texts: str, tensors: str) -> dict[str, Any]:
            given = [text.lower() for text in texts] if lower else texts
            return dict(tokenizer(*given, truncation=True, max_length=most, return_tensors=tensors))

        return read

    def _by_graph(self, path: Path) -> Outputs:
        """The unmodified graph by itself, of what the folder's own tokenizer reads."""
        session, read = open_graph(onnx.load(path).SerializeToString(), path), self._reader()

        def run(*texts: str) -> npt.NDArray[np.float32]:
            found = read(*texts, tensors="np")
            ids = np.asarray(found[IDS], np.int64)
            every = {
                IDS: ids,
                MASK: np.ones_like(ids),
                SEGMENTS: np.asarray(found.get(SEGMENTS, np.zeros_like(ids)), np.int64),
                POSITIONS: np.arange(ids.shape[1])[None],
            }
            feeds = {name: every[name] for name in self.signature.inputs}
            return np.asarray(session.run([self.signature.output], feeds)[0][0], np.float32)

        return run

    def _by_transformers(self) -> Outputs:
        import torch
        from transformers import AutoModelForSequenceClassification

        read = self._reader()
        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        model = AutoModelForSequenceClassification.from_pretrained(self.folder, **options).float().eval()

        def run(*texts: str) -> npt.NDArray[np.float32]:
            with torch.inference_mode():
                return np.asarray(model(**read(*texts, tensors="pt")).logits[0].numpy())

        return run

    def _by_sentence_transformers(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        if read_modules(self.folder):
            model = sentence_model(self.folder)
        else:
            from sentence_transformers import SentenceTransformer
            from sentence_transformers.models import Pooling as TheirPooling
            from sentence_transformers.models import Transformer as TheirTransformer

            assert self.pooling is not None
            width = self.signature.sizes["dim"]
            parts = [TheirTransformer(str(self.folder)), TheirPooling(width, pooling_mode=self.pooling.mode)]
            model = SentenceTransformer(modules=parts, device="cpu").float()
        most = self.max_tokens + self.tokenizer.special_tokens(1).number
        model.max_seq_length = min(model.max_seq_length or most, most)
        return encoded(model, self.prompts, a, b)

    def write(self, folder: Path, model_id: str, storage: Storage) -> dict[str, Any]:
        """Write graph, tokenizer and the network's configuration, as in `ImportedModel.write`."""
        self.tokenizer.save(folder / TOKENIZER)
        model = ModelProto()
        model.CopyFrom(self.graph)
        clean(model, model_id)
        save_graph(model, folder / (PAIR if self.sides == 2 else ENCODER), storage)
        fields: dict[str, Any] = {"tokenizer": TOKENIZER, "limits": Limits(max_tokens=self.max_tokens)}
        if self.sides == 2:
            limits = Limits(max_tokens=self.max_tokens, max_pair_tokens=max(self.max_tokens, 2))
            return fields | {"family": "interaction", "limits": limits, **tasks_of(PAIR, self.task, self.labels)}
        dim = self.signature.sizes["dim"]
        fields |= {"family": "siamese", "dim": dim, "encoder": ENCODER, "pooling": self.pooling}
        if self.task == "labels":
            save_graph(classes_graph(dim, model_id), folder / CLASSES, "float32")
            return fields | {"classification": ClassificationTask(graph=CLASSES, labels=self.labels)}
        if self.path is None and self.pooling is not None:
            (folder / CONFIG).write_bytes((self.folder / CONFIG).read_bytes())
            fields["network_config"] = CONFIG
        dimensions = read_dimensions(self.folder, dim)
        return fields | {"similarity": COSINE, "prompts": self.prompts, "dimensions": dimensions}


def read_transformer(folder: Path, options: ImportOptions) -> Transformer:
    """Read a folder of transformers or sentence-transformers, or one with a graph in ONNX.

    Args:
        folder: with `config.json`, and weights in safetensors or a graph.
        options: what the folder does not say, or says otherwise.

    Raises:
        ImportRefused: it cannot be taken; names the file and the field.
    """
    tokenizer, let_through = read_tokenizer(folder)
    path, graph = graph_in(folder, options)
    kinds = object_or_none(folder / CONFIG).get("architectures") or ()
    pools = any(name == "Pooling" for name, _ in read_modules(folder))  # then the network's states count, not its head
    has_head = not pools and any(str(name).endswith("ForSequenceClassification") for name in kinds)
    if graph is not None:
        has_head = any(each.name == LOGITS for each in graph.graph.output)
    special = tokenizer.special_tokens(2 if has_head else 1).number
    limit = max_tokens(folder, let_through, special, options.max_tokens)
    graph = graph or exported(folder, has_head, limit + special)
    signature = signature_of(graph, path or folder, limit + special, len(tokenizer) - 1)
    if signature.output != LOGITS:
        idle = ("head", "labels", "pairs_head", *(() if signature.gives_states else ("pooling",)))
        options.refuse("an embedder" if signature.gives_states else "an embedder whose graph pools", *idle)
        pooling = read_pooling(folder, options.pooling, states=signature.gives_states)
        prompts = read_prompts(folder, options.prompts)
        return Transformer(folder, path, graph, signature, tokenizer, "embedding", limit, pooling, prompts)
    check_head(folder)
    options.refuse("a model that scores or labels", "pooling", "prompt")
    task, labels = _head(folder, options, signature)
    if task == "labels":
        limit = max_tokens(folder, let_through, tokenizer.special_tokens(1).number, options.max_tokens)
    return Transformer(folder, path, graph, signature, tokenizer, task, limit, labels=labels)


def _head(folder: Path, options: ImportOptions, signature: GraphSignature) -> tuple[Task, tuple[Any, ...]]:
    """What a graph of logits answers, and its labels.

    Raises:
        ImportRefused: the folder does not say what its outputs are.
    """
    width = next(iter(signature.sizes.values()))
    if width == 1:
        options.refuse("a model with one output", "labels", "pairs_head")
        kind = object_or_none(folder / CONFIG).get("problem_type")
        if options.head is None and kind not in (None, "single_label_classification"):
            raise ImportRefused(
                f"{folder / CONFIG}: problem_type is {kind!r}; where its one output scores pairs of texts, give --head"
            )
        return options.head or "relevance", ()
    options.refuse(f"a model with {width} outputs", "head")
    found = labels_of(folder)
    named = tuple(options.labels or found)
    where = "--labels" if options.labels else f"{folder / CONFIG}: id2label"
    shown = f"{where} is {', '.join(map(repr, named))}"
    fit = [each for each in dict.fromkeys(named) if 0 < len(each.strip()) <= 64 and each != "LABEL_0"]
    if not len(fit) == len(named) == width:
        raise ImportRefused(f"{shown}; expected a name for each of {width} outputs (--labels names them)")
    if options.pairs_head is not False and (meant := pair_of(named)) is not None:
        return meant
    if options.pairs_head is None:
        raise ImportRefused(
            f"{shown}: nothing says whether the model reads two texts together or one: give --pairs-head yes or no"
        )
    if options.pairs_head:
        raise ImportRefused(
            f"{shown}; of a model that reads two texts expected {', '.join(LABELS)}; entailment, not_entailment; or "
            "relevant, irrelevant, in any order (--labels names them)"
        )
    return "labels", named
