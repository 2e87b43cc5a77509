"""Ids in, answers out, around any runtime: the one road from token ids to scores.

`training/runtime.py` and `service/scorer.py` both call these functions with ONNX Runtime sessions behind
`Run`, which is why a figure measured offline is the figure served online.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contract.manifest import EntailmentTask, SimilarityTask
from contract.padding import pad
from contract.scores import Floats, clip, cosine, exp_l1, expected_rating, probabilities, to_unit

Array = npt.NDArray[np.generic]
Embeddings = npt.NDArray[np.float32]
Run = Callable[[Mapping[str, Array]], npt.NDArray[np.float32]]  # feeds by tensor name -> the one output


class Similarities(NamedTuple):
    """Answers for n pairs."""

    raw_score: Floats  # [n], as the model gives it, within the task's raw_range
    rating: Floats | None  # [n], on the task's label_scale, when it has one
    score: Floats  # [n], in 0..1


def encode(run_encoder: Run, ids: Sequence[Sequence[int]]) -> Embeddings:
    """Embed n sentences: their token ids -> float32 [n, dim]."""
    input_ids, lengths = pad(ids)
    return run_encoder({"input_ids": input_ids, "lengths": lengths})


def compare(run_head: Run, a: Embeddings, b: Embeddings) -> npt.NDArray[np.float32]:
    """Raw output of a HEAD graph for n pairs of embeddings, or one of a with n of b: [n, outputs]."""
    return run_head({"embedding_a": a if len(a) == len(b) else np.repeat(a, len(b), axis=0), "embedding_b": b})


def similarity(task: SimilarityTask, run_head: Run | None, a: Embeddings, b: Embeddings) -> Similarities:
    """Score n pairs of embeddings of a siamese model: a [n, dim], or [1, dim] for all of b [n, dim].

    Raises:
        ValueError: the task names a graph and no session was given for it.
    """
    if task.comparison == "cosine":
        return read_similarity(task, cosine(a, b))
    if task.comparison == "exp_l1":
        return read_similarity(task, exp_l1(a, b))
    if run_head is None:
        raise ValueError(f"the similarity task needs its graph {task.graph}")
    return read_similarity(task, raw_scores(task, compare(run_head, a, b)))


def raw_scores(task: SimilarityTask, raw_output: npt.NDArray[np.float32]) -> Floats:
    """One number per pair from a HEAD or PAIR graph's output [n, outputs]: expected rating, or the value."""
    if task.classes is not None:
        return expected_rating(raw_output, task.classes)
    return raw_output[:, 0].astype(np.float64)


def read_similarity(task: SimilarityTask, raw: Floats) -> Similarities:
    """Calibrate raw scores [n] to ratings and to 0..1, as the task's manifest entry says."""
    value = raw if task.calibration is None else task.calibration.apply(raw)
    if task.label_scale is not None:
        low, high = task.label_scale
        rating = clip(value, low, high)
        return Similarities(raw, rating, to_unit(rating, low, high))
    if task.calibration is not None:
        return Similarities(raw, None, clip(value, 0.0, 1.0))
    return Similarities(raw, None, to_unit(raw, *task.raw_range))


def entailment(task: EntailmentTask, raw_output: npt.NDArray[np.float32]) -> list[dict[str, float]]:
    """Log-probabilities [n, 3] in the order of the task's labels -> for each pair, the probability of each label."""
    return [dict(zip(task.labels, row.tolist(), strict=True)) for row in probabilities(raw_output)]


def most_likely(probability: Mapping[str, float]) -> str:
    """The label with the highest probability; the first of equals."""
    return max(probability, key=probability.__getitem__)
