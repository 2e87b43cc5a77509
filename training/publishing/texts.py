"""Texts on which a model is held against another library: every kind of word that its vocabulary has."""

import numpy as np

from contract.golden import GOLDEN_TEXTS
from contract.wordpiece import AnyTokenizer

_MARKS = (" ", " ", " ", " ", ", ", ". ", "? ", " - ", "'", " \u2014 ", "\n")
_ODD = ("\U0001f600", "na\u00efve", "\u6771\u4eac", "3,141.59", "don't", "\u00c9COLE", "x" * 120, "\u200b", "a\u0301b")


def texts(tokenizer: AnyTokenizer, count: int, longest: int, *, unknown: bool = True, seed: int = 0) -> list[str]:
    """`count` texts of 1 to `longest` tokens: of the vocabulary's own words and pieces in any case, with marks between.

    Args:
        tokenizer: of the model.
        count: how many.
        longest: most tokens.
        unknown: whether some have characters and words outside the vocabulary.
        seed: of the choice.
    """
    rng = np.random.default_rng(seed)
    entries = [tokenizer.token(i) for i in range(len(tokenizer))]
    words = [e.removeprefix("##") for e in entries if not (len(e) > 2 and (e[0], e[-1]) in (("[", "]"), ("<", ">")))]
    found: list[str] = []
    while len(found) < count:
        parts: list[str] = []
        for word in rng.choice(words, rng.integers(1, min(longest, 60) + 1)):
            parts += (str(word), str(rng.choice(_MARKS)))
        if unknown and len(found) % 4 == 0:
            parts.insert(int(rng.integers(len(parts))), f" {rng.choice(_ODD)} ")
        text = "".join(parts)
        text = (text, text.upper(), text.title())[len(found) % 3]
        if 1 <= len(tokenizer.encode(text, longest + 1).ids) <= longest:
            found.append(text)
        else:
            longest_now = text.split()[: max(1, longest // 4)]
            if 1 <= len(tokenizer.encode(" ".join(longest_now), longest + 1).ids) <= longest:
                found.append(" ".join(longest_now))
    golden = [text for pair in GOLDEN_TEXTS for text in pair if len(tokenizer.encode(text, longest + 1).ids) >= 1]
    return found + [text for text in golden if len(tokenizer.encode(text, longest + 1).ids) <= longest]
