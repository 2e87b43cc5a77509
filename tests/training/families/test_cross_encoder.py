"""A run of several tasks that begins from a published encoder, and keeps it; what a published model rates for it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core.subwords import Subwords
from tests.harness import toy_runs, toy_wordpiece, toys
from training.data.hard import GROUP
from training.data.pairs import Pair
from training.families import family_of, teaching, transformer, updates
from training.families.heads import load_ratings, ratings_file, save_ratings
from training.families.restored import restore
from training.families.teaching import development_figures, load_learnt, save_learnt
from training.families.transformer import START_NAME, CrossEncoderFamily
from training.families.words import TOKENIZER
from training.models.transformer import BERTConfig, CrossEncoderConfig, words_of
from training.objectives.supervised import LABELS
from training.objectives.tasks import PairTokens, Rated, predict
from training.publish.runtime import PublishedModel
from training.recipes import RECIPES, find
from training.recipes.recipe import Recipe
from training.recipes.sources.source import RecipeError
from training.recipes.sources.tables import PretrainedEncoder
from training.teacher.weights import weights_folder
from training.train.folder import WEIGHTS_NAME, RunMissing, run_folder

HEADS = {"entailment": 3, **dict.fromkeys(("similarity", "paraphrase", "related", "relevance"), 1)}
TINY = BERTConfig(vocabulary=105, hidden=12, layers=2, attention_heads=2, inner=16, positions=300, dropout=0.1)
TEXTS = toys.pairs(4 * GROUP)
PAIRS: Mapping[str, Sequence[Pair]] = {
    "snli-train": [replace(p, label=("entailment", "neutral", "contradiction")[i % 3]) for i, p in enumerate(TEXTS)],
    "wikiqa-hard": [replace(p, label=str(int(i % GROUP == 0)), group=str(i // GROUP)) for i, p in enumerate(TEXTS)],
}


FULL = find("minilm-cross")
CROSS = replace(  # tiny and of two corpora
    FULL,
    architecture=CrossEncoderConfig(TINY, HEADS),
    data=toy_runs.given(PAIRS, snli=PAIRS["snli-train"])(tuple(PAIRS)),
    objective=replace(FULL.objective, quotas={"snli-train": 12, "wikiqa-hard": 10}),
    schedule=replace(FULL.schedule, epochs=3, batch_size=10, checkpoint_seconds=0.0),
    precision="float32",
)


def bi_encoder(chosen: Recipe, runs: Path, seed: int) -> dict[str, torch.Tensor]:
    family = family_of(chosen, runs, seed)
    assert isinstance(family, CrossEncoderFamily)
    return family.bi_encoder().bert.state_dict()


def kept(chosen: Recipe, runs: Path, seed: int, name: str = WEIGHTS_NAME) -> dict[str, torch.Tensor]:
    weights: dict[str, torch.Tensor] = torch.load(run_folder(runs, chosen, seed) / name, weights_only=True)
    return weights


def assert_equal(found: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> None:
    for name, value in found.items():
        assert torch.equal(value, expected[name]), name


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A teacher's folder with a tokenizer."""
    toy_wordpiece.wordpiece().save(tmp_path / TOKENIZER)

    def load_weights(bert: torch.nn.Module, folder: Path) -> None:
        assert folder == tmp_path
        with torch.no_grad():
            for value in bert.parameters():
                value.add_(0.001)

    monkeypatch.setattr(transformer, "load_weights", load_weights)
    return tmp_path


def test_the_encoder_that_a_run_begins_from_is_kept_beside_it(encoder: Path) -> None:
    runs = encoder / "runs"
    with pytest.raises(RecipeError, match="a cross-encoder starts from a teacher"):
        toy_runs.trained(CROSS, runs, 4)
    with pytest.raises(RunMissing, match="training train minilm-cross --seed 4` anew"):
        bi_encoder(CROSS, runs, 4)
    toy_runs.trained(CROSS, runs, 4, encoder)
    before, after = kept(CROSS, runs, 4, START_NAME), kept(CROSS, runs, 4)
    assert torch.equal(
        before["embeddings.word_embeddings.weight"], after["bert.embeddings.word_embeddings.weight"]
    )  # frozen
    query = "encoder.layer.0.attention.self.query.weight"
    assert not torch.equal(before[query], after[f"bert.{query}"])
    assert_equal(bi_encoder(CROSS, runs, 4), before)


def test_a_second_run_begins_with_all_weights_of_the_first_and_keeps_no_encoder(
    encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, CROSS.name, CROSS)
    second = replace(CROSS, name="second", start=CROSS.name, schedule=replace(CROSS.schedule, epochs=1))
    runs = encoder / "runs"
    with pytest.raises(RunMissing, match="training train minilm-cross --seed 1` first"):
        toy_runs.trained(second, runs, teacher=encoder)
    toy_runs.trained(CROSS, runs, teacher=encoder)
    assert_equal(family_of(second, runs, 1).build(encoder).state_dict(), kept(CROSS, runs, 1))
    toy_runs.trained(second, runs, teacher=encoder)
    assert not (run_folder(runs, second, 1) / START_NAME).exists()
    assert_equal(bi_encoder(second, runs, 1), kept(CROSS, runs, 1, START_NAME))


def test_a_published_model_is_a_finished_run_again(tmp_path: Path) -> None:
    """It answers as what is served of it, up to the steps of its codes, and a run goes on from it."""
    published = Path("models/minilm-cross")
    served = PublishedModel(published)
    folder = restore(published, tmp_path)
    family = family_of(
        find(str(served.manifest.provenance.recipe["name"])), tmp_path, served.manifest.provenance.seed or 0
    )
    assert folder == family.folder
    pairs = [Pair(*texts) for texts in (("A man plays a guitar.", "A man plays music."), ("It rains.", "It is dry."))]
    output = predict(family.load(), PairTokens(pairs, Subwords.load(folder / TOKENIZER), 128))["entailment"]
    expected = served.probabilities([p.a for p in pairs], [p.b for p in pairs], LABELS)["entailment"]
    temperature = served.manifest.entailment.temperature
    assert torch.softmax(torch.from_numpy(output) / temperature, 1).numpy() == pytest.approx(expected, abs=0.05)
    more = family_of(replace(family.recipe, name="more", start=family.recipe.name, start_seed=family.seed), tmp_path, 1)
    model = more.build(None)
    assert_equal(model.state_dict(), kept(family.recipe, tmp_path, family.seed))
    encoder = bi_encoder(more.recipe, tmp_path, 1)
    assert torch.equal(encoder["embeddings.word_embeddings.weight"], words_of(model.bert).weight)
    with pytest.raises(RecipeError, match="is no cross-encoder that one of our recipes"):
        restore(Path("models/minilm"), tmp_path)


def test_what_was_learnt_beside_published_weights_is_the_model_again(
    encoder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the run: from the published weights, and a file that holds nothing of them."""
    runs = encoder / "runs"
    folder = weights_folder(runs, "toy")
    folder.mkdir(parents=True)
    toy_wordpiece.wordpiece().save(folder / TOKENIZER)
    constant = torch.nn.init.constant_
    monkeypatch.setattr(transformer, "load_weights", lambda bert, folder: constant(words_of(bert).weight, 0.1))
    monkeypatch.setattr(updates, "FOLDER", tmp_path / "learnt")
    updated = CrossEncoderConfig(replace(TINY, update_rank=2), HEADS)
    chosen = replace(CROSS, architecture=updated, table=PretrainedEncoder("toy", packages=("toy",)))
    trained = toy_runs.trained(chosen, runs, teacher=encoder).load()
    file = save_learnt(chosen, runs, [1])
    assert file.stat().st_size < 0.7 * sum(4 * value.numel() for value in trained.state_dict().values())
    again = load_learnt(chosen, runs)
    for name, parameter in again.named_parameters():
        if parameter.requires_grad:
            assert torch.allclose(parameter, trained.state_dict()[name], atol=1e-3), name
    assert set(np.load(file).files) == {n for n, p in again.named_parameters() if p.requires_grad}
    tokens = PairTokens(PAIRS["snli-train"], toy_wordpiece.wordpiece(), chosen.max_tokens)
    answers = [LABELS[i] for i in predict(again, tokens)["entailment"].argmax(1)]
    right = np.mean([answer == pair.label for answer, pair in zip(answers, PAIRS["snli-train"], strict=True)])
    assert development_figures(chosen, runs)["snli_accuracy"] == pytest.approx(right)
    # What the run that it started from learnt is in the file: that run is not asked for.
    assert load_learnt(replace(chosen, start="mpnet-pairs"), runs).state_dict().keys() == again.state_dict().keys()
    # Nor where another run goes on from it.
    monkeypatch.setitem(RECIPES, chosen.name, chosen)
    goes_on = family_of(replace(chosen, name="goes-on", start=chosen.name), tmp_path / "no runs", 1)
    monkeypatch.setattr(transformer, "weights_folder", lambda _, name: weights_folder(runs, name))
    began = goes_on.build(None).state_dict()
    assert_equal({name: began[name] for name in updates.learnt_names(again)}, again.state_dict())
    other = replace(chosen, architecture=CrossEncoderConfig(replace(updated.bert, layers=1), HEADS))
    with pytest.raises(ValueError, match="holds another model than minilm-cross"):
        load_learnt(other, runs)
    with pytest.raises(TypeError, match="learns all of its weights"):
        load_learnt(replace(chosen, architecture=CrossEncoderConfig(TINY, HEADS)), runs)
    with pytest.raises(RunMissing, match="training keep unknown`"):
        load_learnt(replace(chosen, name="unknown"), runs)
    # A share of the way back to what is kept of another run.
    monkeypatch.setitem(RECIPES, "zeros", replace(chosen, name="zeros"))
    np.savez(updates.learnt_file(RECIPES["zeros"]), **{name: 0 * value for name, value in np.load(file).items()})
    save_learnt(replace(chosen, kept_toward=("zeros", 0.25)), runs, [1])
    back = load_learnt(chosen, runs).state_dict()
    for name in updates.learnt_names(again):
        assert torch.allclose(back[name], 0.75 * again.state_dict()[name], atol=1e-3), name


TO_RATE = {"sick": toys.RATED, "msrp": toys.RATED[:3]}
GROUPS = {"wikiqa-hard": toys.RATED}  # learnt by the order of answers, without ratings


class Model:
    """Says of a pair how many characters its texts have."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []

    def probabilities(self, a: Sequence[str], b: Sequence[str], labels: Sequence[str]) -> Mapping[str, np.ndarray]:
        self.asked += a
        return {"relevance": np.array([[len(x) + len(y)] for x, y in zip(a, b, strict=True)], dtype=np.float64)}


def recipe(**changes: Any) -> Recipe:
    """The recipe of pwim-general, whose pairs are ours."""
    full = find("pwim-general")
    return replace(full, data=toy_runs.given(TO_RATE | GROUPS)(**(vars(full.data) | changes)))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Model]:
    models: list[Model] = []

    def open_it(folder: Path) -> Model:
        models.append(Model(folder))
        return models[-1]

    monkeypatch.setattr(teaching, "PublishedModel", open_it)
    monkeypatch.setattr(teaching, "CHUNK", 3)
    return models


def test_every_corpus_is_rated_once_and_read_back(tmp_path: Path, opened: list[Model]) -> None:
    few = recipe(rated_pairs=5)
    assert teaching.rate(few, tmp_path / "models", tmp_path, None) == 5 + 3
    found = load_ratings(tmp_path, "minilm-cross", few.data.rated(TO_RATE | GROUPS))
    assert set(found) == set(TO_RATE)
    assert len(found["sick"].rows) == 5
    assert found["msrp"].rows.tolist() == [0, 1, 2]
    for corpus, rated in found.items():
        expected = [len(TO_RATE[corpus][i].a) + len(TO_RATE[corpus][i].b) for i in rated.rows]
        assert rated.probabilities["relevance"][:, 0].tolist() == expected
    assert teaching.rate(few, tmp_path / "models", tmp_path, None) == 0
    assert len(opened[0].asked) == 8
    assert not opened[1].asked
    without_sick = recipe(unrated=("sick",))  # a corpus of another convention
    assert teaching.rate(without_sick, tmp_path / "models", tmp_path / "others", None) == 3
    assert set(load_ratings(tmp_path / "others", "minilm-cross", without_sick.data.rated(TO_RATE))) == {"msrp"}


def test_missing_ratings_those_of_other_pairs_and_a_recipe_that_needs_none_are_told(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="'mpnet-pairs' learns from no published model"):
        teaching.rate(find("mpnet-pairs"), tmp_path, tmp_path, None)
    save_ratings(ratings_file(tmp_path, "m", "sick", TO_RATE["sick"]), Rated(np.arange(2), {}))
    assert set(load_ratings(tmp_path, "m", {"sick": TO_RATE["sick"]})) == {"sick"}
    with pytest.raises(RunMissing, match="m did not rate sick: run `python -m training rate RECIPE` first"):
        load_ratings(tmp_path, "m", {"sick": [*TO_RATE["sick"], Pair("a", "b")]})
