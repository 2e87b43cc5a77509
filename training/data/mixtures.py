"""Training mixtures drawn from many corpora: unlabelled sentences and positive pairs, evaluation sentences left out.

Both are deterministic: the same data folder, limit and seed give the same list. The limit is divided by the sources'
shares; what a small source lacks is distributed among the others. Tokenised sources are detokenised, so that
training text looks like user input.
"""

import html
import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from training.data.files import data_dir, one_of
from training.data.leakage import evaluation_sentences, normalise_for_overlap, pair_key
from training.data.pairs import Pair
from training.data.penn import detokenise
from training.data.readers import captions, labelled_pairs, wikipedia
from training.data.wordnet import definition_pairs, open_wordnet, wordnet_folder

Item = TypeVar("Item")

MIN_WORDS, MAX_WORDS = 3, 60

# Shares of an unlabelled sample. Every kind of text in the evaluation sets (scene descriptions, news, forum and
# question text, headlines, definitions) is represented; no source has more than 30 %.
SENTENCE_SHARES: dict[str, float] = {
    "captions": 0.28,
    "quora": 0.10,
    "twitter-url": 0.09,
    "twitter-labelled": 0.03,
    "simplification": 0.07,
    "snli": 0.03,
    "multinli": 0.08,
    "wikiqa": 0.05,
    "trecqa": 0.08,
    "msrp": 0.02,
    "wikipedia": 0.09,
    "wikipedia-definitions": 0.07,
    "bible": 0.01,
}

# Shares of a limited sample of positive pairs; without a limit every pair is taken. They keep down captions and Bible
# verses, the largest sources and the least similar to most test sets.
PAIR_SHARES: dict[str, float] = {
    "multi30k": 0.20,
    "flickr8k": 0.01,
    "coco": 0.09,
    "quora": 0.20,
    "twitter-labelled": 0.08,
    "twitter-url": 0.22,
    "simplification": 0.15,
    "bible": 0.05,
}

# The same, and for a third of the whole definitions, and questions and answers of forums: the STS sets have much of
# both, and `PAIR_SHARES` only the questions of Quora.
DEFINITION_SHARES: dict[str, float] = {
    **PAIR_SHARES,
    "wordnet": 0.25,
    "parade": 0.05,
    "paraphrase-ni": 0.12,
    "qqp-labelled": 0.04,
    "semeval-answers": 0.03,
    "stackexchange": 0.01,
}

# The nearest to SimpWiki, on which Wieting & Gimpel (2017) train: complex and simple sentences, all of them.
SIMPLE = ("simplification", "simplification-extra")

# Of corpora in parts, the one whose sentences are taken.
_TRAINING_PART = {"snli": "snli-dev", "wikiqa": "wikiqa-train", "trecqa": "trecqa-train-all", "msrp": "msrp-train"}
_DEFINITION = re.compile(
    r"(?:(?:The|A|An)\s+)?[\w'\u2019-]+(?:\s+[\w'\u2019-]+){0,4}\s+(?:\([^)]*\)\s+)?"
    r"(?:is|are|was|were)\s+((?:an?|the|any|one)\s+[^;]+?)\.?"
)


def unlabelled_sentences(
    limit: int | None, seed: int, shares: Mapping[str, float] = SENTENCE_SHARES
) -> list[tuple[str, str]]:
    """(source, sentence) sample of at most ``limit`` single sentences of 3..60 words, in a shuffled order.

    Deduplicated over all sources (after `normalise_for_overlap`), without evaluation sentences, without images of the
    overlap list; WikiQA and TrecQA give their train parts only. ``limit=None`` takes everything. Raises `CorpusError`
    when a source is missing; ``shares`` chooses other sources or proportions.
    """
    return list(_unlabelled_sentences(data_dir(), limit, seed, tuple(shares.items())))


# Cached, because a table of many runs reads the same mixture for each. ``folder`` is part of the key because the
# readers use the value of SEMBLANCE_DATA at the time of the call.
@lru_cache(maxsize=1)
def _unlabelled_sentences(
    folder: Path, limit: int | None, seed: int, shares_as_key: tuple[tuple[str, float], ...]
) -> list[tuple[str, str]]:
    shares = dict(shares_as_key)
    unwanted = evaluation_sentences()
    seen: set[str] = set()
    pools: dict[str, list[str]] = {}
    for source in shares:
        pool = []
        for text in filter(_fits, map(_plain, _sentences_of(one_of("source", source, SENTENCE_SHARES)))):
            key = normalise_for_overlap(text)
            if key not in seen and key not in unwanted:
                seen.add(key)
                pool.append(text)
        pools[source] = pool
    return draw(pools, limit, seed, shares)


def paraphrase_pairs(limit: int | None, seed: int, sources: Collection[str] = tuple(PAIR_SHARES)) -> list[Pair]:
    """At most ``limit`` positive pairs (all of them for None) from ``sources``, in a shuffled order.

    A limit needs sources of `DEFINITION_SHARES`.

    Pairs of equal sides (after `normalise_for_overlap`), repeated pairs and pairs with an evaluation sentence are left
    out, as are sides outside 3..60 words. The source "wordnet" needs WordNet. ``group`` is the source, for captions and
    simplification followed by ``:`` and the image or complex sentence, so that paraphrases can be told from negatives.
    """
    return list(_paraphrase_pairs(data_dir(), limit, seed, tuple(sources)))


@lru_cache(maxsize=1)
def _paraphrase_pairs(folder: Path, limit: int | None, seed: int, sources: tuple[str, ...]) -> list[Pair]:
    unwanted = evaluation_sentences()
    seen: set[tuple[str, str]] = set()
    pools: dict[str, list[Pair]] = {}
    for source in sources:
        pool = []
        for raw in _pairs_of(one_of("source", source, (*DEFINITION_SHARES, *SIMPLE))):
            pair = Pair(_plain(raw.a), _plain(raw.b), label="1", group=raw.group)
            key = pair_key(pair.a, pair.b)
            if key[0] == key[1] or key in seen or not unwanted.isdisjoint(key):
                continue
            if _fits(pair.a) and _fits(pair.b):
                seen.add(key)
                pool.append(pair)
        pools[source] = pool
    sample = draw(
        pools, limit, seed, {} if limit is None else {source: DEFINITION_SHARES[source] for source in sources}
    )
    return [pair for _, pair in sample]


def quotas(available: Mapping[str, int], limit: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Number of items of each source: ``limit`` in proportion to ``shares``, at most what the source has.

    The rest is distributed among the other sources in the same proportions until ``limit`` (or everything available) is
    reached. Fractions are rounded by largest remainder, ties in the order of ``shares``.
    """
    given = dict.fromkeys(shares, 0)
    limit = min(limit, sum(available[source] for source in shares))
    while (left := limit - sum(given.values())) > 0:
        open_sources = [source for source in shares if given[source] < available[source]]
        whole = sum(shares[source] for source in open_sources)
        exact = {source: left * shares[source] / whole for source in open_sources}
        step = {source: int(exact[source]) for source in open_sources}
        remainders = sorted(open_sources, key=lambda source: step[source] - exact[source])
        for source in remainders[: left - sum(step.values())]:
            step[source] += 1
        for source in open_sources:
            given[source] += min(step[source], available[source] - given[source])
    return given


def draw(
    pools: Mapping[str, Sequence[Item]], limit: int | None, seed: int, shares: Mapping[str, float]
) -> list[tuple[str, Item]]:
    """(source, item) of the pools by their quotas, all of them for None, in a shuffled order."""
    available = {source: len(pool) for source, pool in pools.items()}
    amounts = available if limit is None else quotas(available, limit, shares)
    chosen = [
        (source, item)
        for source, amount in amounts.items()
        # One generator per source, so that a change of one source does not change the draw from the others.
        for item in random.Random(f"{seed}/{source}").sample(pools[source], amount)
    ]
    random.Random(f"{seed}").shuffle(chosen)
    return chosen


def _plain(text: str) -> str:
    # Tweets also carry HTML entities (&amp;, &nbsp;).
    return detokenise(html.unescape(text))


def _fits(text: str) -> bool:
    return MIN_WORDS <= len(text.split()) <= MAX_WORDS


def _definitions() -> Iterator[str]:
    """The part after ``X is`` of sentences like ``X is a ...``: similar to glosses of the STS OnWN and FNWN sets."""
    for sentence in wikipedia.sentences():
        found = _DEFINITION.fullmatch(sentence)
        if found is not None:
            yield found[1]


def _sentences_of(source: str) -> Iterable[str]:
    match source:
        case "captions":
            return (text for each in captions.SOURCES for texts in captions.read(each).values() for text in texts)
        case "wikipedia":
            return wikipedia.sentences()
        case "wikipedia-definitions":
            return _definitions()
    return (text for pair in labelled_pairs.read(_TRAINING_PART.get(source, source)) for text in (pair.a, pair.b))


def _pairs_of(source: str) -> Iterable[Pair]:
    if source in captions.SOURCES:
        pairs = captions.pairs(captions.read(source))
        return (replace(pair, group=f"{source}:{pair.group}") for pair in pairs)
    if source == "wordnet":
        return (replace(pair, group=source) for pair in definition_pairs(open_wordnet(wordnet_folder())))
    found = labelled_pairs.read(source)
    if source in SIMPLE:
        ids = {text: i for i, text in enumerate(dict.fromkeys(pair.a for pair in found))}
        return (replace(pair, group=f"{source}:{ids[pair.a]}") for pair in found)
    return (replace(pair, group=source) for pair in found if pair.label == "1")
