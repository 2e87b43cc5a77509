"""Regression to a teacher's cosines: which sentences meet in a batch, and what is asked of them."""

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import pytest
import torch

from tests import toys
from training.batches import Indices, Sentences
from training.losses import cosine_matrix_loss
from training.objectives.development import GradedSets
from training.objectives.teacher_cosine import TeacherCosineConfig, TeacherCosineObjective, leaves, windows

TEXTS = [f"{a} {b} {c}" for a in toys.WORDS[2:6] for b in toys.WORDS[6:10] for c in toys.WORDS[10:14]]  # 64
TEACHER = np.random.default_rng(0).standard_normal((64, 5)).astype(np.float16)


def objective(
    near_share: float = 0.5, teacher: np.ndarray = TEACHER, near: Literal["direction", "tree"] = "direction"
) -> TeacherCosineObjective:
    sentences = Sentences(TEXTS, toys.tokenizer(), toys.MAX_TOKENS)
    development = GradedSets({"toy": toys.RATED}, toys.tokenizer(), toys.MAX_TOKENS)
    config = TeacherCosineConfig(near_share=near_share, near=near)
    return TeacherCosineObjective(toys.model(), sentences, teacher, development, config, batch_size=8, seed=0)


def spread(batch: np.ndarray, direction: np.ndarray) -> float:
    return float(np.ptp(TEACHER[batch].astype(np.float32) @ direction))


def test_random_batches_hold_every_sentence_once() -> None:
    batches = list(objective(near_share=0.0).batches(0, 0, 1))
    assert objective().steps() == len(batches) == 8
    assert sorted(np.concatenate(batches).tolist()) == list(range(64))


def test_near_batches_are_windows_along_a_teacher_direction_each_once() -> None:
    batches = list(objective(near_share=1.0).batches(0, 0, 1))
    assert sorted(np.concatenate(batches).tolist()) == list(range(64))
    direction = np.random.default_rng((0, 0, 1)).standard_normal(5).astype(np.float32)
    along = np.sort(TEACHER.astype(np.float32) @ direction)
    # Windows of the sorted projections, in some order: their spreads are those of consecutive eights.
    expected = sorted(float(np.ptp(window)) for window in along.reshape(8, 8))
    assert sorted(spread(batch, direction) for batch in batches) == pytest.approx(expected, abs=1e-5)


def test_batches_of_a_tree_hold_every_sentence_once_and_differ_by_epoch() -> None:
    task = objective(near_share=1.0, near="tree")
    batches = list(task.batches(0, 0, 1))
    assert sorted(np.concatenate(batches).tolist()) == list(range(64))
    assert [b.tolist() for b in batches] != [b.tolist() for b in task.batches(1, 0, 1)]


@pytest.mark.parametrize("grouped", [windows, leaves])
@pytest.mark.parametrize(("rows", "size"), [(64, 8), (61, 8), (7, 8), (103, 10), (24, 8), (9, 8)])
def test_groups_are_full_and_share_no_row(grouped: Callable[..., Iterator[Indices]], rows: int, size: int) -> None:
    vectors = np.random.default_rng(1).standard_normal((rows, 5)).astype(np.float16)
    groups = list(grouped(vectors, size, np.random.default_rng(2)))
    assert [len(group) for group in groups] == [size] * (rows // size)
    assert len(set(np.concatenate([*groups, []]).tolist())) == rows // size * size


def test_leaves_of_a_tree_are_nearer_than_windows_along_a_direction() -> None:
    rng = np.random.default_rng(3)
    vectors = np.repeat(rng.standard_normal((32, 48)), 8, axis=0) + rng.standard_normal((256, 48)) * 0.5
    rng.shuffle(vectors)

    def spread_within(grouped: Callable[..., Iterator[Indices]]) -> float:
        groups = grouped(vectors.astype(np.float32), 8, np.random.default_rng(4))
        return float(np.mean([vectors[group].var(axis=0).sum() for group in groups]))

    assert spread_within(leaves) < 0.8 * spread_within(windows)


def test_rows_that_are_all_the_same_still_make_groups() -> None:
    groups = list(leaves(np.ones((32, 3), dtype=np.float32), 8, np.random.default_rng(0)))
    assert sorted(np.concatenate(groups).tolist()) == list(range(32))


def test_about_half_of_the_batches_are_near() -> None:
    task, random = objective(), objective(near_share=0.0)
    near = 0
    for epoch in range(40):
        pairs = zip(task.batches(epoch, 0, 1), random.batches(epoch, 0, 1), strict=True)
        near += sum(not np.array_equal(batch, plain) for batch, plain in pairs)
    assert near == pytest.approx(160, abs=40)


def test_batches_depend_on_seed_and_epoch_alone_and_are_dealt_to_ranks() -> None:
    def listed(epoch: int, rank: int = 0, world: int = 1) -> list[list[int]]:
        return [batch.tolist() for batch in objective().batches(epoch, rank, world)]

    assert listed(3) == listed(3) != listed(4)
    both = zip(listed(3, 0, 2), listed(3, 1, 2), strict=True)
    assert [sorted(a + b) for a, b in both] == [sorted(batch) for batch in listed(3)]


def test_the_loss_regresses_the_cosines_of_the_batch() -> None:
    task = objective()
    batch = np.array([5, 60, 17, 33])
    loss, parts = task.loss(batch)
    student = task.model.encode(task.sentences.batch(batch))
    expected = cosine_matrix_loss(student, torch.from_numpy(TEACHER[batch].astype(np.float32))).item()
    assert loss.item() == pytest.approx(expected, abs=1e-7)
    assert parts == pytest.approx({"regression": expected, "penalty": 0.0}, abs=1e-7)


def test_a_student_that_is_its_own_teacher_has_nothing_to_learn() -> None:
    task = objective()
    everything = np.arange(64)
    with torch.no_grad():
        own = task.model.encode(task.sentences.batch(everything)).numpy()
    assert objective(teacher=own).loss(everything)[0].item() == pytest.approx(0.0, abs=1e-8)


def test_every_sentence_needs_its_teacher_embedding() -> None:
    with pytest.raises(ValueError, match="64 sentences but 63 teacher embeddings"):
        objective(teacher=TEACHER[:63])
