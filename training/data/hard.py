"""Pairs that an encoder finds hard: right answers among wrong ones near the question, and requests of near intents.

Which wrong answers: those labelled wrong for the question first, the nearest of them by cosine; then other questions'
answers, less near than .95 of the right one's cosine, for some of the nearer ones are right too (G. de Souza P.
Moreira et al., "NV-Retriever: Improving text embedding models with effective hard-negative mining", 2024).
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from training.data.pairs import Pair

GROUP = 5  # pairs of a question: one right answer, then four wrong ones
LESS_NEAR = 0.95  # of the right answer's cosine
NEAREST = 10  # requests of which one is drawn
BLOCK = 256  # rows of a product

Vectors = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]  # n texts -> vectors of length 1 [n, d]


def hard_groups(pairs: Sequence[Pair], encode: Encode) -> list[Pair]:
    """A group of `GROUP` pairs for each right answer: that one with label 1, then the hardest wrong ones.

    Args:
        pairs: questions and candidates with label 1 or 0; those of a question have the same `group`.
        encode: the encoder.

    Returns:
        Whole groups, one after the other; none for a right answer that has too few wrong ones.
    """
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.group].append(pair)
    answers = list(dict.fromkeys(pair.b for pair in pairs))
    place = {text: i for i, text in enumerate(answers)}
    asked = [group for group, own in groups.items() if any(pair.label == "1" for pair in own)]
    questions = encode([groups[group][0].a for group in asked])
    vectors = encode(answers)
    found: list[Pair] = []
    for start in range(0, len(asked), BLOCK):
        cosines = questions[start : start + BLOCK] @ vectors.T
        for group, row in zip(asked[start : start + BLOCK], cosines, strict=True):
            own = groups[group]
            right = dict.fromkeys(pair.b for pair in own if pair.label == "1")
            labelled = sorted({place[p.b] for p in own if p.b not in right}, key=lambda i: (-row[i], i))
            known = {place[pair.b] for pair in own}
            for answer in right:
                wrong = labelled[: GROUP - 1]
                if len(wrong) < GROUP - 1:
                    others = np.argsort(-row, kind="stable")
                    others = others[row[others] <= LESS_NEAR * row[place[answer]]]
                    wrong += islice((i for i in others.tolist() if i not in known), GROUP - 1 - len(wrong))
                if len(wrong) == GROUP - 1:  # else the right answer is further than nearly all others: a doubtful one
                    found.append(Pair(own[0].a, answer, label="1", group=group))
                    found += [Pair(own[0].a, answers[i], label="0", group=group) for i in wrong]
    return found


def near_intents(texts: Sequence[tuple[str, str]], encode: Encode) -> list[Pair]:
    """Two pairs of each text: with one of its intent, label 1, and with one of another intent, label 0.

    Each is drawn from the `NEAREST` of its kind, so that their words are as alike. A text without another one of its
    intent gives the second pair only.

    Args:
        texts: (text, intent).
        encode: the encoder.
    """
    said = [text for text, _ in texts]
    _, intents = np.unique([intent for _, intent in texts], return_inverse=True)
    vectors = encode(said)
    draw = np.random.default_rng(0)
    found: list[Pair] = []
    for start in range(0, len(said), BLOCK):
        cosines = vectors[start : start + BLOCK] @ vectors.T
        for i, row in enumerate(cosines, start):
            for same in (True, False):
                rows = np.flatnonzero((intents == intents[i]) == same)
                rows = rows[rows != i]
                if len(rows):
                    nearest = rows[np.argpartition(-row[rows], min(NEAREST, len(rows)) - 1)[:NEAREST]]
                    found.append(Pair(said[i], said[int(draw.choice(nearest))], label=str(int(same))))
    return found
