"""Scores of pairs: token ids -> scores, with any runtime as `Run`; comparisons of embeddings, and calibration.

`training/publish/runtime.py` and `service/scoring/` both use these functions with ONNX Runtime sessions, so measured
figures hold for the served models. All is in numpy and float64: scores of training and service agree to the last
digit, and the cost is negligible.

A calibration is a monotone or smooth map from a raw score to human ratings. `training/publish/calibrate.py` fits them,
the manifest has their parameters, and training and service apply them with this code.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

Array = npt.NDArray[np.generic]
Floats = npt.NDArray[np.float64]
Embeddings = npt.NDArray[np.floating]
Rows = npt.NDArray[np.float32]  # what a graph gives, [n, outputs]
Run = Callable[[Mapping[str, Array]], Rows]  # feeds by tensor name -> the one output

FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]  # never a path
ScoreTask = Literal["similarity", "paraphrase", "relevance"]  # the tasks that give a pair one score

# Stands for a norm of 0, where the dot product is 0 too; far below the product of any two others in float32.
_MIN_NORM = np.finfo(np.float64).tiny

DIGITS = (
    7  # significant ones: more of float32 depends on the order of its sums, and so on a text's neighbours in a batch
)
_FEW = 12  # numbers that are rounded one by one in less time than together
_POWERS = np.array([float(f"1e{places}") for places in range(23)])  # all that float64 has exactly

MAX_KNOTS = 1024  # keeps a map to a few kilobytes


def cosine(a: Embeddings, b: Embeddings) -> Floats:
    """Cosine of each pair of rows: [n, d] or [1, d], [n, d] -> [n] in [-1, 1]; 0 where a row is all zeros."""
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    norms = np.sqrt(np.vecdot(a64, a64) * np.vecdot(b64, b64))
    return clip(np.vecdot(a64, b64) / np.maximum(norms, _MIN_NORM), -1.0, 1.0)


def exp_l1(a: Embeddings, b: Embeddings) -> Floats:
    """exp(-||a - b||_1) of each pair of rows: [n, d] or [1, d], [n, d] -> [n] in [0, 1] (MaLSTM's g)."""
    return np.asarray(np.exp(-np.abs(a.astype(np.float64) - b.astype(np.float64)).sum(axis=1)))


def probabilities(log_probabilities: npt.NDArray[np.floating]) -> Floats:
    """Softmax over the last axis [n, k]; also re-normalises log-probabilities rounded to float32."""
    shifted = log_probabilities.astype(np.float64)
    shifted = np.exp(shifted - shifted.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def expected_rating(log_probabilities: npt.NDArray[np.floating], classes: Sequence[float]) -> Floats:
    """y = r^T p (Tai et al. 2015, eq. 15): log-probabilities [n, k] and the rating of each class -> [n]."""
    return np.asarray(probabilities(log_probabilities) @ np.asarray(classes, dtype=np.float64))


def to_unit(values: Floats, low: float, high: float) -> Floats:
    """Map `low`..`high` linearly to 0..1 and clip what lies outside."""
    return clip((values - low) / (high - low), 0.0, 1.0)


def rounded(values: npt.NDArray[np.floating]) -> Floats:
    """Numbers [...] to seven significant digits: of each the float64 that is nearest to that decimal."""
    if values.size > _FEW:
        size = np.abs(values)
        exponents = np.floor(np.log10(np.where(size > 0, size, 1.0))).astype(np.int64)
        places = DIGITS - 1 - exponents
        if places.min() >= 0 and places.max() < len(_POWERS):  # all but those that are very large or small
            scale = _POWERS[places]
            return np.asarray(np.rint(values * scale) / scale)
    return np.array([round_significant(value) for value in values.ravel().tolist()], np.float64).reshape(values.shape)


def round_significant(value: float) -> float:
    """One number to seven significant digits."""
    return float(f"{value:.{DIGITS}g}")


def clip(values: Floats, low: float, high: float) -> Floats:
    """As `np.clip`, whose checks of arguments cost more than the cosine of one pair."""
    return np.asarray(np.minimum(np.maximum(values, low), high))


@lru_cache(maxsize=256)
def _array(values: tuple[float, ...]) -> Floats:
    """A field as an array, cached: conversion costs more than evaluating a map at one value."""
    array = np.asarray(values, dtype=np.float64)
    array.flags.writeable = False  # shared by every call
    return array


class _Knots(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    x: tuple[float, ...] = Field(min_length=2, max_length=MAX_KNOTS)
    y: tuple[float, ...] = Field(min_length=2, max_length=MAX_KNOTS)

    @model_validator(mode="after")
    def _same_length_and_rising(self) -> Self:
        if len(self.x) != len(self.y):
            raise ValueError(f"x has {len(self.x)} knots, y has {len(self.y)}")
        if any(b <= a for a, b in zip(self.x, self.x[1:], strict=False)):
            raise ValueError("x must rise strictly")
        return self


class CentredIsotonic(_Knots):
    """Isotonic regression drawn through the centres of its blocks (Oron & Flournoy 2017).

    Ordinary isotonic regression is a step function, which maps different scores to one value; joining the block
    centres makes it strictly increasing between the first and last knot.
    """

    kind: Literal["centred_isotonic"] = "centred_isotonic"

    @model_validator(mode="after")
    def _monotone(self) -> Self:
        if any(b < a for a, b in zip(self.y, self.y[1:], strict=False)):
            raise ValueError("y must not fall")
        return self

    def apply(self, raw: Floats) -> Floats:
        """Piecewise-linear interpolation, constant outside the knots: [n] -> [n]."""
        return np.asarray(np.interp(raw, _array(self.x), _array(self.y)))


class LocalLinear(_Knots):
    """Local-linear regression with a Gaussian kernel (Fan & Gijbels 1992), as MaLSTM calibrates.

    `x`, `y`, `weight` are the training points in at most 1024 bins of `x`, with their counts as weights. The estimate
    is clipped to `low`..`high`.
    """

    kind: Literal["local_linear"] = "local_linear"
    weight: tuple[Annotated[float, Field(gt=0)], ...]
    bandwidth: float = Field(gt=0)
    low: float
    high: float

    @model_validator(mode="after")
    def _one_weight_each(self) -> Self:
        if len(self.weight) != len(self.x):
            raise ValueError(f"x has {len(self.x)} knots, weight has {len(self.weight)}")
        if self.low >= self.high:
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")
        return self

    def apply(self, raw: Floats) -> Floats:
        """Weighted least-squares line around each value, read at that value: [n] -> [n]."""
        x, y, weight = _array(self.x), _array(self.y), _array(self.weight)
        offset = x[None, :] - np.asarray(raw, dtype=np.float64)[:, None]
        scaled = (offset / self.bandwidth) ** 2
        # Shifted by the nearest point, so that weights do not underflow far from all points.
        kernel = np.exp(-0.5 * (scaled - scaled.min(axis=1, keepdims=True))) * weight
        s0, s1, s2 = kernel.sum(1), (kernel * offset).sum(1), (kernel * offset**2).sum(1)
        t0, t1 = (kernel * y).sum(1), (kernel * offset * y).sum(1)
        determinant = s0 * s2 - s1**2
        mean = t0 / s0
        # With one effective point there is no slope: the local mean.
        safe = determinant > 1e-12 * s0 * s2
        line = np.divide(s2 * t0 - s1 * t1, determinant, out=mean.copy(), where=safe)
        return np.asarray(np.clip(line, self.low, self.high))


class Logistic(BaseModel):
    """The logistic function of a line: a classifier's raw output -> a probability (Platt 1999)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Literal["logistic"] = "logistic"
    slope: float = Field(gt=0)
    intercept: float = 0.0

    def apply(self, raw: Floats) -> Floats:
        """[n] -> [n], in 0..1."""
        # tanh takes any value; exp would overflow.
        return 0.5 * (1.0 + np.tanh(0.5 * (self.slope * np.asarray(raw, dtype=np.float64) + self.intercept)))


Calibration = Annotated[CentredIsotonic | LocalLinear | Logistic, Field(discriminator="kind")]


class GraphTask(BaseModel):
    """What the tasks of a manifest have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    # A cross-encoder answers all of its tasks in one run.
    columns: tuple[Annotated[int, Field(ge=0)], int] | None = Field(
        None,
        description="of the graph's outputs those from the first number up to the second are this task's; null: all",
    )

    @property
    def width(self) -> int:
        """How many outputs of its graph it reads."""
        return 1

    @property
    def of_classes(self) -> bool:
        """Whether those are log-probabilities of classes."""
        return False

    def own(self, raw_output: Rows) -> Rows:
        """Its outputs, of all those of its graph."""
        return raw_output if self.columns is None else raw_output[:, slice(*self.columns)]

    @model_validator(mode="after")
    def _as_wide_as_its_columns(self) -> Self:
        if self.columns is not None and (found := self.columns[1] - self.columns[0]) != self.width:
            raise ValueError(f"columns {self.columns} are {found} outputs, the task reads {self.width}")
        return self


class _ScoreTask(GraphTask):
    """What the tasks that give a pair one score have in common."""

    blend: tuple[float, float] | None = Field(
        None,
        description="raw score = the first times the value of the graph, plus the second times the cosine of both "
        "texts' embeddings (of `bi_encoder`; 0 where negative); null: the value of the graph",
    )
    classes: tuple[float, ...] | None = Field(None, min_length=2)
    sigmoid: bool = Field(False, description="the graph gives a logit, and the raw score is its logistic function")

    @property
    def width(self) -> int:
        """How many outputs of its graph it reads."""
        return len(self.classes or (0,))

    @property
    def of_classes(self) -> bool:
        """Whether those are log-probabilities of classes."""
        return self.classes is not None


class SimilarityTask(_ScoreTask):
    """How two sentences become a score.

    Exactly one source of the raw score: a parameter-free `comparison` of two embeddings, or a `graph` (HEAD or
    PAIR) whose output is either log-probabilities over the ratings in `classes`, or one value.
    """

    kind: Literal["similarity"] = "similarity"
    comparison: Literal["cosine", "exp_l1"] | None = None
    graph: FileName | None = None
    raw_range: tuple[float, float] = Field(description="the lowest and highest raw score there can be")
    label_scale: tuple[float, float] | None = Field(None, description="the corpus' rating scale, such as 1..5")
    calibration: Calibration | None = Field(
        None, description="raw score -> rating on label_scale, or -> 0..1 when there is no scale"
    )
    symmetric: bool = Field(description="swapping the two sentences does not move the score")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.comparison is None) == (self.graph is None):
            raise ValueError("give either comparison or graph, not both and not neither")
        if self.classes is not None and self.graph is None:
            raise ValueError("classes belong to a graph's output")
        for name, bounds in (("raw_range", self.raw_range), ("label_scale", self.label_scale)):
            if bounds is not None and bounds[0] >= bounds[1]:
                raise ValueError(f"{name} must rise, got {bounds}")
        return self


class ProbabilityTask(_ScoreTask):
    """How two sentences become a probability: that they are paraphrases, or that b is relevant to a.

    The graph's output is log-probabilities, or logits, of the `classes` no and yes (0 and 1), or one value that the
    calibration makes a probability.
    """

    kind: Literal["probability"] = "probability"
    graph: FileName
    classes: tuple[Literal[0], Literal[1]] | tuple[Literal[1], Literal[0]] | None = None
    calibration: Calibration | None = Field(None, description="raw score -> probability; null: it is one already")
    symmetric: bool = Field(description="swapping the two sentences does not move the probability")


class CalibratedScores(NamedTuple):
    """Answers for n pairs."""

    raw_score: Floats  # [n], the model's output, within the raw_range of a similarity
    rating: Floats | None  # [n], on the task's label_scale, if it has one
    score: Floats  # [n], in 0..1; of a `ProbabilityTask` the probability


def compare(run_head: Run, a: Embeddings, b: Embeddings) -> Rows:
    """Raw output of a HEAD graph: a [n, dim] or [1, dim], b [n, dim] -> [n, outputs]."""
    return run_head({"embedding_a": a if len(a) == len(b) else np.repeat(a, len(b), axis=0), "embedding_b": b})


def similarity(task: SimilarityTask, run_head: Run | None, a: Embeddings, b: Embeddings) -> CalibratedScores:
    """Score n pairs of embeddings of a siamese model: a [n, dim] or [1, dim], b [n, dim].

    Raises:
        ValueError: the task names a graph and no session was given for it.
    """
    if task.comparison == "cosine":
        return read_similarity(task, cosine(a, b))
    if task.comparison == "exp_l1":
        return read_similarity(task, exp_l1(a, b))
    if run_head is None:
        raise ValueError(f"the similarity task needs its graph {task.graph}")
    return pair_scores(task, compare(run_head, a, b))


def raw_scores(task: SimilarityTask | ProbabilityTask, raw_output: Rows, *embeddings: Embeddings) -> Floats:
    """Raw scores [n] from a HEAD or PAIR graph's output [n, outputs]: the expected rating, or the value.

    A task with a blend takes the embeddings of both sides too: [n, dim] or [1, dim], and [n, dim].
    """
    raw_output = task.own(raw_output)
    own = raw_output[:, 0].astype(np.float64) if task.classes is None else expected_rating(raw_output, task.classes)
    if task.sigmoid:
        own = 1 / (1 + np.exp(-own))
    if task.blend is None:
        return own
    part, of_cosine = task.blend
    return part * own + of_cosine * np.maximum(cosine(*embeddings), 0.0)


def pair_scores(task: SimilarityTask | ProbabilityTask, raw_output: Rows, *embeddings: Embeddings) -> CalibratedScores:
    """Score n pairs by what `raw_scores` reads."""
    return read_similarity(task, raw_scores(task, raw_output, *embeddings))


def read_similarity(task: SimilarityTask | ProbabilityTask, raw: Floats) -> CalibratedScores:
    """Calibrate raw scores [n] to ratings and to 0..1, as the task says; all to seven significant digits."""
    value = raw if task.calibration is None else task.calibration.apply(raw)
    if isinstance(task, SimilarityTask) and task.label_scale is not None:
        low, high = task.label_scale
        rating = clip(value, low, high)
        raw, rating, score = rounded(np.stack([raw, rating, (rating - low) / (high - low)]))
        return CalibratedScores(raw, rating, score)
    if isinstance(task, ProbabilityTask) or task.calibration is not None:
        score = clip(value, 0.0, 1.0)
    else:
        score = to_unit(raw, *task.raw_range)
    raw, score = rounded(np.stack([raw, score]))
    return CalibratedScores(raw, None, score)


def best_first(raw: Sequence[float] | Floats, scores: Sequence[float] | None = None) -> list[int]:
    """Positions by score, the highest first, of equal ones by raw score, then the earlier first; by raw scores alone
    without scores.

    Calibration makes equals of raw scores that differ, and a text is as like itself as can be, whatever its raw score.
    """
    keys = [raw] if scores is None else [raw, scores]
    order: list[int] = np.lexsort([-np.asarray(key) for key in keys]).tolist()
    return order
