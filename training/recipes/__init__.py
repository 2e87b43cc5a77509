"""Recipes by name: plain functions of no argument, one for each experiment."""

from collections.abc import Callable

from training.recipe import Recipe, TableRecipe
from training.recipes import word_averaging

RECIPES: dict[str, Callable[[], Recipe]] = {
    make().name: make
    for make in (
        word_averaging.avg_paraphrase,
        word_averaging.avg_margin,
        word_averaging.avg_margin_random,
        word_averaging.avg_sick,
    )
}
TABLES: dict[str, TableRecipe] = {make().table.name: make().table for make in RECIPES.values()}


def find(name: str) -> Recipe:
    """A recipe by name.

    Raises:
        KeyError: with the names there are.
    """
    if name not in RECIPES:
        raise KeyError(f"no recipe {name!r}; there are {', '.join(sorted(RECIPES))}")
    return RECIPES[name]()
