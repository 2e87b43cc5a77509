"""Supervised pairs: both losses, pairs that lack one of the golds, and the development figures."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from contract.measures import expected_rating
from tests import toys
from training.architectures import GRANConfig, WordAveragingConfig
from training.architectures.models import SiameseModel
from training.objectives.metrics import graded, labelled
from training.objectives.parts.losses import kl_to_target, sparse_target
from training.objectives.parts.regularisers import RegulariserConfig
from training.objectives.supervised import LABELS, LabelledPairs, SupervisedConfig, SupervisedObjective

PARTIAL = [
    replace(p, target=None if i % 3 == 0 else p.target, label=None if i % 3 == 1 else p.label)
    for i, p in enumerate(toys.RATED)
]
CONFIG = SupervisedConfig(entailment_weight=0.3)


def labelled_pairs(pairs: list | tuple) -> LabelledPairs:
    return LabelledPairs(pairs, toys.tokenizer(), toys.MAX_TOKENS)


def objective(model: SiameseModel, pairs: list | tuple, config: SupervisedConfig = CONFIG) -> SupervisedObjective:
    return SupervisedObjective(model, labelled_pairs(pairs), labelled_pairs(pairs), config, batch_size=3, seed=0)


def predictions(model: SiameseModel, pairs: list | tuple) -> dict[str, torch.Tensor]:
    data = labelled_pairs(pairs)
    everything = np.arange(len(pairs))
    a, b = model.encode(data.a.batch(everything)), model.encode(data.b.batch(everything))
    return {name: head(a, b) for name, head in model.heads.items()}


@pytest.mark.parametrize("pairs", [toys.RATED, PARTIAL], ids=["all golds", "some golds"])
def test_the_loss_is_the_weighted_sum_over_the_pairs_that_have_the_gold(pairs: list) -> None:
    model = toys.model(heads=True)
    found = predictions(model, pairs)
    rated = [i for i, p in enumerate(pairs) if p.target is not None]
    known = [i for i, p in enumerate(pairs) if p.label is not None]
    target = sparse_target(torch.tensor([pairs[i].target for i in rated]), torch.arange(1.0, 6.0))
    kl = kl_to_target(found["similarity"][rated], target).item()
    nll = -np.mean([found["entailment"][i, LABELS.index(pairs[i].label)].item() for i in known])
    loss, parts = objective(model, pairs).loss(np.arange(len(pairs)))
    assert parts == pytest.approx({"similarity": kl, "entailment": 0.3 * nll, "penalty": 0.0}, abs=1e-6)
    assert loss.item() == pytest.approx(kl + 0.3 * nll, abs=1e-6)


def test_a_batch_without_one_gold_has_no_such_part() -> None:
    model = toys.model(heads=True)
    without = [replace(p, target=None) for p in toys.RATED]
    loss, parts = objective(model, without).loss(np.arange(3))
    assert set(parts) == {"entailment", "penalty"}
    loss.backward()
    assert model.heads["similarity"].output.weight.grad is None
    assert model.embedding.weight.grad is not None


def test_the_penalty_sees_the_words_of_both_sides() -> None:
    model = toys.model(heads=True)
    task = objective(model, toys.RATED, replace(CONFIG, regulariser=RegulariserConfig(words=2.0)))
    moved = toys.tokenizer().encode("mow", 9).ids  # only in the second sentence of the last pair
    with torch.no_grad():
        model.embedding.weight[list(moved)] += 1.0
    assert task.loss(np.array([7]))[1]["penalty"] == pytest.approx(2.0 * len(moved) * toys.DIM, rel=1e-5)
    assert task.loss(np.array([0, 1]))[1]["penalty"] == 0.0


@pytest.mark.parametrize("pairs", [toys.RATED, PARTIAL], ids=["all golds", "some golds"])
def test_development_figures_are_of_the_pairs_that_have_the_gold(pairs: list) -> None:
    model = toys.model(heads=True).eval()
    with torch.no_grad():
        found = predictions(model, pairs)
        metrics = objective(model, pairs).evaluate()
    rated = [i for i, p in enumerate(pairs) if p.target is not None]
    known = [i for i, p in enumerate(pairs) if p.label is not None]
    rating = expected_rating(found["similarity"].numpy(), (1, 2, 3, 4, 5))
    expected = graded(rating[rated], [pairs[i].target for i in rated]) | labelled(
        [LABELS[i] for i in found["entailment"].argmax(1)[known]], [pairs[i].label for i in known]
    )
    assert metrics == pytest.approx({**expected, "selection": (expected["pearson"] + expected["accuracy"]) / 2})


def test_selection_is_of_the_heads_there_are() -> None:
    model = toys.model(heads=True).eval()
    with torch.no_grad():
        both = objective(model, toys.RATED).evaluate()
        del model.heads["entailment"]
        ratings = objective(model, toys.RATED, SupervisedConfig()).evaluate()
    assert ratings["selection"] == ratings["pearson"] == both["pearson"]
    assert "accuracy" not in ratings


def test_scrambling_moves_what_reads_order_and_its_generator_is_kept() -> None:
    batch = np.arange(len(toys.RATED))
    for config, order_counts in ((GRANConfig(), True), (WordAveragingConfig(), False)):
        plain = objective(toys.model(config, heads=True), toys.RATED)
        scrambled = objective(toys.model(config, heads=True), toys.RATED, replace(CONFIG, scramble=1.0))
        assert plain.generators() == []
        (generator,) = scrambled.generators()
        before = generator.get_state()
        loss = scrambled.loss(batch)[0].item()
        assert (abs(loss - plain.loss(batch)[0].item()) > 1e-5) == order_counts
        generator.set_state(before)
        assert scrambled.loss(batch)[0].item() == loss
        with torch.no_grad():
            assert scrambled.evaluate() == plain.evaluate()  # development sentences are read as they are
