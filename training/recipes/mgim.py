"""Runs of MGIM (Li et al. 2019): MSRP and SICK, its ablations, and with our named departures.

`...-printed` have the equations as printed, words unprojected, and our way of training (random order, both orders
averaged, clipped, no L2); `...-as-printed` are trained as printed too.

The published runs differ from the paper (reasons in docs/papers/mgim.md): h_N takes its backward state from the first
word, |h - r| and h * r are added, the second Bi-LSTM starts as a copy of the first; that of SICK is pre-trained on a
teacher's ratings, that of MSRP (`mgim-msrp-overlaps`, published as `mgim-msrp`) has counts of shared words beside spr.
Word vectors are the distilled table, frozen, scaled by 6 to about the norm of GloVe's.
"""

from dataclasses import replace
from typing import Any

from training.architectures import MGIMConfig
from training.corpora.pairwise import Corpus
from training.objectives.pairwise import RATINGS_OF_SICK, YES_OR_NO, PairwiseConfig
from training.recipes.pwim import GLOVE
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.word_averaging import MINILM
from training.sources.labelled import CorpusPairs
from training.sources.rated import TeacherPairs

GLOVE_NORM = 6.0
TOKENS = 128  # limit of a served sentence: attention holds tokens x tokens x hidden values for each pair
PRINTED = MGIMConfig(hidden=100, dropout=0.1)
DEPARTED = replace(PRINTED, comparison=True, first_word=True, copied_start=True)
SICK = PairwiseConfig(RATINGS_OF_SICK, "pearson", both_orders=True, swap=True)
MSRP = PairwiseConfig(YES_OR_NO, "accuracy", both_orders=True, swap=True)


LAMBDA = 0.03  # of the paper; its penalty is lambda / 2n
AS_PRINTED = OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=None)


def _adam(rate: float) -> OptimiserConfig:
    return OptimiserConfig("adam", learning_rate=rate, embedding_learning_rate=None, clip=5.0)


def _run(
    name: str, corpus: Corpus, objective: PairwiseConfig, reaches: str, architecture: MGIMConfig, schedule: Schedule
) -> Recipe:
    return Recipe(
        name=name,
        reaches=reaches,
        table=MINILM,
        architecture=architecture,
        data=CorpusPairs(corpus),
        objective=objective,
        optimiser=_adam(2e-3),
        schedule=schedule,
        row_scale=GLOVE_NORM,
    )


LONG = Schedule(epochs=40, batch_size=25, patience=8)  # to convergence
SHORT = Schedule(epochs=6, batch_size=25, decay="linear")
_START: dict[str, Any] = {"start_seed": 1, "row_scale": 1.0}  # the run that it starts from has scaled its word vectors

_SICK_PRINTED = _run("mgim-sick-printed", "sick", SICK, "the paper's r .8993; 6 s an epoch on one core", PRINTED, LONG)
_SICK_PROJECTED = replace(
    _SICK_PRINTED, name="mgim-sick-projected", architecture=replace(PRINTED, projected=True, output_dropout=0.1)
)
_GLOVE = replace(_SICK_PROJECTED, name="mgim-sick-projected-glove", table=GLOVE, row_scale=1.0)
_SICK_ALONE = replace(_SICK_PRINTED, name="mgim-sick-alone", architecture=DEPARTED)  # no teacher
_TEACHER = replace(
    _SICK_ALONE,
    name="mgim-teacher",
    reaches="a start for the others; 5 minutes an epoch on one core",
    data=TeacherPairs(),
    schedule=Schedule(epochs=3, batch_size=64, decay="linear"),
)
_TEACHER_WORDS = replace(  # three more epochs, in which the word vectors are trained too
    _TEACHER,
    name="mgim-teacher-words",
    reaches="a start for the shipped runs; 7 minutes an epoch on one core",
    start="mgim-teacher",
    optimiser=replace(_adam(1e-3), embedding_learning_rate=3e-3),
    **_START,
)
_SICK = replace(
    _SICK_ALONE,
    name="mgim-sick",
    reaches="r .87 on SICK test; 6 s an epoch on one core",
    start="mgim-teacher-words",
    optimiser=_adam(7e-4),
    schedule=SHORT,
    publication=Publication("mgim-sick", "Multi-granularity interaction matching, SICK relatedness", max_tokens=TOKENS),
    **_START,
)

# The paper's ablation on MSRP: 78.8, without attention 76.3, two Bi-LSTMs without conditional encoding 75.1, random
# word vectors, trained with the rest, 70.3.
_MSRP_PRINTED = _run(
    "mgim-msrp-printed", "msrp", MSRP, "the paper's accuracy 78.8, F1 84.8; 10 s an epoch", PRINTED, LONG
)
_CONDITIONAL = replace(_MSRP_PRINTED, name="mgim-msrp-conditional", architecture=replace(PRINTED, attention=False))
_WORDS = replace(
    _MSRP_PRINTED, name="mgim-msrp-words", architecture=replace(PRINTED, attention=False, conditional=False)
)
_RANDOM = replace(
    _WORDS,
    name="mgim-msrp-random",
    random_start=True,
    row_scale=1.0,
    optimiser=replace(_WORDS.optimiser, embedding_learning_rate=1e-3),
)
_MSRP_ALONE = replace(_MSRP_PRINTED, name="mgim-msrp-alone", architecture=DEPARTED)  # no teacher
_TWEETS = (
    replace(  # pre-training on human-labelled tweets, whose wording is closer to news, after the teacher's ratings
        _MSRP_ALONE,
        name="mgim-tweets",
        reaches="a start for mgim-msrp; 1 minute an epoch on one core",
        data=CorpusPairs("twitter-labelled"),
        start="mgim-teacher",
        optimiser=_adam(1e-3),
        schedule=Schedule(epochs=4, batch_size=64, decay="linear"),
        **_START,
    )
)
_MSRP = replace(
    _MSRP_ALONE,
    name="mgim-msrp",
    reaches="accuracy 75, F1 83; 10 s an epoch on one core",
    start="mgim-tweets",
    architecture=replace(DEPARTED, dropout=0.3),
    optimiser=_adam(5e-4),
    schedule=replace(SHORT, epochs=8),
    **_START,
)

# Read in the given order, with the paper's L2 and without clipping; hidden and dropout within the paper's grid.
_SICK_AS_PRINTED = replace(
    _SICK_PRINTED,
    name="mgim-sick-as-printed",
    objective=PairwiseConfig(RATINGS_OF_SICK, "pearson", l2=LAMBDA / (2 * 4_404)),
    optimiser=AS_PRINTED,
)
_MSRP_AS_PRINTED = replace(
    _MSRP_PRINTED,
    name="mgim-msrp-as-printed",
    objective=PairwiseConfig(YES_OR_NO, "accuracy", l2=LAMBDA / (2 * 3_669)),
    optimiser=AS_PRINTED,
)
# A named departure: counts of what the sentences share. A run begins at a logistic regression on them, so the two
# without an epoch are scikit-learn's regressions.
_WITH_OVERLAPS = replace(DEPARTED, projected=True, shared_words=True, overlaps=True, dropout=0.3, output_dropout=0.4)
_OVERLAPS = replace(
    _MSRP_ALONE,
    name="mgim-msrp-overlaps",
    architecture=_WITH_OVERLAPS,
    reaches="accuracy 75, F1 83, from labels alone; 10 s an epoch",
    optimiser=_adam(5e-4),
    schedule=replace(SHORT, epochs=3),
    publication=Publication(
        "mgim-msrp", "Multi-granularity interaction matching, paraphrase identification", max_tokens=TOKENS
    ),
)
_REGRESSION_OVERLAPS = replace(
    _OVERLAPS,
    name="mgim-msrp-regression-overlaps",
    reaches="a logistic regression on n-gram overlaps, numbers, lengths and a cosine; no training",
    schedule=replace(SHORT, epochs=0),
    publication=None,
)
_REGRESSION = replace(
    _REGRESSION_OVERLAPS,
    name="mgim-msrp-regression",
    reaches="a logistic regression on shared words and numbers; no training",
    architecture=replace(_WITH_OVERLAPS, overlaps=False),
)

RECIPES = (
    *(_SICK_PRINTED, _SICK_PROJECTED, _SICK_ALONE, _TEACHER, _TEACHER_WORDS, _SICK, _SICK_AS_PRINTED),
    _GLOVE,
    *(_MSRP_PRINTED, _CONDITIONAL, _WORDS, _RANDOM, _MSRP_ALONE, _TWEETS, _MSRP_AS_PRINTED),
    *(_REGRESSION, _REGRESSION_OVERLAPS, _OVERLAPS),
    # With word vectors that were trained in pre-training.
    replace(_TWEETS, name="mgim-tweets-words", start="mgim-teacher-words"),
    replace(_MSRP, name="mgim-msrp-tuned-words", start="mgim-tweets-words"),
    _MSRP,
)
