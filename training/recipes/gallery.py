"""Encoders of Wieting et al. (2016) and Wieting & Gimpel (2017), trained to be served: the gallery.

All of them read the words of `avg-paraphrase` as it is published, frozen, so that `models/shared` keeps one table for
all. Projection, DAN, LSTM and LSTM-AVG are trained by their paper's margin loss, the others learn the cosines of the
teacher on 25,000 sentences, GRAN on 70,000 and those of near neighbours. The runs that hold the papers' own losses
against each other are in recipes/gran.py and recipes/paragram_phrase.py, and of these iRNN and BiGRAN are served
(`pp-irnn`, `gran-bi`): on frozen words their best epoch was the one before training. `sentiment` reads the same words.
"""

from dataclasses import replace
from typing import Literal

from training.models import ArchitectureConfig, DANConfig, GRANConfig, LSTMConfig, ProjectionConfig, RNNConfig
from training.objectives.regularisers import RegulariserConfig
from training.objectives.sentiment import SentimentConfig
from training.objectives.teacher_cosine import TeacherCosineConfig
from training.objectives.transfer import MarginConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.sources.labelled import SSTSentences
from training.recipes.sources.tables import ServedTable
from training.recipes.sources.transfer import ParaphrasePairs, TeacherSentences
from training.recipes.word_averaging import ROW_SCALE, SUPERVISED_SCALE

WORDS = ServedTable("avg-paraphrase", model="avg-paraphrase")
SENTENCES = TeacherSentences(limit=25_000)


def _by_teacher(model_id: str, title: str, architecture: ArchitectureConfig, *, epochs: int = 2) -> Recipe:
    """By the vectors that a teacher gives sentences, as the models are published."""
    return Recipe(
        name=f"served-{model_id}",
        reaches="see papers/RESULTS.md",  # of all recipes below, which replace what differs
        table=WORDS,
        architecture=architecture,
        data=SENTENCES,
        objective=TeacherCosineConfig(),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=None, clip=1.0),
        schedule=Schedule(epochs=epochs, batch_size=128, decay="linear"),
        row_scale=ROW_SCALE,  # of all below too: these words are short
        publication=Publication(model_id, title),
    )


def _by_margin(
    model_id: str, title: str, architecture: ArchitectureConfig, method: Literal["adam", "adagrad"], rate: float
) -> Recipe:
    """By the paper's own loss, with the pairs and settings of its row in paragram_phrase.py but for frozen words."""
    return replace(
        _by_teacher(model_id, title, architecture),
        data=ParaphrasePairs(limit=160_000),
        objective=MarginConfig(margin=0.4, regulariser=RegulariserConfig(composition=0.5e-5)),
        optimiser=OptimiserConfig(method, learning_rate=rate, embedding_learning_rate=None),
        schedule=Schedule(epochs=5, batch_size=100),
    )


def _last_state(model_id: str, title: str, architecture: LSTMConfig, *, pairs: int = 160_000) -> Recipe:
    """By the paper's own loss, regularised as in the release: words dropped, and shuffled."""
    return replace(
        _by_margin(model_id, title, architecture, "adam", 1e-3),
        data=ParaphrasePairs(limit=pairs),
        objective=MarginConfig(margin=0.4, scramble=0.75),
        schedule=Schedule(epochs=10, batch_size=100, patience=1),
        precision="bfloat16",
    )


def _gated(model_id: str, title: str, architecture: ArchitectureConfig) -> Recipe:
    """One epoch: a gated average begins near the average of its words."""
    return _by_teacher(model_id, title, architecture, epochs=1)


SERVED = (
    _by_margin("projection", "Averaging and a linear projection", ProjectionConfig(), "adam", 5e-4),
    _by_margin("dan", "Deep averaging network", DANConfig(), "adagrad", 0.05),
    replace(  # cosines of random batches alone do not move it: STS 2016 .763201 untrained, .763208 at best
        _by_teacher("gran", "Gated recurrent averaging network", GRANConfig(), epochs=3),
        data=TeacherSentences(limit=50_000, glosses=20_000),
        objective=TeacherCosineConfig(neighbour_weight=3.0),
        precision="bfloat16",
    ),
    replace(
        _by_margin("lstm-avg", "LSTM-AVG, the mean of an LSTM's states", LSTMConfig(pooling="mean"), "adam", 1e-3),
        schedule=Schedule(epochs=3, batch_size=100),
        precision="bfloat16",
    ),
    _last_state("lstm", "LSTM, its last state", LSTMConfig(word_dropout=0.2)),
    _last_state(
        "lstm-no-output-gate",
        "LSTM without its output gate",
        LSTMConfig(output_gate=False, word_dropout=0.2),
        pairs=80_000,
    ),
    _by_teacher("rnn", "Simple recurrent network, its last state", RNNConfig("tanh", memory=0.9), epochs=4),
    _gated("gran-3", "GRAN-3, a gated running sum", GRANConfig(variant=3)),
    _gated("gran-5", "GRAN-5, gates on words and on states", GRANConfig(variant=5)),
    _gated("gran-4", "GRAN-4, a gated running sum that its gates see", GRANConfig(variant=4)),
    _by_teacher("gran-2", "GRAN-2, gates on the LSTM's states", GRANConfig(variant=2)),
    _by_teacher("bilstm-avg", "BiLSTM-AVG, both directions added", LSTMConfig(pooling="mean", bidirectional=True)),
)


# Labels of sentences, and of the phrases that they are made of, by a BiLSTM-AVG half as wide as its words.
SENTIMENT = Recipe(
    name="sentiment",
    reaches="SST dev 69.7 % of three labels; 5 minutes on one core",
    table=WORDS,
    architecture=LSTMConfig(pooling="mean", bidirectional=True, hidden=128, dropout=0.3, word_dropout=0.1),
    data=SSTSentences(labels="ternary", phrases=True),
    objective=SentimentConfig(regulariser=RegulariserConfig(composition=1e-5), pool=50),
    optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=None, clip=1.0),
    schedule=Schedule(epochs=8, batch_size=256, decay="linear"),
    row_scale=SUPERVISED_SCALE,
    precision="bfloat16",
    publication=Publication("sentiment", "Sentiment of a sentence by a BiLSTM-AVG: negative, neutral, positive"),
)
RECIPES = (*SERVED, SENTIMENT)
