"""The corpora of the two interaction papers as each task reads them: train, dev and test pairs with targets.

`target` is the rating (SICK 1..5, STS 0..5), or 1 for a paraphrase or correct answer and 0 otherwise. A pair
that also occurs in the development or test part, in either order, is left out of training.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from training.data.files import data_dir, one_of
from training.data.leakage import without_evaluation_sentences, without_pairs
from training.data.pairs import Pair
from training.data.readers import labelled_pairs, sts

Corpus = Literal["sick", "msrvid", "sts2014", "wikiqa", "trecqa", "answers", "msrp", "twitter-labelled"]

ANSWER_TOKENS = 40  # answers are cut there, as Yang et al. (2015) do
LONGEST = 48  # tokens: longer pairs are left out of STS training, as He & Lin (2016) do
HELD_OUT = {"msrvid": 75, "sts2014": 750, "msrp": 407, "twitter-labelled": 1000}  # pairs drawn for development


@dataclass(frozen=True)
class CorpusParts:
    """The parts of a corpus; several test parts where the papers report several."""

    train: tuple[Pair, ...]
    dev: tuple[Pair, ...]
    test: dict[str, tuple[Pair, ...]]


def read(corpus: Corpus) -> CorpusParts:
    """The parts of a corpus.

    Raises:
        ValueError: no such corpus.
        CorpusError: a file is missing or malformed.
    """
    one_of("corpus", corpus, get_args(Corpus))
    return _read(data_dir().resolve(), corpus)


@functools.lru_cache(maxsize=8)
def _read(folder: object, corpus: Corpus) -> CorpusParts:
    match corpus:
        case "sick":
            train, dev, test = (labelled_pairs.read(f"sick-{part}") for part in ("train", "dev", "test"))
            return _parts(train, dev, {"test": test})
        case "msrvid":
            train, dev = _drawn(sts.read("2012-train", "MSRvid"), HELD_OUT[corpus])
            return _parts(train, dev, {"test": sts.read("2012-test", "MSRvid")})
        case "sts2014":
            before = [pair for year in ("2012-train", "2012-test", "2013-test") for pair in _year(year)]
            short = [pair for pair in before if max(len(pair.a.split()), len(pair.b.split())) <= LONGEST]
            return _parts(*_drawn(short, HELD_OUT[corpus]), sts.read_year("2014-test"))
        case "wikiqa":
            train, dev, test = (labelled_pairs.read(f"wikiqa-{part}-filtered") for part in ("train", "dev", "test"))
            return _parts(_answers(train), _answers(dev), {"test": _answers(test)})
        case "trecqa":
            names = ("train-all", "dev-raw", "test-raw", "test-clean")
            train, dev, raw, clean = (_answers(labelled_pairs.read(f"trecqa-{name}")) for name in names)
            return _parts(train, dev, {"raw": raw, "clean": clean})
        case "answers":  # both
            wiki, trec = _named("wikiqa", read("wikiqa")), _named("trecqa", read("trecqa"))
            of_trec = {f"trecqa-{part}": pairs for part, pairs in trec.test.items()}
            return CorpusParts(wiki.train + trec.train, wiki.dev + trec.dev, {"wikiqa": wiki.test["test"], **of_trec})
        case "msrp":
            train, dev = _drawn(_labelled(labelled_pairs.read("msrp-train")), HELD_OUT[corpus])
            return _parts(train, dev, {"test": _labelled(labelled_pairs.read("msrp-test"))})
        case "twitter-labelled":  # for pre-training: no test part, and no evaluation sentence of another corpus
            pairs = list(without_evaluation_sentences(_labelled(labelled_pairs.read("twitter-labelled"))))
            return _parts(*_drawn(pairs, HELD_OUT[corpus]), {})


def _parts(
    train: Iterable[Pair], dev: Sequence[Pair], test: dict[str, Sequence[Pair]] | dict[str, list[Pair]]
) -> CorpusParts:
    unseen = [*dev, *(pair for pairs in test.values() for pair in pairs)]
    kept = tuple(without_pairs(train, unseen))
    return CorpusParts(kept, tuple(dev), {name: tuple(pairs) for name, pairs in test.items()})


def _named(corpus: str, parts: CorpusParts) -> CorpusParts:
    """The same parts, each question's group prefixed with the corpus."""

    def named(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
        return tuple(replace(pair, group=f"{corpus}:{pair.group}") for pair in pairs)

    return CorpusParts(named(parts.train), named(parts.dev), {name: named(pairs) for name, pairs in parts.test.items()})


def _drawn(pairs: Sequence[Pair], held_out: int) -> tuple[list[Pair], list[Pair]]:
    """(train, dev): a fixed random split, the same for every seed of a run."""
    order = np.random.default_rng(0).permutation(len(pairs))
    chosen = set(order[:held_out].tolist())
    return [p for i, p in enumerate(pairs) if i not in chosen], [p for i, p in enumerate(pairs) if i in chosen]


def _year(year: str) -> list[Pair]:
    return [pair for pairs in sts.read_year(year).values() for pair in pairs]


def _labelled(pairs: Iterable[Pair]) -> list[Pair]:
    return [replace(pair, target=float(pair.label == "1")) for pair in pairs]


def _answers(pairs: Iterable[Pair]) -> list[Pair]:
    """Candidates cut to `ANSWER_TOKENS` of the corpus' own tokens."""
    return [replace(pair, b=" ".join(pair.b.split(" ")[:ANSWER_TOKENS])) for pair in _labelled(pairs)]
