"""Transfer runs of Wieting & Gimpel (2017): the published one, and how those of its Tables 1 to 3 are made.

Encoders and regularisers under one margin loss.

Batch 100, Adam at 0.001, no lambda_c, margin 0.4 (averaging 0.6), until the mean of STS 2016 falls (BiGRAN one epoch);
the epoch with the best is kept. Settings are those of the release, its halved lambda_w included. The paper trains on
167,689 pairs of SimpWiki, we on 160,000 pairs. Embeddings are as wide as the words: 256, in the paper 300.
"""

from dataclasses import replace
from typing import Any

from training.models import ArchitectureConfig, GRANConfig, WordAveragingConfig
from training.objectives.regularisers import RegulariserConfig
from training.objectives.transfer import MarginConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.sources.transfer import ParaphrasePairs
from training.recipes.word_averaging import MINILM, ROW_SCALE

_PAIRS = ParaphrasePairs(limit=160_000)


def transfer(
    name: str,
    architecture: ArchitectureConfig,
    paper: float | str,
    *,
    scramble: float = 0.0,
    words: float = 0.0,
    margin: float = 0.4,
    data: ParaphrasePairs = _PAIRS,
    time: str = "2 minutes an epoch",
) -> Recipe:
    """`paper`: what it says of the mean of 22 sets, with STS 2016 for model selection."""
    regulariser = RegulariserConfig(words=words)
    return Recipe(
        name=name,
        reaches=f"the paper's mean of the 22 sets: {paper}; {time} on one core",
        table=MINILM,
        architecture=architecture,
        data=data,
        objective=MarginConfig(margin=margin, regulariser=regulariser, scramble=scramble),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=1e-3),
        schedule=Schedule(epochs=10, batch_size=100, patience=1),
        row_scale=ROW_SCALE,
        precision="float32" if isinstance(architecture, WordAveragingConfig) else "bfloat16",
    )


def gran(name: str, architecture: GRANConfig, paper: float | str, **settings: Any) -> Recipe:
    """GRAN with dropout and scrambling: the release's settings, for all its variants."""
    settings = {"time": "3 minutes an epoch", **settings}
    return transfer(name, replace(architecture, dropout=0.4), paper, scramble=0.5, **settings)


GRAN_BI = replace(
    gran("gran-bi", GRANConfig(bidirectional=True), 68.4, time="4 minutes an epoch"),
    schedule=Schedule(epochs=1, batch_size=100),
    publication=Publication("bigran", "BiGRAN, a GRAN in each direction, added", keep_words=40_000),
)
RECIPES = (GRAN_BI,)
