"""Recipes by name: plain functions of no argument, one for each experiment."""

from collections.abc import Callable

from training.recipe import Recipe, TableRecipe
from training.recipes import gran, wieting2016, word_averaging

RECIPES: dict[str, Callable[[], Recipe]] = {
    make().name: make
    for make in (
        word_averaging.avg_paraphrase,
        word_averaging.avg_margin,
        word_averaging.avg_margin_random,
        word_averaging.avg_sick,
        wieting2016.averaging,
        wieting2016.projection,
        wieting2016.dan,
        wieting2016.rnn,
        wieting2016.identity_rnn,
        wieting2016.lstm,
        wieting2016.lstm_without_output_gate,
        gran.averaging,
        gran.averaging_dropout,
        gran.averaging_word_dropout,
        gran.lstm,
        gran.lstm_eos,
        gran.lstm_l2,
        gran.lstm_dropout,
        gran.lstm_word_dropout,
        gran.lstm_scrambling,
        gran.lstm_regularised,
        gran.lstm_avg,
        gran.lstm_avg_eos,
        gran.lstm_avg_regularised,
        gran.bilstm_avg,
        gran.bilstm_avg_tanh,
        gran.gran_plain,
        gran.gran,
        gran.gran_2,
        gran.gran_3,
        gran.gran_4,
        gran.gran_5,
        gran.bigran,
        gran.bigran_tanh,
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
