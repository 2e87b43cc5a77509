"""Texts on which a model is held against another library: every kind of word that its vocabulary has."""

import itertools

import numpy as np

from core.golden import GOLDEN_TEXTS
from core.subwords import AnyTokenizer

_MAX_TRIED = 100  # for each text that is wanted
_MARKS = (" ", " ", " ", " ", ", ", ". ", "? ", " - ", "'", " \u2014 ", "\n")
_ODD = ("\U0001f600", "na\u00efve", "\u6771\u4eac", "3,141.59", "don't", "\u00c9COLE", "x" * 120, "\u200b", "a\u0301b")


def texts(tokenizer: AnyTokenizer, count: int, longest: int) -> list[str]:
    """`count` texts of 1 to `longest` tokens in any case: half of the vocabulary's whole words, half with marks between
    words and pieces.

    Args:
        tokenizer: of the model.
        count: how many.
        longest: most tokens.

    Raises:
        ValueError: the vocabulary has no words, or no text of so few tokens can be made of it.
    """
    rng = np.random.default_rng(0)
    entries = [tokenizer.token(i) for i in range(len(tokenizer))]
    entries = [e for e in entries if not (len(e) > 2 and (e[0], e[-1]) in (("[", "]"), ("<", ">")))]
    # Words and pieces without the marks of how they join: ## of WordPiece, \u2581 of SentencePiece, </w>, spaces.
    plainly = [(e, e.removeprefix("##").replace("\u2581", "").removesuffix("</w>").strip()) for e in entries]
    whole = np.array([plain for entry, plain in plainly if plain and not entry.startswith("##")])
    anything = np.array([plain for _, plain in plainly if plain])
    if not len(whole):
        raise ValueError(
            f"tokenizer.json: no words, but {', '.join(map(tokenizer.token, range(min(len(tokenizer), 5))))}"
        )
    found: list[str] = []
    for tried in itertools.count():
        if len(found) == count:
            break
        if tried > _MAX_TRIED * (count + 1):
            raise ValueError(f"tokenizer.json: of {tried} texts of its words {len(found)} have 1 to {longest} tokens")
        plain = tried % 2 == 0
        parts: list[str] = []
        for word in rng.choice(whole if plain else anything, rng.integers(1, min(longest, 20 if plain else 60) + 1)):
            parts += (str(word), " " if plain else str(rng.choice(_MARKS)))
        if tried % 4 == 1:  # characters and words outside the vocabulary
            parts.insert(int(rng.integers(len(parts))), f" {rng.choice(_ODD)} ")
        text = "".join(parts)
        text = (text, text.upper(), text.title())[tried % 3]
        if _fits(tokenizer, text, longest):
            found.append(text)
    return found + [text for pair in GOLDEN_TEXTS for text in pair if _fits(tokenizer, text, longest)]


def _fits(tokenizer: AnyTokenizer, text: str, longest: int) -> bool:
    return 1 <= len(tokenizer.encode(text, longest + 1).ids) <= longest
