"""Published graphs opened with ONNX Runtime, as the service opens them: what evaluation and parity run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from contract.graph import SPECS, GraphKind, check_signature
from contract.manifest import Manifest
from contract.scoring import Array, Run, Similarities, compare, encode, entailment, similarity
from contract.tokenizer import Tokenizer

BATCH = 256  # sentences or pairs per session call; no score depends on it


def open_graph(path: Path, kind: GraphKind) -> Run:
    """Open a graph on one CPU thread and hold its signature against the contract.

    Raises:
        GraphMismatchError: the graph is not of that kind.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def signature(values: Sequence[onnxruntime.NodeArg]) -> dict[str, tuple[str, list[int | str | None]]]:
        return {v.name: (_DTYPES.get(v.type, v.type), list(v.shape)) for v in values}

    spec = SPECS[kind]
    check_signature(spec, signature(session.get_inputs()), signature(session.get_outputs()), where=path.name)
    output = list(spec.outputs)

    def run(feeds: Mapping[str, Array]) -> npt.NDArray[np.float32]:
        result: npt.NDArray[np.float32] = session.run(output, feeds)[0]
        return result

    return run


_DTYPES = {"tensor(int64)": "int64", "tensor(float)": "float32"}


class PublishedModel:
    """A siamese model folder, answering as the service does."""

    def __init__(self, folder: Path, manifest: Manifest | None = None) -> None:
        """Open a folder; `manifest` stands in while one is being published."""
        self.manifest = manifest or Manifest.load(folder)
        self.tokenizer = Tokenizer.load(folder / self.manifest.tokenizer)
        assert self.manifest.encoder is not None  # siamese
        self._encoder = open_graph(folder / self.manifest.encoder, "encoder")
        heads = set(self.manifest.graphs) - {self.manifest.encoder}
        self._heads = {name: open_graph(folder / name, "head") for name in heads}

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """n texts -> float32 [n, dim]."""
        limit = self.manifest.limits.max_tokens
        ids = [self.tokenizer.encode(text, limit).ids for text in texts]
        return np.concatenate([encode(self._encoder, ids[s : s + BATCH]) for s in range(0, len(ids), BATCH)])

    def similarity(self, a: Sequence[str], b: Sequence[str]) -> Similarities:
        """Score n pairs."""
        task = self.manifest.similarity
        assert task is not None
        return similarity(task, self._heads.get(task.graph or ""), self.embed(a), self.embed(b))

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[dict[str, float]]:
        """Label probabilities of n pairs."""
        task = self.manifest.entailment
        assert task is not None
        raw = compare(self._heads[task.graph], self.embed(premises), self.embed(hypotheses))
        return entailment(task, raw)
