"""The passages of a document in which a claim's evidence probably stands: the best by vector and by words.

A passage is a sentence, or two that follow each other under the same headings. It is compared with the headings before
it, for "no refund" says nothing without "After 30 days >".
"""

import re
from collections.abc import Iterator, Sequence
from math import log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.scoring import Embeddings
from service.scoring.documents import Sentence, context_of

BEST = 10  # passages of a claim that a pair model reads
_WORDS = 0.5  # weight of the share of a claim's words beside the cosine
_MAX_CHARS = 600  # of two sentences together: a model reads little more
_STEM = 6  # characters of a word that count: "refund", "refunds", "refunded" are one
_WORD = re.compile(r"\w+")


class Passage(NamedTuple):
    """One or two sentences of a document.

    Attributes:
        document: its position in the request.
        first: position of its first sentence among all.
        last: of its last one.
        text: with its headings, as models read it: "Fees > 5 euros".
        said: the same as amounts are read in it, to which that is more than 5 euros: "Fees: 5 euros".
    """

    document: int
    first: int
    last: int
    text: str
    said: str


class Found(NamedTuple):
    """A passage that may speak of a claim."""

    passage: int
    cosine: float
    words: float  # share of the claim's words that it has, each by how rare it is: 0 to 1


def passages_of(sentences: Sequence[Sentence], documents: Sequence[int]) -> list[Passage]:
    """Each sentence, then each two neighbours.

    Args:
        sentences: n, of one document after the other.
        documents: n, of which document each is.
    """
    alone = [
        Passage(document, i, i, context_of(each, " > ") + each.text, context_of(each, ": ") + each.text)
        for i, (each, document) in enumerate(zip(sentences, documents, strict=True))
    ]
    pairs = [
        Passage(one.document, i, i + 1, f"{one.text} {other.text}", f"{one.said} {other.text}")
        for i, (one, other) in enumerate(zip(alone, sentences[1:], strict=False))
        if one.document == documents[i + 1]
        and sentences[i].block == other.block
        and sentences[i].headings == other.headings
        and len(one.text) + len(other.text) < _MAX_CHARS
    ]
    return alone + pairs


class Evidence:
    """Finds passages by claims."""

    def __init__(self, passages: Sequence[Passage], embeddings: Embeddings) -> None:
        """Index the passages of the documents.

        Args:
            passages: of n sentences and some of their neighbours, the n single ones first.
            embeddings: [n, dim], of the sentences; that of two is the mean of their directions.
        """
        unit = _unit(embeddings)
        first = np.array([each.first for each in passages])
        last = np.array([each.last for each in passages])
        self._vectors = np.concatenate([unit, _unit(unit[first[len(unit) :]] + unit[last[len(unit) :]])])
        found: dict[str, list[int]] = {}
        for i, each in enumerate(passages):
            for stem in stems_of(each.text):
                found.setdefault(stem, []).append(i)
        self._having = {stem: np.array(places) for stem, places in found.items()}
        self._count = len(passages)

    def best(self, claim: str, embedding: npt.NDArray[np.float32]) -> list[Found]:
        """The `BEST` most likely passages of a claim, best first, by its text and its embedding [dim]."""
        cosines = self._vectors @ _unit(embedding[None])[0]
        words = self._words(claim)
        score = cosines + _WORDS * words
        most = min(BEST, self._count)
        places = np.argpartition(-score, most - 1)[:most]
        places = places[np.lexsort((places, -score[places]))]
        return [Found(int(i), float(cosines[i]), float(words[i])) for i in places]

    def _words(self, claim: str) -> npt.NDArray[np.float32]:
        """For each passage the share of the claim's words that it has, weighted by their inverse document frequency."""
        shares = np.zeros(self._count, dtype=np.float32)
        whole = 0.0
        for stem in stems_of(claim):
            places = self._having.get(stem)
            having = 0 if places is None else len(places)
            weight = log(1 + (self._count - having + 0.5) / (having + 0.5))
            whole += weight
            if places is not None:
                shares[places] += weight
        return shares / np.float32(whole) if whole else shares


def stems_of(text: str) -> Iterator[str]:
    """The beginnings of its words, each once."""
    return iter(dict.fromkeys(word[:_STEM] for word in _WORD.findall(text.casefold())))


def _unit(vectors: Embeddings) -> npt.NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
