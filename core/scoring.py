"""Token ids -> scores, with any runtime as `Run`.

`training/publish/runtime.py` and `service/scoring/` both use these functions with ONNX Runtime sessions, so measured
figures hold for the served models.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from core.answers import EntailmentLabel as EntailmentLabel
from core.measures import (
    Calibration,
    Floats,
    clip,
    cosine,
    exp_l1,
    expected_rating,
    probabilities,
    rounded,
    to_unit,
)

Array = npt.NDArray[np.generic]
Embeddings = npt.NDArray[np.float32]
Run = Callable[[Mapping[str, Array]], npt.NDArray[np.float32]]  # feeds by tensor name -> the one output

FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]  # never a path
ScoreTask = Literal["similarity", "paraphrase", "relevance"]  # the tasks that give a pair one score
# The three labels, or of a model with two outputs `not_entailment` for neutral and contradiction together.
NLI: tuple[EntailmentLabel, EntailmentLabel, EntailmentLabel] = ("entailment", "neutral", "contradiction")
Label = Annotated[str, Field(min_length=1, max_length=64)]


class _Task(BaseModel):
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

    @model_validator(mode="after")
    def _as_wide_as_its_columns(self) -> Self:
        if self.columns is not None and (found := self.columns[1] - self.columns[0]) != self.width:
            raise ValueError(f"columns {self.columns} are {found} outputs, the task reads {self.width}")
        return self


class _ScoreTask(_Task):
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


class _LabelTask(_Task):
    """A graph's log-probabilities, or logits, in the order of `labels`."""

    graph: FileName
    labels: tuple[str, ...]
    temperature: float = Field(1.0, gt=0, description="calibration: log-probabilities are divided by it (Guo 2017)")

    @property
    def width(self) -> int:
        """How many outputs of its graph it reads."""
        return len(self.labels)

    @property
    def of_classes(self) -> bool:
        """Whether those are log-probabilities of classes."""
        return True

    @model_validator(mode="after")
    def _labels_differ(self) -> Self:
        if len(set(self.labels)) != len(self.labels):
            raise ValueError(f"each label once, got {self.labels}")
        return self


class EntailmentTask(_LabelTask):
    """How a premise and a hypothesis become a label: one of the three, or of two of which one is entailment."""

    kind: Literal["entailment"] = "entailment"
    labels: tuple[EntailmentLabel, ...] = Field(min_length=2, max_length=3)

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        three = len(self.labels) == 3 and "not_entailment" in self.labels
        if "entailment" not in self.labels or three:
            raise ValueError(f"expected {', '.join(NLI)}, or entailment and one other label, got {self.labels}")
        return self


class ClassificationTask(_LabelTask):
    """How one sentence becomes a label: a CLASSIFIER graph."""

    kind: Literal["classification"] = "classification"
    labels: tuple[Label, ...] = Field(min_length=2)


class CalibratedScores(NamedTuple):
    """Answers for n pairs."""

    raw_score: Floats  # [n], the model's output, within the raw_range of a similarity
    rating: Floats | None  # [n], on the task's label_scale, if it has one
    score: Floats  # [n], in 0..1; of a `ProbabilityTask` the probability


def compare(run_head: Run, a: Embeddings, b: Embeddings) -> npt.NDArray[np.float32]:
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
    return read_similarity(task, raw_scores(task, compare(run_head, a, b)))


def raw_scores(
    task: SimilarityTask | ProbabilityTask, raw_output: npt.NDArray[np.float32], *embeddings: Embeddings
) -> Floats:
    """Raw scores [n] from a HEAD or PAIR graph's output [n, outputs]: the expected rating, or the value.

    A task with a blend takes the embeddings of both sides too: [n, dim] or [1, dim], and [n, dim].
    """
    raw_output = _of_task(task, raw_output)
    own = raw_output[:, 0].astype(np.float64) if task.classes is None else expected_rating(raw_output, task.classes)
    if task.sigmoid:
        own = 1 / (1 + np.exp(-own))
    if task.blend is None:
        return own
    part, of_cosine = task.blend
    return part * own + of_cosine * np.maximum(cosine(*embeddings), 0.0)


def _of_task(
    task: SimilarityTask | ProbabilityTask | EntailmentTask | ClassificationTask, raw_output: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    return raw_output if task.columns is None else raw_output[:, slice(*task.columns)]


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


def entailment(task: EntailmentTask, raw_output: npt.NDArray[np.float32]) -> list[dict[str, float]]:
    """Log-probabilities [n, labels], in the order of the task's labels -> each label's probability for each pair.

    They are divided by the task's temperature, and have seven significant digits.
    """
    of_labels = rounded(probabilities(_of_task(task, raw_output) / np.float32(task.temperature)))
    return [dict(zip(task.labels, row.tolist(), strict=True)) for row in of_labels]


def classify(run_classifier: Run, embeddings: Embeddings) -> npt.NDArray[np.float32]:
    """Raw output of a CLASSIFIER graph for n sentences: embeddings [n, dim] -> [n, outputs]."""
    return run_classifier({"sentence_embedding": embeddings})


def classification(task: ClassificationTask, raw_output: npt.NDArray[np.float32]) -> list[dict[str, float]]:
    """Log-probabilities [n, labels] in the order of the task's labels -> each sentence's probability of each label.

    They are divided by the task's temperature and made to sum to 1 again (Guo et al. 2017, section 4.2), and have seven
    significant digits.
    """
    rows = rounded(probabilities(_of_task(task, raw_output) / np.float32(task.temperature)))
    return [dict(zip(task.labels, row.tolist(), strict=True)) for row in rows]


def most_likely(probability: Mapping[str, float]) -> str:
    """The label with the highest probability; the first of equals."""
    return max(probability, key=probability.__getitem__)


def best_first(raw: Sequence[float] | Floats) -> list[int]:
    """Positions by raw score, the highest first; of equal ones the earlier first."""
    order: list[int] = np.argsort(-np.asarray(raw), kind="stable").tolist()
    return order
