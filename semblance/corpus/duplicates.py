"""Which texts of a file say the same, decided without a threshold from the user: candidates, features, a verdict.

Each text's nearest ones are the candidates. A first model judges them all from what is cheap to measure; the pairs that
it leaves in doubt are read by a model that reads both texts, if one is served, and judged anew.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semblance.corpus.groups import APART, listed_at_least
from semblance.corpus.guard import Guard
from semblance.corpus.neighbours import Indices, Near, Neighbours
from semblance.corpus.pair_model import PairModel, Values, features_of, fit, log_odds, nearest_cosines
from semblance.corpus.vectors import Matrix

NEIGHBOURS = 10  # of a text that are candidates
SPREADS = 1.5  # standard deviations above the mean cosine of two texts of the file, from which on they are candidates
SAMPLE = 300  # texts whose cosines say what two texts of the file usually have
SEED = 1
DOUBTFUL = (0.05, 0.8)  # probabilities of the first model between which a pair is read
READ_OF_A_TEXT = 0.5  # pairs, on average
READ_AT_LEAST, READ_AT_MOST = 1000, 20_000  # pairs, where that many are in doubt
# The probability from which on two texts are one, chosen on the development pairs for the highest F1.
JOINED_FROM = 0.35
MIDDLE = float(np.log(JOINED_FROM / (1 - JOINED_FROM)))

# `python -m benchmarks.duplicates --fit` printed both: minilm-small's cosines, read by minilm-cross.
FIRST = PairModel(
    weights=(5.578, 0.6961, 6.818, -12.81, -3.453),
    intercept=-6.0,
    scales=(0.2097, 0.6914, 0.2364, 0.1962, 0.1805),
)
SECOND = PairModel(
    weights=(1.595, 0.884, 7.01, -11.09, -5.517, 1.077),
    intercept=-2.259,
    scales=(0.2097, 0.6914, 0.2364, 0.1962, 0.1805, 1.178),
)


@dataclass
class CandidatePairs:
    """Pairs of texts that may say the same.

    Attributes:
        pairs: n pairs, each once, the earlier text first.
        features: [n, 5]; see `features_of`.
        least: the cosine from which on two texts are candidates.
        usual: the mean cosine of two texts of the file.
        read: [n], the smaller P(entailment) of both directions, as a model says that reads both texts; NaN: not asked.
    """

    pairs: Near
    features: Values
    least: float
    usual: float
    read: Values
    first: PairModel = FIRST  # of the features
    second: PairModel = SECOND  # of these, and the log odds of `read`

    def probabilities(self) -> Values:
        """That the two texts of a pair say the same, [n]."""
        found = self.first.probabilities(self.features)
        known = ~np.isnan(self.read)
        found[known] = self.second.probabilities(self._with_read(known))
        return found

    def doubtful(self, texts: int) -> Indices:
        """Places of the pairs that are worth reading in a file of so many texts, rising."""
        found = self.first.probabilities(self.features)
        places = np.flatnonzero((found > DOUBTFUL[0]) & (found < DOUBTFUL[1]))
        most = min(max(READ_AT_LEAST, round(READ_OF_A_TEXT * texts)), READ_AT_MOST)
        nearest = np.argsort(np.abs(log_odds(found[places]) - MIDDLE), kind="stable")[:most]
        return np.sort(places[nearest])

    def learn(self, places: Indices, same: npt.NDArray[np.bool_]) -> None:
        """Move both models' weights towards reviewed pairs [k], given by their places."""
        known = ~np.isnan(self.read[places])
        self.first = fit(self.features[places], same, self.first)
        self.second = fit(self._with_read(places[known]), same[known], self.second)

    def _with_read(self, chosen: npt.NDArray[np.bool_] | Indices) -> Values:
        return np.column_stack([self.features[chosen], log_odds(self.read[chosen])])


def find_candidates(vectors: Matrix, near: Neighbours, guard: Guard | None, words: list[list[str]]) -> CandidatePairs:
    """Each text's nearest ones that the guard does not keep apart.

    Args:
        vectors: [N, D], of length 1.
        near: an index over them.
        guard: what keeps texts apart.
        words: of each text.
    """
    usual, spread = _usual(vectors)
    least = min(usual + SPREADS * spread, 0.9)
    best = list(near.best(vectors, NEIGHBOURS + 1))
    rows = np.concatenate([found for found, _ in best])
    queries = np.broadcast_to(np.arange(len(rows), dtype=np.int64)[:, None], rows.shape)
    cosines = np.concatenate([found for _, found in best])
    kept = (rows >= 0) & (rows != queries) & (cosines >= least)
    keys = np.minimum(queries[kept], rows[kept]) * len(vectors) + np.maximum(queries[kept], rows[kept])
    keys, places = np.unique(keys, return_index=True)
    pairs = Near(keys // len(vectors), keys % len(vectors), cosines[kept][places])
    if guard is not None:
        (pairs,) = guard.agreeing([pairs])
    found = features_of(pairs, nearest_cosines(pairs, len(vectors)), words)
    return CandidatePairs(pairs, found, least, usual, np.full(len(pairs.rows), np.nan))


class JudgedScores:
    """A pair's score is its probability, and the first model's if it was no candidate (see `groups`)."""

    def __init__(
        self, judged: CandidatePairs, scores: Values, vectors: Matrix, guard: Guard | None, words: list[list[str]]
    ) -> None:
        """Candidate pairs with scores [n], and what the others are judged by."""
        self._judged, self._scores, self._vectors, self._guard, self._words = judged, scores, vectors, guard, words
        self._best = nearest_cosines(judged.pairs, len(vectors))
        keys = judged.pairs.queries * len(vectors) + judged.pairs.rows
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def at_least(self, members: Indices | None, least: float) -> "list[Near]":
        """Pairs with at least this score, as in `PairScores.at_least`."""
        return [listed_at_least(self._judged.pairs, self._scores, members, least)]

    def matrix(self, members: Indices) -> Matrix:
        """All scores of m texts, as in `PairScores.matrix`."""
        a, b = np.triu_indices(len(members), 1)
        queries, rows = members[a], members[b]  # members rise, so the earlier text is first
        keys = queries * len(self._vectors) + rows
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        known = self._keys[places] == keys
        scores = np.where(known, self._scores[self._order[places]], 0.0)
        cosines = np.einsum("nd,nd->n", self._vectors[queries[~known]], self._vectors[rows[~known]])
        others = Near(queries[~known], rows[~known], np.minimum(cosines, np.float32(1)))
        judged = self._judged.first.probabilities(features_of(others, self._best, self._words))
        if self._guard is not None:
            judged[~self._guard.agree(others)] = APART
        scores[~known] = judged
        found = np.eye(len(members), dtype=np.float32)
        found[a, b] = found[b, a] = scores
        return found


def _usual(vectors: Matrix) -> tuple[float, float]:
    """Mean and standard deviation of the cosines of two texts of the file, on a sample; 0 and 0 of a single text."""
    chosen = np.random.default_rng(SEED).choice(len(vectors), min(SAMPLE, len(vectors)), replace=False)
    a, b = np.triu_indices(len(chosen), 1)
    if not len(a):
        return 0.0, 0.0
    cosines = np.einsum("nd,nd->n", vectors[chosen[a]], vectors[chosen[b]])
    return float(cosines.mean()), float(cosines.std())
