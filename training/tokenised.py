"""Mixtures as token ids, made once a process: a table of many runs trains each of them on the same sentences.

What is kept goes by the texts and the vocabulary themselves, so other corpora or another table are never confused.
"""

from collections.abc import Iterable
from functools import lru_cache

from contract.text import split_words
from contract.tokenizer import Tokenizer
from training.batches import Sentences
from training.pairs import Pair


def tokenised_pairs(pairs: Iterable[Pair], tokenizer: Tokenizer, max_tokens: int) -> tuple[Sentences, Sentences]:
    """Both sides of the pairs in which the tokenizer finds a word on either side."""
    return _pairs(tuple(pairs), tokenizer.words, tokenizer.pieces, tokenizer.buckets, max_tokens)


def tokenised_texts(texts: Iterable[str], tokenizer: Tokenizer, max_tokens: int) -> tuple[tuple[str, ...], Sentences]:
    """The texts in which the tokenizer finds a word, and their tokens."""
    return _texts(tuple(texts), tokenizer.words, tokenizer.pieces, tokenizer.buckets, max_tokens)


@lru_cache(maxsize=1)
def _pairs(
    pairs: tuple[Pair, ...], words: tuple[str, ...], pieces: tuple[str, ...], buckets: int, max_tokens: int
) -> tuple[Sentences, Sentences]:
    tokenizer = Tokenizer(words, pieces, buckets)
    readable = [p for p in pairs if split_words(p.a) and split_words(p.b)]
    a, b = (Sentences([getattr(p, side) for p in readable], tokenizer, max_tokens) for side in "ab")
    return a, b


@lru_cache(maxsize=1)
def _texts(
    texts: tuple[str, ...], words: tuple[str, ...], pieces: tuple[str, ...], buckets: int, max_tokens: int
) -> tuple[tuple[str, ...], Sentences]:
    readable = tuple(text for text in texts if split_words(text))
    return readable, Sentences(readable, Tokenizer(words, pieces, buckets), max_tokens)
