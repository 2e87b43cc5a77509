"""Which texts say the same: candidates by cosine, a verdict on each pair, and groups.

Texts with the same words (`core.same_words`) are one before anything is judged; what is here is about the others, in
`text_order`, so that the order of a caller's rows decides nothing. Each text's nearest ones are candidates. A model
that reads both texts says of a pair whether one paraphrases and whether one entails the other. Evidence only adds to a
verdict: raising a cosine or a model's score never lowers it. What differs only subtracts: a fact keeps two texts apart,
and a single place with another word speaks against them.

Shapes: N texts, n pairs, D dimensions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from math import exp, log
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from core.facts import Difference, shown
from core.groups import KeptApart, Pair, group
from core.tokenizer import MAX_PIECED_CHARS
from core.units import word_set

Indices = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]

READ_NEAREST = 3  # of each text the nearest ones that are read with it, of those that no fact keeps apart
LISTED = 20  # of each text the nearest ones that may be read, or are told of where they are not joined
MIN_COSINE = 0.45  # of a pair that is read
NOTED_COSINE = 0.75  # from which on a pair is told of, and joined where no model reads pairs
ALL_THE_SAME = 0.99999  # cosine
JOINED_FROM = 0.4  # probability
MIN_MEAN = 0.54  # of cosine and paraphrase, below which nothing else joins two texts
ENOUGH_MEAN = 0.58  # from which on it joins a text and its nearest, but for one place, by itself
DOUBT = (0.1, 0.9)  # probabilities between which a person's answer matters
TEXTS_OF_A_QUESTION, MIN_QUESTIONS = 5, 10
BLOCK = 1024  # texts that are compared with all others at once
MAX_WORDS = 400  # of a text that is compared word by word
# `python -m benchmarks.duplicates --fit` printed them, for minilm-small's cosines read by minilm-cross.
ENTAILMENT, NEAREST, ONE_PLACE, INTERCEPT = 0.865, 1.327, 4.573, -0.7825


class CandidatePair(NamedTuple):
    """Two texts that may say the same.

    Attributes:
        pair: the two.
        cosine: of their embeddings.
        nearest: the place of one among the nearest texts of the other, from 0; the better one of both.
    """

    pair: Pair
    cosine: float
    nearest: int


class PairReading(NamedTuple):
    """What a model that reads both texts says of a pair, 0..1 each.

    Attributes:
        paraphrase: that they say the same.
        entailed: that one follows from the other.
        unknown: whether one of both has a word that the model does not know.
    """

    paraphrase: float
    entailed: float
    unknown: bool = False

    @classmethod
    def of_both_orders(cls, paraphrase: tuple[float, float], entailed: tuple[float, float], unknown: bool) -> Self:
        """The mean of both orders, so that the order of the texts says nothing: of entailment that of the log odds."""
        return cls(sum(paraphrase) / 2, _share(sum(map(_log_odds, entailed)) / 2), unknown)


class Judged(NamedTuple):
    """A pair with its verdict.

    Attributes:
        pair: the two texts.
        cosine: of their embeddings.
        probability: that they say the same; None: nobody asked.
        joined: whether they are in one group.
        why: what spoke for and against it, for people.
    """

    pair: Pair
    cosine: float
    probability: float | None
    joined: bool
    why: str


def nearest_texts(vectors: npt.NDArray[np.float32], count: int) -> Iterator[tuple[Indices, npt.NDArray[np.float32]]]:
    """For some texts at a time the places and cosines of the nearest others, best first, [m, count] each.

    Args:
        vectors: [N, D], of length 1.
        count: of each text; fewer where there are not so many others.
    """
    count = min(count, len(vectors) - 1)
    for start in range(0, len(vectors), BLOCK):
        cosines = vectors[start : start + BLOCK] @ vectors.T
        own = np.arange(len(cosines))
        cosines[own, start + own] = -2.0
        places = np.argpartition(-cosines, count - 1, axis=1)[:, :count] if count else np.zeros((len(own), 0), np.int64)
        found = np.take_along_axis(cosines, places, 1)
        order = np.lexsort((places, -found), axis=1)
        yield np.take_along_axis(places, order, 1), np.take_along_axis(found, order, 1)


def find_candidates(
    nearest: Iterable[tuple[Indices, npt.NDArray[np.float32]]], least: float = MIN_COSINE
) -> list[CandidatePair]:
    """The pairs of near texts.

    Args:
        nearest: as `nearest_texts` gives it.
        least: cosine.
    """
    found: dict[Pair, tuple[float, int]] = {}
    text = 0
    for places, cosines in nearest:
        for others, near in zip(places.tolist(), cosines.tolist(), strict=True):
            for rank, (other, cosine) in enumerate(zip(others, near, strict=True)):
                if cosine < least:
                    break
                pair = (min(text, other), max(text, other))
                known = found.get(pair)
                found[pair] = (min(cosine, 1.0), rank if known is None else min(rank, known[1]))
            text += 1
    return [CandidatePair(pair, *found[pair]) for pair in sorted(found)]


def probability(cosine: float, reading: PairReading | None, nearest: bool, place: "OnePlace | None" = None) -> float:
    """That two texts say the same; without a reading the cosine alone says it.

    It never falls when the cosine or a score of the reading rises.

    Args:
        cosine: of their embeddings.
        reading: what a model says that reads both.
        nearest: whether one is the other's nearest of those that no fact keeps apart.
        place: the one place in which they differ, if it is one.
    """
    if reading is None:
        return _share(20.0 * (cosine - NOTED_COSINE) + _log_odds(JOINED_FROM))
    log_odds = INTERCEPT + ENTAILMENT * _log_odds(reading.entailed)
    found = _share(log_odds + NEAREST * nearest - ONE_PLACE * (place is not None))
    mean = (cosine + reading.paraphrase) / 2
    if mean < MIN_MEAN:
        return min(found, JOINED_FROM / 2)
    return max(found, JOINED_FROM) if mean >= ENOUGH_MEAN and nearest and place is None else found


def _share(log_odds: float) -> float:
    return 1 / (1 + exp(-log_odds))


def _log_odds(share: float) -> float:
    bounded = min(max(share, 1e-3), 1 - 1e-3)
    return log(bounded / (1 - bounded))


class OnePlace(NamedTuple):
    """The only words in which two texts differ; both are empty where only the order differs."""

    a: str
    b: str


REPLACED = 2  # words at most, on each side, in one place
# A text with one of these is a sentence, or says a direction: the order of its words means something.
_ORDERED = frozenset(
    ("to", "from", "for", "than", "instead", "not", "and", "but", "before", "after", "on", "although", "only", "just")
)


# In place of another such word these leave most of what is said: how can I, how do you. Negations do not.
_SAY_LITTLE = word_set(
    """
    i im ill id ive we well wed were you youd one it its itd they theyd the this that these those my our your am is are
    was be been do does did have has had will would can could should
    """
)


def one_place(a: Sequence[str], b: Sequence[str]) -> OnePlace | None:
    """The one place in which two texts, given by their words, have other words; None: in none, or in more.

    A word that is spelt a little otherwise, apart or together, or is longer by an ending, is the same, and so are any
    two that say little.
    """
    a, b = a[:MAX_WORDS], b[:MAX_WORDS]
    if len(a) == len(b) and sorted(a) == sorted(b):
        return OnePlace("", "") if a != b and not _ORDERED.isdisjoint(a) else None
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    left, right = a[start : len(a) - end], b[start : len(b) - end]
    if not (0 < len(left) <= REPLACED and 0 < len(right) <= REPLACED):
        return None
    if len(left) == len(right) == 1 and _same_word(left[0], right[0]):
        return None
    if "".join(left) == "".join(right) or (_SAY_LITTLE.issuperset(left) and _SAY_LITTLE.issuperset(right)):
        return None
    return OnePlace(" ".join(left), " ".join(right))


SHORTEST = 4  # letters of a word that may have another letter
MISSPELT = 0.8  # share of letters from which on two words are one, misspelt


def _same_word(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    if not short.isalpha() or not long.isalpha():
        return False
    if long.startswith(short):
        return True
    if len(short) >= SHORTEST - 1 and len(long) >= SHORTEST and _one_letter(short, long):
        return True
    return len(long) < 40 and SequenceMatcher(None, a, b, autojunk=False).ratio() >= MISSPELT


def _one_letter(short: str, long: str) -> bool:
    """Whether one letter was left out, replaced, or exchanged with the next."""
    at = next((i for i, (x, y) in enumerate(zip(short, long, strict=False)) if x != y), len(short))
    if len(long) - len(short) == 1:
        return short[at:] == long[at + 1 :]
    if len(long) != len(short):
        return False
    swapped = short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]
    return short[at + 1 :] == long[at + 1 :] or swapped


def are_unreadable(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether what differs in two texts, given by their words, is nothing to a model that does not know all of these.

    Each has a word of its own that such a model reads as any other: beyond ASCII, or very long; or one has no others.
    """
    left, right = ({word for word in words if not word.isascii() or len(word) > MAX_PIECED_CHARS} for words in (a, b))
    return bool((left - right and right - left) or left.issuperset(a) or right.issuperset(b))


def _has_letters(words: Sequence[str]) -> bool:
    """Whether a text has a letter, a digit or the like: of dots and question marks a model's scores say nothing."""
    return any(map(str.isalnum, "".join(words)))


def _nearest(candidates: Sequence[CandidatePair], may_join: Sequence[bool], count: int) -> dict[int, int]:
    """Places of the candidates that may join and are among the `count` nearest such ones of a text; their best rank."""
    of_text: dict[int, list[int]] = {}
    for i, each in enumerate(candidates):
        for text in each.pair if may_join[i] else ():
            of_text.setdefault(text, []).append(i)
    found: dict[int, int] = {}
    for some in of_text.values():
        for rank, i in enumerate(sorted(some, key=lambda i: -candidates[i].cosine)[:count]):
            found[i] = min(rank, found.get(i, rank))
    return found


class DuplicateDecision:
    """The decision on N texts that have different words.

    Attributes:
        candidates: pairs in their order: those that are read, near ones, and the nearest ones of each text.
        apart: the fact that keeps a candidate apart, by its place.
        nearest: of each candidate, whether one is the other's nearest of those that no fact keeps apart.
        to_read: places of the candidates that a model should read, rising.
    """

    def __init__(
        self,
        words: Sequence[Sequence[str]],
        candidates: Sequence[CandidatePair],
        kept_apart: KeptApart | None,
        read_nearest: int = READ_NEAREST,
    ) -> None:
        """Find out what is to be read.

        Args:
            words: of each text, in one spelling.
            candidates: see `find_candidates`.
            kept_apart: by their facts; None: no text is.
            read_nearest: of each text so many are read with it.
        """
        self._size, self._kept_apart, self._words = len(words), kept_apart, words
        between = [None if kept_apart is None else kept_apart.between(each.pair) for each in candidates]
        read = _nearest(candidates, [found is None for found in between], read_nearest)
        near = [each.cosine >= NOTED_COSINE or each.nearest < read_nearest for each in candidates]
        kept = [i for i, noted in enumerate(near) if noted or i in read]
        self.candidates = [candidates[i] for i in kept]
        self._places = [one_place(words[a], words[b]) for (a, b), _, _ in self.candidates]
        self.apart = {n: found for n, i in enumerate(kept) if (found := between[i]) is not None}
        self.nearest = [read.get(i) == 0 for i in kept]
        self.to_read = [n for n, i in enumerate(kept) if i in read]

    def nearest_apart(self) -> dict[int, tuple[int, Difference]]:
        """Of each text that a fact keeps apart from a candidate the nearest such one, and how the two differ."""
        found: dict[int, tuple[float, int, Difference]] = {}
        for i, (own, other) in self.apart.items():
            (a, b), cosine, _ = self.candidates[i]
            for text, nearest, says in ((a, b, Difference(own, other)), (b, a, Difference(other, own))):
                if text not in found or cosine > found[text][0]:
                    found[text] = cosine, nearest, says
        return {text: (nearest, says) for text, (_, nearest, says) in found.items()}

    def place_of(self, i: int) -> OnePlace | None:
        """The one place in which the texts of a candidate differ; None: there are none, or more."""
        return self._places[i]

    def decide(
        self,
        readings: Sequence[PairReading | None] | None,
        answers: Mapping[Pair, bool] | None = None,
        joined_from: float = JOINED_FROM,
    ) -> tuple[list[int], list[Judged]]:
        """For each text the first one of its group; and the verdict on every candidate.

        Args:
            readings: of the candidates in `to_read`, None for one that could not be read; None: no model reads pairs.
                What `are_unreadable`, or has no letters, could not be read either.
            answers: whether two texts are the same, as a person says.
            joined_from: the probability from which on two texts are one.

        Raises:
            ContradictoryAnswers: see `group`.
        """
        answers = answers or {}
        read: dict[int, PairReading | None] = {}
        scores: dict[Pair, float] = {}
        for i, reading in zip(self.to_read, readings or [None] * len(self.to_read), strict=True):
            each = self.candidates[i]
            # Where a cosine alone decides, one of 1 is that of texts whose words are the same to the model.
            unknown = reading.unknown if reading is not None else each.cosine >= ALL_THE_SAME
            words = [self._words[text] for text in each.pair]
            if not all(map(_has_letters, words)) or (unknown and are_unreadable(*words)):
                continue
            if readings is None or reading is not None:
                read[i] = reading
                scores[each.pair] = probability(each.cosine, reading, self.nearest[i], self._places[i])
        parted = (self.candidates[i].pair for i in self.apart)
        first = group(self._size, scores, joined_from, self._kept_apart, answers, parted)
        judged = []
        for i, each in enumerate(self.candidates):
            joined = first[each.pair[0]] == first[each.pair[1]]
            score = scores.get(each.pair)
            why = "; ".join(self._reasons(i, read))
            if each.pair in answers:
                why = f"answered {'yes' if answers[each.pair] else 'no'}; {why}"
            elif joined and (score is None or score < joined_from):
                why += "; joined through others of their group"
            elif not joined and score is not None and score >= joined_from:
                why += "; but others of their groups are apart"
            judged.append(Judged(each.pair, each.cosine, score, joined, why))
        return first, judged

    def _reasons(self, i: int, read: Mapping[int, PairReading | None]) -> Iterator[str]:
        each, place = self.candidates[i], self._places[i]
        if i in self.apart:
            yield str(self.apart[i])
        yield f"cosine {each.cosine:.2f}"
        if (reading := read.get(i)) is not None:
            yield f"paraphrase {reading.paraphrase:.2f}"
            yield f"one follows from the other {reading.entailed:.2f}"
        elif i not in self.apart and i not in read:
            yield f"not read: each has {READ_NEAREST} nearer ones" if i not in self.to_read else "could not be read"
        if place is not None:
            yield (
                f"but for {shown(place.a)!r} and {shown(place.b)!r} the same"
                if place.a
                else "the same words in another order"
            )


def questions(judged: Sequence[Judged], texts: int, joined_from: float = JOINED_FROM) -> list[Judged]:
    """The pairs that are worth a person's time, the most doubtful first: at most one for each five of so many texts."""
    doubtful = [
        (abs(each.probability - joined_from), each)
        for each in judged
        if each.probability is not None and DOUBT[0] <= each.probability <= DOUBT[1]
    ]
    doubtful.sort(key=lambda item: (item[0], item[1].pair))
    return [each for _, each in doubtful[: max(MIN_QUESTIONS, texts // TEXTS_OF_A_QUESTION)]]


def left_apart(judged: Sequence[Judged], asked: Sequence[Judged]) -> list[Judged]:
    """The pairs that were not joined although they are near or were kept apart by a fact, the nearest first.

    Those that a person is asked about are left out.
    """
    others = {each.pair for each in asked}
    found = [each for each in judged if not each.joined and each.pair not in others]
    return sorted(found, key=lambda each: (-each.cosine, each.pair))
