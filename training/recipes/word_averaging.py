"""Runs of the word averaging model: transfer (teacher and paper's recipe) and supervised on SICK."""

from dataclasses import replace

from training.architectures import WordAveragingConfig
from training.loop import Schedule
from training.objectives.supervised import SupervisedConfig
from training.objectives.teacher_cosine import TeacherCosineConfig
from training.objectives.transfer import MarginConfig
from training.optimisers import OptimiserConfig
from training.recipe import (
    ParaphrasePairs,
    Publication,
    Recipe,
    SickPairs,
    TableRecipe,
    TeacherSentences,
)
from training.regularisers import RegulariserConfig

MINILM = TableRecipe(name="minilm-256", dim=256)
# Frequent words of that table are short (mean norm 0.74, GloVe's 6.6), as SIF weighting made them: too short for gates
# and squashing functions to see. On trial, longer rows helped 8 of 10 encoders; averaging ignores their length.
ROW_SCALE = 8.0


def avg_paraphrase() -> Recipe:
    """What most others start from: regress in-batch cosines to the teacher's; no STS or SICK label or sentence."""
    return Recipe(
        name="avg-paraphrase",
        reaches="STS 2012-2015 yearly means 65.0 / 69.0 / 76.5 / 79.5, SICK 79.5",
        table=MINILM,
        architecture=WordAveragingConfig(),
        data=TeacherSentences(limit=400_000),
        objective=TeacherCosineConfig(),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=1e-3),
        schedule=Schedule(epochs=20, batch_size=256, decay="linear"),
        map_unseen=True,
    )


def avg_near() -> Recipe:
    """General purpose: what the run `avg-paraphrase` learnt, sharpened on near neighbours and WordNet's definitions."""
    return replace(
        avg_paraphrase(),
        name="avg-near",
        reaches="mean of the 20 sets 75.0; 5 minutes on one core",
        data=TeacherSentences(limit=400_000, glosses=100_000),
        objective=TeacherCosineConfig(neighbour_weight=3.0),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=7e-4),
        schedule=Schedule(epochs=2, batch_size=256, decay="linear"),
        start="avg-paraphrase",
        publication=Publication("avg-paraphrase", "Word averaging, general-purpose paraphrase similarity"),
    )


def avg_raw() -> Recipe:
    """No training: the word table's vectors averaged, the floor that every encoder over them starts from."""
    return Recipe(
        name="avg-raw",
        reaches="what averaging the distilled vectors gives",
        table=MINILM,
        architecture=WordAveragingConfig(),
        data=ParaphrasePairs(limit=160_000),
        objective=MarginConfig(),
        optimiser=OptimiserConfig(),
        schedule=Schedule(epochs=0, batch_size=100),
    )


def avg_wide() -> Recipe:
    """The same with every dimension of the teacher's, and WordNet's definitions among the sentences."""
    return replace(
        avg_paraphrase(),
        name="avg-wide",
        reaches="mean of the 20 sets 75.0",
        table=replace(MINILM, name="minilm-384", dim=384),
        data=TeacherSentences(limit=400_000, glosses=100_000),
        schedule=Schedule(epochs=12, batch_size=256, decay="linear"),
    )


def avg_wide_near() -> Recipe:
    """What `avg-near` is to `avg-paraphrase`, with every dimension of the teacher's."""
    return replace(avg_near(), name="avg-wide-near", table=avg_wide().table, start="avg-wide", publication=None)


def avg_margin() -> Recipe:
    """The paper's own recipe: margin loss on paraphrase pairs, from the distilled word table."""
    return Recipe(
        name="avg-margin",
        reaches="mean of the 20 sets about 71",
        table=MINILM,
        architecture=WordAveragingConfig(),
        data=ParaphrasePairs(limit=160_000),
        objective=MarginConfig(margin=0.4, negatives="max", regulariser=RegulariserConfig(words=1e-5)),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=1e-3),
        schedule=Schedule(epochs=10, batch_size=100, patience=3),
    )


def avg_margin_random() -> Recipe:
    """The paper's recipe with no teacher at all: word vectors start at random, only the pairs teach."""
    return Recipe(
        name="avg-margin-random",
        reaches="a floor: what paraphrase pairs alone teach",
        table=MINILM,
        architecture=WordAveragingConfig(),
        data=ParaphrasePairs(limit=160_000),
        objective=MarginConfig(margin=0.4, negatives="max"),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=1e-3),
        schedule=Schedule(epochs=10, batch_size=100, patience=3),
        random_start=True,
    )


def avg_sick() -> Recipe:
    """SICK relatedness and entailment on one encoder, started from the transfer model ("universal")."""
    return Recipe(
        name="avg-sick",
        reaches="SICK test r 0.870, entailment 84.6 %",
        table=MINILM,
        architecture=WordAveragingConfig(),
        data=SickPairs(),
        objective=SupervisedConfig(similarity_weight=1.0, entailment_weight=1.0, hidden=100, directed=True),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=3e-3),
        schedule=Schedule(epochs=20, batch_size=25, decay="linear"),
        row_scale=10.0,
        start="avg-paraphrase",
        publication=Publication("avg-sick", "Word averaging, SICK relatedness 1..5 and entailment", keep_words=40_000),
    )
