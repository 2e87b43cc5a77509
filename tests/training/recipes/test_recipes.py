"""Recipes: what every one must hold to, and the published settings of those that repeat a paper."""

from dataclasses import replace

import pytest

from tests import toys
from training import recipes
from training.architectures import (
    CrossEncoderConfig,
    PWIMTasksConfig,
    build_heads,
)
from training.architectures.parts.layers import WordEmbedding
from training.corpora.tasks import TASKS
from training.objectives.pairwise import PairwiseConfig
from training.objectives.transfer import MarginConfig
from training.recipes import RECIPES, TABLES, find, gran, mgim
from training.recipes.recipe import Recipe
from training.runs.build import build_interaction_model, build_model
from training.runs.provenance import commands_for
from training.sources.tables import PretrainedEncoder
from training.sources.transfer import ParaphrasePairs

PAPERS = [  # the transfer runs; pp-projection-1200 and -2400 are the starts of features
    name
    for name, recipe in RECIPES.items()
    if name.startswith(("pp-", "gran-"))
    and name[-4:] not in ("1200", "2400")
    and name != "pp-avg-all"  # on more pairs than the rows that are compared
    and isinstance(recipe.objective, MarginConfig)
]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_can_be_built_and_travels_as_json(name: str) -> None:
    recipe = find(name)
    if not isinstance(recipe.table, PretrainedEncoder):
        assert recipe.table in TABLES.values()
    if isinstance(recipe.architecture, CrossEncoderConfig | PWIMTasksConfig):
        words = None if isinstance(recipe.table, PretrainedEncoder) else WordEmbedding(toys.table().rows)
        assert set(build_heads(recipe.architecture, words).heads) == set(TASKS)
    else:
        build = build_interaction_model if isinstance(recipe.objective, PairwiseConfig) else build_model
        model = build(recipe, toys.table(), seed=1)
        assert isinstance(model.embedding, WordEmbedding)
    content = recipe.as_json()
    assert content["architecture"]["kind"] == type(recipe.architecture).__name__
    assert content["objective"]["kind"] == type(recipe.objective).__name__
    assert commands_for(recipe, 2)[-1] == f"python -m training publish {name} --seed 2"


def margin(recipe: Recipe) -> MarginConfig:
    assert isinstance(recipe.objective, MarginConfig)
    return recipe.objective


def test_the_papers_encoders_are_compared_on_the_same_pairs_from_the_same_words() -> None:
    assert len(PAPERS) == 7 + 23
    for recipe in map(find, PAPERS):
        assert recipe.data == ParaphrasePairs(limit=160_000)
        assert recipe.table.name == "minilm-256"
        assert recipe.start is None
        assert "the paper's mean of the 22 sets" in recipe.reaches


def test_a_recipe_is_found_in_its_file_and_no_name_is_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"gran-1", "avg-sick", "pwim-qa", "served-gran"} <= RECIPES.keys()
    toy = replace(find("gran-1"), name="toy")
    monkeypatch.setattr(gran, "RECIPES", (*gran.RECIPES, toy))
    known = recipes._collected()
    assert set(known) - set(RECIPES) == {"toy"}
    assert known["toy"] is toy
    monkeypatch.setattr(mgim, "RECIPES", (*mgim.RECIPES, toy))
    with pytest.raises(ValueError, match=r"two recipes are called 'toy', the second in training\.recipes\.mgim"):
        recipes._collected()
