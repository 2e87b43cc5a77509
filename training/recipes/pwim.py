"""Runs of PWIM (He & Lin 2016): every corpus of the paper, its ablations, and what a teacher adds.

Words are the distilled table, frozen as in the paper. Adam at 5e-4 with linear decay and batch 16 in place of the
release's RMSProp at 1e-4 and batch 1 (`pwim-sick-paper` keeps those). docs/papers/pwim.md has the scores.
"""

from dataclasses import replace

from training.architectures import PWIMConfig
from training.corpora.pairwise import Corpus
from training.loop import Schedule
from training.objectives.pairwise import RATINGS_OF_SICK, RATINGS_OF_STS, YES_OR_NO, PairwiseConfig
from training.optimisers import OptimiserConfig
from training.recipe import CorpusPairs, FoundTable, Publication, Recipe, TeacherAnswers, TeacherPairs
from training.recipes.word_averaging import MINILM

SHORT, LONG = 32, 48  # tokens: the paper's paddings
# Frequent words of the table are short (mean norm 0.74); about 2 did best on development pairs, as it did for GloVe.
PWIM = PWIMConfig(grid=8, word_scale=3.0)
ANSWERS = replace(PWIM, limit=LONG)
GLOVE = FoundTable("glove-sick-300", corpus="glove-sick", pieces=1_000, buckets=64)


def _adam(rate: float = 5e-4) -> OptimiserConfig:
    return OptimiserConfig("adam", learning_rate=rate, embedding_learning_rate=None, clip=50.0)


def _run(
    name: str,
    corpus: Corpus,
    objective: PairwiseConfig,
    reaches: str,
    architecture: PWIMConfig = PWIM,
    epochs: int = 10,
) -> Recipe:
    return Recipe(
        name=name,
        reaches=reaches,
        table=MINILM,
        architecture=architecture,
        data=CorpusPairs(corpus),
        objective=objective,
        optimiser=_adam(),
        schedule=Schedule(epochs=epochs, batch_size=16, decay="linear"),
        max_tokens=architecture.limit,
    )


SICK = PairwiseConfig(RATINGS_OF_SICK, "pearson", both_orders=True)
STS = PairwiseConfig(RATINGS_OF_STS, "pearson", both_orders=True)
QA = PairwiseConfig(YES_OR_NO, "mrr", negatives=3)


def sick_alone() -> Recipe:
    """SICK from its labels alone, as in the paper; the score is the mean of both orders."""
    return _run("pwim-sick-alone", "sick", SICK, "the paper's r .8784; 20 s an epoch on one core")


def sick_one_order() -> Recipe:
    """The same with the one order of the paper."""
    return replace(sick_alone(), name="pwim-sick-one-order", objective=replace(SICK, both_orders=False))


def sick_paper() -> Recipe:
    """SICK as released: fixed 32x32, one order, RMSProp at 1e-4, batch 1."""
    return replace(
        sick_one_order(),
        name="pwim-sick-paper",
        reaches="the paper's r .8784; 2 minutes an epoch on one core, the paper's 35 epochs cut to 8",
        architecture=replace(PWIM, grid=SHORT),
        optimiser=OptimiserConfig("rmsprop", learning_rate=1e-4, embedding_learning_rate=None, clip=50.0),
        schedule=Schedule(epochs=8, batch_size=1),
    )


def _ablation(name: str, architecture: PWIMConfig, drop: str) -> Recipe:
    return replace(sick_alone(), name=f"pwim-sick-{name}", reaches=f"the paper: {drop} r", architecture=architecture)


def sick_no_context() -> Recipe:
    """Without the Bi-LSTM."""
    return _ablation("no-context", replace(PWIM, context=False), "-.1225")


def sick_no_focus() -> Recipe:
    """Without the similarity focus layer."""
    return _ablation("no-focus", replace(PWIM, focus="none"), "-.0083")


def sick_focus_dropout() -> Recipe:
    """Dropout in place of the focus."""
    return _ablation("focus-dropout", replace(PWIM, focus="dropout"), "-.0314")


def sick_bounded() -> Recipe:
    """The paper's bound of the walk, |a| + |b| cells."""
    return _ablation("bounded", replace(PWIM, focus="bounded"), "the published algorithm")


def sick_tuned_words() -> Recipe:
    """Word vectors trained too (the paper freezes them)."""
    recipe = _ablation("tuned-words", PWIM, "not in the paper;")
    return replace(recipe, optimiser=replace(recipe.optimiser, embedding_learning_rate=1e-3))


def sick_glove() -> Recipe:
    """The paper's word vectors, frozen as there, in the place of the distilled table."""
    recipe = _ablation("glove", replace(PWIM, word_scale=0.3), "GloVe;")
    return replace(recipe, table=GLOVE, reaches="the paper's r .8784; 20 s an epoch on one core")


def sick_glove_tuned() -> Recipe:
    """The same, word vectors trained too."""
    recipe = sick_glove()
    return replace(
        recipe, name="pwim-sick-glove-tuned", optimiser=replace(recipe.optimiser, embedding_learning_rate=1e-3)
    )


def teacher() -> Recipe:
    """Pre-training on pairs that a tuned sentence-transformer rates."""
    return replace(
        sick_alone(),
        name="pwim-teacher",
        reaches="a start for the others; 20 minutes an epoch on one core",
        data=TeacherPairs(),
        schedule=Schedule(epochs=1, batch_size=64, decay="linear"),
    )


def _from_teacher(recipe: Recipe, name: str, rate: float, epochs: int) -> Recipe:
    return replace(
        recipe,
        name=name,
        start="pwim-teacher",
        start_seed=1,
        optimiser=_adam(rate),
        schedule=replace(recipe.schedule, epochs=epochs),
    )


def sick() -> Recipe:
    """SICK after the teacher's ratings."""
    return replace(
        _from_teacher(sick_alone(), "pwim-sick", 2e-4, 6),
        publication=Publication("pwim-sick", "Pairwise word interaction, SICK relatedness"),
    )


def msrvid() -> Recipe:
    """Video descriptions: 675 pairs, after the teacher's ratings."""
    return _from_teacher(msrvid_alone(), "pwim-msrvid", 2e-4, 12)


def msrvid_alone() -> Recipe:
    """Video descriptions from their labels alone."""
    return _run("pwim-msrvid-alone", "msrvid", STS, "the paper's r .9112; 4 s an epoch on one core", epochs=20)


def sts2014() -> Recipe:
    """STS 2014 from the pairs of 2012 and 2013, after the teacher's ratings."""
    return _from_teacher(sts2014_alone(), "pwim-sts2014", 3e-4, 6)


def sts2014_alone() -> Recipe:
    """The same from the labels alone."""
    return _run("pwim-sts2014-alone", "sts2014", STS, "the paper's weighted mean r .7666", architecture=ANSWERS)


def answers() -> Recipe:
    """Pre-training for answer selection: a teacher's cosine of every question with every candidate."""
    return replace(
        _run("pwim-answers", "wikiqa", replace(QA, negatives=None), "a start for the others", architecture=ANSWERS),
        data=TeacherAnswers(limit=16_000),
        start="pwim-teacher",
        start_seed=1,
        schedule=Schedule(epochs=2, batch_size=32, decay="linear"),
    )


def _selection(name: str, corpus: Corpus, reaches: str, epochs: int) -> Recipe:
    recipe = _run(name, corpus, QA, reaches, architecture=ANSWERS, epochs=epochs)
    return replace(recipe, start="pwim-answers", start_seed=1, optimiser=_adam(2e-4))


def wikiqa() -> Recipe:
    """WikiQA, after the teacher."""
    return _selection("pwim-wikiqa", "wikiqa", "the paper's MAP .7090, MRR .7234", 4)


def wikiqa_longer() -> Recipe:
    """The same for twice as long."""
    return _selection("pwim-wikiqa-longer", "wikiqa", "the paper's MAP .7090, MRR .7234", 8)


def wikiqa_alone() -> Recipe:
    """WikiQA from its labels alone."""
    return replace(
        wikiqa(), name="pwim-wikiqa-alone", start=None, optimiser=_adam(), schedule=Schedule(8, 16, None, "linear")
    )


def wikiqa_margin() -> Recipe:
    """The same with the paper's max-margin loss."""
    return replace(wikiqa_alone(), name="pwim-wikiqa-margin", objective=replace(QA, loss="margin"))


def trecqa() -> Recipe:
    """TrecQA, after the teacher."""
    return _selection("pwim-trecqa", "trecqa", "the paper's MAP .7588, MRR .8219", 2)


def qa() -> Recipe:
    """Both corpora of answer selection, after the teacher: what /rank asks in its second stage."""
    return replace(
        _selection("pwim-qa", "answers", "the paper's figures of both", 2),
        publication=Publication("pwim-qa", "Pairwise word interaction, answer selection"),
    )
