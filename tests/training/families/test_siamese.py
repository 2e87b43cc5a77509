"""Encoders from corpus to figures on a toy vocabulary: the split of STS, features, heads of a start; MaLSTM."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from core.scoring import LocalLinear, exp_l1
from tests.harness import toy_runs, toys
from training.data.pairs import Pair
from training.data.sts_split import STSSplit
from training.families import family_of, malstm
from training.families.malstm import ENTAILMENT_NAME, OUT_OF_FOLD_NAME
from training.models import GRANConfig
from training.models.malstm import MALSTM
from training.models.svm import SupportVectorHead
from training.objectives.manhattan import ManhattanConfig
from training.objectives.metrics import graded
from training.objectives.supervised import LABELS, SupervisedConfig
from training.objectives.transfer import MarginConfig
from training.publish import publish
from training.publish.figures import read_figures
from training.publish.runtime import PublishedModel
from training.recipes import RECIPES, find
from training.recipes.recipe import OptimiserConfig, Publication, Schedule
from training.recipes.sources.rated import SickPairs, STSPairs, STSSplitPairs, TeacherPairs, supervised_pairs
from training.recipes.sources.source import RecipeError
from training.train import run
from training.train.folder import WEIGHTS_NAME

GROUPED = [replace(pair, group=f"2014-test/{'images' if i % 2 else 'OnWN'}") for i, pair in enumerate(toys.pairs(24))]
SPLIT = STSSplit(tuple(GROUPED[:12]), tuple(GROUPED[12:16]), tuple(GROUPED[16:]))
STS = replace(
    toy_runs.RECIPE,
    name="toy-sts",
    architecture=GRANConfig(),
    data=STSSplitPairs(seed=5),
    objective=SupervisedConfig(classes=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0), hidden=4),
    optimiser=OptimiserConfig(learning_rate=0.01, embedding_learning_rate=0.01),
    schedule=Schedule(epochs=2, batch_size=5),
    precision="bfloat16",
)
FEATURES = replace(
    STS,
    name="toy-features",
    optimiser=OptimiserConfig(learning_rate=0.01, embedding_learning_rate=None, heads_only=True),
    start="toy-sts",
)


PAIRS = toys.pairs(48)
HELD_OUT = [Pair("the dog runs in the park", "a dog runs", 4.0, "entailment"), *toys.RATED[:3]]
FINE = replace(
    find("malstm-sick"),
    name="toy-malstm",
    table=toys.TABLE,
    architecture=replace(MALSTM, hidden=5),
    optimiser=OptimiserConfig(learning_rate=0.02, embedding_learning_rate=None, clip=5.0),
    schedule=Schedule(epochs=2, batch_size=8),
    start=None,
    publication=Publication("toy-malstm", "A toy", storage="float32"),
)


PARTS = {"sick-train": [*PAIRS, HELD_OUT[0]], "sick-dev": HELD_OUT, "sick-test": HELD_OUT}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """SICK and the split of STS are a few sentences of ours, in three folds."""
    monkeypatch.setattr(malstm, "FOLDS", 3)
    return toy_runs.runs_in(tmp_path, monkeypatch, STS, labelled=PARTS.__getitem__, split={5: SPLIT}.__getitem__)


def test_a_run_on_the_split_is_measured_over_its_whole_test_part_and_by_set(runs: Path, tmp_path: Path) -> None:
    result = run.run(family_of(STS, runs, 1), None)
    assert result.best["selection"] == result.best["pearson"]
    publish.evaluate_run(family_of(STS, runs, 1), tmp_path / "figures")
    (file,) = read_figures(tmp_path / "figures")
    found = {(f.corpus, f.split, f.metric): (f.value, f.rows) for f in file.figures}
    model = family_of(STS, runs, 1).load()
    ids = [tuple(toys.tokenizer().encode(text, 128).ids for text in (p.a, p.b)) for p in SPLIT.test]
    with torch.no_grad():  # expected ratings of the test part, written out
        sides = [toys.pair_tensors([pair]) for pair in ids]
        a, b = (torch.cat([model.encode(side[at : at + 2]) for side in sides]) for at in (0, 2))
        rating = (model.heads["similarity"](a, b).exp() @ torch.arange(6.0)).numpy()
    gold = np.array([p.target for p in SPLIT.test])
    corpus = "STS 2012-2015 split"
    assert found[corpus, "test", "pearson"] == (pytest.approx(graded(rating, gold)["pearson"], abs=1e-4), 8)
    by_set = [graded(rating[start::2], gold[start::2])["pearson"] for start in (0, 1)]
    assert found[corpus, "mean of sets", "pearson"] == (pytest.approx(np.mean(by_set), abs=1e-4), 2)
    assert {key[2] for key in found} == {"pearson", "spearman", "mse"}


def test_features_keep_the_encoder_of_their_start_and_its_head(runs: Path) -> None:
    start, begun = toy_runs.trained(STS, runs).load(), family_of(FEATURES, runs, 1).build(None)
    for name, value in start.heads.state_dict().items():
        assert torch.equal(begun.heads.state_dict()[name], value)
    trained = toy_runs.trained(replace(FEATURES, schedule=Schedule(epochs=3, batch_size=5)), runs).load()
    for name, value in start.encoder.state_dict().items():
        assert torch.equal(trained.encoder.state_dict()[name], value)


def test_a_head_that_the_start_lacks_begins_anew(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `avg-sick` begins from `avg-paraphrase`, which has no head."""
    transfer = replace(STS, name="toy-transfer", objective=MarginConfig())
    monkeypatch.setitem(RECIPES, transfer.name, transfer)
    start = toy_runs.as_begun(transfer, runs).load()
    begun = family_of(replace(FEATURES, start=transfer.name), runs, 2).build(None)
    assert "similarity" in begun.heads
    for name, value in start.encoder.state_dict().items():
        assert torch.equal(begun.encoder.state_dict()[name], value)


def test_a_run_becomes_a_calibrated_model_with_entailment(runs: Path) -> None:
    family = toy_runs.trained(FINE, runs)
    assert not list(family.folder.glob("fold-*"))
    published, manifest = toy_runs.published(family)
    (file,) = read_figures(runs.parent / "figures")
    assert file.figures == manifest.figures
    model, figures = PublishedModel(published), {figure.metric: figure.value for figure in manifest.figures}
    task = manifest.similarity
    assert task is not None
    assert (task.comparison, task.raw_range, task.label_scale) == ("exp_l1", (0.0, 1.0), (1.0, 5.0))
    with np.load(family.folder / OUT_OF_FOLD_NAME) as points:
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
    with torch.no_grad():
        head = family.load().heads["entailment"]
        expected = head(*map(torch.from_numpy, (model.embed(a), model.embed(b)))).exp()
    found = [list(label.values()) for label in model.entailment(a, b)]
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
    graded = {"pearson", "spearman", "mse"}
    assert set(figures) == graded | {f"{name}_uncalibrated" for name in graded} | {"accuracy", "macro_f1"}
    gold = np.array([p.target for p in HELD_OUT])
    assert figures["mse_uncalibrated"] == pytest.approx(np.mean((1 + 4 * scores.raw_score - gold) ** 2), abs=1e-6)
    assert figures["mse"] == pytest.approx(np.mean((scores.rating - gold) ** 2), abs=1e-6)

    # What was fitted afterwards is kept, and comes again from the seed.
    folder = family.folder
    (folder / ENTAILMENT_NAME).write_bytes(b"kept")
    toy_runs.trained(FINE, runs)
    assert (folder / ENTAILMENT_NAME).read_bytes() == b"kept"
    with np.load(folder / OUT_OF_FOLD_NAME) as saved:
        before = saved["g"]
    for name in (OUT_OF_FOLD_NAME, ENTAILMENT_NAME):
        (folder / name).unlink()
    toy_runs.trained(FINE, runs)
    with np.load(folder / OUT_OF_FOLD_NAME) as saved:
        np.testing.assert_array_equal(saved["g"], before)


def test_a_fold_has_not_seen_the_pairs_it_scores(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []
    real = malstm.train

    def spy(objective: malstm.ManhattanObjective, *args: object, **more: object) -> object:
        seen.append(set(objective.rows.tolist()))
        return real(objective, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(malstm, "train", spy)
    toy_runs.trained(FINE, runs)
    everyone = set(range(len(supervised_pairs())))
    held_out = [everyone - rows for rows in seen]
    assert len(seen) == malstm.FOLDS
    assert set.union(*held_out) == everyone
    assert sum(map(len, held_out)) == len(everyone)  # each pair is held out once


def test_no_held_out_pair_is_trained_on(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaking = [toys.RATED[4], Pair(HELD_OUT[0].b.upper(), HELD_OUT[0].a + ".", 4.0)]
    toy_runs.read_instead(monkeypatch, labelled={**PARTS, "malstm-extras": leaking}.__getitem__)
    assert STSPairs().train() == [toys.RATED[4]]
    assert HELD_OUT[0] not in SickPairs().train()
    with pytest.raises(RecipeError, match="need a teacher: give --teacher"):
        TeacherPairs().train(None, runs)


def test_sts_2013_alone_is_rated_as_sick_is(monkeypatch: pytest.MonkeyPatch, runs: Path) -> None:
    sets = {"OnWN": [Pair("a dog", "a cat", 0.0)], "FNWN": [Pair("a dog", "the dog", 5.0), Pair("dog", "park", 2.5)]}
    toy_runs.read_instead(monkeypatch, year={"2013-test": sets}.__getitem__)
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
    old = toy_runs.trained(before, runs).load()
    with torch.no_grad():
        answer = old.heads["entailment"](torch.zeros(1, 5), torch.zeros(1, 5)).argmax()
    assert LABELS[answer] == "entailment"
    after = replace(FINE, start="toy-pre", schedule=Schedule(epochs=0, batch_size=8))
    family = toy_runs.trained(after, runs)
    kept = torch.load(family.folder / WEIGHTS_NAME, weights_only=True)
    for name, value in old.state_dict().items():
        assert torch.equal(kept[name], value), name
    assert isinstance(family.load().heads["entailment"], SupportVectorHead)
