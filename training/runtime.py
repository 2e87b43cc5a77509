"""Published graphs opened with ONNX Runtime, as the service opens them: what evaluation and parity run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from contract.graph import SPECS, GraphKind, check_signature
from contract.manifest import Manifest
from contract.padding import pad
from contract.scoring import (
    Array,
    Run,
    Similarities,
    compare,
    encode,
    entailment,
    raw_scores,
    read_similarity,
    similarity,
)
from contract.tensors import external_tensors, load_tensors
from contract.tokenizer import Tokenizer

BATCH, PAIR_BATCH = 256, 32  # sentences and pairs per session call; no score depends on it


def open_graph(path: Path, kind: GraphKind, tensors: Mapping[str, Array] | None = None) -> Run:
    """Open a graph on one CPU thread and hold its signature against the contract.

    Args:
        path: the file.
        kind: what it must be.
        tensors: the weights it leaves outside, by the names of its initializers; others are passed over.

    Raises:
        GraphMismatchError: the graph is not of that kind.
        ArtifactError: it needs a tensor that is not given, or another one.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    outside = external_tensors(path, tensors or {})
    # The session reads these where they lie: `run` keeps them alive.
    weights = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in outside.items()}
    if weights:
        options.add_external_initializers(list(weights), list(weights.values()))
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def signature(values: Sequence[onnxruntime.NodeArg]) -> dict[str, tuple[str, list[int | str | None]]]:
        return {v.name: (_DTYPES.get(v.type, v.type), list(v.shape)) for v in values}

    spec = SPECS[kind]
    check_signature(spec, signature(session.get_inputs()), signature(session.get_outputs()), where=path.name)
    output = list(spec.outputs)

    def run(feeds: Mapping[str, Array], _weights: object = weights) -> npt.NDArray[np.float32]:
        result: npt.NDArray[np.float32] = session.run(output, feeds)[0]
        return result

    return run


_DTYPES = {"tensor(int64)": "int64", "tensor(float)": "float32"}


class PublishedModel:
    """A model folder, answering as the service does."""

    def __init__(self, folder: Path, manifest: Manifest | None = None) -> None:
        """Open a folder; `manifest` stands in while one is being published."""
        self.manifest = manifest or Manifest.load(folder)
        self.tokenizer = Tokenizer.load(self.manifest.path_of(folder, self.manifest.tokenizer))
        tensors = load_tensors(folder, self.manifest)
        siamese = self.manifest.family == "siamese"
        self._graphs: dict[str, Run] = {}
        for name in self.manifest.graphs:
            kind: GraphKind = "head" if siamese else "pair"
            if name == self.manifest.encoder:
                kind = "encoder"
            if self.manifest.explanation is not None and name == self.manifest.explanation.graph:
                kind = "explanation"
            self._graphs[name] = open_graph(self.manifest.path_of(folder, name), kind, tensors)

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """n texts -> float32 [n, dim]; siamese models only."""
        assert self.manifest.encoder is not None
        encoder, ids = self._graphs[self.manifest.encoder], self._ids(texts)
        return np.concatenate([encode(encoder, ids[s : s + BATCH]) for s in range(0, len(ids), BATCH)])

    def similarity(self, a: Sequence[str], b: Sequence[str]) -> Similarities:
        """Score n pairs."""
        task = self.manifest.similarity
        assert task is not None
        if task.graph is not None and self.manifest.encoder is None:
            return read_similarity(task, raw_scores(task, self._meet(task.graph, a, b)))
        return similarity(task, self._graphs.get(task.graph or ""), self.embed(a), self.embed(b))

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[dict[str, float]]:
        """Label probabilities of n pairs."""
        task = self.manifest.entailment
        assert task is not None
        if self.manifest.encoder is None:
            return entailment(task, self._meet(task.graph, premises, hypotheses))
        return entailment(task, compare(self._graphs[task.graph], self.embed(premises), self.embed(hypotheses)))

    def matrices(self, a: str, b: str) -> npt.NDArray[np.float32]:
        """What met what in one pair [matrices, tokens of a, tokens of b], as `manifest.explanation` names them."""
        assert self.manifest.explanation is not None
        return self._meet(self.manifest.explanation.graph, [a], [b])[0]

    def _ids(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        return [self.tokenizer.encode(text, self.manifest.limits.max_tokens).ids for text in texts]

    def _meet(self, graph: str, a: Sequence[str], b: Sequence[str]) -> npt.NDArray[np.float32]:
        """A graph's output for n pairs; pairs of like size are run together."""
        ids_a, ids_b = self._ids(a), self._ids(b)
        order = sorted(range(len(ids_a)), key=lambda i: (len(ids_a[i]), len(ids_b[i])))
        parts = []
        for start in range(0, len(order), PAIR_BATCH):
            batch = order[start : start + PAIR_BATCH]
            (input_ids_a, lengths_a), (input_ids_b, lengths_b) = (
                pad([ids[i] for i in batch]) for ids in (ids_a, ids_b)
            )
            feeds = {"input_ids_a": input_ids_a, "lengths_a": lengths_a}
            parts.append(self._graphs[graph](feeds | {"input_ids_b": input_ids_b, "lengths_b": lengths_b}))
        found = np.concatenate(parts)
        return found[np.argsort(order)]
