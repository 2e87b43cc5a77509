"""Runs of PWIM (He & Lin 2016) that are published: SICK and answer selection, from a teacher's ratings.

Words are the distilled table, frozen as in the paper. Adam at 5e-4 with linear decay and batch 16 instead of the
release's RMSProp at 1e-4 and batch 1. docs/papers/pwim.md has the scores; `papers.recipes.pwim` the paper's tables.
"""

from dataclasses import replace

from training.data.pairwise import Corpus
from training.models import PWIMConfig
from training.objectives.pairwise import RATINGS_OF_SICK, YES_OR_NO, PairwiseConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.sources.labelled import CorpusPairs, TeacherAnswers
from training.recipes.sources.rated import TeacherPairs
from training.recipes.word_averaging import MINILM

# Vectors of frequent words are short (mean norm 0.74); a norm of about 2 was best on development pairs, also for GloVe.
PWIM = PWIMConfig(grid=8, word_scale=3.0)
LONG = 48  # tokens: the paper's padding of answers
ANSWERS = replace(PWIM, limit=LONG)


def adam(rate: float = 5e-4) -> OptimiserConfig:
    """The optimiser of all runs."""
    return OptimiserConfig("adam", learning_rate=rate, embedding_learning_rate=None, clip=50.0)


def run(
    name: str,
    corpus: Corpus,
    objective: PairwiseConfig,
    reaches: str,
    architecture: PWIMConfig = PWIM,
    epochs: int = 10,
) -> Recipe:
    """A run on the labels of a corpus."""
    return Recipe(
        name=name,
        reaches=reaches,
        table=MINILM,
        architecture=architecture,
        data=CorpusPairs(corpus),
        objective=objective,
        optimiser=adam(),
        schedule=Schedule(epochs=epochs, batch_size=16, decay="linear"),
        max_tokens=architecture.limit,
    )


SICK = PairwiseConfig(RATINGS_OF_SICK, "pearson", both_orders=True)
QA = PairwiseConfig(YES_OR_NO, "mrr", negatives=3)

SICK_ALONE = run("pwim-sick-alone", "sick", SICK, "the paper's r .8784; 20 s an epoch on one core")
_TEACHER = replace(
    SICK_ALONE,
    name="pwim-teacher",
    reaches="a start for the others; 20 minutes an epoch on one core",
    data=TeacherPairs(),
    schedule=Schedule(epochs=1, batch_size=64, decay="linear"),
)


def from_teacher(recipe: Recipe, name: str, rate: float, epochs: int) -> Recipe:
    """The same after `pwim-teacher`."""
    return replace(
        recipe,
        name=name,
        start="pwim-teacher",
        start_seed=1,
        optimiser=adam(rate),
        schedule=replace(recipe.schedule, epochs=epochs),
    )


def selection(name: str, corpus: Corpus, reaches: str, epochs: int) -> Recipe:
    """Answer selection, after `pwim-answers`."""
    recipe = run(name, corpus, QA, reaches, architecture=ANSWERS, epochs=epochs)
    return replace(recipe, start="pwim-answers", start_seed=1, optimiser=adam(2e-4))


_QA_TEACHER = replace(  # pre-training: a teacher's cosine of every question with every candidate
    run("pwim-answers", "wikiqa", replace(QA, negatives=None), "a start for the others", architecture=ANSWERS),
    data=TeacherAnswers(limit=16_000),
    start="pwim-teacher",
    start_seed=1,
    schedule=Schedule(epochs=2, batch_size=32, decay="linear"),
)
RECIPES = (
    _TEACHER,
    replace(
        from_teacher(SICK_ALONE, "pwim-sick", 2e-4, 6),
        publication=Publication("pwim-sick", "Pairwise word interaction, SICK relatedness"),
    ),
    _QA_TEACHER,
    replace(  # both corpora: the second stage of /rank
        selection("pwim-qa", "answers", "the paper's figures of both", 2),
        publication=Publication("pwim-qa", "Pairwise word interaction, answer selection"),
    ),
)
