"""Texts whose vectors a small transformer learns from a large one: answers and questions before single sentences.

Only texts are read, never labels. Left out are evaluation sentences (`training.data.leakage`) and the sets that the
model is measured on: the bank's, the course's and Covid's FAQs, health answers (MEDIQA) and graded relatedness (STR);
and SciFact, whose licence forbids commercial use.
"""

from collections.abc import Iterable, Mapping

from training.data.leakage import evaluation_sentences, normalise_for_overlap
from training.data.mixtures import draw
from training.data.pairs import Pair
from training.data.readers import captions, intents, labelled_pairs, wikipedia

# Each source's share of a sample; what a small one lacks is divided among the others.
SHARES: Mapping[str, float] = {
    "amazon-product-qa": 0.16,
    "medquad": 0.09,
    "natural-questions-sentences": 0.10,
    "natural-questions-passages": 0.03,
    "stackexchange-small": 0.06,
    "semeval2016-answers": 0.05,
    "counsel-chat": 0.02,
    "selqa": 0.06,
    "argument-keypoint": 0.04,
    "intents-banking77": 0.03,
    "intents-clinc150": 0.04,
    "intents-hwu64": 0.02,
    "fool-me-twice": 0.02,
    "fever-dev": 0.03,
    "climate-fever": 0.02,
    "quora": 0.05,
    "snli-train": 0.04,
    "mnli-train": 0.06,
    "captions": 0.02,
    "wikipedia": 0.06,
}
# What the catalogue and `labelled_pairs` call some of them.
NAMES: Mapping[str, str] = {
    "natural-questions-sentences": "nq-sentences",
    "stackexchange-small": "stackexchange",
    "semeval2016-answers": "semeval-answers",
}
WITH_ANSWERS = (
    "amazon-product-qa",
    "medquad",
    "natural-questions-sentences",
    "natural-questions-passages",
    "stackexchange-small",
    "semeval2016-answers",
    "counsel-chat",
    "selqa",
)


def imitated_texts(limit: int, seed: int) -> list[tuple[str, str]]:
    """(source, text), at most `limit`, in a shuffled order: the same for the same data, limit and seed.

    Raises:
        CorpusError: a source is missing or malformed.
    """
    unwanted, seen = evaluation_sentences(), set[str]()
    pools: dict[str, list[str]] = {}
    for source in SHARES:
        pools[source] = []
        for text in _texts(source):
            key = normalise_for_overlap(text)
            if key and key not in seen and key not in unwanted:
                seen.add(key)
                pools[source].append(text)
    return draw(pools, limit, seed, SHARES)


def answers() -> list[tuple[str, str]]:
    """(question, right answer) of the sources that have answers.

    Raises:
        CorpusError: a source is missing or malformed.
    """
    found = (pair for source in WITH_ANSWERS for pair in _pairs(source))
    return list(dict.fromkeys((pair.a, pair.b) for pair in found if pair.label == "1"))


def _texts(source: str) -> Iterable[str]:
    match source.partition("-"):
        case "captions", _, _:
            return (text for said in captions.read("multi30k").values() for text in said)
        case "wikipedia", _, _:
            return wikipedia.sentences()
        case "intents", _, name:
            return (text for text, _ in intents.read(name))
    return (text for pair in _pairs(source) for text in (pair.a, pair.b))


def _pairs(source: str) -> list[Pair]:
    return labelled_pairs.read(NAMES.get(source, source))
