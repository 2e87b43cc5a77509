"""Keeping evaluation sentences out of training data.

The rule:

1. Sources without human ratings (sentences, paraphrase pairs, definitions, tweets) have no sentence of any
   evaluation set (`evaluation_sentences`), whichever model is trained on them.
2. The rated or labelled training part of a corpus is for models that are measured on that corpus only. There the pairs
   of its development and test parts are left out (`without_pairs`), not their sentences: the parts of a corpus share
   sentences by construction (three quarters of SICK's test sentences occur in its train pairs). MaLSTM's released STS
   pairs are for models measured on SICK, without the pairs of SICK.
3. Models measured on another corpus, and teachers, may be trained only on the pairs of SICK train
   without a sentence of any other corpus' evaluation set (`without_foreign_sentences`): SICK train has 260 test
   sentences of the MSRvid part of STS 2012.

4. Sets that no model is trained on or chosen by (`KEPT_ASIDE`, measured by `benchmarks/kept_aside.py`) share no
   sentence of eight or more words with answers and questions from elsewhere (`without_kept_aside`).

Word counts on Wikipedia are not filtered: they contain no sentence.
"""

import functools
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from training.data.files import CorpusMissing, data_dir, numbered_lines, one_of
from training.data.pairs import Pair
from training.data.penn import detokenise
from training.data.readers import labelled_pairs, sts

_log = logging.getLogger(__name__)
_WORD = re.compile(r"[a-z0-9]+")

Item = TypeVar("Item", str, Pair)

_SPLITS: dict[str, list[Callable[[], list[Pair]]]] = {
    "sts": [functools.partial(sts.read, year, name) for year, names in sts.SETS.items() for name in names],
    **{
        corpus: [functools.partial(labelled_pairs.read, f"{corpus}-{split}") for split in splits]
        for corpus, splits in {
            "pit2015": ("dev", "test"),
            "sick": ("train", "dev", "test"),
            "stsb": ("dev",),
            "msrp": ("test",),
            "wikiqa": ("dev", "test"),
            "trecqa": ("dev-raw", "test-raw"),
        }.items()
    },
}
# Files of the sets kept aside; every cell of theirs is a text of theirs.
KEPT_ASIDE = (
    "bank-faq/hdfc-bank-faq.tsv.gz",
    "technical-course-faq/datatalks-faq.tsv.gz",
    "covid-faq/covid-faq.tsv.gz",
    "covid-q/covid-q.tsv.gz",
    "mediqa-health-answers/mediqa2019-liveqa.tsv.gz",
    "semeval2016-questions/semeval2016-3B-train.tsv.gz",
    "str2022-semrel/str2022-semrel-train.tsv.gz",
    "intents-hint3/hint3.tsv.gz",
    "intents-city-kit/city-kit.tsv.gz",
)
LONG = 8  # words: shorter sentences are said everywhere
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+")
EVALUATION_CORPORA: tuple[str, ...] = tuple(_SPLITS)


def normalise_for_overlap(text: str) -> str:
    """The runs of ASCII letters and digits, in lower case: two sentences with equal results count as the same.

    All else separates them, for corpora spell one sentence with other marks, and with letters that a wrong encoding
    broke ("café" is "cafÃ©" or "caf?" elsewhere). A text in another script is compared by its own letters.
    """
    return " ".join(_WORD.findall(text.lower()) or re.findall(r"\w+", text.lower()))


def evaluation_sentences(corpora: Collection[str] = EVALUATION_CORPORA) -> frozenset[str]:
    """All normalised sentences of the evaluation sets.

    These are SICK (every split), STS 2012-2016, STS-B dev, MSRP test, PIT-2015, and the questions and answers of WikiQA
    and TrecQA dev and test.

    Sentences of tokenised corpora are included as they are and detokenised. A set that is not in the data folder is
    left out with a warning: nothing can be measured on it either. Raises ValueError for an unknown corpus,
    `CorpusError` for a malformed file.
    """
    for corpus in corpora:
        one_of("corpus", corpus, EVALUATION_CORPORA)
    return _sentences(data_dir().resolve(), tuple(sorted(set(corpora))))


def contains_evaluation_sentence(item: str | Pair, sentences: Collection[str]) -> bool:
    """Whether a text, or either side of a pair, is one of ``sentences``, unchanged or detokenised."""
    texts = (item,) if isinstance(item, str) else (item.a, item.b)
    return any(form in sentences for text in texts for form in _forms(text))


def without_evaluation_sentences(items: Iterable[Item], sentences: Collection[str] | None = None) -> Iterator[Item]:
    """``items`` (texts or pairs) less those with an evaluation sentence of any length, in the same order.

    ``sentences``: what to leave out, normalised; all of `evaluation_sentences` by default.
    """
    unwanted = evaluation_sentences() if sentences is None else sentences
    return (item for item in items if not contains_evaluation_sentence(item, unwanted))


def without_foreign_sentences(pairs: Iterable[Pair], own: str) -> list[Pair]:
    """Training pairs of the corpus ``own`` less those with a sentence of any other corpus' evaluation set.

    Raises ValueError for an unknown corpus.
    """
    one_of("corpus", own, EVALUATION_CORPORA)
    foreign = evaluation_sentences([corpus for corpus in EVALUATION_CORPORA if corpus != own])
    return list(without_evaluation_sentences(pairs, foreign))


def without_kept_aside(pairs: Iterable[Pair]) -> list[Pair]:
    """``pairs`` less those that share a sentence of `LONG` words with a set kept aside.

    A set that is not in the data folder is left out with a warning.
    """
    unwanted = _kept_aside(data_dir().resolve())
    return [pair for pair in pairs if unwanted.isdisjoint(_long_sentences(pair.a) | _long_sentences(pair.b))]


def _long_sentences(text: str) -> set[str]:
    found = map(normalise_for_overlap, _SENTENCE_END.split(text))
    return {sentence for sentence in found if len(sentence.split()) >= LONG}


@functools.lru_cache(maxsize=4)
def _kept_aside(folder: Path) -> frozenset[str]:
    there = [folder / file for file in KEPT_ASIDE if (folder / file).is_file()]
    if len(there) < len(KEPT_ASIDE):
        _log.warning("%d sets kept aside are not filtered out, being absent", len(KEPT_ASIDE) - len(there))
    lines = (line for path in there for _, line in numbered_lines(path, path.name))
    return frozenset(sentence for line in lines for cell in line.split("\t") for sentence in _long_sentences(cell))


def pair_key(a: str, b: str) -> tuple[str, str]:
    """The same key for two texts in either order, after `normalise_for_overlap`; for filters by pair."""
    first, second = normalise_for_overlap(a), normalise_for_overlap(b)
    return (first, second) if first <= second else (second, first)


def without_pairs(pairs: Iterable[Pair], unwanted: Iterable[Pair]) -> list[Pair]:
    """``pairs`` less those that also occur in ``unwanted``, in either order (SICK train less its test pairs)."""
    keys = {pair_key(pair.a, pair.b) for pair in unwanted}
    return [pair for pair in pairs if pair_key(pair.a, pair.b) not in keys]


def _forms(text: str) -> set[str]:
    return {normalise_for_overlap(text), normalise_for_overlap(detokenise(text))}


@functools.lru_cache(maxsize=4)
def _sentences(folder: Path, corpora: tuple[str, ...]) -> frozenset[str]:
    # ``folder`` is part of the key because the readers look where SEMBLANCE_DATA points at the time of the call.
    found: set[str] = set()
    missing = []
    for corpus in corpora:
        for read in _SPLITS[corpus]:
            try:
                pairs = read()
            except CorpusMissing as error:
                missing.append(str(error).split(";")[0])
                continue
            for text in {text for pair in pairs for text in (pair.a, pair.b)}:
                found.update(_forms(text))
    if missing:
        _log.warning("%d evaluation sets are not filtered out, being absent: %s", len(missing), " | ".join(missing))
    found.discard("")
    return frozenset(found)
