"""Texts whose vectors a small transformer learns from a large one: answers and questions before single sentences.

Only texts are read, never labels. Left out are evaluation sentences (`training.data.leakage`) and the sets that the
model is measured on: the bank's, the course's and Covid's FAQs, health answers (MEDIQA) and graded relatedness (STR);
and SciFact, whose licence forbids commercial use.
"""

from collections.abc import Iterable, Iterator, Mapping

from training.data.files import CorpusError, locate, numbered_lines
from training.data.leakage import evaluation_sentences, normalise_for_overlap
from training.data.mixtures import draw
from training.data.readers import captions, labelled_pairs, wikipedia

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
# File, and its columns of text.
_FILES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "amazon-product-qa": ("amazon-product-qa/amazon-qa.tsv.gz", ("question", "answer")),
    "medquad": ("medquad/medquad.tsv.gz", ("question", "answer")),
    "natural-questions-sentences": ("natural-questions-sentences/nq-qed-sentences.tsv.gz", ("question", "answer")),
    "natural-questions-passages": ("natural-questions-passages/nq-open-oracle.tsv.gz", ("question", "answer")),
    "stackexchange-small": ("stackexchange-small/stackexchange-small.tsv.gz", ("question", "answer")),
    "semeval2016-answers": ("semeval2016-answers/semeval2016-3A.tsv.gz", ("question", "answer")),
    "counsel-chat": ("counsel-chat/counsel-chat.tsv.gz", ("question", "answer")),
    "selqa": ("selqa-part/selqa-dev-test.tsv.gz", ("question", "answer")),
    "argument-keypoint": ("argument-keypoint/argkp2021.tsv.gz", ("a", "b")),
    "intents-banking77": ("intents-banking77/banking77.tsv.gz", ("text",)),
    "intents-clinc150": ("intents-clinc150/clinc150.tsv.gz", ("text",)),
    "intents-hwu64": ("intents-hwu64/hwu64.tsv.gz", ("text",)),
    "fool-me-twice": ("fool-me-twice/fool-me-twice.tsv.gz", ("premise", "hypothesis")),
    "fever-dev": ("fever-dev/fever-dev.tsv.gz", ("premise", "hypothesis")),
    "climate-fever": ("climate-fever/climate-fever.tsv.gz", ("premise", "hypothesis")),
    "snli-train": ("snli-train-part/snli-train-part.tsv.gz", ("premise", "hypothesis")),
    "mnli-train": ("mnli-train-part/mnli-train-part.tsv.gz", ("premise", "hypothesis")),
}

# Of sources that are not in the catalogue: licences as their notices give them.
LICENCES: Mapping[str, str] = {
    "amazon-product-qa": "none stated; research use",
    "medquad": "CC BY 4.0",
    "natural-questions-sentences": "CC BY-SA 3.0 and GFDL (Wikipedia)",
    "natural-questions-passages": "CC BY-SA 3.0",
    "stackexchange-small": "CC BY-SA 3.0",
    "semeval2016-answers": "none stated",
    "counsel-chat": "MIT",
    "argument-keypoint": "CDLA Sharing 1.0",
    "intents-banking77": "CC BY 4.0",
    "intents-clinc150": "CC BY 3.0",
    "intents-hwu64": "CC BY 4.0",
    "fool-me-twice": "CC BY-SA 3.0 (Wikipedia)",
    "fever-dev": "CC BY-SA 3.0",
    "climate-fever": "none stated",
}


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


WITH_ANSWERS = frozenset(source for source, (_, names) in _FILES.items() if names == ("question", "answer"))


def answers() -> list[tuple[str, str]]:
    """(question, right answer) of the sources that have answers.

    Raises:
        CorpusError: a source is missing or malformed.
    """
    return list(dict.fromkeys(pair for source in _FILES if source in WITH_ANSWERS for pair in _answers_of(source)))


def _answers_of(source: str) -> Iterator[tuple[str, str]]:
    file, names = _FILES[source]
    for question, answer, label in _records(file, (*names, "label")):
        if label == "1":
            yield question, answer


def _texts(source: str) -> Iterable[str]:
    match source:
        case "quora":
            return (text for pair in labelled_pairs.read("quora") for text in (pair.a, pair.b))
        case "captions":
            return (text for said in captions.read("multi30k").values() for text in said)
        case "wikipedia":
            return wikipedia.sentences()
    file, names = _FILES[source]
    return (text for record in _records(file, names) for text in record)


def _records(file: str, names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The texts in some columns of a tab-separated file with a header, line by line."""
    lines = numbered_lines(locate(file.partition("/")[0], file), file)
    header = next(lines, (1, ""))[1].split("\t")
    if missing := [name for name in names if name not in header]:
        raise CorpusError(f"{file}, line 1: there is no column {', '.join(missing)}")
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(header):
            raise CorpusError(f"{file}, line {number}: expected {len(header)} columns, got {len(cells)}")
        yield tuple(cells[header.index(name)].strip() for name in names)
