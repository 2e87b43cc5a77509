"""Transfer runs with a teacher (not in the papers): in-batch cosines are regressed to a sentence-transformer's.

recipes/gran.py has margin runs of the same encoders. Word vectors start from `avg-paraphrase`, trained the same way;
the encoder over them starts at random.
"""

from dataclasses import replace

from training.architectures import ArchitectureConfig, GRANConfig, LSTMConfig
from training.objectives.teacher_cosine import TeacherCosineConfig
from training.objectives.teacher_margin import TeacherMarginConfig
from training.objectives.transfer import MarginConfig
from training.recipes.recipe import OptimiserConfig, Recipe, Schedule
from training.recipes.word_averaging import AVG_WIDE, MINILM, ROW_SCALE
from training.sources.transfer import ParaphrasePairs, SentencesAndPairs, TeacherSentences


def _teacher(name: str, architecture: ArchitectureConfig, reaches: str) -> Recipe:
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
    )


_GRAN = _teacher("gran-paraphrase", GRANConfig(), "mean of the 20 sets 75.0; 3 minutes an epoch on one core")
_GRAN_GLOSSES = replace(  # WordNet's definitions among the sentences, word dropout, a higher rate of the word vectors
    _GRAN,
    name="gran-glosses",
    architecture=GRANConfig(word_dropout=0.1),
    data=TeacherSentences(limit=400_000, glosses=100_000),
    optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=4e-3),
    schedule=Schedule(epochs=4, batch_size=256, decay="linear"),
)
assert isinstance(AVG_WIDE.data, TeacherSentences)

RECIPES = (
    _GRAN,
    _GRAN_GLOSSES,
    replace(  # near neighbours too, from the words of the averaging model that was trained with them
        _GRAN_GLOSSES,
        name="gran-near",
        reaches="mean of the 20 sets 75.0; 20 minutes an epoch on one core",
        objective=TeacherCosineConfig(neighbour_weight=3.0),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=1e-3),
        schedule=Schedule(epochs=2, batch_size=256, decay="linear"),
        start="avg-near",
    ),
    _teacher("lstm-avg-paraphrase", LSTMConfig(pooling="mean"), "below GRAN; 3 minutes an epoch on one core"),
    replace(  # the teacher and the paraphrase pairs together, from what the teacher alone taught
        AVG_WIDE,
        name="avg-joint",
        reaches="mean of the 20 sets 75.0",
        data=SentencesAndPairs(AVG_WIDE.data, ParaphrasePairs(limit=160_000)),
        objective=TeacherMarginConfig(TeacherCosineConfig(), MarginConfig(margin=0.4), margin_weight=0.02),
        schedule=Schedule(epochs=6, batch_size=256, decay="linear"),
        start=AVG_WIDE.name,
        map_unseen=False,  # its start has done it
    ),
)
