"""Transfer runs of Wieting et al. (2016), Table 2: the published one, and how all of them are made.

The paper trains on PPDB phrase pairs for 10 epochs; here all encoders train on the same 160,000 sentence
pairs until the mean of STS 2016 falls, 10 epochs at most. The release multiplies its penalties by 1/2, the
paper does not: lambda_c and lambda_w below are those of the release, halved. Embeddings are as wide as the words: 256,
the paper's 300.
"""

from dataclasses import replace

from training.models import ArchitectureConfig, LSTMConfig, RNNConfig
from training.objectives.losses import Negatives
from training.objectives.regularisers import RegulariserConfig
from training.objectives.transfer import MarginConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.sources.transfer import ParaphrasePairs
from training.recipes.word_averaging import MINILM, ROW_SCALE


def transfer(
    name: str,
    architecture: ArchitectureConfig,
    paper: float,
    time: str,
    optimiser: OptimiserConfig,
    regulariser: RegulariserConfig,
    batch_size: int = 100,
    negatives: Negatives = "max",
) -> Recipe:
    """`paper`: its mean of the 22 sets; `time`: of an epoch on one core."""
    recurrent = isinstance(architecture, RNNConfig | LSTMConfig)
    return Recipe(
        name=name,
        reaches=f"{_ON_22} {paper}; {time} an epoch on one core",
        table=MINILM,
        architecture=architecture,
        data=ParaphrasePairs(limit=160_000),
        objective=MarginConfig(margin=0.4, negatives=negatives, regulariser=regulariser),
        optimiser=optimiser,
        schedule=Schedule(epochs=10, batch_size=batch_size, patience=1),
        row_scale=ROW_SCALE,
        precision="bfloat16" if recurrent else "float32",
    )


def adam(rate: float, clip: float | None = None) -> OptimiserConfig:
    """Adam at one rate for everything."""
    return OptimiserConfig("adam", learning_rate=rate, embedding_learning_rate=rate, clip=clip)


_ON_22 = "the paper's mean of the 22 sets:"
_IRNN = RegulariserConfig(0.0, 0.5e-6, 5.0)  # it starts as word averaging and is regularised towards that start
PP_IRNN = replace(
    transfer("pp-irnn", RNNConfig("identity"), 65.7, "1 minute", adam(5e-3, clip=1.0), _IRNN),
    publication=Publication("irnn", "iRNN, begun at the identity, its last state", keep_words=40_000),
)
RECIPES = (PP_IRNN,)
