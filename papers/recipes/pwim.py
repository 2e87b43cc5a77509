"""Runs of PWIM (He & Lin 2016): every corpus of the paper and its ablations.

`training.recipes.pwim` has common settings; `pwim-sick-paper` those of the release. Scores: docs/papers/pwim.md.
"""

from dataclasses import replace

from training.models import PWIMConfig
from training.objectives.pairwise import RATINGS_OF_STS, PairwiseConfig
from training.recipes.pwim import ANSWERS, LONG, PWIM, QA, SICK, SICK_ALONE, adam, from_teacher, run, selection
from training.recipes.recipe import OptimiserConfig, Recipe, Schedule
from training.recipes.sources.rated import SickPairs
from training.recipes.sources.tables import PublishedTable

SHORT = 32  # tokens: the paper's padding of sentences
GLOVE = PublishedTable("glove-sick-300", corpus="glove-sick", pieces=1_000, buckets=64)
STS = PairwiseConfig(RATINGS_OF_STS, "pearson", both_orders=True)

_ONE_ORDER = replace(SICK_ALONE, name="pwim-sick-one-order", objective=replace(SICK, both_orders=False))
_PAPER = replace(  # sizes and optimiser of the release: fixed 32x32, one order, RMSProp at 1e-4, batch 1
    _ONE_ORDER,
    name="pwim-sick-paper",
    reaches="the paper's r .8784; 2 minutes an epoch on one core",
    architecture=replace(PWIM, grid=SHORT),
    optimiser=OptimiserConfig("rmsprop", learning_rate=1e-4, embedding_learning_rate=None, clip=50.0),
    schedule=Schedule(epochs=35, batch_size=1, patience=10),
)
_SICK_UNSEEN = replace(  # no sentence of another corpus' evaluation set: the start of pwim-msrvid
    SICK_ALONE,
    name="pwim-sick-unseen",
    reaches="a start for pwim-msrvid; 20 s an epoch on one core",
    data=SickPairs(foreign=False),
    schedule=Schedule(epochs=5, batch_size=16, decay="linear"),
)
_MSRVID_ALONE = run("pwim-msrvid-alone", "msrvid", STS, "the paper's r .9112; 4 s an epoch on one core", epochs=20)
_STS2014_ALONE = run("pwim-sts2014-alone", "sts2014", STS, "the paper's weighted mean r .7666", architecture=ANSWERS)

_WIKIQA = selection("pwim-wikiqa", "wikiqa", "the paper's MAP .7090, MRR .7234", 4)
_WIKIQA_ALONE = replace(
    _WIKIQA, name="pwim-wikiqa-alone", start=None, optimiser=adam(), schedule=Schedule(8, 16, 2, "linear")
)


def _ablation(name: str, architecture: PWIMConfig, drop: str) -> Recipe:
    return replace(SICK_ALONE, name=f"pwim-sick-{name}", reaches=f"the paper: {drop} r", architecture=architecture)


def _answers_ablation(name: str, architecture: PWIMConfig, drop: str) -> Recipe:
    return replace(
        _WIKIQA_ALONE,
        name=f"pwim-wikiqa-{name}",
        reaches=f"the paper: {drop} MRR; a minute an epoch on one core",
        architecture=architecture,
    )


_TRECQA_ALONE = replace(
    selection("pwim-trecqa-alone", "trecqa", "the paper's MAP .7588, MRR .8219", 2), start=None, optimiser=adam()
)
_WORDS = replace(PWIM, word_scale=0.3)
_GLOVE = replace(  # the paper's word vectors, frozen as there, instead of the distilled table
    _ablation("glove", _WORDS, "GloVe;"), table=GLOVE, reaches="the paper's r .8784; 20 s an epoch on one core"
)

RECIPES = (
    *(SICK_ALONE, _ONE_ORDER, _PAPER, _SICK_UNSEEN),
    replace(from_teacher(_MSRVID_ALONE, "pwim-msrvid", 2e-4, 12), start="pwim-sick-unseen"),
    _MSRVID_ALONE,
    from_teacher(_STS2014_ALONE, "pwim-sts2014", 3e-4, 6),
    _STS2014_ALONE,
    _WIKIQA,
    _WIKIQA_ALONE,
    replace(_WIKIQA_ALONE, name="pwim-wikiqa-margin", objective=replace(QA, loss="margin")),  # the paper's loss
    _answers_ablation("no-context", replace(ANSWERS, context=False), "-.0990"),
    _answers_ablation("no-focus", replace(ANSWERS, focus="none"), "-.0327"),
    _answers_ablation("focus-dropout", replace(ANSWERS, focus="dropout"), "-.0403"),
    _answers_ablation("padded", replace(ANSWERS, grid=LONG), "fixed padding of 48, as there;"),
    _TRECQA_ALONE,
    replace(_TRECQA_ALONE, name="pwim-trecqa-margin", objective=replace(QA, loss="margin")),  # the paper's loss
    selection("pwim-trecqa", "trecqa", "the paper's MAP .7588, MRR .8219", 2),
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
