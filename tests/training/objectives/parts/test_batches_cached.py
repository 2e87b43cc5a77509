"""Token ids of mixtures: made once for the same texts and vocabulary, never taken for others'."""

import numpy as np

from contract.tokenizer import Tokenizer
from tests import toys
from training.objectives.parts.batches import tokenised_pairs, tokenised_texts
from training.pairs import Pair

PAIRS = [Pair("the man plays", "a man sleeps"), Pair(" ", "the dog"), Pair("the cat", "a cat runs")]


def test_pairs_without_a_word_on_a_side_are_left_out() -> None:
    a, b = tokenised_pairs(PAIRS, toys.tokenizer(), 12)
    assert (a.lengths.tolist(), b.lengths.tolist()) == ([3, 2], [3, 3])
    np.testing.assert_array_equal(a.flat[:3], toys.tokenizer().encode("the man plays", 12).ids)


def test_the_same_texts_are_tokenised_once_and_others_anew() -> None:
    first = tokenised_pairs(PAIRS, toys.tokenizer(), 12)
    assert tokenised_pairs(list(PAIRS), toys.tokenizer(), 12) is first
    other_words = Tokenizer(["man", "the", "a"], buckets=2)
    assert tokenised_pairs(PAIRS, other_words, 12)[0].flat.tolist()[:2] == [2, 1]
    assert tokenised_pairs(PAIRS[:1], toys.tokenizer(), 12)[0].lengths.tolist() == [3]
    assert tokenised_pairs(PAIRS, toys.tokenizer(), 2)[0].lengths.tolist() == [2, 2]


def test_texts_come_back_with_their_tokens() -> None:
    texts, sentences = tokenised_texts(["the dog", "", "a big dog"], toys.tokenizer(), 12)
    assert texts == ("the dog", "a big dog")
    assert sentences.lengths.tolist() == [2, 3]
    assert tokenised_texts(["the dog", "", "a big dog"], toys.tokenizer(), 12)[1] is sentences
