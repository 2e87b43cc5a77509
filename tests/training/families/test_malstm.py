"""MaLSTM from pairs to a published folder on a toy vocabulary: pre-training, fine-tuning, calibration, entailment."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from contract.manifest import Manifest
from contract.measures import LocalLinear, exp_l1
from tests.harness import toys
from training.architectures.malstm import MALSTM
from training.architectures.parts.svm import SupportVectorHead
from training.corpora.readers import sick
from training.families import family_of, malstm
from training.families.malstm import ENTAILMENT_NAME, OUT_OF_FOLD_NAME
from training.objectives.manhattan import ManhattanConfig
from training.objectives.supervised import LABELS
from training.pairs import Pair
from training.publishing import publish
from training.publishing.figures import FigureFile
from training.publishing.runtime import PublishedModel
from training.recipes import RECIPES, find
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.runs import run
from training.runs.folder import run_folder
from training.sources.credits import TEACHER
from training.sources.rated import SickPairs, STSPairs, TeacherPairs, supervised_pairs
from training.sources.source import RecipeError

PAIRS = toys.pairs(64)
HELD_OUT = [Pair("the dog runs in the park", "a dog runs", 4.0, "entailment"), *toys.RATED[:3]]
FINE = replace(
    find("malstm-sick"),
    name="toy-malstm",
    table=toys.TABLE,
    architecture=replace(MALSTM, hidden=5),
    optimiser=OptimiserConfig(learning_rate=0.02, embedding_learning_rate=None, clip=5.0),
    schedule=Schedule(epochs=4, batch_size=8),
    start=None,
    publication=Publication("toy-malstm", "A toy", storage="float32"),
)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of runs with a word table; SICK is a few sentences of ours."""
    toys.table().save(tmp_path / "runs" / "tables" / "toy")
    monkeypatch.setattr(sick, "read", lambda split: {"train": [*PAIRS, HELD_OUT[0]]}.get(split, HELD_OUT))
    monkeypatch.setattr(publish, "training_data_for", lambda recipe: (TEACHER,))
    return tmp_path / "runs"


def published(recipe: Recipe, runs: Path) -> tuple[PublishedModel, Manifest, dict[str, float]]:
    folder = publish.publish(family_of(recipe, runs, 1), runs.parent / "models", runs.parent / "figures")
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    file = FigureFile.model_validate_json(
        (runs.parent / "figures" / f"{recipe.name}-seed1-float32.json").read_text(encoding="utf-8")
    )
    assert file.figures == manifest.figures
    return PublishedModel(folder), manifest, {figure.metric: figure.value for figure in manifest.figures}


def test_a_run_becomes_a_calibrated_model_with_entailment(runs: Path) -> None:
    run.run(family_of(FINE, runs, 1), None)
    folder = run_folder(runs, FINE, 1)
    assert not list(folder.glob("fold-*"))
    model, manifest, figures = published(FINE, runs)
    task = manifest.similarity
    assert task is not None
    assert (task.comparison, task.raw_range, task.label_scale) == ("exp_l1", (0.0, 1.0), (1.0, 5.0))
    with np.load(folder / OUT_OF_FOLD_NAME) as points:
        assert len(points["g"]) == len(supervised_pairs())
        assert isinstance(task.calibration, LocalLinear)
        assert sum(task.calibration.weight) == len(points["g"])
    a, b = [p.a for p in HELD_OUT], [p.b for p in HELD_OUT]
    scores = model.similarity(a, b)
    np.testing.assert_allclose(scores.raw_score, exp_l1(model.embed(a), model.embed(b)), rtol=1e-6)  # seven digits
    assert scores.rating is not None
    np.testing.assert_allclose(scores.rating, task.calibration.apply(scores.raw_score), rtol=1e-6)
    assert ((scores.rating >= 1) & (scores.rating <= 5)).all()
    assert manifest.tasks == ("similarity", "entailment")
    trained = family_of(FINE, runs, 1).load()
    with torch.no_grad():
        expected = trained.heads["entailment"](*map(torch.from_numpy, (model.embed(a), model.embed(b)))).exp()
    found = [list(label.values()) for label in model.entailment(a, b)]
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
    graded = {"pearson", "spearman", "mse"}
    assert set(figures) == graded | {f"{name}_uncalibrated" for name in graded} | {"accuracy", "macro_f1"}
    gold = np.array([p.target for p in HELD_OUT])
    assert figures["mse_uncalibrated"] == pytest.approx(np.mean((1 + 4 * scores.raw_score - gold) ** 2), abs=1e-6)
    assert figures["mse"] == pytest.approx(np.mean((scores.rating - gold) ** 2), abs=1e-6)


def test_what_was_fitted_afterwards_is_kept_and_comes_again_from_the_seed(runs: Path) -> None:
    run.run(family_of(FINE, runs, 1), None)
    folder = run_folder(runs, FINE, 1)
    first = {name: (folder / name).read_bytes() for name in (OUT_OF_FOLD_NAME, ENTAILMENT_NAME)}
    (folder / ENTAILMENT_NAME).write_bytes(b"kept")
    run.run(family_of(FINE, runs, 1), None)
    assert (folder / ENTAILMENT_NAME).read_bytes() == b"kept"
    with np.load(folder / OUT_OF_FOLD_NAME) as saved:
        before = saved["g"]
    for name in first:
        (folder / name).unlink()
    run.run(family_of(FINE, runs, 1), None)
    with np.load(folder / OUT_OF_FOLD_NAME) as saved:
        np.testing.assert_array_equal(saved["g"], before)


def test_a_fold_has_not_seen_the_pairs_it_scores(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []
    real = malstm.train

    def spy(objective: malstm.ManhattanObjective, *args: object, **more: object) -> object:
        seen.append(set(objective.rows.tolist()))
        return real(objective, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(malstm, "train", spy)
    run.run(family_of(FINE, runs, 1), None)
    everyone = set(range(len(supervised_pairs())))
    held_out = [everyone - rows for rows in seen]
    assert len(seen) == malstm.FOLDS
    assert set.union(*held_out) == everyone
    assert sum(map(len, held_out)) == len(everyone)  # each pair is held out once


def test_no_held_out_pair_is_trained_on(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaking = [toys.RATED[4], Pair(HELD_OUT[0].b.upper(), HELD_OUT[0].a + ".", 4.0)]
    monkeypatch.setattr("training.corpora.readers.malstm.pretraining_pairs", lambda: leaking)
    assert STSPairs().train() == [toys.RATED[4]]
    assert HELD_OUT[0] not in SickPairs().train()
    with pytest.raises(RecipeError, match="need a teacher: give --teacher"):
        TeacherPairs().train(None, runs)


def test_sts_2013_alone_is_rated_as_sick_is(monkeypatch: pytest.MonkeyPatch, runs: Path) -> None:
    sets = {"OnWN": [Pair("a dog", "a cat", 0.0)], "FNWN": [Pair("a dog", "the dog", 5.0), Pair("dog", "park", 2.5)]}
    monkeypatch.setattr("training.corpora.readers.sts.read_year", {"2013-test": sets}.__getitem__)
    assert [pair.target for pair in STSPairs(only_2013=True).train()] == [1.0, 5.0, 3.0]
    (credit,) = STSPairs(only_2013=True).sources()
    assert (credit.name, credit.rows) == ("sts-2013", 3)


def test_the_entailment_head_is_handed_over_and_the_machine_takes_its_place(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odds = replace(ManhattanConfig(), entailment_weight=0.1)
    before = replace(FINE, name="toy-pre", objective=odds, data=TeacherPairs())
    odds_known = [replace(p, label=None, label_odds=(0.7, 0.2, 0.1)) for p in PAIRS]
    monkeypatch.setattr(TeacherPairs, "train", lambda *_: odds_known)
    monkeypatch.setitem(RECIPES, "toy-pre", before)
    run.run(family_of(before, runs, 1), None)
    old = family_of(before, runs, 1).load()
    with torch.no_grad():
        answer = old.heads["entailment"](torch.zeros(1, 5), torch.zeros(1, 5)).argmax()
    assert LABELS[answer] == "entailment"
    after = replace(FINE, start="toy-pre", schedule=Schedule(epochs=0, batch_size=8))
    run.run(family_of(after, runs, 1), None)
    kept = torch.load(run_folder(runs, after, 1) / "model.pt", weights_only=True)
    for name, value in old.state_dict().items():
        assert torch.equal(kept[name], value), name
    assert isinstance(family_of(after, runs, 1).load().heads["entailment"], SupportVectorHead)
