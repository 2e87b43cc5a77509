"""MaLSTM (Mueller & Thyagarajan 2016) on SICK: the paper's recipe with its ablations, without a teacher.

`training.recipes.malstm` has the published run. Departures from the paper: docs/papers/malstm.md.
"""

from dataclasses import replace

from papers.recipes.pwim import GLOVE
from training.models.malstm import MALSTM
from training.objectives.manhattan import ManhattanConfig
from training.recipes.recipe import OptimiserConfig, Recipe, Schedule
from training.recipes.sources.rated import SickPairs, STSPairs
from training.recipes.word_averaging import MINILM

SYNONYMS = SickPairs(synonyms=10_022)  # as many as in the paper

# The paper's parts, with no teacher but in the word vectors: with Adam until the development score is flat. With
# Adadelta, as there, every run was still rising at its last epoch (docs/papers/malstm.md).
_ADAM_ALONE = Recipe(
    name="malstm-adam-alone",
    reaches="SICK test r .831; a minute on one core",
    table=MINILM,
    architecture=MALSTM,
    data=SickPairs(),
    objective=ManhattanConfig(),
    optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=None, clip=5.0),
    schedule=Schedule(epochs=60, batch_size=32, patience=8),
)


def _adam_start(name: str, data: STSPairs, epochs: int) -> Recipe:
    """Pre-training, whose last epoch is kept: SICK's development part is not what it is for."""
    return replace(
        _ADAM_ALONE,
        name=name,
        reaches="a start for malstm-adam runs; half a minute on one core",
        data=data,
        optimiser=replace(_ADAM_ALONE.optimiser, learning_rate=2e-3),
        schedule=Schedule(epochs=epochs, batch_size=32, decay="linear", keep="last"),
    )


RECIPES = (
    _ADAM_ALONE,
    replace(_ADAM_ALONE, name="malstm-adam-cosine", objective=ManhattanConfig(similarity="cosine")),
    _adam_start("malstm-adam-sts", STSPairs(), epochs=8),
    _adam_start("malstm-adam-sts-2013", STSPairs(only_2013=True), epochs=20),
    replace(_ADAM_ALONE, name="malstm-adam", start="malstm-adam-sts", reaches="SICK test r .865"),
    replace(_ADAM_ALONE, name="malstm-adam-2013", start="malstm-adam-sts-2013", reaches="SICK test r .865"),
    replace(_ADAM_ALONE, name="malstm-adam-synonyms-alone", data=SYNONYMS, reaches="the paper's r .86; 4 minutes"),
    replace(
        _ADAM_ALONE,
        name="malstm-adam-synonyms",
        data=SYNONYMS,
        start="malstm-adam-sts",
        reaches="the paper's r .8822; 4 minutes",
    ),
    replace(_ADAM_ALONE, name="malstm-adam-two-layers", architecture=replace(MALSTM, layers=2)),
    replace(_ADAM_ALONE, name="malstm-adam-both-ways", architecture=replace(MALSTM, bidirectional=True)),
    # The paper's kind of word vectors; 300 values of about length 6.6, brought to that of the distilled rows here.
    replace(_ADAM_ALONE, name="malstm-adam-glove", table=GLOVE, row_scale=0.3),
)
