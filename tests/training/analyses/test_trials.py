"""Analyses that train networks of their own, on toy words: what the folds choose, and what is counted and timed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests import toys
from training.analyses.analysis import AnalysisError, Options
from training.analyses.trials import cost, folds, gates
from training.architectures import GRANConfig
from training.architectures.parts.layers import WordEmbedding
from training.objectives.pairwise import PairwiseConfig
from training.objectives.transfer import MarginConfig
from training.pairs import Pair
from training.recipes import find
from training.recipes.recipe import Schedule
from training.sources.transfer import ParaphrasePairs
from training.words.tables import WordTable

PAIRS = [
    Pair("the man plays guitar", "a man plays the guitar ." if i % 2 else "a big cat", float(i % 2)) for i in range(20)
]


def test_epoch_and_threshold_are_those_of_the_best_held_out_accuracy() -> None:
    right = np.array([True, True, False, False])
    untrained, first, second = [0.5, 0.5, 0.5, 0.5], [0.9, 0.64, 0.6, 0.1], [0.4, 0.9, 0.6, 0.1]
    chosen = folds.choose(np.array([untrained, first, second]), right)
    assert (chosen.epoch, chosen.accuracy) == (1, 1.0)
    assert 0.6 <= chosen.threshold < 0.64
    # Of equal ones the earlier epoch and the threshold nearest to one half.
    assert folds.choose(np.array([first, first]) * 0.8, right).threshold == pytest.approx(0.5)
    assert folds.choose(np.array([first, first]) * 0.8, right).epoch == 0


def test_a_fold_scores_its_held_out_pairs_after_every_epoch_and_keeps_the_last(tmp_path: Path) -> None:
    recipe = replace(find("mgim-msrp-counts"), schedule=Schedule(epochs=3, batch_size=5), max_tokens=toys.MAX_TOKENS)
    trained = folds.trained_on(recipe, toys.table(), PAIRS[:12], PAIRS[12:], Options((recipe.name,), 1, tmp_path))
    assert np.array(trained.scores).shape == (4, 8)
    assert not np.allclose(trained.scores[0], trained.scores[1])
    assert isinstance(recipe.objective, PairwiseConfig)
    again = folds.predict(trained.model, trained.development, recipe.objective.classes)
    assert again == pytest.approx(trained.scores[-1], abs=1e-6)


def test_folds_refuse_a_recipe_of_another_task(tmp_path: Path) -> None:
    with pytest.raises(AnalysisError, match="'mgim-sick' does not tell paraphrases"):
        folds.compute(Options(("mgim-sick",), 1, tmp_path))


def test_the_plain_network_counts_its_weights_and_reads_pairs_of_any_length() -> None:
    rows = toys.table().rows
    plain = cost.PlainConvolution(WordEmbedding(rows), outputs=5)
    filters = 3 * cost.FILTERS
    convolutions = sum(filters * (toys.DIM * size + 1) for size in cost.WIDTHS)
    head = (2 * filters * len(cost.WIDTHS) + 1) * cost.HIDDEN + (cost.HIDDEN + 1) * 5
    assert cost.trained_weights(plain) == convolutions + head
    found = plain(torch.tensor([[3]]), torch.tensor([1]), torch.tensor([[3, 4, 5]]), torch.tensor([3]))
    assert found.exp().sum().item() == pytest.approx(1.0, abs=1e-5)


def test_both_networks_are_timed_on_the_same_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Few:
        def train(self, _teacher: Path | None, _cache: Path) -> list[Pair]:
            return toys.pairs(8)

    recipe = replace(find("pwim-sick-paper"), max_tokens=toys.MAX_TOKENS)
    object.__setattr__(recipe, "data", Few())
    monkeypatch.setattr(cost, "find", lambda _name: recipe)

    def words(_table: object, _runs: Path) -> WordTable:
        return toys.table()

    monkeypatch.setattr(cost, "load_table", words)
    monkeypatch.setattr(cost, "CHUNK", 2)
    monkeypatch.setattr(cost, "CHUNKS", 2)
    data = cost.compute(Options(("pwim-sick-paper",), 1, tmp_path))
    assert (data["pairs"], data["timed"]) == (8, 4)
    assert all(row["seconds"] > 0 and row["parameters"] > 1_000_000 for row in data["rows"].values())
    page = cost.page(data)
    assert "| PWIM as released | " in page
    assert "| PWIM (paper) | 1.7 |  | 664 |" in page


def test_rows_of_gates_differ_in_what_their_labels_say() -> None:
    made = {label: gates.variant(find("gran-1"), i, row) for i, (label, row) in enumerate(gates.ROWS.items())}
    assert len({recipe.name for recipe in made.values()}) == len(gates.ROWS)
    found = []
    for recipe in made.values():
        config, objective = recipe.architecture, recipe.objective
        assert isinstance(config, GRANConfig)
        assert isinstance(objective, MarginConfig)
        assert (recipe.data, recipe.schedule.epochs) == (ParaphrasePairs(limit=gates.PAIRS), 1)
        rate = recipe.optimiser.learning_rate
        found.append((config.dropout, objective.scramble, objective.quiet_negatives, config.gate_bias, rate))
    assert found == [
        (0.4, 0.5, False, 0.0, 1e-3),
        (0.4, 0.5, True, 0.0, 1e-3),
        (0.0, 0.0, False, 0.0, 1e-3),
        (0.0, 0.0, False, 3.0, 1e-3),
        (0.0, 0.0, False, 3.0, 2e-4),
    ]
    with pytest.raises(AnalysisError, match="'gran-avg' is no GRAN"):
        gates.variant(find("gran-avg"), 0, {})


def test_gates_are_compared_with_averaging() -> None:
    rows = {gates.AVERAGE: {"before": 0.69, "after": 0.72}, "open": {"before": 0.69, "after": 0.73}}
    page = gates.page({"pairs": 16_000, "rows": rows})
    assert "| open | 69.00 | 73.00 | +1.00 |" in page
