"""Runs of MGIM (Li et al. 2019) that are published, of MSRP and SICK; `papers.recipes.mgim` has the paper's tables.

The published runs differ from the paper (reasons in docs/papers/mgim.md): h_N takes its backward state from the first
word, |h - r| and h * r are added, the second Bi-LSTM starts as a copy of the first; that of SICK is pre-trained on a
teacher's ratings, that of MSRP (`mgim-msrp-overlaps`, published as `mgim-msrp`) has counts of shared words beside spr.
Word vectors are the distilled table, frozen, scaled by 6 to about the norm of GloVe's.
"""

from dataclasses import replace
from typing import Any

from training.data.pairwise import Corpus
from training.models import MGIMConfig
from training.objectives.pairwise import RATINGS_OF_SICK, YES_OR_NO, PairwiseConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.sources.labelled import CorpusPairs
from training.recipes.sources.rated import TeacherPairs
from training.recipes.word_averaging import MINILM

GLOVE_NORM = 6.0
TOKENS = 128  # limit of a served sentence: attention holds tokens x tokens x hidden values for each pair
PRINTED = MGIMConfig(hidden=100, dropout=0.1)
DEPARTED = replace(PRINTED, comparison=True, first_word=True, copied_start=True)
SICK = PairwiseConfig(RATINGS_OF_SICK, "pearson", both_orders=True, swap=True)
MSRP = PairwiseConfig(YES_OR_NO, "accuracy", both_orders=True, swap=True)


def adam(rate: float) -> OptimiserConfig:
    """The optimiser of all runs."""
    return OptimiserConfig("adam", learning_rate=rate, embedding_learning_rate=None, clip=5.0)


def run(
    name: str, corpus: Corpus, objective: PairwiseConfig, reaches: str, architecture: MGIMConfig, schedule: Schedule
) -> Recipe:
    """A run on the labels of a corpus."""
    return Recipe(
        name=name,
        reaches=reaches,
        table=MINILM,
        architecture=architecture,
        data=CorpusPairs(corpus),
        objective=objective,
        optimiser=adam(2e-3),
        schedule=schedule,
        row_scale=GLOVE_NORM,
    )


LONG = Schedule(epochs=40, batch_size=25, patience=8)  # to convergence
SHORT = Schedule(epochs=6, batch_size=25, decay="linear")
START: dict[str, Any] = {"start_seed": 1, "row_scale": 1.0}  # the run that it starts from has scaled its word vectors

SICK_PRINTED = run("mgim-sick-printed", "sick", SICK, "the paper's r .8993; 6 s an epoch on one core", PRINTED, LONG)
SICK_ALONE = replace(SICK_PRINTED, name="mgim-sick-alone", architecture=DEPARTED)  # no teacher
_TEACHER = replace(
    SICK_ALONE,
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
    optimiser=replace(adam(1e-3), embedding_learning_rate=3e-3),
    **START,
)
_SICK = replace(
    SICK_ALONE,
    name="mgim-sick",
    reaches="r .87 on SICK test; 6 s an epoch on one core",
    start="mgim-teacher-words",
    optimiser=adam(7e-4),
    schedule=SHORT,
    publication=Publication("mgim-sick", "Multi-granularity interaction matching, SICK relatedness", max_tokens=TOKENS),
    **START,
)

MSRP_PRINTED = run(
    "mgim-msrp-printed", "msrp", MSRP, "the paper's accuracy 78.8, F1 84.8; 10 s an epoch", PRINTED, LONG
)
MSRP_ALONE = replace(MSRP_PRINTED, name="mgim-msrp-alone", architecture=DEPARTED)  # no teacher
# A named departure: counts of what the sentences share. A run begins at a logistic regression on them.
WITH_OVERLAPS = replace(DEPARTED, projected=True, shared_words=True, overlaps=True, dropout=0.3, output_dropout=0.4)
OVERLAPS = replace(
    MSRP_ALONE,
    name="mgim-msrp-overlaps",
    architecture=WITH_OVERLAPS,
    reaches="accuracy 75, F1 83, from labels alone; 10 s an epoch",
    optimiser=adam(5e-4),
    schedule=replace(SHORT, epochs=3),
    publication=Publication(
        "mgim-msrp", "Multi-granularity interaction matching, paraphrase identification", max_tokens=TOKENS
    ),
)

RECIPES = (_TEACHER, _TEACHER_WORDS, _SICK, OVERLAPS)
