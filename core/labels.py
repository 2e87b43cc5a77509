"""Labels of pairs and texts: what tasks of a manifest say, and a graph's outputs -> the probability of each label."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from core.answers import EntailmentLabel as EntailmentLabel
from core.scoring import Embeddings, FileName, GraphTask, Rows, Run, compare, probabilities, rounded

# The three labels, or of a model with two outputs `not_entailment` for neutral and contradiction together.
NLI: tuple[EntailmentLabel, EntailmentLabel, EntailmentLabel] = ("entailment", "neutral", "contradiction")
Label = Annotated[str, Field(min_length=1, max_length=64)]


class _LabelTask(GraphTask):
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


def entailment(task: EntailmentTask, raw_output: Rows) -> list[dict[str, float]]:
    """Log-probabilities [n, labels], in the order of the task's labels -> each label's probability for each pair.

    They are divided by the task's temperature, and have seven significant digits.
    """
    of_labels = rounded(probabilities(task.own(raw_output) / np.float32(task.temperature)))
    return [dict(zip(task.labels, row.tolist(), strict=True)) for row in of_labels]


def entailment_by_head(task: EntailmentTask, run_head: Run, a: Embeddings, b: Embeddings) -> list[dict[str, float]]:
    """The same of n pairs of embeddings, by a HEAD graph; see `compare`."""
    return entailment(task, compare(run_head, a, b))


def classify(run_classifier: Run, embeddings: Embeddings) -> Rows:
    """Raw output of a CLASSIFIER graph for n sentences: embeddings [n, dim] -> [n, outputs]."""
    return run_classifier({"sentence_embedding": embeddings})


def classification(task: ClassificationTask, raw_output: Rows) -> list[dict[str, float]]:
    """Log-probabilities [n, labels] in the order of the task's labels -> each sentence's probability of each label.

    They are divided by the task's temperature and made to sum to 1 again (Guo et al. 2017, section 4.2), and have seven
    significant digits.
    """
    rows = rounded(probabilities(task.own(raw_output) / np.float32(task.temperature)))
    return [dict(zip(task.labels, row.tolist(), strict=True)) for row in rows]


def most_likely(probability: Mapping[str, float]) -> str:
    """The label with the highest probability; the first of equals."""
    return max(probability, key=probability.__getitem__)
