"""Runs that die in any batch, or while they write: they go on and end with the same bits as if never interrupted.

Dropout, sparse Adam, random negatives, a decaying rate, clipping, penalties: everything that has a state.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.harness import toys
from training.models import WordAveragingConfig
from training.objectives.batches import Sentences
from training.objectives.development import GradedSets
from training.objectives.regularisers import RegulariserConfig
from training.objectives.transfer import MarginConfig, MarginObjective
from training.recipes.recipe import OptimiserConfig, Schedule
from training.train import loop
from training.train.loop import train

PAIRS, BATCH, EPOCHS = 40, 8, 3
STEPS = PAIRS // BATCH * EPOCHS
PLACES: dict[str, tuple[Any, str]] = {
    "fsync": (os, "fsync"),  # a checkpoint is written, but not yet under its name
    "best": (loop._Saver, "save_best"),  # the best weights are in place, the checkpoint does not know
    "log": (loop._Log, "write"),  # an epoch is logged, the checkpoint does not know
}


class Died(BaseException):
    """What stands for a kill: nothing in the loop tidies up after it."""


def dying(original: Callable[..., Any], at: int) -> Callable[..., Any]:
    """The function, after whose `at`-th call the run is dead."""
    calls = 0

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        result = original(*args, **kwargs)
        if calls == at:
            raise Died
        return result

    return counted


def run(folder: Path, death: str = "", checkpoint_seconds: float = 0.0) -> list[list[int]]:
    """Begin a run, or go on with it, to its end or the death that was ordered; the batches it did."""
    pairs = toys.pairs(PAIRS)
    sides = (Sentences([getattr(pair, side) for pair in pairs], toys.tokenizer(), toys.MAX_TOKENS) for side in "ab")
    objective = MarginObjective(
        toys.model(WordAveragingConfig(dropout=0.3)),
        *sides,
        GradedSets({"toy": toys.RATED}, toys.tokenizer(), toys.MAX_TOKENS),
        MarginConfig(negatives="mix", regulariser=RegulariserConfig(words=0.01)),
        BATCH,
        seed=5,
    )
    seen: list[list[int]] = []
    original = objective.loss

    def loss(batch: Any) -> Any:
        seen.append(batch.tolist())
        return original(batch)

    objective.loss = loss  # type: ignore[method-assign]
    optimiser = OptimiserConfig("adam", learning_rate=0.02, embedding_learning_rate=0.02, clip=0.5)
    schedule = Schedule(EPOCHS, BATCH, decay="linear", checkpoint_seconds=checkpoint_seconds)
    with pytest.MonkeyPatch.context() as patch:
        if death:
            what, at = death.split(":")
            owner, name = (objective, "loss") if what == "loss" else PLACES[what]
            patch.setattr(owner, name, dying(getattr(owner, name), int(at)))
            with pytest.raises(Died):
                train(objective, optimiser, schedule, folder, seed=3)
            return seen
        train(objective, optimiser, schedule, folder, seed=3)
    torch.save(objective.model.state_dict(), folder / "final.pt")
    return seen


def assert_same_bits(found: Any, expected: Any, where: str = "") -> None:
    """Nested state, tensors included, is equal to the last bit."""
    assert type(found) is type(expected), where
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key in expected:
            assert_same_bits(found[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), where
        for i, (f, e) in enumerate(zip(found, expected, strict=True)):
            assert_same_bits(f, e, f"{where}[{i}]")
    elif isinstance(expected, torch.Tensor):
        assert torch.equal(found, expected), where
    else:
        assert found == expected, where


def assert_same_run(found: Path, expected: Path) -> None:
    for name in ("final.pt", "checkpoint.pt"):
        states = [torch.load(folder / name, weights_only=True) for folder in (found, expected)]
        for state in states:
            if "progress" in state:
                state["progress"]["seconds"] = 0.0
        assert_same_bits(*states)
    assert (found / "metrics.jsonl").read_bytes() == (expected / "metrics.jsonl").read_bytes()
    results = [json.loads((folder / "result.json").read_text()) for folder in (found, expected)]
    assert {**results[0], "seconds": 0} == {**results[1], "seconds": 0}


Whole = tuple[Path, list[list[int]]]  # a run that was never interrupted, and its batches


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("loop") / "whole"
    return folder, run(folder)


def test_killed_again_and_again_it_ends_with_the_same_bits(whole: Whole, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    for death in (
        "fsync:1",  # writing the first best weights: nothing is there yet
        "loss:4",  # inside the first epoch
        "log:1",  # the first epoch is logged, but no checkpoint knows
        "best:1",  # it is logged and kept, but no checkpoint knows
        "fsync:5",  # inside the second epoch, a checkpoint half in place
        "loss:2",
    ):
        run(folder, death)
    batches = run(folder)
    assert 0 < len(batches) < STEPS - 5  # the last process began after the first epoch, inside an epoch
    assert batches == whole[1][-len(batches) :]
    assert_same_run(folder, whole[0])


@pytest.mark.parametrize("step", [1, 5, 8, STEPS])
def test_a_kill_in_any_batch_costs_no_bit(whole: Whole, tmp_path: Path, step: int) -> None:
    run(tmp_path, f"loss:{step}")
    assert len(run(tmp_path)) == STEPS - step + 1
    assert_same_run(tmp_path, whole[0])


def test_work_since_the_last_checkpoint_is_done_again(whole: Whole, tmp_path: Path) -> None:
    run(tmp_path, "loss:8", checkpoint_seconds=1000)
    assert run(tmp_path) == whole[1][5:]  # only the end of an epoch was saved
    assert_same_run(tmp_path, whole[0])
