"""MaLSTM (Mueller & Thyagarajan 2016) on SICK: the paper's recipe with its ablations, and the one that is shipped.

LSTM of 50 units without peepholes, last state, forget bias 2.5, g = exp(-L1), calibrated by local-linear regression.
What differs from the paper: docs/papers/malstm.md.
"""

from dataclasses import replace

from training.architectures import LSTMConfig
from training.loop import Schedule
from training.objectives.manhattan import ManhattanConfig
from training.optimisers import OptimiserConfig
from training.recipe import Publication, Recipe, SickPairs, STSPairs, TeacherPairs
from training.recipes.word_averaging import MINILM
from training.tuned_teacher import TuningConfig

MALSTM = LSTMConfig(hidden=50, peepholes=False, forget_bias=2.5)
SYNONYMS = SickPairs(synonyms=10_022)  # as many as in the paper


def teacher_pretraining() -> Recipe:
    """Pre-training on pairs a teacher rates and labels; words start from the averaging model."""
    return Recipe(
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


def sick() -> Recipe:
    """The shipped model: teacher pre-training, then SICK train."""
    return Recipe(
        name="malstm-sick",
        reaches="SICK test r 0.866, rho 0.797, MSE 0.256; entailment 84.2 %",
        table=MINILM,
        architecture=MALSTM,
        data=SickPairs(),
        objective=ManhattanConfig(calibrate_on="out-of-fold", entailment=True, entailment_weight=0.03),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=None, clip=5.0),
        schedule=Schedule(epochs=10, batch_size=32),
        start="malstm-teacher",
        publication=Publication("malstm-sick", "MaLSTM, SICK relatedness 1..5 and entailment", keep_words=40_000),
    )


def sick_synonyms() -> Recipe:
    """The shipped recipe with the paper's synonyms; its training pairs know each other, so no folds."""
    return replace(
        sick(),
        name="malstm-sick-synonyms",
        reaches="below malstm-sick: the thesaurus is noise to a pre-trained model",
        data=SYNONYMS,
        objective=ManhattanConfig(),
        schedule=Schedule(epochs=5, batch_size=32),
        publication=None,
    )


def sick_alone() -> Recipe:
    """The shipped recipe without pre-training: its words, an LSTM that starts at random."""
    return replace(
        sick(),
        name="malstm-sick-alone",
        reaches="SICK trial r 0.85",
        objective=ManhattanConfig(),
        schedule=Schedule(epochs=20, batch_size=32),
        start="avg-paraphrase",
        start_seed=1,
        row_scale=2.0,
        publication=None,
    )


def _paper(name: str, data: SickPairs | STSPairs, start: str | None, reaches: str, epochs: int) -> Recipe:
    return Recipe(
        name=name,
        reaches=reaches,
        table=MINILM,
        architecture=MALSTM,
        data=data,
        objective=ManhattanConfig(),
        optimiser=OptimiserConfig("adadelta", learning_rate=1.0, embedding_learning_rate=None, clip=5.0),
        schedule=Schedule(epochs=epochs, batch_size=32),
        start=start,
        row_scale=2.0 if start is None else 1.0,  # a start's rows are scaled already
    )


def paper_pretraining() -> Recipe:
    """The paper's pre-training, on the STS pairs of its release that are not SICK's."""
    return _paper("malstm-sts", STSPairs(), None, "the start of malstm-paper", epochs=6)


def paper() -> Recipe:
    """The paper's recipe: STS pre-training, synonyms, Adadelta, early stopping; no teacher but in the word vectors."""
    return _paper("malstm-paper", SYNONYMS, "malstm-sts", "the paper's r 0.882", epochs=20)


def paper_without_synonyms() -> Recipe:
    """Ablation; the paper lost 0.04."""
    return _paper("malstm-paper-no-synonyms", SickPairs(), "malstm-sts", "the paper's r 0.84", epochs=60)


def paper_without_pretraining() -> Recipe:
    """Ablation; the paper lost 0.02."""
    return _paper("malstm-paper-no-pretraining", SYNONYMS, None, "the paper's r 0.86", epochs=20)


def paper_alone() -> Recipe:
    """Neither pre-training nor synonyms."""
    return _paper("malstm-paper-alone", SickPairs(), None, "not in the paper", epochs=60)
