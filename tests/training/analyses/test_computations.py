"""What analyses compute, on toy models and values small enough to work out by hand."""

import numpy as np
import pytest

from tests import toys
from training.analyses import length, malstm_space
from training.analyses.trained import Trained, cosines
from training.architectures import WordAveragingConfig
from training.pairs import Pair
from training.recipes import find


def test_a_sentence_has_cosine_one_with_itself_and_less_with_another() -> None:
    model = Trained(find("gran-avg"), toys.model(WordAveragingConfig()).eval(), toys.tokenizer())
    same, other = cosines(model, [Pair("a cat", "a cat"), Pair("dog", "cat")])
    assert same == pytest.approx(1.0)
    assert -1 <= other < 1


def test_length_bins_by_the_longer_side_and_ends_take_the_rest() -> None:
    found = length.bins([Pair("a", "a b"), Pair("a b c d e", "a"), Pair("a", " ".join("abcdefghijklmn"))])
    assert [length.LABELS[i] for i in found] == ["<= 4", "5", ">= 10"]


def test_pearson_by_bin_is_none_where_there_are_too_few() -> None:
    where = np.array([0, 0, 0, 1, 1])
    found = length.by_bin(np.array([1.0, 2, 3, 1, 2]), np.array([2.0, 4, 6, 1, 2]), where)
    assert found[0] == pytest.approx(1.0)
    assert found[1:] == [None] * 6


def test_the_first_theme_that_matches_whole_words_counts() -> None:
    texts = ["A man is aiming a gun at a dog", "The DOG runs", "A hotdog is big"]
    names = list(malstm_space.THEMES)
    found = [names[i] if i >= 0 else None for i in malstm_space.matching(texts, malstm_space.THEMES)]
    assert found == ["violence", "animals", None]


def test_sentences_without_negation_form_a_group_of_their_own() -> None:
    found = malstm_space.grouped(["There is no dog", "a dog", "it isn't so"], malstm_space.GROUPS["negation"])
    assert found.tolist() == [0, 1, 0]


def test_the_best_unit_is_the_one_whose_variance_lies_between_groups() -> None:
    values = np.array([[0.0, 1.0, 5.0], [1.0, 1.0, 5.0], [0.0, 3.0, 5.0], [1.0, 3.0, 5.0], [9.0, -9.0, 5.0]])
    groups = np.array([0, 0, 1, 1, -1])
    assert malstm_space.best_unit(values, groups) == (1, 1.0)
    assert malstm_space.explained_variance(values[:4], groups[:4]).tolist() == [0.0, 1.0, 0.0]
