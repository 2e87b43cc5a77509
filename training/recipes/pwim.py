"""Runs of PWIM (He & Lin 2016): every corpus of the paper, its ablations, and what a teacher adds.

Words are the distilled table, frozen as in the paper. Adam at 5e-4 with linear decay and batch 16 in place of the
release's RMSProp at 1e-4 and batch 1 (`pwim-sick-paper` keeps those). docs/papers/pwim.md has the scores.
"""

from dataclasses import replace

from training.architectures import PWIMConfig
from training.corpora.pairwise import Corpus
from training.loop import Schedule
from training.objectives.pairwise import RATINGS_OF_SICK, RATINGS_OF_STS, YES_OR_NO, PairwiseConfig
from training.optimisers import OptimiserConfig
from training.recipe import CorpusPairs, Recipe
from training.recipes.word_averaging import MINILM

SHORT, LONG = 32, 48  # tokens: the paper's paddings
PWIM = PWIMConfig(grid=8, unit_words=True, word_scale=2.0)
ANSWERS = replace(PWIM, limit=LONG)


def _adam(rate: float = 5e-4) -> OptimiserConfig:
    return OptimiserConfig("adam", learning_rate=rate, embedding_learning_rate=None, clip=50.0)


def _run(
    name: str,
    corpus: Corpus,
    objective: PairwiseConfig,
    reaches: str,
    architecture: PWIMConfig = PWIM,
    epochs: int = 10,
) -> Recipe:
    return Recipe(
        name=name,
        reaches=reaches,
        table=MINILM,
        architecture=architecture,
        data=CorpusPairs(corpus),
        objective=objective,
        optimiser=_adam(),
        schedule=Schedule(epochs=epochs, batch_size=16, decay="linear"),
        max_tokens=architecture.limit,
    )


SICK = PairwiseConfig(RATINGS_OF_SICK, "pearson", both_orders=True)
STS = PairwiseConfig(RATINGS_OF_STS, "pearson", both_orders=True)
QA = PairwiseConfig(YES_OR_NO, "mrr", negatives=3)


def sick_alone() -> Recipe:
    """SICK from the labels alone."""
    return _run("pwim-sick-alone", "sick", SICK, "the paper's r .8784; 15 s an epoch on one core")


def sick_paper() -> Recipe:
    """The same as released: fixed 32x32, one order, RMSProp at 1e-4, batch 1."""
    recipe = _run("pwim-sick-paper", "sick", replace(SICK, both_orders=False), "r .8784; 90 s an epoch on one core")
    return replace(
        recipe,
        architecture=replace(PWIM, grid=SHORT),
        optimiser=OptimiserConfig("rmsprop", learning_rate=1e-4, embedding_learning_rate=None, clip=50.0),
        schedule=Schedule(epochs=8, batch_size=1),
    )
