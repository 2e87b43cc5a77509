"""Runs of PWIM (He & Lin 2016): every corpus of the paper, its ablations, and runs with a teacher.

Words are the distilled table, frozen as in the paper. Adam at 5e-4 with linear decay and batch 16 instead of the
release's RMSProp at 1e-4 and batch 1 (`pwim-sick-paper` keeps those). docs/papers/pwim.md has the scores.
"""

from dataclasses import replace

from training.architectures import PWIMConfig
from training.corpora.pairwise import Corpus
from training.objectives.pairwise import RATINGS_OF_SICK, RATINGS_OF_STS, YES_OR_NO, PairwiseConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.word_averaging import MINILM
from training.sources.labelled import CorpusPairs, TeacherAnswers
from training.sources.rated import SickPairs, TeacherPairs
from training.sources.tables import PublishedTable

SHORT, LONG = 32, 48  # tokens: the paper's paddings
# Vectors of frequent words are short (mean norm 0.74); a norm of about 2 was best on development pairs, also for GloVe.
PWIM = PWIMConfig(grid=8, word_scale=3.0)
ANSWERS = replace(PWIM, limit=LONG)
GLOVE = PublishedTable("glove-sick-300", corpus="glove-sick", pieces=1_000, buckets=64)


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


_SICK_ALONE = _run("pwim-sick-alone", "sick", SICK, "the paper's r .8784; 20 s an epoch on one core")
_ONE_ORDER = replace(_SICK_ALONE, name="pwim-sick-one-order", objective=replace(SICK, both_orders=False))
_PAPER = replace(  # sizes and optimiser of the release: fixed 32x32, one order, RMSProp at 1e-4, batch 1
    _ONE_ORDER,
    name="pwim-sick-paper",
    reaches="the paper's r .8784; 2 minutes an epoch on one core",
    architecture=replace(PWIM, grid=SHORT),
    optimiser=OptimiserConfig("rmsprop", learning_rate=1e-4, embedding_learning_rate=None, clip=50.0),
    schedule=Schedule(epochs=35, batch_size=1, patience=10),
)
_TEACHER = replace(
    _SICK_ALONE,
    name="pwim-teacher",
    reaches="a start for the others; 20 minutes an epoch on one core",
    data=TeacherPairs(),
    schedule=Schedule(epochs=1, batch_size=64, decay="linear"),
)
_SICK_UNSEEN = replace(  # no sentence of another corpus' evaluation set: the start of pwim-msrvid
    _SICK_ALONE,
    name="pwim-sick-unseen",
    reaches="a start for pwim-msrvid; 20 s an epoch on one core",
    data=SickPairs(foreign=False),
    schedule=Schedule(epochs=5, batch_size=16, decay="linear"),
)
_MSRVID_ALONE = _run("pwim-msrvid-alone", "msrvid", STS, "the paper's r .9112; 4 s an epoch on one core", epochs=20)
_STS2014_ALONE = _run("pwim-sts2014-alone", "sts2014", STS, "the paper's weighted mean r .7666", architecture=ANSWERS)


def _from_teacher(recipe: Recipe, name: str, rate: float, epochs: int) -> Recipe:
    return replace(
        recipe,
        name=name,
        start="pwim-teacher",
        start_seed=1,
        optimiser=_adam(rate),
        schedule=replace(recipe.schedule, epochs=epochs),
    )


def _selection(name: str, corpus: Corpus, reaches: str, epochs: int) -> Recipe:
    """Answer selection, after `pwim-answers`."""
    recipe = _run(name, corpus, QA, reaches, architecture=ANSWERS, epochs=epochs)
    return replace(recipe, start="pwim-answers", start_seed=1, optimiser=_adam(2e-4))


_QA_TEACHER = replace(  # pre-training: a teacher's cosine of every question with every candidate
    _run("pwim-answers", "wikiqa", replace(QA, negatives=None), "a start for the others", architecture=ANSWERS),
    data=TeacherAnswers(limit=16_000),
    start="pwim-teacher",
    start_seed=1,
    schedule=Schedule(epochs=2, batch_size=32, decay="linear"),
)
_WIKIQA = _selection("pwim-wikiqa", "wikiqa", "the paper's MAP .7090, MRR .7234", 4)
_WIKIQA_ALONE = replace(
    _WIKIQA, name="pwim-wikiqa-alone", start=None, optimiser=_adam(), schedule=Schedule(8, 16, 2, "linear")
)


def _ablation(name: str, architecture: PWIMConfig, drop: str) -> Recipe:
    return replace(_SICK_ALONE, name=f"pwim-sick-{name}", reaches=f"the paper: {drop} r", architecture=architecture)


def _answers_ablation(name: str, architecture: PWIMConfig, drop: str) -> Recipe:
    return replace(
        _WIKIQA_ALONE,
        name=f"pwim-wikiqa-{name}",
        reaches=f"the paper: {drop} MRR; a minute an epoch on one core",
        architecture=architecture,
    )


_TRECQA_ALONE = replace(
    _selection("pwim-trecqa-alone", "trecqa", "the paper's MAP .7588, MRR .8219", 2), start=None, optimiser=_adam()
)
_WORDS = replace(PWIM, word_scale=0.3)
_GLOVE = replace(  # the paper's word vectors, frozen as there, instead of the distilled table
    _ablation("glove", _WORDS, "GloVe;"), table=GLOVE, reaches="the paper's r .8784; 20 s an epoch on one core"
)

RECIPES = (
    *(_SICK_ALONE, _ONE_ORDER, _PAPER, _TEACHER, _SICK_UNSEEN),
    replace(
        _from_teacher(_SICK_ALONE, "pwim-sick", 2e-4, 6),
        publication=Publication("pwim-sick", "Pairwise word interaction, SICK relatedness"),
    ),
    replace(_from_teacher(_MSRVID_ALONE, "pwim-msrvid", 2e-4, 12), start="pwim-sick-unseen"),
    _MSRVID_ALONE,
    _from_teacher(_STS2014_ALONE, "pwim-sts2014", 3e-4, 6),
    _STS2014_ALONE,
    *(_QA_TEACHER, _WIKIQA),
    _WIKIQA_ALONE,
    replace(_WIKIQA_ALONE, name="pwim-wikiqa-margin", objective=replace(QA, loss="margin")),  # the paper's loss
    _answers_ablation("no-context", replace(ANSWERS, context=False), "-.0990"),
    _answers_ablation("no-focus", replace(ANSWERS, focus="none"), "-.0327"),
    _answers_ablation("focus-dropout", replace(ANSWERS, focus="dropout"), "-.0403"),
    _answers_ablation("padded", replace(ANSWERS, grid=LONG), "fixed padding of 48, as there;"),
    _TRECQA_ALONE,
    replace(_TRECQA_ALONE, name="pwim-trecqa-margin", objective=replace(QA, loss="margin")),  # the paper's loss
    _selection("pwim-trecqa", "trecqa", "the paper's MAP .7588, MRR .8219", 2),
    replace(  # both corpora: the second stage of /rank
        _selection("pwim-qa", "answers", "the paper's figures of both", 2),
        publication=Publication("pwim-qa", "Pairwise word interaction, answer selection"),
    ),
    _ablation("no-context", replace(PWIM, context=False), "-.1225"),  # without the Bi-LSTM
    _ablation("no-focus", replace(PWIM, focus="none"), "-.0083"),  # without the similarity focus layer
    _ablation("focus-dropout", replace(PWIM, focus="dropout"), "-.0314"),  # dropout instead of the focus
    _GLOVE,
    replace(
        _GLOVE,
        name="pwim-sick-glove-no-context",
        reaches="the paper's r .7559; 10 s an epoch on one core",
        architecture=replace(_WORDS, context=False),
    ),
    replace(_GLOVE, name="pwim-sick-glove-unscaled", architecture=replace(_WORDS, word_scale=1.0)),
)
