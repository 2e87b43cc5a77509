"""Transfer training: full batches of paraphrase pairs, the margin loss, the generator of MIX."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests import toys
from training.batches import Sentences
from training.losses import margin_loss
from training.objectives.development import GradedSets
from training.objectives.transfer import MarginConfig, MarginObjective
from training.regularisers import RegulariserConfig


def objective(config: MarginConfig) -> MarginObjective:
    pairs = toys.pairs(21)
    a, b = (Sentences([getattr(p, side) for p in pairs], toys.tokenizer(), toys.MAX_TOKENS) for side in "ab")
    development = GradedSets({"toy": toys.RATED}, toys.tokenizer(), toys.MAX_TOKENS)
    return MarginObjective(toys.model(), a, b, development, config, batch_size=5, seed=4)


MAX, MIX = MarginConfig(margin=0.6), MarginConfig(margin=0.6, negatives="mix")


def test_the_loss_is_the_margin_loss_of_the_batch() -> None:
    task = objective(MAX)
    batch = np.array([0, 7, 11, 20])
    a, b = task.model.encode(task.a.batch(batch)), task.model.encode(task.b.batch(batch))
    expected = margin_loss(a, b, 0.6, "max", torch.Generator()).item()
    loss, parts = task.loss(batch)
    assert loss.item() == pytest.approx(expected, abs=1e-7)
    assert parts == pytest.approx({"margin": expected, "penalty": 0.0}, abs=1e-7)


def test_the_penalty_is_added() -> None:
    task = objective(replace(MAX, regulariser=RegulariserConfig(words=1.0)))
    with torch.no_grad():
        task.model.embedding.weight[3] += 2.0
    loss, parts = task.loss(np.arange(21))
    assert parts["penalty"] == pytest.approx(4.0 * toys.DIM, rel=1e-5)
    assert loss.item() == pytest.approx(parts["margin"] + parts["penalty"], rel=1e-6)


def test_only_full_batches_are_used() -> None:
    task = objective(MAX)
    batches = list(task.batches(0, 0, 1))
    assert task.steps() == len(batches) == 4
    assert {len(batch) for batch in batches} == {5}


def test_mix_draws_from_its_own_generator_which_the_checkpoint_keeps() -> None:
    task = objective(MIX)
    (generator,) = task.generators()
    before = generator.get_state()
    losses = [task.loss(np.arange(21))[0].item() for _ in range(4)]
    assert len(set(losses)) > 1  # other negatives each time
    generator.set_state(before)
    assert [task.loss(np.arange(21))[0].item() for _ in range(4)] == losses
    torch.manual_seed(99)
    generator.set_state(before)
    assert task.loss(np.arange(21))[0].item() == losses[0]


def test_training_pulls_paraphrases_together_and_others_apart() -> None:
    task = objective(MAX)
    optimiser = torch.optim.SparseAdam([task.model.embedding.weight], lr=0.02)
    first = task.loss(np.arange(8))[0].item()
    for _ in range(150):
        optimiser.zero_grad()
        task.loss(np.arange(8))[0].backward()
        optimiser.step()
    assert task.loss(np.arange(8))[0].item() < first / 2
