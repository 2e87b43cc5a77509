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
from training.recipes import RECIPES, TABLES, find, gran, mgim
from training.runs.build import build_interaction_model, build_model
from training.runs.provenance import commands_for
from training.sources.tables import PretrainedEncoder


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_can_be_built_and_travels_as_json(name: str) -> None:
    recipe = find(name)
    if not isinstance(recipe.table, PretrainedEncoder):
        assert recipe.table in TABLES.values()
    if isinstance(recipe.architecture, CrossEncoderConfig | PWIMTasksConfig):
        words = None if isinstance(recipe.table, PretrainedEncoder) else WordEmbedding(toys.table().rows)
        heads = set(build_heads(recipe.architecture, words).heads)
        assert heads <= set(TASKS)
        assert recipe.publication is None or heads == set(TASKS)
    else:
        build = build_interaction_model if isinstance(recipe.objective, PairwiseConfig) else build_model
        model = build(recipe, toys.table(), seed=1)
        assert isinstance(model.embedding, WordEmbedding)
    content = recipe.as_json()
    assert content["architecture"]["kind"] == type(recipe.architecture).__name__
    assert content["objective"]["kind"] == type(recipe.objective).__name__
    assert commands_for(recipe, 2)[-1] == f"python -m training publish {name} --seed 2"


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
