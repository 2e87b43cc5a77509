"""Recipes by name. Each file has those of one paper, or of one kind of run, in its `RECIPES`.

A new file is added to `_FILES`.
"""

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
    teacher,
    word_averaging,
)
from training.recipes.recipe import Recipe
from training.sources.tables import PretrainedEncoder, PublishedTable, ServedTable, TableRecipe

Table = TypeVar("Table", TableRecipe, PublishedTable)

_FILES = (word_averaging, sick, malstm, paragram_phrase, gran, gran_supervised, pwim, mgim, gallery, general, teacher)


def _collected() -> dict[str, Recipe]:
    known: dict[str, Recipe] = {}
    for file in _FILES:
        for recipe in file.RECIPES:
            if recipe.name in known:
                raise ValueError(f"two recipes are called {recipe.name!r}, the second in {file.__name__}")
            known[recipe.name] = recipe
    return known


RECIPES = _collected()
_FILE_OF = {recipe.name: file.__name__.rpartition(".")[2] for file in _FILES for recipe in file.RECIPES}
TABLES: dict[str, TableRecipe | PublishedTable | ServedTable] = {
    recipe.table.name: recipe.table for recipe in RECIPES.values() if not isinstance(recipe.table, PretrainedEncoder)
}


ENCODERS: dict[str, PretrainedEncoder] = {
    recipe.table.name: recipe.table
    for recipe in RECIPES.values()
    if isinstance(recipe.table, PretrainedEncoder) and recipe.table.packages
}


def find(name: str) -> Recipe:
    """A recipe by name.

    Raises:
        KeyError: with the nearest names.
    """
    return by_name(RECIPES, name, "recipe", "python -m training recipes")


def file_of(name: str) -> str:
    """The name of the file that has a recipe; of one that is no longer here, of the file whose name it begins with."""
    begun = (file.__name__.rpartition(".")[2] for file in _FILES)
    return _FILE_OF.get(name) or next((file for file in begun if name.startswith(file)), "others")


def starts_of(recipe: Recipe, seed: int) -> list[tuple[Recipe, int]]:
    """The runs that a run starts from, recipes with seeds, the first of the chain first."""
    if recipe.start is None:
        return []
    start, its_seed = find(recipe.start), seed if recipe.start_seed is None else recipe.start_seed
    return [*starts_of(start, its_seed), (start, its_seed)]


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


def find_encoder(name: str) -> PretrainedEncoder:
    """A published encoder that is fetched from the package index.

    Raises:
        KeyError: with the names there are.
    """
    return by_name(ENCODERS, name, "published encoder")
