"""Recipes: what every one must hold to, and the published settings of those that repeat a paper."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness import toys
from training import recipes
from training.architectures import HeadsConfig
from training.architectures.parts.layers import WordEmbedding
from training.corpora.tasks import TASKS
from training.families import family_of
from training.publishing.publish import commands_for
from training.recipes import RECIPES, TABLES, find, gran, mgim
from training.sources.source import RecipeError
from training.sources.tables import PretrainedEncoder


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_can_be_built_and_travels_as_json(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recipe = find(name)
    if not isinstance(recipe.table, PretrainedEncoder):
        assert recipe.table in TABLES.values()
    monkeypatch.setattr("training.runs.family.load_table", lambda *_: toys.table())
    model = family_of(recipe, tmp_path, 1).untrained()
    if isinstance(recipe.architecture, HeadsConfig):
        assert set(model.heads) <= set(TASKS)
        assert recipe.publication is None or set(model.heads) == set(TASKS)
    else:
        assert isinstance(model.embedding, WordEmbedding)
    content = recipe.as_json()
    assert content["architecture"]["kind"] == type(recipe.architecture).__name__
    assert content["objective"]["kind"] == type(recipe.objective).__name__
    assert commands_for(recipe, 2)[-1] == f"python -m training publish {name} --seed 2"


def test_a_recipe_that_no_family_can_train_is_refused_by_its_parts(tmp_path: Path) -> None:
    odd = replace(find("avg-sick"), name="odd", objective=find("pwim-qa").objective)
    with pytest.raises(RecipeError, match=r"'odd': no family .* PairwiseConfig, WordAveragingConfig, SickPairs, "):
        family_of(odd, tmp_path, 1)


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
