"""The loop in one process: what is kept, when it stops, what it writes."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from training.recipes.recipe import WARM_UP, OptimiserConfig, Schedule
from training.runs import loop
from training.runs.loop import Result, rate_factor, train
from training.runs.optimisers import build_optimisers

OPTIMISER = OptimiserConfig(learning_rate=0.1)
SCHEDULE = Schedule(epochs=4, batch_size=1)


class Scripted:
    """Three batches an epoch; the development scores and the losses at which it breaks are written down beforehand."""

    def __init__(self, scores: list[float], *, breaks_at: int | None = None, broken: float = math.nan) -> None:
        torch.manual_seed(0)
        self.model: nn.Module = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 2))
        self.scores = scores
        self.breaks_at, self.broken = breaks_at, broken
        self.weights: list[Tensor] = []  # at each evaluation
        self.losses: list[float] = []
        self.modes: list[bool] = []

    def steps(self) -> int:
        return 3

    def batches(self, epoch: int) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(epoch)
        for _ in range(3):
            yield torch.randn(5, 4, generator=generator)

    def loss(self, batch: Tensor) -> tuple[Tensor, dict[str, float]]:
        self.modes.append(self.model.training)
        loss = ((self.model(batch) - 1) ** 2).mean()
        if len(self.losses) + 1 == self.breaks_at:
            loss = loss * self.broken
        self.losses.append(loss.item())
        return loss, {"half": loss.item() / 2}

    def evaluate(self) -> dict[str, float]:
        assert not self.model.training
        assert not torch.is_grad_enabled()
        self.weights.append(self.model[1].weight.clone())
        return {"selection": self.scores[len(self.weights) - 1], "other": 0.5}

    def generators(self) -> list[torch.Generator]:
        return []


def lines(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def now(objective: Scripted) -> Tensor:
    return objective.model[1].weight.detach()


def test_the_best_epoch_is_kept_and_restored(tmp_path: Path) -> None:
    objective = Scripted([0.1, 0.2, 0.7, 0.6, 0.5])
    result = train(objective, OPTIMISER, SCHEDULE, tmp_path, seed=0)
    assert (result.best_epoch, result.best, result.epochs) == (2, {"selection": 0.7, "other": 0.5}, 4)
    assert torch.equal(now(objective), objective.weights[2])
    assert not torch.equal(now(objective), objective.weights[4])
    assert len({tuple(w.flatten().tolist()) for w in objective.weights}) == 5
    assert all(objective.modes)


def test_it_stops_when_patience_runs_out(tmp_path: Path) -> None:
    patient = replace(SCHEDULE, epochs=50, patience=2)
    objective = Scripted([0.1, 0.4, 0.3, 0.5, 0.4, 0.5, 0.9])  # an equal epoch is no better one
    result = train(objective, OPTIMISER, patient, tmp_path, seed=0)
    assert (result.best_epoch, result.epochs) == (3, 5)
    assert len(objective.losses) == 15
    assert torch.equal(now(objective), objective.weights[3])
    assert Result(**json.loads((tmp_path / "result.json").read_text())) == result


def test_the_log_has_one_line_an_epoch(tmp_path: Path) -> None:
    objective = Scripted([0.1, 0.2, 0.3])
    train(objective, OPTIMISER, replace(SCHEDULE, epochs=2), tmp_path, seed=0)
    found = lines(tmp_path)
    assert [line["epoch"] for line in found] == [0, 1, 2]
    assert [line["selection"] for line in found] == [0.1, 0.2, 0.3]
    assert "loss" not in found[0]
    for epoch in (1, 2):
        assert found[epoch]["loss"] == pytest.approx(sum(objective.losses[3 * epoch - 3 : 3 * epoch]) / 3, abs=1e-6)
        assert found[epoch]["loss_half"] == pytest.approx(found[epoch]["loss"] / 2, abs=2e-6)


def test_a_finished_run_is_reported_and_not_trained_again(tmp_path: Path) -> None:
    first = Scripted([0.1, 0.5, 0.4, 0.3])
    schedule = replace(SCHEDULE, epochs=3)
    result = train(first, OPTIMISER, schedule, tmp_path, seed=0)
    log = (tmp_path / "metrics.jsonl").read_bytes()
    again = Scripted([])
    assert train(again, OPTIMISER, schedule, tmp_path, seed=0) == result
    assert again.losses == []
    assert torch.equal(now(again), now(first))
    assert (tmp_path / "metrics.jsonl").read_bytes() == log


def test_more_epochs_go_on_as_if_they_had_been_asked_for_at_once(tmp_path: Path) -> None:
    scores = [0.1, 0.2, 0.3, 0.4, 0.5]
    whole = Scripted(scores)
    train(whole, OPTIMISER, SCHEDULE, tmp_path / "whole", seed=0)
    train(Scripted(scores), OPTIMISER, replace(SCHEDULE, epochs=2), tmp_path / "parts", seed=0)
    rest = Scripted(scores[3:])
    train(rest, OPTIMISER, SCHEDULE, tmp_path / "parts", seed=0)
    assert torch.equal(now(rest), now(whole))
    assert rest.losses == whole.losses[6:]
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_the_run_and_leaves_the_checkpoint(tmp_path: Path, value: float) -> None:
    schedule = replace(SCHEDULE, checkpoint_seconds=0.0)
    scores = [0.1, 0.2, 0.3, 0.4, 0.5]
    objective = Scripted(scores, breaks_at=5, broken=value)  # the second batch of the second epoch
    with pytest.raises(
        FloatingPointError, match=f"the loss became {value}; a smaller learning rate or clipping may help"
    ):
        train(objective, OPTIMISER, schedule, tmp_path / "run", seed=0)
    assert torch.isfinite(now(objective)).all()
    saved = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    assert (saved["progress"]["epoch"], saved["progress"]["step"]) == (1, 1)
    assert all(torch.isfinite(value).all() for value in saved["model"].values())
    # With what was wrong put right, it goes on from there and ends as if nothing had happened.
    cured, whole = Scripted(scores[2:]), Scripted(scores)
    train(cured, OPTIMISER, schedule, tmp_path / "run", seed=0)
    train(whole, OPTIMISER, schedule, tmp_path / "whole", seed=0)
    assert torch.equal(now(cured), now(whole))


def test_an_infinite_gradient_of_a_finite_loss_leaves_the_checkpoint(tmp_path: Path) -> None:
    class Exploding(Scripted):
        def loss(self, batch: Tensor) -> tuple[Tensor, dict[str, float]]:
            loss, parts = super().loss(batch)
            # d sqrt(x)/dx at 0 is infinite, times 0 is NaN; the value is 0
            return loss + (self.model[1].weight * 0).sum().sqrt(), parts

    with pytest.raises(FloatingPointError, match="weight is no longer finite"):
        train(Exploding([0.1] * 9), OPTIMISER, replace(SCHEDULE, checkpoint_seconds=0.0), tmp_path, seed=1)
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["model"]
    assert all(bool(torch.isfinite(value).all()) for value in saved.values())


def test_each_step_has_the_schedules_rate_and_clipped_gradients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates, norms = [], []

    def see(optimiser: torch.optim.Optimizer, *_: object) -> None:
        (group,) = optimiser.param_groups
        rates.append(group["lr"])
        norms.append(float(nn.utils.get_total_norm([p.grad for p in group["params"]])))

    def watched(model: nn.Module, config: OptimiserConfig) -> list[torch.optim.Optimizer]:
        (optimiser,) = build_optimisers(model, config)
        optimiser.register_step_pre_hook(see)
        return [optimiser]

    monkeypatch.setattr(loop, "build_optimisers", watched)
    schedule = replace(SCHEDULE, epochs=2, decay="linear")
    train(Scripted([0.1, 0.2, 0.3]), replace(OPTIMISER, clip=0.25), schedule, tmp_path, seed=0)
    assert rates == pytest.approx([0.1 * (1 - i / 6) for i in range(6)])
    assert max(norms) == pytest.approx(0.25)


def test_rates_rise_and_fall_as_the_schedule_says() -> None:
    none, linear, warm = (replace(SCHEDULE, decay=decay) for decay in ("none", "linear", "warm"))
    assert [rate_factor(none, passed) for passed in (0, 0.5, 1)] == [1, 1, 1]
    assert [rate_factor(linear, passed) for passed in (0, 0.25, 1)] == [1, 0.75, 0]
    assert rate_factor(warm, 0) > 0
    assert rate_factor(warm, WARM_UP / 2) == 0.5
    assert rate_factor(warm, WARM_UP) == 1
    assert rate_factor(warm, 1) == 0
