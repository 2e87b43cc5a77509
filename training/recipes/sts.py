"""Models of ours on the 40/10/50 split of STS 2012-2015: what `avg-paraphrase` learnt of a teacher, then the ratings.

Beside Table 8 of Wieting & Gimpel (2017), whose universal runs start from the margin loss; docs/papers/gran.md.
"""

from dataclasses import replace

from training.architectures import GRANConfig
from training.loop import Schedule
from training.objectives.supervised import SupervisedConfig
from training.recipe import Recipe, STSSplitPairs
from training.recipes.supervised import RATINGS_STS, ROW_SCALE, SCRAMBLE
from training.recipes.word_averaging import avg_sick


def avg_sts() -> Recipe:
    """Averaging, as avg-sick is trained."""
    return replace(
        avg_sick(),
        name="avg-sts",
        reaches="STS split, dev r 0.828",
        data=STSSplitPairs(),
        objective=SupervisedConfig(classes=RATINGS_STS, hidden=100),
        schedule=Schedule(epochs=12, batch_size=25, decay="linear"),
        publication=None,
    )


def gran_sts() -> Recipe:
    """GRAN with scrambling, from the words of `avg-paraphrase`; its gates start at random."""
    start = avg_sts()
    return replace(
        start,
        name="gran-sts",
        reaches="STS split, dev r ?",
        architecture=GRANConfig(),
        objective=SupervisedConfig(classes=RATINGS_STS, hidden=50, scramble=SCRAMBLE),
        optimiser=replace(start.optimiser, learning_rate=1e-3, embedding_learning_rate=1e-3),
        schedule=Schedule(epochs=10, batch_size=25, decay="linear"),
        row_scale=ROW_SCALE,
        precision="bfloat16",
    )
