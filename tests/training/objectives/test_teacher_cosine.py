"""Regression to a teacher's cosines: which sentences meet in a batch, and what is asked of them."""

import numpy as np
import pytest
import torch

from tests.harness import toys
from training.objectives.development import GradedSets
from training.objectives.parts.batches import Sentences
from training.objectives.parts.losses import cosine_matrix_loss, cosine_pair_loss
from training.objectives.parts.nearest import near_neighbours
from training.objectives.teacher_cosine import TREES, TeacherCosineConfig, TeacherCosineObjective

TEXTS = [f"{a} {b} {c}" for a in toys.WORDS[2:6] for b in toys.WORDS[6:10] for c in toys.WORDS[10:14]]  # 64
TEACHER = np.random.default_rng(0).standard_normal((64, 5)).astype(np.float16)


def objective(
    near_share: float = 0.5, teacher: np.ndarray = TEACHER, neighbour_weight: float = 0.0
) -> TeacherCosineObjective:
    sentences = Sentences(TEXTS, toys.tokenizer(), toys.MAX_TOKENS)
    development = GradedSets({"toy": toys.RATED}, toys.tokenizer(), toys.MAX_TOKENS)
    config = TeacherCosineConfig(near_share=near_share, neighbour_weight=neighbour_weight, neighbours=5)
    return TeacherCosineObjective(toys.model(), sentences, teacher, development, config, batch_size=8, seed=0)


def spread(batch: np.ndarray, direction: np.ndarray) -> float:
    return float(np.ptp(TEACHER[batch].astype(np.float32) @ direction))


def test_near_batches_are_windows_along_a_teacher_direction_each_once() -> None:
    batches = list(objective(near_share=1.0).batches(0))
    assert sorted(np.concatenate(batches).tolist()) == list(range(64))
    direction = np.random.default_rng((0, 0, 1)).standard_normal(5).astype(np.float32)
    along = np.sort(TEACHER.astype(np.float32) @ direction)
    # Windows of the sorted projections, in some order: their spreads are those of consecutive eights.
    expected = sorted(float(np.ptp(window)) for window in along.reshape(8, 8))
    assert sorted(spread(batch, direction) for batch in batches) == pytest.approx(expected, abs=1e-5)


def test_the_loss_regresses_the_cosines_of_the_batch() -> None:
    task = objective()
    batch = np.array([5, 60, 17, 33])
    loss, parts = task.loss(batch)
    student = task.model.encode(task.sentences.batch(batch))
    expected = cosine_matrix_loss(student, torch.from_numpy(TEACHER[batch].astype(np.float32))).item()
    assert loss.item() == pytest.approx(expected, abs=1e-7)
    assert parts == pytest.approx({"regression": expected}, abs=1e-7)


def test_each_sentence_also_meets_a_neighbour_drawn_anew() -> None:
    task = objective(neighbour_weight=3.0)
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
