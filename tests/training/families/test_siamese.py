"""Supervised runs from corpus to figures on a toy vocabulary: the STS split, sentiment, features, heads of a start."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.harness import toys
from training.architectures import GRANConfig
from training.architectures.models import SiameseModel
from training.corpora import sts_split
from training.corpora.sts_split import STSSplit
from training.families import family_of
from training.objectives.metrics import graded
from training.objectives.supervised import SupervisedConfig
from training.objectives.transfer import MarginConfig
from training.publishing import publish
from training.publishing.figures import FigureFile
from training.recipes import RECIPES
from training.recipes.recipe import OptimiserConfig, Recipe, Schedule
from training.runs import run
from training.runs.folder import WEIGHTS_NAME, run_folder
from training.sources.credits import TEACHER
from training.sources.rated import STSSplitPairs

PAIRS = [replace(pair, group=f"2014-test/{'images' if i % 2 else 'OnWN'}") for i, pair in enumerate(toys.pairs(24))]
SPLIT = STSSplit(tuple(PAIRS[:12]), tuple(PAIRS[12:16]), tuple(PAIRS[16:]))
STS = Recipe(
    name="toy-sts",
    reaches="nothing",
    table=toys.TABLE,
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


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of runs with a word table, and corpora of a few sentences."""
    toys.table().save(tmp_path / "runs" / "tables" / "toy")
    monkeypatch.setattr(sts_split, "read", lambda seed: SPLIT if seed == 5 else None)
    monkeypatch.setattr("training.publishing.publish.training_data_for", lambda recipe: (TEACHER,))
    monkeypatch.setitem(RECIPES, "toy-sts", STS)
    return tmp_path / "runs"


def measured(path: Path) -> dict[tuple[str, str, str], tuple[float, int]]:
    file = FigureFile.model_validate_json(path.read_text())
    return {(f.corpus, f.split, f.metric): (f.value, f.rows) for f in file.figures}


def ratings(model: SiameseModel) -> np.ndarray:
    """Expected ratings of the test part, written out."""
    a, b = (
        torch.cat([model.encode((torch.tensor([ids]), torch.tensor([len(ids)]))) for ids in side])
        for side in ([list(toys.tokenizer().encode(getattr(p, s), 128).ids) for p in SPLIT.test] for s in "ab")
    )
    rating: torch.Tensor = model.heads["similarity"](a, b).exp() @ torch.arange(6.0)
    return rating.numpy()


def test_a_run_on_the_split_is_measured_over_its_whole_test_part_and_by_set(runs: Path, tmp_path: Path) -> None:
    result = run.run(family_of(STS, runs, 1), None)
    assert result.best["selection"] == result.best["pearson"]
    found = measured(publish.evaluate_run(family_of(STS, runs, 1), tmp_path / "figures"))
    model = family_of(STS, runs, 1).load()
    with torch.no_grad():
        rating = ratings(model)
    gold = np.array([p.target for p in SPLIT.test])
    corpus = "STS 2012-2015 split"
    assert found[corpus, "test", "pearson"] == (pytest.approx(graded(rating, gold)["pearson"], abs=1e-4), 8)
    by_set = [graded(rating[start::2], gold[start::2])["pearson"] for start in (0, 1)]
    assert found[corpus, "mean of sets", "pearson"] == (pytest.approx(np.mean(by_set), abs=1e-4), 2)
    assert {key[2] for key in found} == {"pearson", "spearman", "mse"}


def test_features_keep_the_encoder_of_their_start_and_its_head(runs: Path) -> None:
    run.run(family_of(STS, runs, 1), None)
    start, begun = family_of(STS, runs, 1).load(), family_of(FEATURES, runs, 1).build(None)
    for name, value in start.heads.state_dict().items():
        assert torch.equal(begun.heads.state_dict()[name], value)
    run.run(family_of(replace(FEATURES, schedule=Schedule(epochs=3, batch_size=5)), runs, 1), None)
    trained = family_of(FEATURES, runs, 1).load()
    for name, value in start.encoder.state_dict().items():
        assert torch.equal(trained.encoder.state_dict()[name], value)


def test_a_head_that_the_start_lacks_begins_anew(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `avg-sick` begins from `avg-paraphrase`, which has no head."""
    transfer = replace(STS, name="toy-transfer", objective=MarginConfig())
    monkeypatch.setitem(RECIPES, transfer.name, transfer)
    start = family_of(transfer, runs, 1).untrained()
    run_folder(runs, transfer, 1).mkdir(parents=True)
    torch.save(start.state_dict(), run_folder(runs, transfer, 1) / WEIGHTS_NAME)
    begun = family_of(replace(FEATURES, start=transfer.name), runs, 2).build(None)
    assert "similarity" in begun.heads
    for name, value in start.encoder.state_dict().items():
        assert torch.equal(begun.encoder.state_dict()[name], value)
