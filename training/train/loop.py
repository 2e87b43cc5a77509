"""The one training loop, driven by an objective and a schedule.

A run is a folder: `checkpoint.pt` (all state, replaced atomically), `best.pt` (the weights that did best on the
development set), `metrics.jsonl` (one line an epoch), `result.json` (written last). Killed and
started again, it continues from the last checkpoint and ends with the same bits as an uninterrupted run.
"""

import json
import logging
import time
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import nn

from core.files import replacing
from training.errors import UserError
from training.objectives.objective import Objective
from training.progress import StepProgress
from training.recipes.recipe import WARM_UP, OptimiserConfig, Schedule
from training.train.optimisers import build_optimisers, clip_gradients

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Result:
    """Result of a run."""

    best_epoch: int
    best: dict[str, float]
    epochs: int
    seconds: float


@dataclass
class _Progress:
    epoch: int = 0
    step: int = 0  # batches of this epoch already done
    best_epoch: int = 0
    best: dict[str, float] | None = None
    seconds: float = 0.0
    log_bytes: int = 0
    sums: dict[str, float] = field(default_factory=dict)  # of the loss and its named parts, over the epoch so far
    finished: bool = False


def train(objective: Objective, optimiser: OptimiserConfig, schedule: Schedule, run: Path, *, seed: int) -> Result:
    """Train, resume, or return the result of a finished run; `objective.model` then has the best (or last) weights.

    Epoch 0 is the untrained model: it is evaluated, and kept if no epoch is better, where the best one is wanted.

    Raises:
        FloatingPointError: the loss is not finite; the last checkpoint stays.
    """
    run.mkdir(parents=True, exist_ok=True)
    model = objective.model
    optimisers = build_optimisers(model, optimiser)
    rates = [[group["lr"] for group in each.param_groups] for each in optimisers]
    all_steps = schedule.epochs * objective.steps()
    torch.manual_seed(seed)  # dropout; the order of batches has its own generators
    state = _Progress()
    saver = _Saver(run, model, optimisers, objective)
    if saver.restore(state):
        logger.info("resuming %s at epoch %d, batch %d", run, state.epoch + 1, state.step)
    log = _Log(run / "metrics.jsonl", state.log_bytes)
    started = time.monotonic() - state.seconds
    saved_at = time.monotonic()

    def keep_if_best(metrics: dict[str, float]) -> None:
        if state.best is None or schedule.keep == "last" or metrics["selection"] > state.best["selection"]:
            state.best, state.best_epoch = metrics, state.epoch
            saver.save_best()

    if state.best is None:
        metrics = _evaluate(objective)
        log.write({"epoch": 0, **metrics})
        keep_if_best(metrics)
        state.log_bytes = log.bytes
        saver.save(state)

    done = state.epoch * objective.steps() + state.step
    progress = StepProgress(f"{run.parent.name} {run.name}, batches", all_steps, done=done)
    while not state.finished and state.epoch < schedule.epochs:
        model.train()
        for batch in islice(objective.batches(state.epoch), state.step, None):
            if schedule.decay != "none":
                passed = (state.epoch * objective.steps() + state.step) / all_steps
                _set_rates(optimisers, rates, rate_factor(schedule, passed))
            for name, value in _step(objective, batch, optimisers, optimiser.clip).items():
                state.sums[name] = state.sums.get(name, 0.0) + value
            state.step += 1
            progress.update(state.epoch * objective.steps() + state.step)
            if time.monotonic() - saved_at > schedule.checkpoint_seconds:
                state.seconds = time.monotonic() - started
                saver.save(state)
                saved_at = time.monotonic()
        metrics = _evaluate(objective)
        losses = {name: total / max(state.step, 1) for name, total in state.sums.items()}
        state.epoch, state.step, state.sums = state.epoch + 1, 0, {}
        log.write({"epoch": state.epoch, **losses, **metrics})
        keep_if_best(metrics)
        said = f"loss {losses.get('loss', 0.0):.4f} dev {metrics['selection']:.4f}"
        progress.note(f"epoch {state.epoch} of {schedule.epochs} {said}")
        waited = state.epoch - state.best_epoch
        state.finished = schedule.patience is not None and waited >= schedule.patience
        state.seconds, state.log_bytes = time.monotonic() - started, log.bytes
        saver.save(state)
        saved_at = time.monotonic()
    model.load_state_dict(_load(run / "best.pt"))
    assert state.best is not None  # epoch 0 was evaluated
    result = Result(state.best_epoch, state.best, state.epoch, round(state.seconds, 1))
    write_result(run, result)
    return result


def rate_factor(schedule: Schedule, passed: float) -> float:
    """What the learning rates are multiplied by after the fraction `passed` of all steps.

    `warm` begins at a small rate, not at none: no step is for nothing.
    """
    if schedule.decay == "none":
        return 1.0
    if schedule.decay == "warm" and passed < WARM_UP:
        return max(passed / WARM_UP, 0.005)
    return (1 - passed) / (1 - WARM_UP) if schedule.decay == "warm" else 1 - passed


def write_result(run: Path, result: Result) -> None:
    """Write `result.json` of a run's folder."""
    with replacing(run / "result.json") as partial:
        partial.write_text(json.dumps(asdict(result), indent=1) + "\n")


def read_result(run: Path) -> Result | None:
    """Read `result.json` of a run's folder; None where the run has not ended."""
    path = run / "result.json"
    return Result(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def read_curve(run: Path) -> tuple[float, ...]:
    """The selection score of the untrained model and of each epoch of a run's folder; empty where none was logged."""
    path = run / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return tuple(json.loads(line)["selection"] for line in lines)


def _load(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, UnpicklingError):
        raise UserError(f"{path} cannot be read: move {path.parent} away to start afresh") from None


def _evaluate(objective: Objective) -> dict[str, float]:
    objective.model.eval()
    with torch.no_grad():
        return objective.evaluate()


def _step(
    objective: Objective, batch: Any, optimisers: list[torch.optim.Optimizer], clip: float | None
) -> dict[str, float]:
    """One batch; returns its loss and, under `loss_...`, the parts of it."""
    for each in optimisers:
        each.zero_grad(set_to_none=True)
    loss, parts = objective.loss(batch)
    value = float(loss.detach())
    if not torch.isfinite(loss.detach()):
        raise FloatingPointError(f"the loss became {value}; a smaller learning rate or clipping may help")
    loss.backward()
    if clip is not None:
        clip_gradients([p for p in objective.model.parameters() if p.requires_grad], clip)
    for each in optimisers:
        each.step()
    return {"loss": value, **{f"loss_{name}": part for name, part in parts.items()}}


def _set_rates(optimisers: list[torch.optim.Optimizer], rates: list[list[float]], factor: float) -> None:
    """Set the learning rates of a step; they depend only on the step, so a resumed run needs no state."""
    for each, originals in zip(optimisers, rates, strict=True):
        for group, original in zip(each.param_groups, originals, strict=True):
            group["lr"] = original * factor


class _Log:
    """metrics.jsonl; truncated on resume to the bytes in the checkpoint, so that no epoch is logged twice."""

    def __init__(self, path: Path, keep_bytes: int) -> None:
        self.path, self.bytes = path, keep_bytes
        with path.open("ab") as file:
            file.truncate(keep_bytes)

    def write(self, line: dict[str, float]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({k: round(v, 6) for k, v in line.items()}) + "\n")
        self.bytes = self.path.stat().st_size


class _Saver:
    """The checkpoint: all state in one file, replaced atomically."""

    def __init__(
        self, run: Path, model: nn.Module, optimisers: list[torch.optim.Optimizer], objective: Objective
    ) -> None:
        self.run, self.model, self.optimisers, self.objective = run, model, optimisers, objective
        self.path = run / "checkpoint.pt"

    def save_best(self) -> None:
        with replacing(self.run / "best.pt") as partial:
            torch.save(self.model.state_dict(), partial)

    def save(self, state: _Progress) -> None:
        # A finite loss can have an infinite gradient; its result must not replace the last good checkpoint.
        if not all(bool(torch.isfinite(parameter).all()) for parameter in self.model.parameters()):
            raise FloatingPointError("a weight is no longer finite; a smaller learning rate or clipping may help")
        content = {
            "progress": asdict(state),
            "model": self.model.state_dict(),
            "optimisers": [each.state_dict() for each in self.optimisers],
            "torch_rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "generators": [each.get_state() for each in self.objective.generators()],
        }
        with replacing(self.path) as partial:
            torch.save(content, partial)

    def restore(self, state: _Progress) -> bool:
        if not self.path.exists():
            return False
        content = _load(self.path)
        self.model.load_state_dict(content["model"])
        for each, saved in zip(self.optimisers, content["optimisers"], strict=True):
            each.load_state_dict(saved)
        torch.set_rng_state(content["torch_rng"])
        if content["cuda_rng"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(content["cuda_rng"])
        for generator, saved in zip(self.objective.generators(), content["generators"], strict=True):
            generator.set_state(saved)
        for name, value in content["progress"].items():
            setattr(state, name, value)
        return True
