"""What analyses compute, on toy models and values small enough to work out by hand."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests import toys
from training.analyses import (
    curves,
    data_amount,
    disagreements,
    length,
    malstm_space,
    negatives,
    neighbours,
    norms,
)
from training.analyses.analysis import AnalysisError, rounded
from training.analyses.coverage import order, rare_words
from training.analyses.trained import Trained, averaging, cosines, vectors
from training.architectures import ArchitectureConfig, WordAveragingConfig
from training.corpora import transfer
from training.pairs import Pair
from training.recipes import find
from training.sources.transfer import LexicalPairs, ParaphrasePairs


def trained(config: ArchitectureConfig | None = None) -> Trained:
    recipe = replace(find("gran-avg"), architecture=config or WordAveragingConfig())
    return Trained(recipe, toys.model(config).eval(), toys.tokenizer(), toys.table().rows)


def test_vectors_of_averaging_are_means_of_rows_and_a_sentence_has_cosine_one_with_itself() -> None:
    model = trained()
    ids = toys.tokenizer().encode("the dog runs", 10).ids
    assert vectors(model, ["the dog runs"])[0] == pytest.approx(model.rows[list(ids)].mean(axis=0), abs=1e-6)
    assert cosines(model, [Pair("a cat", "a cat"), Pair("dog", "cat")])[0] == pytest.approx(1.0)


def test_averaging_uses_other_rows() -> None:
    rows = np.ones_like(trained().table_rows)
    assert cosines(averaging(trained(), rows), [Pair("dog", "cat")]).tolist() == pytest.approx([1.0])


def test_length_bins_by_the_longer_side_and_ends_take_the_rest() -> None:
    found = length.bins([Pair("a", "a b"), Pair("a b c d e", "a"), Pair("a", " ".join("abcdefghijklmn"))])
    assert [length.LABELS[i] for i in found] == ["<= 4", "5", ">= 10"]


def test_pearson_by_bin_is_none_where_there_are_too_few() -> None:
    where = np.array([0, 0, 0, 1, 1])
    found = length.by_bin(np.array([1.0, 2, 3, 1, 2]), np.array([2.0, 4, 6, 1, 2]), where)
    assert found[0] == pytest.approx(1.0)
    assert found[1:] == [None] * 6


def test_fewer_pairs_are_another_recipe_and_all_of_them_the_same() -> None:
    recipe = find("gran-avg")
    fewer = data_amount.smaller(recipe, 1_000)
    assert (fewer.name, fewer.data) == ("gran-avg-1000-pairs", ParaphrasePairs(limit=1_000))
    assert data_amount.smaller(recipe, 160_000) is recipe
    with pytest.raises(AnalysisError, match="'avg-sick' does not train on 10 paraphrase pairs"):
        data_amount.smaller(find("avg-sick"), 10)


def test_scores_of_a_run_are_its_start_and_its_best(tmp_path: Path) -> None:
    lines = [json.dumps({"epoch": i, "selection": score}) for i, score in enumerate((0.5, 0.7, 0.6))]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    assert data_amount.scores(tmp_path) == (0.5, 0.7)
    assert curves.read(tmp_path / "metrics.jsonl") == [0.5, 0.7, 0.6]


def test_variants_scale_by_the_sum_of_absolute_values() -> None:
    before, after = np.array([[3.0, 4.0]], np.float32), np.array([[-1.0, 2.0]], np.float32)
    made = norms.variants(before, after, np.array([2]))
    assert made["untrained x trained norm"].tolist() == [[9.0, 12.0]]
    assert made["length 1 x trained norm"][0].tolist() == pytest.approx([1.8, 2.4])
    assert made["trained"] is after


def test_a_word_that_never_occurs_counts_as_one_that_does_once() -> None:
    rows = np.ones((3, 2), np.float32)
    made = norms.variants(rows, rows, np.array([0, 1, 3]))["untrained / frequency"]
    assert made[:, 0].tolist() == pytest.approx([4.0, 4.0, 4 / 3])


def test_scaling_explains_the_papers_share() -> None:
    assert norms.explained(54.94, 62.64, 66.83) == pytest.approx(0.6476, abs=1e-4)


def test_extremes_leave_out_rare_words_and_numbers() -> None:
    words, counts = ["the", "rare", "17", "poverty"], np.array([500, 3, 400, 100])
    assert norms.extremes(words, np.array([1.0, 9.0, 8.0, 5.0]), counts) == (["poverty", "the"], ["the", "poverty"])


def test_neighbours_are_sorted_by_cosine_without_the_word_itself() -> None:
    rows = np.array([[1, 0], [0.9, 0.1], [0, 1], [5, 0.1]], np.float32)
    words = ["a", "b", "c", "d"]
    assert neighbours.nearest("a", words, rows, count=2) == ["d", "b"]
    assert neighbours.nearest("a", words, rows, count=2, among=3) == ["b", "c"]
    with pytest.raises(AnalysisError, match="'x' is not in the vocabulary"):
        neighbours.nearest("x", words, rows)


def test_neighbours_all_stay_when_nothing_moves() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    assert [band["share"] for band in neighbours.stayed(rows, 3 * rows, step=20)] == [1.0, 1.0]


def test_cosines_are_scaled_to_five_and_cut_at_zero() -> None:
    assert disagreements.to_five(np.array([-0.5, 0.5, 1.0])).tolist() == [0.0, 2.5, 5.0]


def test_the_worst_pair_of_each_kind_is_the_one_on_which_only_that_model_errs() -> None:
    gold = np.array([2.0, 2.0, 2.0, 2.0])
    averaging_, recurrent = np.array([4.0, 2.0, 0.0, 2.0]), np.array([2.0, 4.0, 2.0, 0.5])
    first = {kind: order[0] for kind, order in disagreements.kinds(averaging_, recurrent, gold).items()}
    assert first == {
        "AVG overestimates": 0,
        "LSTM-AVG overestimates": 1,
        "AVG underestimates": 2,
        "LSTM-AVG underestimates": 3,
    }


def test_traits_of_a_pair() -> None:
    assert disagreements.traits(Pair("the dog runs", "the dog")) == {
        "overlap": pytest.approx(2 / 3),
        "longer": 3.0,
        "difference": 1.0,
    }


def test_differences_hold_pairs_against_the_closest_other_sentence() -> None:
    a = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert negatives.differences(a, a).tolist() == [2.0, 2.0]
    other = torch.tensor([[1.0, 0.0], [3.0, 4.0]])  # cosine 0.6 with the first, 0.8 with its own partner
    assert negatives.differences(a, other).tolist() == pytest.approx([2 - 0.6 - 0.6, 1.6 - 0 - 0.6])


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


def test_values_are_rounded_all_the_way_down() -> None:
    assert rounded({"a": [0.1234567, {"b": (2.0000001, 3)}]}) == {"a": [0.12346, {"b": [2.0, 3]}]}


def test_an_order_of_pairs_is_a_recipe_of_its_own_with_batches_that_fit() -> None:
    recipe = find("pp-avg-lexical")
    few = order.variant(recipe, 48, shuffled=True)
    assert (few.name, few.data) == ("pp-avg-lexical-48-random", LexicalPairs(48, shuffled=True))
    assert few.schedule.batch_size == 4
    assert order.variant(recipe, 50_000, shuffled=False).schedule.batch_size == recipe.schedule.batch_size
    with pytest.raises(AnalysisError, match="'gran-avg' does not train on pairs of words"):
        order.variant(find("gran-avg"), 48, shuffled=False)


def test_the_page_of_orders_counts_the_sizes_at_which_chance_is_ahead() -> None:
    points = [
        {"order": name, "pairs": pairs, "pearson": r}
        for name, row in (("ordered", (0.5, 0.7)), ("random", (0.6, 0.6)))
        for pairs, r in zip((10, 100), row, strict=True)
    ]
    said = order.page({"points": points, "epochs": 5, "untrained": 0.4})
    assert "they are at 1 of 2 sizes" in said
    assert "| 10 | 50.00 | 60.00 | +10.00 |" in said


def test_the_share_of_rare_words_is_of_running_and_of_distinct_words() -> None:
    counts = Counter({"the": 100, "dog": 99})
    pairs = [Pair("the the dog", "the cat")]
    assert rare_words.rare_share(pairs, counts) == (pytest.approx(2 / 5), pytest.approx(2 / 3))


def test_every_set_that_is_scored_has_the_shared_tasks_percentile() -> None:
    assert set(rare_words.SYSTEMS) == {*transfer.NAMES, "pit2015-test"}
