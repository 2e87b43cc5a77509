"""Teacher and paraphrase pairs together: the sum of both losses, and pairs that go round while sentences last."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests import toys
from training.architectures.models import SiameseModel
from training.objectives.development import GradedSets
from training.objectives.parts.batches import Sentences
from training.objectives.teacher_cosine import TeacherCosineConfig, TeacherCosineObjective
from training.objectives.teacher_margin import TeacherMarginObjective
from training.objectives.transfer import MarginConfig, MarginObjective
from training.recipes.recipe import OptimiserConfig, Schedule
from training.runs.loop import train


def objective(model: SiameseModel | None = None, sentences: int = 20) -> TeacherMarginObjective:
    model = model or toys.model()
    pairs = toys.pairs(sentences)
    a, _ = (Sentences([getattr(p, side) for p in pairs], toys.tokenizer(), toys.MAX_TOKENS) for side in "ab")
    few = [Sentences([getattr(p, side) for p in pairs[:9]], toys.tokenizer(), toys.MAX_TOKENS) for side in "ab"]
    encodings = np.random.default_rng(1).normal(size=(len(a), 6)).astype(np.float16)
    development = GradedSets({"toy": toys.RATED}, toys.tokenizer(), toys.MAX_TOKENS)
    teacher = TeacherCosineObjective(model, a, encodings, development, TeacherCosineConfig(), 4, 3)
    margin = MarginObjective(model, *few, development, MarginConfig(margin=0.6), 3, 3)
    return TeacherMarginObjective(teacher, margin, weight=0.25)


def test_the_loss_is_the_teacher_s_and_the_weighted_margin() -> None:
    task = objective()
    batch = np.arange(4), np.arange(5)
    loss, parts = task.loss(batch)
    regression, margin = task.teacher.loss(batch[0])[0].item(), task.margin.loss(batch[1])[0].item()
    assert margin > 0.1
    assert loss.item() == pytest.approx(regression + 0.25 * margin, abs=1e-6)
    assert parts["regression"] == pytest.approx(regression, abs=1e-6)
    assert parts["margin"] == pytest.approx(margin, abs=1e-6)


def test_pairs_go_round_and_an_epoch_takes_them_up_where_the_last_one_stopped() -> None:
    task = objective()
    assert (task.steps(), task.margin.steps()) == (5, 3)
    everything = [pairs.tolist() for epoch in (0, 1) for _, pairs in task.batches(epoch, 0, 1)]
    laps = [pairs.tolist() for lap in range(4) for pairs in task.margin.batches(lap, 0, 1)]
    assert everything == laps[:10]
    assert [len(sentences) for sentences, _ in task.batches(0, 0, 1)] == [4] * 5


def test_two_models_are_refused() -> None:
    with pytest.raises(ValueError, match="one model"):
        TeacherMarginObjective(objective().teacher, objective().margin, 1.0)


def test_it_trains_and_resumes_to_the_same_bits(tmp_path: Path) -> None:
    whole, halves = objective(), objective()
    config = OptimiserConfig("adam", learning_rate=0.05, embedding_learning_rate=0.05)
    losses = [task.loss((np.arange(20), np.arange(9)))[0].item() for task in (whole,)]
    train(whole, config, Schedule(epochs=4, batch_size=4), tmp_path / "whole", seed=1)
    train(halves, config, Schedule(epochs=2, batch_size=4), tmp_path / "halves", seed=1)
    train(halves, config, Schedule(epochs=4, batch_size=4), tmp_path / "halves", seed=1)
    last = [torch.load(tmp_path / run / "checkpoint.pt", weights_only=True)["model"] for run in ("whole", "halves")]
    torch.testing.assert_close(*last, rtol=0, atol=0)
    whole.model.load_state_dict(last[0])
    assert whole.loss((np.arange(20), np.arange(9)))[0].item() < losses[0]
