"""STS 2012-2015 in supervised parts (Wieting & Gimpel 2017, section 4.3): of every set 40 % train, 10 % dev, 50 % test.

The paper does not publish its split; this one is drawn from a seed. It has 20 sets, here are the 19 without
STS 2013 SMT. Pairs of a held-out part are removed from train, because sets and years repeat some pairs.
"""

from dataclasses import dataclass

import numpy as np

from training.data.leakage import without_pairs
from training.data.pairs import Pair
from training.data.readers import sts

TRAIN, DEV = 0.4, 0.1  # shares of each set; the rest is test


@dataclass(frozen=True)
class STSSplit:
    """Pairs rated 0..5, `group` their `year/set`; sets in their published order."""

    train: tuple[Pair, ...]
    dev: tuple[Pair, ...]
    test: tuple[Pair, ...]


def read(seed: int = 0) -> STSSplit:
    """The split of a seed; each set is shuffled on its own.

    Pairs of test (in either order) are removed from dev, and pairs of dev or test from train.

    Raises:
        CorpusError: a set is missing or malformed.
    """
    train: list[Pair] = []
    dev: list[Pair] = []
    test: list[Pair] = []
    for number, (year, name) in enumerate(sts.TRANSFER_SETS):
        pairs = sts.read(year, name)
        order = np.random.default_rng((seed, number)).permutation(len(pairs))
        first, second = round(TRAIN * len(pairs)), round((TRAIN + DEV) * len(pairs))
        for part, indices in ((train, order[:first]), (dev, order[first:second]), (test, order[second:])):
            part += [pairs[i] for i in indices]
    dev = without_pairs(dev, test)
    return STSSplit(tuple(without_pairs(train, [*dev, *test])), tuple(dev), tuple(test))
