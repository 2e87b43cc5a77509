"""Labels of texts: a model's own, or any labels, judged by what an entailment model says; and claims about a text.

W. Yin, J. Hay, D. Roth, "Benchmarking Zero-shot Text Classification", EMNLP 2019: the text is the premise, and a
template with the label the hypothesis. A claim is held against every sentence of a document: which of them supports it
best?
"""

from collections.abc import Sequence
from itertools import chain

from core.labels import most_likely
from core.scoring import round_significant
from core.tokenizer import Encoded
from service.engine.admission import RequestContext
from service.schemas import Answer, ClassifyResponse
from service.scoring.scorer import Scorer

TEMPLATE = "This text is about {}."
PLACE = "{}"  # of the label


async def classify(context: RequestContext, scorer: Scorer, texts: Sequence[Encoded]) -> ClassifyResponse:
    """Label texts with the model's own labels.

    Raises:
        InferenceFailed: a graph raised, or gave a number that is not finite.
    """
    answers = await scorer.classify(context, texts)
    results = [_labelled(each, text.truncated) for text, each in zip(texts, answers, strict=True)]
    return {"model": scorer.id, "results": results}


async def zero_shot(
    context: RequestContext,
    scorer: Scorer,
    texts: Sequence[Encoded],
    labels: Sequence[str],
    hypotheses: Sequence[Encoded],
    *,
    multi_label: bool,
) -> ClassifyResponse:
    """Label texts with any labels.

    Args:
        context: of the request.
        scorer: of a model with entailment.
        texts: n of them.
        labels: k of them, all different.
        hypotheses: each label in the template.
        multi_label: see `judged`.

    Raises:
        InferenceFailed: a graph raised, or gave a number that is not finite.
    """
    premises = list(chain.from_iterable([text] * len(labels) for text in texts))
    left, right = scorer.fit(premises, list(hypotheses) * len(texts))
    answers = await scorer.entailment(context, left, right)
    results: list[Answer] = []
    for start in range(0, len(left), len(labels)):
        of_text = slice(start, start + len(labels))
        found = judged(answers[of_text], multi_label=multi_label)
        cut = any(each.truncated for each in (*left[of_text], *right[of_text]))
        results.append(_labelled(dict(zip(labels, found, strict=True)), cut))
    return {"model": scorer.id, "results": results}


def _labelled(probabilities: dict[str, float], truncated: bool) -> Answer:
    return {"label": most_likely(probabilities), "probabilities": probabilities, "truncated": truncated}


def judged(answers: Sequence[dict[str, float]], *, multi_label: bool) -> list[float]:
    """What an entailment model says of k hypotheses about one text -> the probability of each label.

    One of them: the softmax over the log-probabilities of entailment, which is their share of the probabilities' sum.
    `multi_label`, and a single label: each by itself, entailment against contradiction, of a model of two labels
    against the other one.
    """
    entailed = [each["entailment"] for each in answers]
    if multi_label or len(answers) == 1:
        against = [each.get("contradiction", 1 - each["entailment"]) for each in answers]
        return [_share(yes, yes + no, 0.5) for yes, no in zip(entailed, against, strict=True)]
    return [_share(each, sum(entailed), 1 / len(entailed)) for each in entailed]


def _share(part: float, whole: float, otherwise: float) -> float:
    """Part of a whole; `otherwise` where probabilities left the range of floats."""
    return round_significant(part / whole if whole > 0 else otherwise)
