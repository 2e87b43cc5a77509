"""Transfer training: full batches of paraphrase pairs, the margin loss, the generator of MIX."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.harness import toys
from training.architectures import ArchitectureConfig, LSTMConfig, WordAveragingConfig
from training.objectives.development import GradedSets
from training.objectives.parts.batches import Sentences
from training.objectives.parts.losses import margin_loss
from training.objectives.transfer import MarginConfig, MarginObjective


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


def test_scrambling_is_drawn_from_a_generator_of_its_own_and_moves_only_what_reads_order() -> None:
    def with_model(scramble: float, config: ArchitectureConfig) -> MarginObjective:
        task = objective(replace(MIX, scramble=scramble))
        task.model = toys.model(config)
        return task

    batch = np.arange(21)
    for config, order_counts in ((LSTMConfig(), True), (WordAveragingConfig(), False)):
        plain, scrambled = with_model(0.0, config), with_model(1.0, config)
        assert len(plain.generators()) == 1  # a checkpoint from before there was scrambling still fits
        assert len(scrambled.generators()) == 2
        a, b = plain.loss(batch)[0].item(), scrambled.loss(batch)[0].item()
        assert torch.equal(plain.generators()[0].get_state(), scrambled.generators()[0].get_state())
        assert (abs(a - b) > 1e-4) == order_counts
