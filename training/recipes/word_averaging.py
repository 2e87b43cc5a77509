"""Runs of the word averaging model: transfer (with a teacher) and supervised on SICK."""

from dataclasses import replace

from training.models import WordAveragingConfig
from training.objectives.supervised import SupervisedConfig
from training.objectives.teacher_cosine import TeacherCosineConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.sources.rated import SickPairs
from training.recipes.sources.tables import TableRecipe
from training.recipes.sources.transfer import TeacherSentences

MINILM = TableRecipe(name="minilm-256", dim=256)
# Because of SIF weighting, vectors of frequent words are short (mean norm 0.74, GloVe's 6.6): too short for gates and
# activation functions. In trials, scaling improved 8 of 10 encoders; averaging is unaffected by it.
ROW_SCALE = 8.0
# Larger for supervised runs: their head needs large products of embeddings; chosen on dev (docs/papers/gran.md).
SUPERVISED_SCALE = 16.0


AVG_PARAPHRASE = Recipe(  # the start of most others: cosines of batches regressed to the teacher's, no STS or SICK data
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
_AVG_NEAR = replace(  # general purpose: further trained on near neighbours and WordNet's definitions
    AVG_PARAPHRASE,
    name="avg-near",
    reaches="mean of the 20 sets 75.0; 5 minutes on one core",
    data=TeacherSentences(limit=400_000, glosses=100_000),
    objective=TeacherCosineConfig(neighbour_weight=3.0),
    optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=7e-4),
    schedule=Schedule(epochs=2, batch_size=256, decay="linear"),
    start="avg-paraphrase",
    publication=Publication("avg-paraphrase", "Word averaging, general-purpose paraphrase similarity"),
)
AVG_SICK = Recipe(  # relatedness and entailment on one encoder, started from the transfer model ("universal")
    name="avg-sick",
    reaches="SICK test r 0.870, entailment 84.6 %",
    table=MINILM,
    architecture=WordAveragingConfig(),
    data=SickPairs(),
    objective=SupervisedConfig(entailment_weight=1.0, hidden=100, directed=True),
    optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=3e-3),
    schedule=Schedule(epochs=20, batch_size=25, decay="linear"),
    row_scale=10.0,
    start="avg-paraphrase",
    publication=Publication("avg-sick", "Word averaging, SICK relatedness 1..5 and entailment", keep_words=40_000),
)

RECIPES = (
    AVG_PARAPHRASE,
    _AVG_NEAR,
    AVG_SICK,
)
