"""Recipes by name: what is trained, of what data. Imports data, models, objectives and teacher.

Each file has the recipes of one paper, or of one kind of run, in its `RECIPES`; `sources` has the kinds of data.
A new file is registered below; `papers.recipes` registers those of the papers' tables.
"""

from types import ModuleType
from typing import TypeVar

from training.names import by_name
from training.recipes import (
    gallery,
    general,
    gran,
    malstm,
    mgim,
    paragram_phrase,
    pwim,
    sick,
    teacher,
    word_averaging,
)
from training.recipes.recipe import Recipe
from training.recipes.sources.tables import PretrainedEncoder, PublishedTable, ServedTable, TableRecipe

Table = TypeVar("Table", TableRecipe, PublishedTable)

RECIPES: dict[str, Recipe] = {}
TABLES: dict[str, TableRecipe | PublishedTable | ServedTable] = {}
ENCODERS: dict[str, PretrainedEncoder] = {}
_MODULES: dict[str, str] = {}  # of recipes by their names


def register(*files: ModuleType) -> None:
    """Make the recipes of more files known, and the word tables and encoders that they name.

    Raises:
        ValueError: there is a recipe of that name.
    """
    for file in files:
        for recipe in file.RECIPES:
            if recipe.name in RECIPES:
                raise ValueError(f"two recipes are called {recipe.name!r}, the second in {file.__name__}")
            RECIPES[recipe.name] = recipe
            _MODULES[recipe.name] = file.__name__
            if not isinstance(recipe.table, PretrainedEncoder):
                TABLES[recipe.table.name] = recipe.table
            elif recipe.table.packages:
                ENCODERS[recipe.table.name] = recipe.table


register(word_averaging, sick, malstm, paragram_phrase, gran, pwim, mgim, gallery, general, teacher)


def find(name: str) -> Recipe:
    """A recipe by name.

    Raises:
        KeyError: with the nearest names.
    """
    return by_name(RECIPES, name, "recipe", "python -m training recipes")


def file_of(name: str) -> str:
    """The name of the file that has a recipe; of one that is no longer here, of the file whose name it begins with."""
    files = [module.rpartition(".")[2] for module in _MODULES.values()]
    known = _MODULES.get(name, "").rpartition(".")[2]
    return known or next((file for file in files if name.startswith(file)), "others")


def program_of(name: str) -> str:
    """The command line that knows a recipe: `python -m training` or `python -m papers`."""
    return f"python -m {_MODULES.get(name, 'training').partition('.')[0]}"


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
