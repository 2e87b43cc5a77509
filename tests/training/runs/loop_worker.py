"""Small training runs in processes of their own, which can be told to kill themselves.

`test_loop_processes.py` starts this file once. Each line it reads is a JSON list of runs to be done side by side, such
as `[["FOLDER", "--objective", "margin", "--die", "loss:8"]]`; it forks a process for each, and answers with the list
of their exit codes (-9: killed). Importing torch is most of what a process costs; forks have it done.
"""

import argparse
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # the first optimiser would import it: half a second in every fork
import torch.distributed as dist

from tests import toys
from training.architectures import WordAveragingConfig
from training.objectives.development import GradedSets
from training.objectives.parts.batches import Sentences
from training.objectives.parts.regularisers import RegulariserConfig
from training.objectives.supervised import LabelledPairs, SupervisedConfig, SupervisedObjective
from training.objectives.transfer import MarginConfig, MarginObjective
from training.recipes.recipe import OptimiserConfig, Schedule
from training.runs import loop
from training.runs.loop import Objective, train

PAIRS, BATCH, EPOCHS = 40, 8, 3
DEATHS: dict[str, tuple[Any, str]] = {
    "fsync": (os, "fsync"),  # a checkpoint is written, but not yet under its name
    "best": (loop._Saver, "save_best"),  # the best weights are in place, the checkpoint does not know
    "log": (loop._Log, "write"),  # an epoch is logged, the checkpoint does not know
}


def build(name: str) -> Objective:
    """Everything that has a state: dropout, sparse Adam, random negatives, penalties."""
    pairs = toys.pairs(PAIRS)
    a, b = ([getattr(pair, side) for pair in pairs] for side in "ab")
    development = GradedSets({"toy": toys.RATED}, toys.tokenizer(), toys.MAX_TOKENS)
    if name == "margin":
        config = MarginConfig(negatives="mix", regulariser=RegulariserConfig(words=0.01))
        left, right = (Sentences(side, toys.tokenizer(), toys.MAX_TOKENS) for side in (a, b))
        model = toys.model(WordAveragingConfig(dropout=0.3))
        return MarginObjective(model, left, right, development, config, BATCH, seed=5)
    training, held_out = (LabelledPairs(p, toys.tokenizer(), toys.MAX_TOKENS) for p in (pairs, toys.RATED))
    supervised = SupervisedConfig(entailment_weight=0.5)
    dropout = 0.3 if name == "supervised-dropout" else 0.0
    model = toys.model(WordAveragingConfig(dropout=dropout), heads=True)
    return SupervisedObjective(model, training, held_out, supervised, BATCH, seed=5)


def dying(original: Callable[..., Any], at: int) -> Callable[..., Any]:
    """The function, whose `at`-th call is the last thing this process does."""
    calls = 0

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        result = original(*args, **kwargs)
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return counted


def run(arguments: list[str]) -> None:
    """One run to its end, or to the death that was ordered."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--objective", choices=("margin", "supervised", "supervised-dropout"), default="margin")
    parser.add_argument("--optimiser", choices=("adam", "adagrad"), default="adam")
    parser.add_argument("--checkpoint-seconds", type=float, default=0.0)
    parser.add_argument("--die", default="")
    parser.add_argument("--optimist", action="store_true", help="finds each epoch better than the one before")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--world", type=int, default=1)
    options = parser.parse_args(arguments)

    torch.set_num_threads(1)
    if options.world > 1:
        store = options.folder.with_suffix(".store")
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=options.rank, world_size=options.world)
    objective = build(options.objective)
    seen: list[list[int]] = []
    original_loss = objective.loss

    def loss(batch: Any) -> Any:
        seen.append(batch.tolist())
        return original_loss(batch)

    objective.loss = loss  # type: ignore[method-assign]
    if options.optimist:
        scores = iter(range(99))
        objective.evaluate = lambda: {"selection": float(next(scores))}  # type: ignore[method-assign]
    if options.die:
        what, at = options.die.split(":")
        owner, name = (objective, "loss") if what == "loss" else DEATHS[what]
        setattr(owner, name, dying(getattr(owner, name), int(at)))
    optimiser = OptimiserConfig(options.optimiser, learning_rate=0.02, embedding_learning_rate=0.02, clip=0.5)
    schedule = Schedule(EPOCHS, BATCH, decay="linear", checkpoint_seconds=options.checkpoint_seconds)
    result = train(objective, optimiser, schedule, options.folder, seed=3)
    final = {"best": objective.model.state_dict(), "batches": seen, "best_epoch": result.best_epoch}
    torch.save(final, options.folder / f"final-{options.rank}.pt")
    if options.world > 1:
        dist.destroy_process_group()


def fork(arguments: list[str]) -> int:
    """A new process that does one run; its id."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the answers' line is not for progress bars
        run(arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    for line in sys.stdin:
        children = [fork(arguments) for arguments in json.loads(line)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
        sys.stdout.write(json.dumps(codes) + "\n")
        sys.stdout.flush()
