"""Transfer runs under a teacher, which the papers did not have: regress in-batch cosines to a sentence-transformer's.

Beside the margin runs of the same encoders in recipes/gran.py. Word vectors start from `avg-paraphrase`, trained the
same way; the encoder over them starts at random.
"""

from dataclasses import replace

from training.architectures import ArchitectureConfig, GRANConfig, LSTMConfig
from training.loop import Schedule
from training.objectives.teacher_cosine import TeacherCosineConfig
from training.objectives.teacher_margin import TeacherMarginConfig
from training.objectives.transfer import MarginConfig
from training.optimisers import OptimiserConfig
from training.recipe import ParaphrasePairs, Publication, Recipe, SentencesAndPairs, TeacherSentences
from training.recipes.word_averaging import MINILM, ROW_SCALE, avg_wide


def _teacher(
    name: str, architecture: ArchitectureConfig, reaches: str, publication: Publication | None = None
) -> Recipe:
    return Recipe(
        name=name,
        reaches=reaches,
        table=MINILM,
        architecture=architecture,
        data=TeacherSentences(limit=400_000),
        objective=TeacherCosineConfig(),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=1e-3),
        schedule=Schedule(epochs=5, batch_size=256, decay="linear"),
        start="avg-paraphrase",
        row_scale=ROW_SCALE,
        precision="bfloat16",
        publication=publication,
    )


def gran_paraphrase() -> Recipe:
    """GRAN: gates over the words of the averaging model."""
    return _teacher("gran-paraphrase", GRANConfig(), "mean of the 20 sets 75.0; 3 minutes an epoch on one core")


def gran_glosses() -> Recipe:
    """GRAN with WordNet's definitions among the sentences, dropped words and freer word vectors."""
    return replace(
        gran_paraphrase(),
        name="gran-glosses",
        architecture=GRANConfig(word_dropout=0.1),
        data=TeacherSentences(limit=400_000, glosses=100_000),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=4e-3),
        schedule=Schedule(epochs=4, batch_size=256, decay="linear"),
    )


def gran_near() -> Recipe:
    """GRAN with near neighbours and definitions, over the words of the averaging model that had them."""
    return replace(
        gran_glosses(),
        name="gran-near",
        reaches="mean of the 20 sets 75.0; 20 minutes an epoch on one core",
        objective=TeacherCosineConfig(neighbour_weight=3.0),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=1e-3),
        schedule=Schedule(epochs=2, batch_size=256, decay="linear"),
        start="avg-near",
    )


def lstm_avg_paraphrase() -> Recipe:
    """LSTM-AVG."""
    return _teacher("lstm-avg-paraphrase", LSTMConfig(pooling="mean"), "below GRAN; 3 minutes an epoch on one core")


def avg_joint() -> Recipe:
    """Word averaging, by the teacher and the paraphrase pairs together, from what the teacher alone taught."""
    start = avg_wide()
    assert isinstance(start.data, TeacherSentences)
    return replace(
        start,
        name="avg-joint",
        reaches="mean of the 20 sets 75.0",
        data=SentencesAndPairs(start.data, ParaphrasePairs(limit=160_000)),
        objective=TeacherMarginConfig(TeacherCosineConfig(), MarginConfig(margin=0.4), margin_weight=0.02),
        schedule=Schedule(epochs=6, batch_size=256, decay="linear"),
        start=start.name,
        map_unseen=False,  # its start has done it
    )
