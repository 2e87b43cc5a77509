"""A run of several tasks that goes on from another one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from training.architectures.transformer import BERTConfig, CrossEncoder, CrossEncoderConfig, SentenceBERTConfig
from training.recipes import find
from training.runs import run as runs_module
from training.runs import tasks
from training.runs.folder import WEIGHTS_NAME, RunMissing, run_folder
from training.runs.loop import Result
from training.runs.tasks import START_NAME, load_start, started_heads

CONFIG = CrossEncoderConfig(
    BERTConfig(vocabulary=20, hidden=8, layers=1, attention_heads=2, inner=8, positions=16), {"entailment": 3}
)


def test_a_run_with_a_start_has_its_weights_and_its_first_encoder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = ("minilm-cross-first", "minilm-cross-roles", "minilm-cross")
    first, last, later = (replace(find(name), architecture=CONFIG) for name in names)
    assert (last.start, later.start) == (first.name, last.name)
    monkeypatch.setattr(tasks, "find", {first.name: first, last.name: last}.__getitem__)
    with pytest.raises(RunMissing, match="training train minilm-cross-first --seed 4"):
        started_heads(last, tmp_path, None, 4)
    torch.manual_seed(9)
    trained = CrossEncoder(CONFIG)
    run = run_folder(tmp_path, first, 4)
    run.mkdir(parents=True)
    torch.save(trained.state_dict(), run / WEIGHTS_NAME)
    model = started_heads(last, tmp_path, None, 4)
    assert model.training
    for name, value in model.state_dict().items():
        assert torch.equal(value, trained.state_dict()[name])

    with pytest.raises(RunMissing, match="training train minilm-cross-first --seed 4` anew"):
        load_start(last, tmp_path, 4)
    encoder = tasks.SentenceBERT(SentenceBERTConfig(CONFIG.bert)).bert.state_dict()
    torch.save(encoder, run / START_NAME)
    for recipe in (last, later):
        for name, value in load_start(recipe, tmp_path, 4).bert.state_dict().items():
            assert torch.equal(value, encoder[name])


def test_the_finished_weights_are_a_mean_with_those_of_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recipe = replace(find("minilm-cross"), architecture=CONFIG, start_share=0.25)
    torch.manual_seed(1)
    model = CrossEncoder(CONFIG)
    start = {name: value.clone() for name, value in model.state_dict().items()}

    class Objective:
        def evaluate(self) -> dict[str, float]:
            assert not model.training
            return {"selection": 0.7}

    class Tokens:
        def save(self, path: Path) -> None:
            path.touch()

    def train(*_: object, **__: object) -> Result:
        model.train()
        with torch.no_grad():
            for value in model.state_dict().values():
                value.add_(4.0)
        return Result(best_epoch=3, best={"selection": 0.6}, epochs=3, seconds=1.0)

    monkeypatch.setattr(runs_module, "started_heads", lambda *_: model)
    monkeypatch.setattr(runs_module, "tokenizer_for", lambda *_: Tokens())
    monkeypatch.setattr(runs_module, "tasks_objective", lambda *_: Objective())
    monkeypatch.setattr(runs_module, "train", train)
    result = runs_module.run(recipe, tmp_path, tmp_path, 1)
    assert result.best == {"selection": 0.7}
    run = run_folder(tmp_path, recipe, 1)
    assert json.loads((run / "result.json").read_text())["best"] == {"selection": 0.7}
    assert not (run / START_NAME).exists()  # it is the first run's
    for name, value in torch.load(run / WEIGHTS_NAME, weights_only=True).items():
        assert value == pytest.approx(start[name] + 3.0, abs=1e-5)
