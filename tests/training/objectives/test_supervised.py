"""Supervised pairs: both losses, pairs that lack one of the golds, and the development figures."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from contract.measures import expected_rating
from tests.harness import toys
from training.architectures.models import SiameseModel
from training.objectives.metrics import graded, labelled
from training.objectives.parts.losses import kl_to_target, sparse_target
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
