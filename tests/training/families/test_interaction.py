"""From an interaction model, which may begin at a regression, to a folder whose words lie among the shared files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from core.golden import GOLDEN_TEXTS, GoldenPairs
from core.manifest import SHARED_NAME
from core.scoring import expected_rating
from tests.harness import toy_runs, toys
from training.data.pairs import Pair
from training.data.pairwise import CorpusParts
from training.data.words.storage import stored
from training.families import family_of, interaction
from training.families.interaction import begin_at_regression
from training.models import MGIMConfig
from training.models.kinds import InteractionModel
from training.models.layers import WordEmbedding
from training.models.mgim import MGIM
from training.objectives.pairwise import RATINGS_OF_SICK, YES_OR_NO, PairwiseConfig, TargetPairs, predict
from training.publish import publish
from training.publish.graphs import ParityError
from training.publish.runtime import PublishedModel
from training.recipes.recipe import OptimiserConfig, Publication, Schedule
from training.recipes.sources.labelled import CorpusPairs
from training.recipes.sources.source import RecipeError

RATED = replace(
    toy_runs.RECIPE,
    name="toy-rated",
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
    architecture=MGIMConfig(hidden=3, attention=False, conditional=False),
    data=CorpusPairs("msrp"),
    objective=PairwiseConfig(YES_OR_NO, "accuracy"),
    row_scale=6.0,
    publication=Publication("toy-chosen", "Another toy", max_tokens=20),
)
FLOAT = replace(CHOSEN, publication=replace(CHOSEN.publication, storage="float32"))
LABELLED = tuple(replace(p, target=float(p.target > 3), label=str(int(p.target > 3))) for p in toys.RATED if p.target)
PARTS = {
    "sick": CorpusParts(toys.RATED, toys.RATED, {"test": toys.RATED}),
    "msrp": CorpusParts(LABELLED, LABELLED, {"test": LABELLED}),
}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every corpus is of eight pairs."""
    return toy_runs.runs_in(
        tmp_path, monkeypatch, RATED, pairwise=PARTS.__getitem__, labelled=lambda name: list(toys.RATED)
    )


def test_a_run_becomes_a_verified_folder_with_its_words_beside_it(runs: Path) -> None:
    folder, manifest = toy_runs.published(toy_runs.trained(RATED, runs))
    assert {p.name for p in folder.iterdir()} == {
        *("README.md", "explanation.onnx", "golden.json", "manifest.json", "pair.onnx")
    }
    shared = {name: manifest.path_of(folder, name) for name, entry in manifest.files.items() if entry.shared}
    assert set(shared) == {"embedding.codes.npy", "embedding.scale.npy", "tokenizer.json"}
    assert set(shared.values()) == set((folder.parent / SHARED_NAME).iterdir())
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


def test_the_published_model_answers_as_the_trained_one_and_as_its_golden_pairs(runs: Path) -> None:
    trained = toy_runs.trained(RATED, runs)
    folder, _ = toy_runs.published(trained)
    model, model_of_run = PublishedModel(folder), trained.load()
    model_of_run.network.embedding = stored(torch.from_numpy(toys.table().rows), "int8")  # as they are published
    ids = [tuple(trained.table.tokenizer.encode(text, 9).ids for text in (p.a, p.b)) for p in toys.RATED]
    with torch.no_grad():
        expected = [model_of_run(*toys.pair_tensors([pair])) for pair in ids]
    rating = expected_rating(torch.cat(expected).numpy(), RATINGS_OF_SICK)
    found = model.similarity([p.a for p in toys.RATED], [p.b for p in toys.RATED])
    np.testing.assert_allclose(found.raw_score, rating, atol=1e-5)
    shown = model.outputs("explanation.onnx", [toys.RATED[0].a], [toys.RATED[0].b])[0]
    assert shown.shape == (1, 4, 6)
    np.testing.assert_allclose(shown[0].sum(0), 1.0, atol=1e-6)
    golden = GoldenPairs.load(folder / "golden.json").pairs
    assert len(golden) == len(GOLDEN_TEXTS)
    for pair in golden:
        assert model.similarity([pair.a], [pair.b]).raw_score[0] == pytest.approx(pair.raw_score, abs=1e-6)


def test_of_a_yes_or_no_the_score_is_the_probability(runs: Path) -> None:
    folder, manifest = toy_runs.published(toy_runs.trained(CHOSEN, runs))
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


def test_a_graph_that_fails_parity_leaves_everything_alone(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, manifest = toy_runs.published(toy_runs.trained(CHOSEN, runs))
    before = {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}

    def refuse(*_: object) -> None:
        raise ParityError("pair.onnx: differs")

    monkeypatch.setattr(interaction, "check_pair", refuse)
    with pytest.raises(ParityError):
        toy_runs.published(toy_runs.trained(FLOAT, runs))
    assert {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()} == before
    manifest.verify(folder)


def test_a_golden_pair_whose_answer_hangs_on_rounding_is_left_out(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def hangs(_model: object, _tokenizer: object, _limit: int, texts: tuple[str, str]) -> bool:
        asked.append(texts)
        return texts[0].startswith("word")

    monkeypatch.setattr(interaction, "hangs_on_rounding", hangs)
    folder, _ = toy_runs.published(toy_runs.trained(CHOSEN, runs))
    golden = GoldenPairs.load(folder / "golden.json").pairs
    assert asked == list(GOLDEN_TEXTS)
    assert [(p.a, p.b) for p in golden] == list(GOLDEN_TEXTS[:-1])


def test_what_cannot_be_measured_is_refused_before_it_is_exported(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    untested = replace(CHOSEN, data=CorpusPairs("twitter-labelled"))
    toy_runs.read_instead(monkeypatch, pairwise=lambda corpus: CorpusParts(LABELLED, LABELLED, {}))
    monkeypatch.setattr(publish, "_assemble", lambda *_: pytest.fail("exported"))
    with pytest.raises(RecipeError, match="twitter-labelled has no test part"):
        publish.evaluate_run(family_of(untested, runs, 1), runs.parent / "figures")


def test_a_run_starts_from_another_but_for_what_does_not_fit(runs: Path) -> None:
    before = toy_runs.trained(RATED, runs).load().state_dict()
    started = replace(RATED, name="toy-started", objective=PairwiseConfig(YES_OR_NO, "accuracy"), start="toy-rated")
    started = replace(started, data=CorpusPairs("msrp"), schedule=Schedule(epochs=0, batch_size=4))
    after = toy_runs.trained(started, runs).load().state_dict()
    fresh = family_of(started, runs, 1).initial_model().state_dict()
    assert after["network.output.weight"].shape == (2, 4)
    for name, value in after.items():
        expected = fresh if name == "network.output.weight" else before
        assert torch.equal(value, expected[name]), name
    with pytest.raises(ValueError, match="holds another architecture"):
        toy_runs.trained(replace(started, name="toy-other", architecture=MGIMConfig(hidden=5)), runs)


def test_a_share_of_the_way_from_the_start_is_kept(runs: Path) -> None:
    before = toy_runs.trained(RATED, runs).load().state_dict()
    went = replace(RATED, name="toy-went", start="toy-rated")
    whole = toy_runs.trained(went, runs).load().state_dict()
    half = toy_runs.trained(replace(went, name="toy-half", learnt_share=0.5), runs).load().state_dict()
    assert any(not torch.equal(before[name], value) for name, value in whole.items())
    for name, value in half.items():
        torch.testing.assert_close(value, (before[name] + whole[name]) / 2)


COUNTS = MGIMConfig(hidden=5, shared_words=True, overlaps=True, projected=True)
SENTENCES = ("the dog runs", "a dog runs in the park", "the cat sleeps", "the park", "a cat runs", "dog")


def test_a_new_network_begins_as_the_regression_and_can_learn_more() -> None:
    torch.manual_seed(0)
    network = MGIM(COUNTS, WordEmbedding(toys.table().rows), 2)
    network.mark_numbers([False] * len(toys.table().rows))
    net = InteractionModel(network, both_orders=True)
    # Paraphrases are equal sentences, so that the counts alone tell them.
    pairs = [Pair(a, b, float(a == b)) for a in SENTENCES for b in SENTENCES]
    given = TargetPairs(pairs, toys.tokenizer(), toys.MAX_TOKENS)
    before = predict(net, given, YES_OR_NO)
    begin_at_regression(net, given)
    after = predict(net, given, YES_OR_NO)
    right = given.target > 0.5
    assert ((before > 0.5) == right).mean() < ((after > 0.5) == right).mean() == 1.0
    assert after.mean() == pytest.approx(right.mean(), abs=1e-3)  # a regression's mean is that of its targets
    everything = np.arange(len(given))
    a, b = given.a.batch(everything), given.b.batch(everything)
    assert network.counts is not None
    with torch.no_grad():
        counts = network.counts(network.counted(*a, *b))
    assert torch.allclose(network(*a, *b), torch.log_softmax(counts, dim=1), atol=1e-6)
    network(*a, *b)[:, 1].sum().backward()
    assert network.output.weight.grad is not None
    assert network.output.weight.grad.abs().max() > 0
