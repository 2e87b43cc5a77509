"""Models on the 40/10/50 split of STS 2012-2015 that are not in the papers; they start from `avg-paraphrase`.

Beside Table 8 of Wieting & Gimpel (2017), whose universal runs start from the margin loss; docs/papers/gran.md.
"""

from dataclasses import replace

from training.architectures import GRANConfig
from training.objectives.supervised import SupervisedConfig
from training.recipes.recipe import Schedule
from training.recipes.rows import RATINGS_STS
from training.recipes.word_averaging import AVG_SICK
from training.sources.rated import STSSplitPairs

_AVG = replace(  # trained as avg-sick is
    AVG_SICK,
    name="avg-sts",
    reaches="STS split, dev r 0.828",
    data=STSSplitPairs(),
    objective=SupervisedConfig(classes=RATINGS_STS, hidden=100),
    schedule=Schedule(epochs=12, batch_size=25, decay="linear"),
    publication=None,
)
RECIPES = (
    _AVG,
    # Its gates start at random. Rates, dropout, scale and no scrambling are the best of
    # `python -m training search gran-sts`, rounded.
    replace(
        _AVG,
        name="gran-sts",
        reaches="STS split, dev r 0.839; 3 minutes on one core",
        architecture=GRANConfig(dropout=0.1),
        objective=SupervisedConfig(classes=RATINGS_STS),
        optimiser=replace(_AVG.optimiser, learning_rate=3.5e-3, embedding_learning_rate=2.5e-3),
        schedule=Schedule(epochs=10, batch_size=25, decay="linear"),
        row_scale=20.0,
        precision="bfloat16",
    ),
)
