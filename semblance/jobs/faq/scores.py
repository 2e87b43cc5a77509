"""What each model says of each question beside each text of an FAQ, and what a question costs it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from time import time_ns
from typing import Literal, get_args

import numpy as np

from core.ranking import ConfidenceFit, Match, texts_of
from core.scoring import best_first
from semblance.client.clients import Client
from semblance.errors import BatchError, RequestFailed
from semblance.jobs.batch.tasks import changed
from semblance.jobs.faq.files import Faq, Questions
from semblance.jobs.faq.logistic import Floats
from semblance.jobs.threshold import to_compare
from semblance.tables.rows import Step
from semblance.types import ModelInfo

Part = Literal["question", "answer", "both"]  # the texts of an entry that a model may read
PARTS: tuple[Part, ...] = get_args(Part)
PARTS_OF: Mapping[Match, tuple[Part, ...]] = {
    "question": ("question",),
    "answer": ("answer",),
    "both": ("both",),
    "either": ("question", "answer"),
}
_TIMED = 5  # times that each cost is measured, all models in turn


@dataclass(frozen=True, slots=True)
class Model:
    """A model that may order entries, or order the best of them again."""

    id: str
    fingerprint: str
    reads_pairs: bool  # so that it costs a run for each entry, and is asked as a second stage alone
    confidence: Sequence[ConfidenceFit]  # its published fits


@dataclass(slots=True)
class Scores:
    """Raw scores and costs.

    Attributes:
        models: cheapest first.
        rerank_top: entries that a second stage orders.
        default: id of the model that ranks where a request names none.
        raw: of a model and a part [m, n]; NaN where a model was not asked.
        seconds: of a model, of one new question whose FAQ it knows, with one text for each entry.
    """

    models: list[Model]
    rerank_top: int
    default: str | None = None
    raw: dict[tuple[str, Part], Floats] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def cost(self, model: Model, match: Match) -> float:
        """Seconds of one new question with these texts of the entries."""
        return self.seconds[model.id] * (len(PARTS_OF[match]) if model.reads_pairs else 1)

    def of(self, model: str, match: Match) -> Floats:
        """The raw scores of a model for a match, [m, n]: of two parts the better one."""
        found = self.raw[model, PARTS_OF[match][0]]
        for part in PARTS_OF[match][1:]:
            found = np.maximum(found, self.raw[model, part])
        return found


def score(
    client: Client,
    faq: Faq,
    questions: Questions,
    names: Sequence[str] | None,
    *,
    every: bool,
    clock: Callable[[], float],
    step: Step,
) -> Scores:
    """Ask the models about every question.

    A model that reads pairs is asked about those entries alone that another model finds.

    Args:
        client: of a service, or of models that are opened here.
        faq: n entries.
        questions: m questions.
        names: ids of models; None: those that the service lists first.
        every: without names, all that can rank.
        clock: seconds, of the processor or of the wall.
        step: called with what is being done, and the share of it that is done.

    Raises:
        BatchError: a model named is not served or cannot rank, all of them read pairs, or one changed meanwhile.
        SemblanceError: raised by the client.
    """
    served = client.models()
    asked, _ = to_compare(served.models, ("similarity",), names, every=every)
    models = [_model(info) for info in asked]
    first = [model for model in models if not model.reads_pairs]
    if not first:
        raise BatchError(f"{', '.join(model.id for model in models)}: name a model as well that reads each text alone")
    scores = Scores(models, served.rerank.default_top, served.defaults.get("/rank"))
    for model in (*first, *(model for model in models if model.reads_pairs)):
        everything = [set(range(len(faq.entries)))] * len(questions.texts)
        _ask(client, model, faq, questions, _found(scores, first) if model.reads_pairs else everything, scores, step)
    for i in range(_TIMED):  # in turn, so that what else the machine does falls on all alike
        question = questions.texts[i % len(questions.texts)]
        for model in models:
            step("measuring what a question costs", i / _TIMED)
            cost = _cost(client, model, faq, question, scores.rerank_top, clock)
            scores.seconds[model.id] = min(cost, scores.seconds.get(model.id, cost))  # what else ran made it longer
    if changed(served, client.models(), [model.id for model in models]):
        raise BatchError("a model changed while it was asked: start again")
    scores.models = sorted(models, key=lambda each: scores.seconds[each.id])
    return scores


def _model(info: ModelInfo) -> Model:
    fits = [ConfidenceFit(**asdict(each)) for each in info.confidence]
    return Model(info.id, info.fingerprint, info.family == "interaction", fits)


def _texts(faq: Faq, part: Part) -> list[str]:
    return [texts_of(entry.question, entry.answer, part)[0] for entry in faq.entries]


def _found(scores: Scores, first: Sequence[Model]) -> list[set[int]]:
    """For each question the entries that a second stage may get: of each first stage and match the best."""
    ranked = [scores.of(model.id, match) for model in first for match in PARTS_OF]
    return [
        {place for raw in ranked for place in best_first(raw[i].tolist())[: scores.rerank_top]}
        for i in range(len(ranked[0]) if ranked else 0)
    ]


def _ask(
    client: Client,
    model: Model,
    faq: Faq,
    questions: Questions,
    places: Sequence[set[int]],
    scores: Scores,
    step: Step,
) -> None:
    raw = {part: np.full((len(questions.texts), len(faq.entries)), np.nan) for part in PARTS}
    texts = {part: _texts(faq, part) for part in PARTS}
    for i, (question, wanted) in enumerate(zip(questions.texts, places, strict=True)):
        step(f"asking {model.id}", i / len(questions.texts))
        at = [(part, place) for part in PARTS for place in sorted(wanted)]
        try:
            ranking = client.rank(question, [texts[part][place] for part, place in at], model=model.id)
        except RequestFailed as error:
            if error.field == "query":
                raise error.about(f"the question {question[:40]!r}") from None
            if (error.field or "").startswith("candidates.") and (index := error.index) is not None and index < len(at):
                raise error.about(f"the entry {faq.entries[at[index][1]].id!r}") from None
            raise
        for result in ranking.results:
            part, place = at[result.index]
            raw[part][i, place] = result.raw_score
    scores.raw |= {(model.id, part): raw[part] for part in PARTS}


def _cost(client: Client, model: Model, faq: Faq, question: str, top: int, clock: Callable[[], float]) -> float:
    """Seconds of a question that no cache has, beside all entries, or for a model that reads pairs beside the best."""
    texts = _texts(faq, "both")
    new = f"{question} {time_ns()}"
    began = clock()
    client.rank(new, texts[:top] if model.reads_pairs else texts, model=model.id, top_k=1)
    return clock() - began
