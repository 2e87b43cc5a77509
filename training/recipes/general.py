"""`pwim-general`: PWIM with heads for any text, taught by labels of many corpora and by a cross-encoder's ratings.

Ours, in no paper. docs/papers/pwim.md has the scores.
"""

from dataclasses import replace

from training.architectures import PWIMConfig, PWIMTasksConfig
from training.objectives.tasks import TasksConfig
from training.recipes.minilm import HEADS, PERMISSIVE, share
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.sources.tables import ServedTable
from training.sources.tasks import TaskPairs

WORDS = ServedTable("pwim-sick", model="pwim-sick")
LIMIT = 64  # tokens of a sentence

# Pairs of an epoch of about 70,000.
_QUOTAS = {
    "snli-train": 18_000,
    "mnli-train": 8_000,
    "litl": 5_000,
    "san-wiki": 2_500,
    "wanli": 2_500,
    "fever-nli": 1_500,
    "cad-nli": 1_200,
    "breaking-nli": 600,
    "cannot": 1_200,
    "sick": 2_500,
    "msrp": 1_500,
    "paws-wiki": 1_000,
    "twitter-labelled": 2_000,
    "qqp-labelled": 2_000,
    "parade": 700,
    "wikiqa": 2_500,
    "trecqa": 4_000,
    "selqa": 2_000,
    "qnli-dev": 1_000,
    "cosines": 10_000,
    "caption-contrast": 800,
}

_LABELS = Recipe(
    name="pwim-general-labels",
    reaches="the control of pwim-general: no ratings; 5 minutes an epoch on one core",
    table=WORDS,
    architecture=PWIMTasksConfig(
        PWIMConfig(hidden=200, grid=8, limit=LIMIT, word_scale=3.0, maps=(64, 96, 128, 128, 128), same_words=True),
        HEADS,
    ),
    data=TaskPairs(tuple(_QUOTAS)),
    objective=TasksConfig(first={}, first_epochs=0, then=_QUOTAS),
    optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=None, clip=5.0),
    schedule=Schedule(epochs=6, batch_size=64, decay="linear", checkpoint_seconds=240),
    precision="bfloat16",
    max_tokens=48,
)
_PERMISSIVE_QUOTAS = share(_QUOTAS, PERMISSIVE)

RECIPES = (
    _LABELS,
    replace(
        _LABELS,
        name="pwim-general-permissive",
        reaches="what licences that allow any use cost: the labels without SICK, MSRP, WikiQA, TrecQA and others",
        data=TaskPairs(tuple(_PERMISSIVE_QUOTAS)),
        objective=TasksConfig(first={}, first_epochs=0, then=_PERMISSIVE_QUOTAS),
        schedule=replace(_LABELS.schedule, epochs=3),
    ),
    replace(
        _LABELS,
        name="pwim-general",
        reaches="see analyses/RESULTS.md; 5 minutes an epoch on one core",
        data=TaskPairs(tuple(_QUOTAS), rated_by="minilm-cross"),
        publication=Publication("pwim-general", "Pairwise word interaction, any text: similarity, entailment and more"),
    ),
)
