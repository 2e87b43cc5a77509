"""`python -m workbench tune`: from labelled pairs and a published model to another one that answers."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from contract.manifest import Manifest
from semblance.threshold.own_pairs import PairsError, read_own
from tests.workbench.tuning import starts
from training.publishing.runtime import PublishedModel
from training.recipes.recipe import OptimiserConfig, Schedule
from training.runs.folder import RecipeChangedError
from workbench.__main__ import app
from workbench.tuning import plan
from workbench.tuning.objective import TuneObjective
from workbench.tuning.plan import TuningPlan
from workbench.tuning.read_back import TuneRefused
from workbench.tuning.split import split
from workbench.tuning.tune import TuningOptions, TuningResult, tune

QUICK = TuningPlan(OptimiserConfig("adam", 0.05, 0.2), Schedule(6, 16, decay="linear"))
TRANSFORMER = TuningPlan(OptimiserConfig("adamw", 2e-3, None, clip=1.0), Schedule(4, 16, decay="linear"))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A toy learns in a second what a real model takes minutes for."""
    monkeypatch.setattr(plan, "AVERAGING", QUICK)
    monkeypatch.setattr(plan, "TRANSFORMER", TRANSFORMER)


@pytest.fixture
def tuned(tmp_path: Path) -> Callable[..., TuningResult]:
    """Tune the model `toy` of the folder of models."""

    def run(pairs: Path, **more: Any) -> TuningResult:
        wish = {"start": "toy", "model_id": "mine", "models": tmp_path / "models", "runs": tmp_path / "runs"}
        return tune(TuningOptions(**(wish | {"pairs": pairs} | more)))

    return run


def average(tmp_path: Path) -> Path:
    return starts.average_model(tmp_path / "models", "toy")


def test_labelled_pairs_make_a_better_model_with_a_card(tmp_path: Path, tuned: Callable[..., TuningResult]) -> None:
    average(tmp_path)
    given = starts.rows("label", 300)
    path = starts.write(tmp_path / "pairs.jsonl", [*given, {"a": "x", "b": 3, "label": 1}, {"a": "the cat"}])
    done = tuned(path)
    assert (done.main, done.material.rows, len(done.material.faults)) == ("auc", 302, 2)
    assert done.after["auc"] > done.before["auc"]
    assert done.refused is not None
    assert [json.loads(line)["line"] for line in done.refused.read_text().splitlines()] == [301, 302]

    folder = tmp_path / "models" / "mine"
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    model = PublishedModel(folder)
    held_out = done.material.part("held_out")
    scores = model.similarity([p.a for p in held_out], [p.b for p in held_out]).score
    right = np.array([p.label == "1" for p in held_out])
    assert scores[right].mean() > scores[~right].mean()
    assert ((scores > 0) & (scores < 1)).all()  # calibrated: a probability
    assert manifest.similarity is not None
    assert manifest.similarity.label_scale is None
    assert {f.metric: f.value for f in manifest.figures} == pytest.approx(dict(done.after))
    card = (folder / "README.md").read_text()
    assert f"| auc | {done.before['auc']:.4f} | {done.after['auc']:.4f} |" in card
    assert "302 rows, 2 of them left out" in card
    assert str(tmp_path) not in card + (folder / "manifest.json").read_text()

    again = tuned(path, model_id="again", start="mine", epochs=1, even_if_worse=True)  # a tuned model can be tuned
    assert again.before["auc"] == pytest.approx(done.after["auc"])


def test_a_killed_run_ends_with_the_same_files(
    tmp_path: Path, tuned: Callable[..., TuningResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    average(tmp_path)
    path = starts.write(tmp_path / "pairs.jsonl", starts.rows("label", 250))
    whole = tuned(path).folder
    schedule = replace(QUICK.schedule, checkpoint_seconds=0.0)
    monkeypatch.setattr(plan, "AVERAGING", replace(QUICK, schedule=schedule))
    loss = TuneObjective.loss
    seen = 0

    def killed(self: TuneObjective, batch: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == 21:
            raise KeyboardInterrupt
        return loss(self, batch)

    monkeypatch.setattr(TuneObjective, "loss", killed)
    other = {"runs": tmp_path / "others", "models": tmp_path / "models", "model_id": "mine2"}
    with pytest.raises(KeyboardInterrupt):
        tuned(path, **other)
    tuned(path, **other)
    assert seen == 21 + 6 * 13 - 20  # no batch was done twice
    ours, theirs = (Manifest.load(folder) for folder in (whole, tmp_path / "models" / "mine2"))
    assert ours.similarity == theirs.similarity
    assert [f.value for f in ours.figures] == [f.value for f in theirs.figures]
    with pytest.raises(RecipeChangedError, match="was begun with another schedule"):
        tuned(path, **other, epochs=3)


def test_a_model_that_is_worse_on_held_out_pairs_is_not_published(
    tmp_path: Path, tuned: Callable[..., TuningResult]
) -> None:
    average(tmp_path)
    given = starts.rows("label", 300)
    path = starts.write(tmp_path / "pairs.jsonl", given)
    for i in split(read_own(path).pairs, "label", 1).held_out:
        given[i]["label"] = 1 - int(str(given[i]["label"]))
    starts.write(path, given)  # the split knows no labels: what is measured on says the contrary now
    with pytest.raises(TuneRefused, match=r"not published: on 30 held-out pairs auc is 0\.\d+, that of toy is 0\.\d+"):
        tuned(path)
    assert not (tmp_path / "models" / "mine").exists()
    done = tuned(path, even_if_worse=True)
    assert done.after["auc"] < done.before["auc"]
    assert (done.folder / "manifest.json").is_file()


def test_answers_are_ranked_within_their_question(tmp_path: Path, tuned: Callable[..., TuningResult]) -> None:
    average(tmp_path)
    done = tuned(starts.write(tmp_path / "pairs.jsonl", starts.rows("ranking", 800)))
    assert done.main == "map"
    assert done.after["map"] > done.before["map"]
    assert set(done.after) == set(done.before) == {"map", "mrr"}


def test_a_new_head_learns_entailment(tmp_path: Path, tuned: Callable[..., TuningResult]) -> None:
    average(tmp_path)
    path = starts.write(tmp_path / "pairs.jsonl", starts.rows("entailment", 300))
    done = tuned(path)
    assert done.main == "accuracy"
    assert done.after["accuracy"] > done.before["accuracy"]
    manifest = Manifest.load(done.folder)
    assert (manifest.similarity, manifest.tasks) == (None, ("entailment",))


def test_a_transformer_learns_from_ratings(tmp_path: Path, tuned: Callable[..., TuningResult]) -> None:
    starts.transformer_model(tmp_path / "models", "toy")
    done = tuned(starts.write(tmp_path / "pairs.jsonl", starts.rows("score", 300)))
    assert done.after["spearman"] > done.before["spearman"]
    held = [{text for p in done.material.part(name) for text in (p.a, p.b)} for name in done.material.parts._fields]
    assert not held[0] & held[1] | held[0] & held[2] | held[1] & held[2]


def test_what_cannot_be_done_is_refused_before_the_work(tmp_path: Path, tuned: Callable[..., TuningResult]) -> None:
    average(tmp_path)
    path = starts.write(tmp_path / "pairs.jsonl", starts.rows("label", 300))
    with pytest.raises(FileExistsError, match="was not made by tuning: give another --id"):
        tuned(path, model_id="toy")
    with pytest.raises(TuneRefused, match="--id My Model: small letters"):
        tuned(path, model_id="My Model")
    with pytest.raises(TuneRefused, match=r"--from nope: .*models or models \(--models\); there: toy\b"):
        tuned(path, start="nope")
    bad = starts.write(tmp_path / "bad.jsonl", [{"a": "x", "b": "y", "label": "so"}] * 5 + starts.rows("label", 3))
    with pytest.raises(PairsError, match=r"of 8 rows 5 do not fit: line 1: label: expected 0 or 1, found 'so'"):
        tuned(bad)
    assert not (tmp_path / "runs").exists()


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    average(tmp_path)
    path = starts.write(tmp_path / "pairs.jsonl", starts.rows("label", 300))
    places = ["--models", str(tmp_path / "models"), "--runs", str(tmp_path / "runs")]
    asked = ["tune", str(path), "--from", "toy", "--id", "mine", *places]
    ran = CliRunner().invoke(app, asked, env={"COLUMNS": "200"})
    assert ran.exit_code == 0, ran.output
    for said in (
        "held out: 30 pairs",
        "auc",
        "calibration error",
        "best epoch",
        "of 4 pairs",
        f"published {tmp_path / 'models'}",
    ):
        assert said in ran.output
    commands = Manifest.load(tmp_path / "models" / "mine").provenance.commands
    assert commands[-1] == "python -m workbench tune pairs.jsonl --from toy --id mine --seed 1"


def test_a_model_of_ones_own_goes_into_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    average(tmp_path)
    path = starts.write(tmp_path / "pairs.jsonl", starts.rows("label", 300))
    ran = CliRunner().invoke(app, ["tune", str(path), "--from", "toy", "--id", "mine"], env={"COLUMNS": "200"})
    assert ran.exit_code == 0, ran.output
    manifest = Manifest.load(tmp_path / "own-models" / "mine")
    manifest.verify(tmp_path / "own-models" / "mine")
    assert not (tmp_path / "models" / "mine").exists()
