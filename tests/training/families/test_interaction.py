"""From a trained interaction model to a folder whose words lie among the shared files, on a toy vocabulary."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from contract.golden import GOLDEN_TEXTS, GoldenPairs
from contract.manifest import SHARED_NAME, Manifest
from contract.measures import expected_rating
from tests.harness import toys
from training.architectures import MGIMConfig
from training.corpora.pairwise import CorpusParts
from training.families import family_of, interaction
from training.objectives.pairwise import RATINGS_OF_SICK, YES_OR_NO, PairwiseConfig
from training.publishing import publish
from training.publishing.graphs import ParityError
from training.publishing.runtime import PublishedModel
from training.recipes import RECIPES
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.runs import run
from training.sources.credits import TEACHER
from training.sources.labelled import CorpusPairs
from training.sources.source import RecipeError

RATED = Recipe(
    name="toy-rated",
    reaches="nothing",
    table=toys.TABLE,
    architecture=MGIMConfig(hidden=4),
    data=CorpusPairs("sick"),
    objective=PairwiseConfig(RATINGS_OF_SICK, "pearson", both_orders=True),
    optimiser=OptimiserConfig(learning_rate=0.01, embedding_learning_rate=None),
    schedule=Schedule(epochs=1, batch_size=4),
    publication=Publication("toy-rated", "A toy", max_tokens=9),
)
CHOSEN = replace(
    RATED,
    name="toy-chosen",
    architecture=MGIMConfig(hidden=3, attention=False),
    data=CorpusPairs("msrp"),
    objective=PairwiseConfig(YES_OR_NO, "accuracy"),
    row_scale=6.0,
    publication=Publication("toy-chosen", "Another toy", max_tokens=20),
)
LABELLED = tuple(replace(p, target=float(p.target > 3), label=str(int(p.target > 3))) for p in toys.RATED if p.target)
PARTS = {
    "sick": CorpusParts(toys.RATED, toys.RATED, {"test": toys.RATED}),
    "msrp": CorpusParts(LABELLED, LABELLED, {"test": LABELLED}),
}

Publish = Callable[[Recipe], Path]
pytestmark = pytest.mark.usefixtures("exports_once")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of runs with a word table; every corpus is of eight pairs."""
    toys.table().save(tmp_path / "runs" / "tables" / "toy")
    monkeypatch.setattr("training.corpora.pairwise.read", PARTS.__getitem__)
    monkeypatch.setattr("training.corpora.readers.sick.read", lambda split: list(toys.RATED))
    monkeypatch.setattr("training.publishing.publish.training_data_for", lambda recipe: (TEACHER,))
    return tmp_path / "runs"


@pytest.fixture
def published(runs: Path, tmp_path: Path) -> Publish:
    """Train a recipe, unless it was, and publish it."""

    def train_and_publish(recipe: Recipe) -> Path:
        run.run(family_of(recipe, runs, 1), None)
        return publish.publish(family_of(recipe, runs, 1), tmp_path / "models", tmp_path / "figures")

    return train_and_publish


def shared(folder: Path) -> dict[str, Path]:
    """The shared files of a model, as they are called in its manifest."""
    manifest = Manifest.load(folder)
    return {name: manifest.path_of(folder, name) for name, entry in manifest.files.items() if entry.shared}


def test_a_run_becomes_a_verified_folder_with_its_words_beside_it(published: Publish, runs: Path) -> None:
    folder = published(RATED)
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    assert {p.name for p in folder.iterdir()} == {
        *("README.md", "explanation.onnx", "golden.json", "manifest.json", "pair.onnx")
    }
    assert set(shared(folder)) == {"embedding.codes.npy", "embedding.scale.npy", "tokenizer.json"}
    assert set(shared(folder).values()) == set((folder.parent / SHARED_NAME).iterdir())
    for graph in ("pair.onnx", "explanation.onnx"):
        outside = [t for t in onnx.load(folder / graph, load_external_data=False).graph.initializer if t.external_data]
        assert {t.name for t in outside} == set(manifest.tensors)
        assert not any(t.raw_data for t in outside)
    assert (manifest.family, manifest.encoder, manifest.limits.max_tokens) == ("interaction", None, 9)
    task = manifest.similarity
    assert task is not None
    assert (task.classes, task.raw_range, task.label_scale) == (RATINGS_OF_SICK, (1.0, 5.0), (1.0, 5.0))
    assert task.symmetric
    assert {f.metric for f in manifest.figures} == {"pearson", "spearman", "mse"}
    card = (folder / "README.md").read_text()
    for line in ("the expected rating", "symmetric in its two", "the mean of the probabilities", "over 9 tokens"):
        assert line in card
    assert "python -m training train toy-rated --seed 1" in card


def test_the_published_model_answers_as_the_trained_one_and_as_its_golden_pairs(published: Publish, runs: Path) -> None:
    folder = published(stored(RATED, "toy-rated", "float32"))
    model = PublishedModel(folder)
    trained = family_of(RATED, runs, 1)
    model_of_run = trained.load()
    ids = [[trained.table.tokenizer.encode(text, 9).ids for text in (p.a, p.b)] for p in toys.RATED]
    with torch.no_grad():
        expected = [
            model_of_run(torch.tensor([a]), torch.tensor([len(a)]), torch.tensor([b]), torch.tensor([len(b)]))
            for a, b in ids
        ]
    rating = expected_rating(torch.cat(expected).numpy(), RATINGS_OF_SICK)
    found = model.similarity([p.a for p in toys.RATED], [p.b for p in toys.RATED])
    np.testing.assert_allclose(found.raw_score, rating, atol=1e-5)
    shown = model.matrices(toys.RATED[0].a, toys.RATED[0].b)
    assert shown.shape == (1, 4, 6)
    np.testing.assert_allclose(shown[0].sum(0), 1.0, atol=1e-6)
    golden = GoldenPairs.load(folder / "golden.json").pairs
    assert len(golden) == len(GOLDEN_TEXTS)
    for pair in golden:
        assert model.similarity([pair.a], [pair.b]).raw_score[0] == pytest.approx(pair.raw_score, abs=1e-6)


def test_of_a_yes_or_no_the_score_is_the_probability(published: Publish) -> None:
    folder = published(CHOSEN)
    manifest = Manifest.load(folder)
    assert manifest.similarity is not None
    assert (manifest.similarity.raw_range, manifest.similarity.label_scale) == ((0.0, 1.0), None)
    assert not manifest.similarity.symmetric
    assert manifest.explanation is None  # without attention there is nothing to show
    assert manifest.limits.max_tokens == 20
    assert {f.metric for f in manifest.figures} == {"accuracy", "f1"}
    answer = PublishedModel(folder).similarity(["the man"], ["a man"])
    assert answer.rating is None
    assert answer.score == answer.raw_score
    assert "the other order gives another score" in (folder / "README.md").read_text()


def stored(recipe: Recipe, model_id: str, storage: str = "int8") -> Recipe:
    assert recipe.publication is not None
    return replace(recipe, publication=replace(recipe.publication, model_id=model_id, storage=storage))


def test_a_graph_that_fails_parity_leaves_everything_alone(
    published: Publish, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = published(CHOSEN)
    before = {path: path.read_bytes() for path in (tmp_path / "models").rglob("*") if path.is_file()}

    def refuse(*_: object) -> None:
        raise ParityError("pair.onnx: differs")

    monkeypatch.setattr(interaction, "check_pair", refuse)
    with pytest.raises(ParityError):
        published(stored(CHOSEN, "toy-chosen", "float32"))
    assert {path: path.read_bytes() for path in (tmp_path / "models").rglob("*") if path.is_file()} == before
    Manifest.load(folder).verify(folder)


def test_a_golden_pair_whose_answer_hangs_on_rounding_is_left_out(
    published: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def hangs(_model: object, _tokenizer: object, _limit: int, texts: tuple[str, str]) -> bool:
        asked.append(texts)
        return texts[0].startswith("word")

    monkeypatch.setattr(interaction, "hangs_on_rounding", hangs)
    golden = GoldenPairs.load(published(CHOSEN) / "golden.json").pairs
    assert asked == list(GOLDEN_TEXTS)
    assert [(p.a, p.b) for p in golden] == list(GOLDEN_TEXTS[:-1])


def test_what_cannot_be_measured_is_refused_before_it_is_exported(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    untested = replace(CHOSEN, data=CorpusPairs("twitter-labelled"))
    monkeypatch.setattr("training.corpora.pairwise.read", lambda corpus: CorpusParts(LABELLED, LABELLED, {}))
    monkeypatch.setattr(publish, "_assemble", lambda *_: pytest.fail("exported"))
    with pytest.raises(RecipeError, match="twitter-labelled has no test part"):
        publish.evaluate_run(family_of(untested, runs, 1), tmp_path / "figures")


def test_a_run_starts_from_another_but_for_what_does_not_fit(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run.run(family_of(RATED, runs, 1), None)
    started = replace(RATED, name="toy-started", objective=PairwiseConfig(YES_OR_NO, "accuracy"), start="toy-rated")
    started = replace(started, data=CorpusPairs("msrp"), schedule=Schedule(epochs=0, batch_size=4))
    monkeypatch.setitem(RECIPES, "toy-rated", RATED)
    run.run(family_of(started, runs, 1), None)
    before, after = (family_of(r, runs, 1).load().state_dict() for r in (RATED, started))
    fresh = family_of(started, runs, 1).untrained().state_dict()
    assert after["network.output.weight"].shape == (2, 4)
    for name, value in after.items():
        expected = fresh if name == "network.output.weight" else before
        assert torch.equal(value, expected[name]), name
    other = replace(started, name="toy-other", architecture=MGIMConfig(hidden=5))
    with pytest.raises(ValueError, match="holds another architecture"):
        run.run(family_of(other, runs, 1), None)
