"""Runs of MGIM (Li et al. 2019): the paper's MSRP and SICK, and its ablations.

`...-printed` have the equations as printed, words unprojected, and our way of training (random order, both orders
averaged, clipped, no L2); `...-as-printed` are trained as printed too. `training.recipes.mgim` has common settings.
"""

from dataclasses import replace

from papers.recipes.pwim import GLOVE
from training.objectives.pairwise import RATINGS_OF_SICK, YES_OR_NO, PairwiseConfig
from training.recipes.mgim import (
    DEPARTED,
    MSRP_ALONE,
    MSRP_PRINTED,
    OVERLAPS,
    PRINTED,
    SHORT,
    SICK_ALONE,
    SICK_PRINTED,
    START,
    WITH_OVERLAPS,
    adam,
)
from training.recipes.recipe import OptimiserConfig, Schedule
from training.recipes.sources.labelled import CorpusPairs

LAMBDA = 0.03  # of the paper; its penalty is lambda / 2n
AS_PRINTED = OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=None)

_SICK_PROJECTED = replace(
    SICK_PRINTED, name="mgim-sick-projected", architecture=replace(PRINTED, projected=True, output_dropout=0.1)
)
_GLOVE = replace(_SICK_PROJECTED, name="mgim-sick-projected-glove", table=GLOVE, row_scale=1.0)

# Wider dropout, also of what the BiLSTMs give, and word vectors a third as long as GloVe's.
_SICK_DROPOUT = replace(
    SICK_ALONE,
    name="mgim-sick-dropout",
    architecture=replace(DEPARTED, dropout=0.3, output_dropout=0.3),
    row_scale=2.0,
)

# The paper's ablation on MSRP: 78.8, without attention 76.3, two Bi-LSTMs without conditional encoding 75.1, random
# word vectors, trained with the rest, 70.3.
_CONDITIONAL = replace(MSRP_PRINTED, name="mgim-msrp-conditional", architecture=replace(PRINTED, attention=False))
_WORDS = replace(
    MSRP_PRINTED, name="mgim-msrp-words", architecture=replace(PRINTED, attention=False, conditional=False)
)
_RANDOM = replace(
    _WORDS,
    name="mgim-msrp-random",
    random_start=True,
    row_scale=1.0,
    optimiser=replace(_WORDS.optimiser, embedding_learning_rate=1e-3),
)
_TWEETS = (
    replace(  # pre-training on human-labelled tweets, whose wording is closer to news, after the teacher's ratings
        MSRP_ALONE,
        name="mgim-tweets",
        reaches="a start for mgim-msrp; 1 minute an epoch on one core",
        data=CorpusPairs("twitter-labelled"),
        start="mgim-teacher",
        optimiser=adam(1e-3),
        schedule=Schedule(epochs=4, batch_size=64, decay="linear"),
        **START,
    )
)
_MSRP = replace(
    MSRP_ALONE,
    name="mgim-msrp",
    reaches="accuracy 75, F1 83; 10 s an epoch on one core",
    start="mgim-tweets",
    architecture=replace(DEPARTED, dropout=0.3),
    optimiser=adam(5e-4),
    schedule=replace(SHORT, epochs=8),
    **START,
)

# Read in the given order, with the paper's L2 and without clipping; hidden and dropout within the paper's grid.
_SICK_AS_PRINTED = replace(
    SICK_PRINTED,
    name="mgim-sick-as-printed",
    objective=PairwiseConfig(RATINGS_OF_SICK, "pearson", l2=LAMBDA / (2 * 4_404)),
    optimiser=AS_PRINTED,
)
_MSRP_AS_PRINTED = replace(
    MSRP_PRINTED,
    name="mgim-msrp-as-printed",
    objective=PairwiseConfig(YES_OR_NO, "accuracy", l2=LAMBDA / (2 * 3_669)),
    optimiser=AS_PRINTED,
)
# A run with counts begins at a logistic regression on them, so these two, without an epoch, are scikit-learn's.
_REGRESSION_OVERLAPS = replace(
    OVERLAPS,
    name="mgim-msrp-regression-overlaps",
    reaches="a logistic regression on n-gram overlaps, numbers, lengths and a cosine; no training",
    schedule=replace(SHORT, epochs=0),
    publication=None,
)
_REGRESSION = replace(
    _REGRESSION_OVERLAPS,
    name="mgim-msrp-regression",
    reaches="a logistic regression on shared words and numbers; no training",
    architecture=replace(WITH_OVERLAPS, overlaps=False),
)

RECIPES = (
    *(SICK_PRINTED, _SICK_PROJECTED, SICK_ALONE, _SICK_DROPOUT, _SICK_AS_PRINTED, _GLOVE),
    *(MSRP_PRINTED, _CONDITIONAL, _WORDS, _RANDOM, MSRP_ALONE, _TWEETS, _MSRP_AS_PRINTED),
    *(_REGRESSION, _REGRESSION_OVERLAPS),
    # With word vectors that were trained in pre-training.
    replace(_TWEETS, name="mgim-tweets-words", start="mgim-teacher-words"),
    replace(_MSRP, name="mgim-msrp-tuned-words", start="mgim-tweets-words"),
    _MSRP,
)
