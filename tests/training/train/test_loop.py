"""The loop in one process: what is kept, when it stops, what it writes; its optimisers."""

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Adagrad, Adam, SparseAdam

from tests.harness import toys
from training.errors import UserError
from training.models import CrossEncoder, CrossEncoderConfig, ProjectionConfig
from training.models.layers import WordEmbedding
from training.models.transformer import BERTConfig
from training.recipes.recipe import WARM_UP, OptimiserConfig, Schedule
from training.train import loop
from training.train.folder import RecipeChangedError, read_settings, write_settings
from training.train.loop import Result, rate_factor, train
from training.train.optimisers import build_optimisers, clip_gradients

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


def test_it_stops_when_patience_runs_out_and_each_epoch_is_logged(tmp_path: Path) -> None:
    patient = replace(SCHEDULE, epochs=50, patience=2)
    objective = Scripted([0.1, 0.4, 0.3, 0.5, 0.4, 0.5, 0.9])  # an equal epoch is no better one
    result = train(objective, OPTIMISER, patient, tmp_path, seed=0)
    assert (result.best_epoch, result.epochs) == (3, 5)
    assert len(objective.losses) == 15
    assert torch.equal(now(objective), objective.weights[3])
    assert Result(**json.loads((tmp_path / "result.json").read_text())) == result

    # The log has one line an epoch.
    found = lines(tmp_path)
    assert [line["epoch"] for line in found] == [0, 1, 2, 3, 4, 5]
    assert [line["selection"] for line in found] == [0.1, 0.4, 0.3, 0.5, 0.4, 0.5]
    assert "loss" not in found[0]
    for epoch in (1, 2, 5):
        assert found[epoch]["loss"] == pytest.approx(sum(objective.losses[3 * epoch - 3 : 3 * epoch]) / 3, abs=1e-6)
        assert found[epoch]["loss_half"] == pytest.approx(found[epoch]["loss"] / 2, abs=2e-6)


def test_a_finished_run_is_not_trained_again_and_more_epochs_go_on_as_if_asked_for_at_once(tmp_path: Path) -> None:
    scores, parts = [0.1, 0.5, 0.4, 0.3, 0.6], tmp_path / "parts"
    whole, first, again, rest = (Scripted(given) for given in (scores, scores, [], scores[3:]))
    train(whole, OPTIMISER, SCHEDULE, tmp_path / "whole", seed=0)
    result = train(first, OPTIMISER, replace(SCHEDULE, epochs=2), parts, seed=0)
    log = (parts / "metrics.jsonl").read_bytes()
    assert train(again, OPTIMISER, replace(SCHEDULE, epochs=2), parts, seed=0) == result
    assert again.losses == []
    assert torch.equal(now(again), now(first))
    assert (parts / "metrics.jsonl").read_bytes() == log
    train(rest, OPTIMISER, SCHEDULE, parts, seed=0)
    assert torch.equal(now(rest), now(whole))
    assert rest.losses == whole.losses[6:]
    assert lines(parts) == lines(tmp_path / "whole")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_the_run_and_leaves_the_checkpoint(tmp_path: Path, value: float) -> None:
    schedule = replace(SCHEDULE, checkpoint_seconds=0.0)
    scores = [0.1, 0.2, 0.3, 0.4, 0.5]
    objective = Scripted(scores, breaks_at=5, broken=value)  # the second batch of the second epoch
    told = f"the loss became {value}; a smaller learning rate or clipping may help"
    with pytest.raises(FloatingPointError, match=told):
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


IDS = torch.tensor([[1, 4, 2], [4, 7, 0]])
LENGTHS = torch.tensor([3, 2])


def test_words_and_composition_have_their_own_rates() -> None:
    model = toys.model(heads=True)
    others, words = build_optimisers(model, OptimiserConfig(learning_rate=0.1, embedding_learning_rate=0.2))
    assert isinstance(others, Adam)
    assert isinstance(words, SparseAdam)
    assert (others.param_groups[0]["lr"], words.param_groups[0]["lr"]) == (0.1, 0.2)
    assert [id(p) for p in words.param_groups[0]["params"]] == [id(model.embedding.weight)]
    assert len(others.param_groups[0]["params"]) == 10
    adagrad = build_optimisers(model, OptimiserConfig(name="adagrad", learning_rate=0.1, embedding_learning_rate=0.2))
    assert all(isinstance(each, Adagrad) for each in adagrad)
    assert [each.param_groups[0]["lr"] for each in adagrad] == [0.1, 0.2]


def test_a_frozen_encoder_leaves_the_heads_alone_to_learn() -> None:
    model = toys.model(ProjectionConfig(), heads=True)
    (only,) = build_optimisers(model, OptimiserConfig(heads_only=True))
    assert {id(p) for p in only.param_groups[0]["params"]} == {id(p) for p in model.heads.parameters()}
    assert not any(p.requires_grad for p in model.encoder.parameters())
    before = copy.deepcopy(model.encoder.state_dict())
    model.heads["similarity"](*[model.encode((IDS, LENGTHS))] * 2).sum().backward()
    only.step()
    assert all(torch.equal(value, before[name]) for name, value in model.encoder.state_dict().items())


def test_each_layer_of_a_transformer_is_slower_than_the_one_above_it() -> None:
    bert = BERTConfig(vocabulary=10, hidden=4, layers=3, attention_heads=1, inner=4, positions=9)
    model = CrossEncoder(CrossEncoderConfig(bert, {"similarity": 1}))
    rates = {"learning_rate": 1.0, "heads_learning_rate": 7.0, "embedding_learning_rate": None}
    (optimiser,) = build_optimisers(model, OptimiserConfig("adamw", layer_decay=0.5, **rates))
    rate_of = {id(p): group["lr"] for group in optimiser.param_groups for p in group["params"]}
    found = {name: rate_of[id(p)] for name, p in model.named_parameters() if p.requires_grad}
    expected = {
        "heads.": 7.0,
        "bert.encoder.layer.2.": 1.0,
        "bert.encoder.layer.1.": 0.5,
        "bert.encoder.layer.0.": 0.25,
        "bert.": 0.125,
    }
    for name, rate in found.items():
        assert rate == next(wanted for prefix, wanted in expected.items() if name.startswith(prefix)), name
    assert len(optimiser.param_groups) == len(expected)


def test_clipping_scales_all_gradients_by_their_joint_norm() -> None:
    torch.manual_seed(0)
    embedding, linear = WordEmbedding(toys.table().rows), nn.Linear(toys.DIM, 2)
    ((linear(embedding(IDS)) ** 2).sum() * 10).backward()  # word 4 twice
    parameters = [embedding.weight, linear.weight, linear.bias]
    before = [copy.deepcopy(p.grad).to_dense() for p in parameters]
    norm = float(torch.sqrt(sum((g**2).sum() for g in before)))
    assert norm > 1.0
    assert clip_gradients(parameters, 0.5) == pytest.approx(norm, rel=1e-6)
    after = [p.grad.to_dense() for p in parameters]
    assert float(torch.sqrt(sum((g**2).sum() for g in after))) == pytest.approx(0.5, rel=1e-5)
    for was, now in zip(before, after, strict=True):
        assert torch.allclose(now, was * (0.5 / norm), rtol=1e-5, atol=1e-8)
    assert parameters[0].grad.is_sparse


@pytest.mark.parametrize("name", ["best.pt", "checkpoint.pt"])
@pytest.mark.parametrize("left", [0, 100, -100])
def test_a_damaged_file_of_a_run_is_named(tmp_path: Path, name: str, left: int) -> None:
    scores = [0.1, 0.2, 0.3, 0.4, 0.5]
    train(Scripted(scores), OPTIMISER, SCHEDULE, tmp_path, seed=1)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(UserError, match=rf"{name} cannot be read: move .* away to start afresh"):
        train(Scripted(scores), OPTIMISER, SCHEDULE, tmp_path, seed=1)


def test_a_full_disk_leaves_the_settings_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "recipe.json"
    write_settings(path, {"seed": 1})

    def full(self: Path, _: str, **__: str) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match=r"No space left on device: .*recipe\.json"):
            write_settings(path, {"seed": 2})
    assert read_settings(path) == {"seed": 1}
    path.write_text("")
    with pytest.raises(RecipeChangedError, match=r"recipe\.json is damaged"):
        read_settings(path)
