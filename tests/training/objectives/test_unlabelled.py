"""Objectives of encoders that learn without ratings: paraphrases, a teacher's cosines; and how they are chosen."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr

from core.scoring import cosine
from tests.harness import toys
from training.models import ArchitectureConfig, LSTMConfig, WordAveragingConfig
from training.objectives.batches import Sentences
from training.objectives.development import GradedSets, encode_all
from training.objectives.losses import cosine_matrix_loss, cosine_pair_loss, margin_loss
from training.objectives.nearest import near_neighbours
from training.objectives.teacher_cosine import TREES, TeacherCosineConfig, TeacherCosineObjective
from training.objectives.transfer import MarginConfig, MarginObjective


def test_each_set_has_its_r_and_selection_is_their_mean() -> None:
    model = toys.model().eval()
    sets = {"all": toys.RATED, "some": toys.RATED[2:7]}
    with torch.no_grad():
        found = GradedSets(sets, toys.tokenizer(), toys.MAX_TOKENS).evaluate(model)
        expected = {}
        for name, pairs in sets.items():
            a, b = (
                encode_all(model, Sentences([getattr(p, s) for p in pairs], toys.tokenizer(), 12)).numpy() for s in "ab"
            )
            expected[name] = float(pearsonr(cosine(a, b), [p.target for p in pairs]).statistic)
    assert found == pytest.approx({**expected, "selection": np.mean(list(expected.values()))}, abs=1e-6)
    assert found["all"] != pytest.approx(found["some"], abs=1e-3)


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


TEXTS = [f"{a} {b} {c}" for a in toys.WORDS[2:6] for b in toys.WORDS[6:10] for c in toys.WORDS[10:14]]  # 64
TEACHER = np.random.default_rng(0).standard_normal((64, 5)).astype(np.float16)


def regression(
    near_share: float = 0.5, teacher: np.ndarray = TEACHER, neighbour_weight: float = 0.0
) -> TeacherCosineObjective:
    sentences = Sentences(TEXTS, toys.tokenizer(), toys.MAX_TOKENS)
    development = GradedSets({"toy": toys.RATED}, toys.tokenizer(), toys.MAX_TOKENS)
    config = TeacherCosineConfig(near_share=near_share, neighbour_weight=neighbour_weight, neighbours=5)
    return TeacherCosineObjective(toys.model(), sentences, teacher, development, config, batch_size=8, seed=0)


def spread(batch: np.ndarray, direction: np.ndarray) -> float:
    return float(np.ptp(TEACHER[batch].astype(np.float32) @ direction))


def test_near_batches_are_windows_along_a_teacher_direction_each_once() -> None:
    batches = list(regression(near_share=1.0).batches(0))
    assert sorted(np.concatenate(batches).tolist()) == list(range(64))
    direction = np.random.default_rng((0, 0, 1)).standard_normal(5).astype(np.float32)
    along = np.sort(TEACHER.astype(np.float32) @ direction)
    # Windows of the sorted projections, in some order: their spreads are those of consecutive eights.
    expected = sorted(float(np.ptp(window)) for window in along.reshape(8, 8))
    assert sorted(spread(batch, direction) for batch in batches) == pytest.approx(expected, abs=1e-5)


def test_each_sentence_also_meets_a_neighbour_drawn_anew() -> None:
    task = regression(neighbour_weight=3.0)
    assert task.neighbours is not None
    np.testing.assert_array_equal(task.neighbours, near_neighbours(TEACHER, each=5, trees=TREES, seed=task.seed))
    batch = np.array([5, 60, 17, 33])
    state = task.choice.get_state()
    loss, parts = task.loss(batch)
    drawn = torch.randint(5 * TREES, (4,), generator=torch.Generator().manual_seed(0)).numpy()
    student, other = (task.model.encode(task.sentences.batch(rows)) for rows in (batch, task.neighbours[batch, drawn]))
    target, near = (torch.from_numpy(TEACHER[r].astype(np.float32)) for r in (batch, task.neighbours[batch, drawn]))
    expected = cosine_pair_loss(student, other, target, near).item()
    assert parts["neighbours"] == pytest.approx(3 * expected, abs=1e-6)
    assert parts["regression"] == pytest.approx(cosine_matrix_loss(student, target).item(), abs=1e-6)
    assert loss.item() == pytest.approx(parts["neighbours"] + parts["regression"], abs=1e-6)
    again = task.loss(batch)[1]
    assert again["neighbours"] != parts["neighbours"]
    assert task.generators() == [task.choice]  # so that a resumed run draws the same
    task.choice.set_state(state)
    assert task.loss(batch)[1] == parts
