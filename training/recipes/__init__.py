"""Recipes by name. Each file has those of one paper, or of one kind of run, in its `RECIPES`.

A new file is added to `_FILES`.
"""

import re
from dataclasses import replace
from typing import TypeVar

from training.names import by_name
from training.recipes import (
    gallery,
    general,
    gran,
    gran_supervised,
    malstm,
    mgim,
    paragram_phrase,
    pwim,
    sick,
    word_averaging,
)
from training.recipes.recipe import Publication, Recipe
from training.sources.source import RecipeError
from training.sources.tables import OwnVectors, PretrainedEncoder, PublishedTable, ServedTable, TableRecipe

TABLE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")
Table = TypeVar("Table", TableRecipe, PublishedTable)

_FILES = (
    word_averaging,
    sick,
    malstm,
    paragram_phrase,
    gran,
    gran_supervised,
    pwim,
    mgim,
    gallery,
    general,
)


def _collected() -> dict[str, Recipe]:
    known: dict[str, Recipe] = {}
    for file in _FILES:
        for recipe in file.RECIPES:
            if recipe.name in known:
                raise ValueError(f"two recipes are called {recipe.name!r}, the second in {file.__name__}")
            known[recipe.name] = recipe
    return known


RECIPES = _collected()
TABLES: dict[str, TableRecipe | PublishedTable | OwnVectors | ServedTable] = {
    recipe.table.name: recipe.table for recipe in RECIPES.values() if not isinstance(recipe.table, PretrainedEncoder)
}


def find(name: str) -> Recipe:
    """A recipe by name; `RECIPE@TABLE` is the name of the recipe on the word table of somebody's own vectors.

    Raises:
        KeyError: with the nearest names.
        RecipeError: the recipe cannot start from other words.
    """
    name, at, table = name.partition("@")
    recipe = by_name(RECIPES, name, "recipe", "python -m training recipes")
    return on_words(recipe, table) if at else recipe


def on_words(recipe: Recipe, table: str) -> Recipe:
    """The recipe on another word table, that `python -m training vectors FILE --name TABLE` made.

    Raises:
        RecipeError: no such name can be, or the recipe's words are those of a run or of an encoder it starts from.
    """
    if not TABLE_NAME.fullmatch(table):
        raise RecipeError(f"word table {table!r}: a name has small letters, digits and hyphens")
    if isinstance(recipe.table, PretrainedEncoder) or recipe.random_start:
        raise RecipeError(f"{recipe.name} takes no word table")
    if recipe.start is not None:
        raise RecipeError(f"{recipe.name} takes the words of {recipe.start}: name a recipe that starts from a table")
    publication = replace(
        recipe.publication or Publication("", f"Recipe {recipe.name}: {recipe.architecture.name}"),
        model_id=f"{recipe.name}-{table}",
    )
    return replace(recipe, name=f"{recipe.name}@{table}", table=OwnVectors(table), publication=publication)


def published_as(model_id: str) -> Recipe:
    """The recipe that is published under this id.

    Raises:
        KeyError: none is.
    """
    for recipe in RECIPES.values():
        if recipe.publication is not None and recipe.publication.model_id == model_id:
            return recipe
    raise KeyError(f"no recipe is published as {model_id!r}")


def find_word_table(name: str, kind: type[Table]) -> Table:
    """A word table that recipes name: one to distil, or one of published vectors.

    Raises:
        KeyError: none of that kind; with the names there are.
    """
    known = {table.name: table for table in TABLES.values() if isinstance(table, kind)}
    return by_name(known, name, "table to distil" if kind is TableRecipe else "table of published word vectors")
