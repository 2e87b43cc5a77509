"""Parts of a file of pairs, such that no sentence is in two of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from core.text import split_words
from semblance.tables.labelled_pairs import Kind, PairsError
from training.data.pairs import Pair
from training.objectives.batches import Indices

SHARE = 0.1  # of the pairs that are for the choice of the epoch, and as many to be measured on
FEWEST = 20  # pairs of a part: with fewer its figures follow single pairs


class Split(NamedTuple):
    """Which pairs are for what."""

    train: Indices
    dev: Indices  # choice of the epoch, calibration
    held_out: Indices  # measured on, once


def sentence_of(text: str) -> str:
    """What makes two texts one sentence: their words, without case, accents and spacing."""
    return " ".join(split_words(text)) or text


def components(pairs: Sequence[Pair]) -> Indices:
    """The number [n] of each pair's group: pairs that share a sentence, directly or through others, are of one."""
    places: dict[str, int] = {}
    ends = np.array(
        [[places.setdefault(sentence_of(text), len(places)) for text in (pair.a, pair.b)] for pair in pairs]
    ).reshape(-1, 2)
    ones = np.ones(len(ends), dtype=np.int8)
    links = coo_matrix((ones, (ends[:, 0], ends[:, 1])), shape=(len(places), len(places)))
    _, of_sentence = connected_components(links, directed=False)
    return np.asarray(of_sentence[ends[:, 0]], dtype=np.int64)


def split(pairs: Sequence[Pair], kind: Kind, seed: int) -> Split:
    """A tenth of the pairs to measure on, a tenth to choose on, the rest to train on; whole groups each.

    Raises:
        PairsError: the groups are too few or too large for that, or a part lacks what its figures need.
    """
    if len(pairs) < FEWEST / SHARE:
        raise PairsError(f"{len(pairs):,} pairs, at least {FEWEST / SHARE:.0f} are needed")
    group = components(pairs)
    sizes = np.bincount(group)
    quota = int(SHARE * len(pairs))
    room = {"held_out": quota, "dev": quota}
    part_of = np.full(len(sizes), "train", dtype="<U8")
    for each in np.random.default_rng(seed).permutation(len(sizes)):
        for part in room:
            if sizes[each] <= room[part]:
                room[part] -= int(sizes[each])
                part_of[each] = part
                break
    of_pair = part_of[group]
    found = Split(*(np.flatnonzero(of_pair == name) for name in Split._fields))
    for name, rows in (("choose", found.dev), ("measure", found.held_out)):
        if len(rows) < max(FEWEST, quota // 2):
            raise PairsError(
                f"{len(pairs):,} pairs leave {len(rows):,} to {name} on, at least {max(FEWEST, quota // 2):,} are "
                f"needed: pairs that share a sentence stay together, and the largest such group has "
                f"{100 * sizes.max() / len(pairs):.0f} % of them"
            )
        check(kind, [pairs[i] for i in rows], name)
    check(kind, [pairs[i] for i in found.train], "train")
    return found


def check(kind: Kind, pairs: Sequence[Pair], what: str) -> None:
    """Whether figures can be measured on these pairs; raises PairsError, which says what is missing."""
    if kind == "score":
        if len({pair.target for pair in pairs}) < 2:
            raise PairsError(f"the pairs to {what} on have one score only")
        return
    if len({pair.label for pair in pairs}) < 2:
        raise PairsError(f"the pairs to {what} on have one label only")
    if kind == "ranking":
        right = {pair.group for pair in pairs if pair.label == "1"}
        if not right & {pair.group for pair in pairs if pair.label == "0"}:
            raise PairsError(f"no question among the pairs to {what} on has a right and a wrong answer")
