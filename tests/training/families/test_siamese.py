"""Supervised runs from corpus to figures on a toy vocabulary: the STS split, sentiment, features, heads of a start."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.harness import toy_runs, toys
from training.architectures import GRANConfig
from training.corpora.sts_split import STSSplit
from training.families import family_of
from training.objectives.metrics import graded
from training.objectives.supervised import SupervisedConfig
from training.objectives.transfer import MarginConfig
from training.publishing import publish
from training.publishing.figures import FigureFile
from training.recipes import RECIPES
from training.recipes.recipe import OptimiserConfig, Schedule
from training.runs import run
from training.sources.rated import STSSplitPairs

PAIRS = [replace(pair, group=f"2014-test/{'images' if i % 2 else 'OnWN'}") for i, pair in enumerate(toys.pairs(24))]
SPLIT = STSSplit(tuple(PAIRS[:12]), tuple(PAIRS[12:16]), tuple(PAIRS[16:]))
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


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return toy_runs.runs_in(tmp_path, monkeypatch, STS, split=lambda seed: SPLIT if seed == 5 else None)


def test_a_run_on_the_split_is_measured_over_its_whole_test_part_and_by_set(runs: Path, tmp_path: Path) -> None:
    result = run.run(family_of(STS, runs, 1), None)
    assert result.best["selection"] == result.best["pearson"]
    file = FigureFile.load(publish.evaluate_run(family_of(STS, runs, 1), tmp_path / "figures"))
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
