"""MaLSTM (Mueller & Thyagarajan 2016) on SICK: the published run.

LSTM of 50 units without peepholes, last state, forget bias 2.5, g = exp(-L1), calibrated by local-linear regression.
Departures from the paper: docs/papers/malstm.md.
"""

from dataclasses import replace

from training.models.malstm import MALSTM
from training.objectives.manhattan import ManhattanConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.sources.rated import SickPairs, TeacherPairs
from training.recipes.word_averaging import MINILM
from training.teacher.tuning import TuningConfig

_TEACHER = Recipe(  # pre-training on pairs that a teacher rates and labels, from the words of the averaging model
    name="malstm-teacher",
    reaches="SICK trial r 0.86; 6 minutes to tune the teacher, 5 minutes to train, on one core",
    table=MINILM,
    architecture=MALSTM,
    data=TeacherPairs(tuning=TuningConfig(entailment_weight=1.0)),
    objective=ManhattanConfig(entailment_weight=0.1),
    optimiser=OptimiserConfig("adam", learning_rate=2e-3, embedding_learning_rate=1e-3, clip=5.0),
    schedule=Schedule(epochs=4, batch_size=128, decay="linear"),
    start="avg-paraphrase",
    start_seed=1,
    row_scale=2.0,
)
_SICK = replace(
    _TEACHER,
    name="malstm-sick",
    reaches="SICK test r 0.866, rho 0.797, MSE 0.256; entailment 84.2 %",
    data=SickPairs(),
    objective=ManhattanConfig(calibrate_on="out-of-fold", entailment=True, entailment_weight=0.03),
    optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=None, clip=5.0),
    schedule=Schedule(epochs=10, batch_size=32),
    start="malstm-teacher",
    start_seed=None,
    row_scale=1.0,
    publication=Publication("malstm-sick", "MaLSTM, SICK relatedness 1..5 and entailment", keep_words=40_000),
)

RECIPES = (_TEACHER, _SICK)
