"""Recipes by name: plain functions of no argument, one for each experiment."""

from collections.abc import Callable
from typing import TypeVar

from training.recipe import FoundTable, Recipe, TableRecipe
from training.recipes import gran, malstm, mgim, pwim, sick, sts, supervised, teacher, wieting2016, word_averaging

Table = TypeVar("Table", TableRecipe, FoundTable)

RECIPES: dict[str, Callable[[], Recipe]] = {
    make().name: make
    for make in (
        word_averaging.avg_paraphrase,
        word_averaging.avg_raw,
        word_averaging.avg_wide,
        word_averaging.avg_near,
        word_averaging.avg_wide_near,
        word_averaging.avg_margin,
        word_averaging.avg_margin_random,
        word_averaging.avg_sick,
        sts.avg_sts,
        sts.gran_sts,
        sick.avg_rated,
        sick.avg_tuned,
        sick.gran_rated,
        sick.gran_tuned,
        sick.lstm_avg_rated,
        sick.lstm_avg_tuned,
        teacher.gran_paraphrase,
        teacher.gran_glosses,
        teacher.gran_near,
        teacher.lstm_avg_paraphrase,
        teacher.avg_joint,
        malstm.teacher_pretraining,
        malstm.sick,
        malstm.sick_synonyms,
        malstm.sick_alone,
        malstm.paper_pretraining,
        malstm.paper,
        malstm.paper_without_synonyms,
        malstm.paper_without_pretraining,
        malstm.paper_alone,
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
        gran.gran_slow,
        gran.gran_2,
        gran.gran_3,
        gran.gran_4,
        gran.gran_5,
        gran.bigran,
        gran.bigran_tanh,
        pwim.teacher,
        pwim.sick,
        pwim.sick_alone,
        pwim.sick_one_order,
        pwim.sick_paper,
        pwim.sick_no_context,
        pwim.sick_no_focus,
        pwim.sick_focus_dropout,
        pwim.sick_bounded,
        pwim.sick_tuned_words,
        pwim.sick_glove,
        pwim.sick_glove_tuned,
        pwim.msrvid,
        pwim.msrvid_alone,
        pwim.sts2014,
        pwim.sts2014_alone,
        pwim.answers,
        pwim.wikiqa,
        pwim.wikiqa_longer,
        pwim.wikiqa_alone,
        pwim.wikiqa_margin,
        pwim.trecqa,
        pwim.qa,
        mgim.teacher,
        mgim.teacher_words,
        mgim.sick,
        mgim.sick_alone,
        mgim.sick_printed,
        mgim.tweets,
        mgim.msrp,
        mgim.tweets_words,
        mgim.msrp_tuned_words,
        mgim.msrp_alone,
        mgim.msrp_printed,
        mgim.msrp_conditional,
        mgim.msrp_words,
        mgim.msrp_random,
    )
} | supervised.RECIPES
TABLES: dict[str, TableRecipe | FoundTable] = {make().table.name: make().table for make in RECIPES.values()}


def find(name: str) -> Recipe:
    """A recipe by name.

    Raises:
        KeyError: with the names there are.
    """
    if name not in RECIPES:
        raise KeyError(f"no recipe {name!r}; there are {', '.join(sorted(RECIPES))}")
    return RECIPES[name]()


def find_word_table(name: str, kind: type[Table]) -> Table:
    """A word table that recipes name: one to distil, or one of published vectors.

    Raises:
        KeyError: none of that kind; with the names there are.
    """
    found = {table.name: table for table in TABLES.values() if isinstance(table, kind)}
    if name not in found:
        what = "to distil" if kind is TableRecipe else "of published word vectors"
        raise KeyError(f"no table {name!r} {what}; there are {', '.join(sorted(found))}")
    return found[name]
