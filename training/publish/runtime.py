"""Published graphs opened with ONNX Runtime, as in the service; used by evaluation and parity checks."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from core.errors import ArtifactError
from core.graph import SLOW_FUSIONS, GraphKind, GraphSignature, read_signature
from core.labels import classification, classify, entailment
from core.manifest import Manifest, ProbabilityTask, Role, ScoreTask, SimilarityTask
from core.scoring import (
    Array,
    CalibratedScores,
    Embeddings,
    Floats,
    compare,
    probabilities,
    raw_scores,
    read_similarity,
    similarity,
)
from core.sequences import Feeds, feeds_of
from core.subwords import fit_together, load_tokenizer
from core.tensors import load_tensors, tensors_of

BATCH, PAIR_BATCH = 256, 32  # most sentences and pairs per session call; no score depends on it
BATCH_TOKENS = 2048  # padded, of a call with several sentences: a long one is not what all others are padded to


class OpenGraph:
    """A graph on one CPU thread; a `core.scoring.Run`."""

    def __init__(self, session: onnxruntime.InferenceSession, signature: GraphSignature, weights: object) -> None:
        """`weights`: kept alive, for the session uses their memory."""
        self._session, self.signature, self._weights = session, signature, weights

    def __call__(self, feeds: Mapping[str, Array]) -> npt.NDArray[np.float32]:
        """Run the graph: feeds by tensor name -> the output that is read of it."""
        result: npt.NDArray[np.float32] = self._session.run([self.signature.output], feeds)[0]
        return result


def open_graph(path: Path, kind: GraphKind, tensors: Mapping[str, Array] | None = None) -> OpenGraph:
    """Open a graph on one CPU thread and check its signature against the contract.

    Args:
        path: the file.
        kind: of the graph.
        tensors: weights outside the graph, by the names of their initializers.

    Raises:
        GraphMismatchError: the graph is not of that kind.
        ArtifactError: ONNX Runtime cannot open it, for example without a tensor that it needs.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    outside = tensors_of(path.read_bytes(), tensors or {}) if tensors else {}
    weights = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in outside.items()}
    if weights:
        options.add_external_initializers(list(weights), list(weights.values()))
    # Only the given weights, whose checksums were verified: the path is no folder, so no file is found in it.
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path))
    options.log_severity_level = 3  # errors only; failures are raised as exceptions
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, ["CPUExecutionProvider"], disabled_optimizers=SLOW_FUSIONS
        )
    except Exception as error:  # onnxruntime's own exceptions share no public base class
        raise ArtifactError(f"{path}: onnxruntime cannot open it: {str(error).strip()}") from error

    def signature(values: Sequence[onnxruntime.NodeArg]) -> dict[str, tuple[str, list[int | str | None]]]:
        return {v.name: (_DTYPES.get(v.type, v.type), list(v.shape)) for v in values}

    found = read_signature(kind, signature(session.get_inputs()), signature(session.get_outputs()), where=path.name)
    return OpenGraph(session, found, weights)


def _batches(ids: Sequence[tuple[int, ...]]) -> Iterator[Sequence[tuple[int, ...]]]:
    """Runs of sentences, which come with the shortest first."""
    start = 0
    for end, each in enumerate(ids):
        if end > start and (end - start == BATCH or (end - start + 1) * len(each) > BATCH_TOKENS):
            yield ids[start:end]
            start = end
    yield ids[start:]


_DTYPES = {"tensor(int64)": "int64", "tensor(float)": "float32"}


class PublishedModel:
    """A model folder whose scores are those of the service."""

    def __init__(self, folder: Path, manifest: Manifest | None = None) -> None:
        """Open a folder; `manifest` replaces its manifest file, while a model is being published."""
        self.manifest = manifest or Manifest.load(folder)
        self.tokenizer = load_tokenizer(self.manifest.path_of(folder, self.manifest.tokenizer))
        tensors = load_tensors(folder, self.manifest)
        self._graphs: dict[str, OpenGraph] = {}
        self._feeds: dict[str, Feeds] = {}
        for name, kind in self.manifest.graph_kinds.items():
            graph = self._graphs[name] = open_graph(self.manifest.path_of(folder, name), kind, tensors)
            if kind not in ("head", "classifier"):
                pooling, most = self.manifest.pooling_of(name), self.manifest.max_tokens(name)
                self._feeds[name] = feeds_of(graph.signature, kind, self.tokenizer, pooling, most, where=name)

    def embed(self, texts: Sequence[str], role: Role = "text") -> npt.NDArray[np.float32]:
        """n texts -> float32 [n, dim], each behind the prompt of its role; siamese models only."""
        assert self.manifest.encoder is not None
        prompt = self.manifest.prompts.of(role) if self.manifest.prompts is not None else ""
        return self.embed_ids(self._ids([prompt + text for text in texts] if prompt else texts))

    def embed_ids(self, ids: Sequence[tuple[int, ...]]) -> npt.NDArray[np.float32]:
        """n sentences as token ids -> float32 [n, dim], by the encoder, or that of an interaction model's blend."""
        name = self.manifest.encoder if self.manifest.bi_encoder is None else self.manifest.bi_encoder.graph
        assert name is not None
        distinct = sorted(dict.fromkeys(ids), key=len)  # each once, and texts of like length together
        rows = np.concatenate([self._feeds[name].rows(self._graphs[name], [batch]) for batch in _batches(distinct)])
        place = {each: i for i, each in enumerate(distinct)}
        return np.asarray(rows[[place[each] for each in ids]])

    def similarity(self, a: Sequence[str], b: Sequence[str], name: ScoreTask = "similarity") -> CalibratedScores:
        """Score n pairs, as the task of that name does."""
        task = self.manifest.score_tasks[name]
        if self.manifest.encoder is None:
            assert task.graph is not None
            return read_similarity(task, self._raw(task, self.outputs(task.graph, a, b), a, b))
        assert isinstance(task, SimilarityTask)
        return similarity(task, self._graphs.get(task.graph or ""), self.embed(a), self.embed(b))

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[dict[str, float]]:
        """Label probabilities of n pairs."""
        task = self.manifest.entailment
        assert task is not None
        if self.manifest.encoder is None:
            return entailment(task, self.outputs(task.graph, premises, hypotheses))
        return entailment(task, compare(self._graphs[task.graph], self.embed(premises), self.embed(hypotheses)))

    def probabilities(self, a: Sequence[str], b: Sequence[str], labels: Sequence[str]) -> dict[str, Array]:
        """What one graph's tasks say of n pairs before calibration, for another model to learn: interaction models.

        Returns:
            By task: entailment float [n, 3] in the order of `labels`; similarity, paraphrase and relevance [n, 1].
        """
        manifest, outputs, found = self.manifest, dict[str, Embeddings](), dict[str, Array]()
        tasks = {name: getattr(manifest, name) for name in ("entailment", "similarity", "paraphrase", "relevance")}
        for name, task in tasks.items():
            if task is None or task.columns is None:
                continue
            if task.graph not in outputs:
                outputs[task.graph] = self.outputs(task.graph, a, b)
            if name == "entailment":
                raw = outputs[task.graph][:, slice(*task.columns)] / np.float32(task.temperature)
                found[name] = probabilities(raw)[:, [task.labels.index(label) for label in labels]]
            else:
                scores = self._raw(task, outputs[task.graph], a, b)[:, None]
                found[name] = scores if name == "similarity" else np.asarray(1 / (1 + np.exp(-scores)))
        return found

    def _raw(
        self,
        task: SimilarityTask | ProbabilityTask,
        output: npt.NDArray[np.float32],
        a: Sequence[str],
        b: Sequence[str],
    ) -> Floats:
        """Raw scores [n] of an interaction model's task from its graph's output, with its blend."""
        return raw_scores(task, output, *(() if task.blend is None else map(self.embed_ids, self._pair_ids(a, b))))

    def classification(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Label probabilities of n texts; siamese models only."""
        task = self.manifest.classification
        assert task is not None
        return classification(task, classify(self._graphs[task.graph], self.embed(texts)))

    def _ids(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        return [self.tokenizer.encode(text, self.manifest.limits.max_tokens).ids for text in texts]

    def _pair_ids(self, a: Sequence[str], b: Sequence[str]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """The token ids of n pairs' sides, within the limit of both together."""
        ids_a, ids_b = self._ids(a), self._ids(b)
        if (most := self.manifest.limits.max_pair_tokens) is not None:
            fits = [fit_together(len(x), len(y), most) for x, y in zip(ids_a, ids_b, strict=True)]
            ids_a = [ids[:fit] for ids, (fit, _) in zip(ids_a, fits, strict=True)]
            ids_b = [ids[:fit] for ids, (_, fit) in zip(ids_b, fits, strict=True)]
        return ids_a, ids_b

    def outputs(self, graph: str, a: Sequence[str], b: Sequence[str]) -> npt.NDArray[np.float32]:
        """The output of a PAIR or EXPLANATION graph for n pairs; pairs of similar size are run together."""
        ids_a, ids_b = self._pair_ids(a, b)
        order = np.lexsort(([len(ids) for ids in ids_b], [len(ids) for ids in ids_a]))
        parts = []
        for start in range(0, len(order), PAIR_BATCH):
            batch = order[start : start + PAIR_BATCH]
            parts.append(
                self._feeds[graph].rows(self._graphs[graph], [[ids[i] for i in batch] for ids in (ids_a, ids_b)])
            )
        found = np.concatenate(parts)
        return found[np.argsort(order)]
