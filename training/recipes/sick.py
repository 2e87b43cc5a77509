"""Word averaging on SICK, not in the papers: pre-trained on pairs rated by a tuned teacher, then on SICK train."""

from dataclasses import replace

from training.models import WordAveragingConfig
from training.objectives.supervised import SupervisedConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.sources.rated import SickPairs, TeacherPairs
from training.recipes.word_averaging import MINILM

HIDDEN = 100  # of both heads, as in avg-sick


_RATED = Recipe(  # similarity on the teacher's ratings; the run on SICK keeps its head
    name="avg-sick-rated",
    reaches="the start of avg-sick-tuned",
    table=MINILM,
    architecture=WordAveragingConfig(),
    data=TeacherPairs(),
    objective=SupervisedConfig(hidden=HIDDEN),
    optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=1e-3),
    schedule=Schedule(epochs=3, batch_size=128, decay="linear"),
    start="avg-paraphrase",
    row_scale=10.0,
)
RECIPES = (
    _RATED,
    replace(
        _RATED,
        name="avg-sick-tuned",
        reaches="SICK trial r 0.888, entailment 86.0 %",
        data=SickPairs(),
        objective=SupervisedConfig(entailment_weight=1.0, hidden=HIDDEN, directed=True),
        optimiser=OptimiserConfig("adam", learning_rate=2e-3, embedding_learning_rate=3e-3),
        schedule=Schedule(epochs=8, batch_size=25, decay="linear"),
        start=_RATED.name,
        row_scale=1.0,  # the run it starts from has scaled its rows
        publication=Publication("avg-sick-tuned", "Word averaging, SICK relatedness and entailment", keep_words=40_000),
    ),
)
