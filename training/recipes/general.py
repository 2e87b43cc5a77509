"""Models of several tasks for any text: a cross-encoder from all-MiniLM-L6-v2, and PWIM taught by labels and by it.

Ours, in none of the five papers. One encoder with a head a task: X. Liu et al., "Multi-Task Deep Neural Networks for
Natural Language Understanding", ACL 2019. A pair that is read together: R. Nogueira, K. Cho, "Passage Re-ranking with
BERT", 2019. docs/papers/cross_encoder.md and pwim.md have the scores.
"""

from dataclasses import replace

from training.architectures import CrossEncoderConfig, PWIMConfig, PWIMTasksConfig
from training.objectives.tasks import TasksConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.sources.tables import PretrainedEncoder, ServedTable
from training.sources.tasks import TaskPairs

MINILM = PretrainedEncoder("all-minilm-l6-v2")
HEADS = {"entailment": 3, "similarity": 1, "paraphrase": 1, "related": 1, "relevance": 1}

# Pairs of an epoch of 32,000. First entailment, of which there is most; then all tasks.
_FIRST = {
    "snli-train": 13_000,
    "mnli-train": 6_500,
    "litl": 4_500,
    "san-wiki": 2_000,
    "wanli": 2_000,
    "fever-nli": 700,
    "cad-nli": 900,
    "breaking-nli": 300,
    "cannot": 600,
    "sick": 1_500,
}
_THEN = {
    "snli-train": 6_000,
    "mnli-train": 4_000,
    "litl": 2_000,
    "san-wiki": 700,
    "wanli": 1_000,
    "fever-nli": 400,
    "cad-nli": 500,
    "breaking-nli": 150,
    "cannot": 350,
    "sick": 1_900,
    "msrp": 1_500,
    "paws-wiki": 700,
    "twitter-labelled": 1_000,
    "qqp-labelled": 1_200,
    "parade": 500,
    "wikiqa": 1_700,
    "trecqa": 2_200,
    "selqa": 1_500,
    "qnli-dev": 700,
    "cosines": 3_400,
    "caption-contrast": 600,
}
# Another run: who does what to whom, and what is not the same for one word. The same words in another order are a
# paraphrase in half of those pairs.
_ROLES = {
    "snli-train": 4_500,
    "mnli-train": 3_500,
    "litl": 1_500,
    "san-wiki": 600,
    "wanli": 900,
    "fever-nli": 300,
    "cad-nli": 500,
    "breaking-nli": 150,
    "cannot": 300,
    "sick": 1_900,
    "msrp": 1_500,
    "paws-wiki": 3_050,
    "role-edits": 2_500,
    "swapped-captions": 1_500,
    "negations": 1_200,
    "paraphrase-ni": 1_200,
    "twitter-labelled": 600,
    "qqp-labelled": 900,
    "parade": 400,
    "wikiqa": 1_300,
    "trecqa": 1_600,
    "selqa": 1_200,
    "qnli-dev": 700,
    "cosines": 2_400,
    "caption-contrast": 400,
}
# A last, short run: the same words written differently.
_LAST = {
    **{name: round(0.55 * quota) for name, quota in _ROLES.items()},
    "surface-edits": 2_500,
    "surface-entailment": 2_500,
}
_CROSS = Recipe(
    name="minilm-cross-first",
    reaches="the start of minilm-cross-roles; 13 minutes an epoch on one core",
    table=MINILM,
    architecture=CrossEncoderConfig(heads=HEADS),
    data=TaskPairs(tuple({**_FIRST, **_THEN})),
    objective=TasksConfig(first=_FIRST, first_epochs=3, then=_THEN),
    optimiser=OptimiserConfig(
        "adamw", learning_rate=8e-5, heads_learning_rate=8e-4, embedding_learning_rate=None, clip=1.0
    ),
    schedule=Schedule(epochs=8, batch_size=32, decay="linear", checkpoint_seconds=240),
    precision="bfloat16",
    max_tokens=56,
)
_ROLES_RUN = replace(
    _CROSS,
    name="minilm-cross-roles",
    reaches="the start of minilm-cross; 14 minutes an epoch on one core",
    data=TaskPairs(tuple(_ROLES)),
    objective=TasksConfig(first={}, first_epochs=0, then=_ROLES),
    optimiser=replace(_CROSS.optimiser, learning_rate=5e-5, heads_learning_rate=5e-4),
    schedule=replace(_CROSS.schedule, epochs=3, keep="last"),
    start=_CROSS.name,
    start_share=0.4,
)

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

_PWIM = Recipe(
    name="pwim-general",
    reaches="see analyses/RESULTS.md; 5 minutes an epoch on one core",
    table=WORDS,
    architecture=PWIMTasksConfig(
        PWIMConfig(hidden=200, grid=8, limit=LIMIT, word_scale=3.0, maps=(64, 96, 128, 128, 128), same_words=True),
        HEADS,
    ),
    data=TaskPairs(tuple(_QUOTAS), rated_by="minilm-cross"),
    objective=TasksConfig(first={}, first_epochs=0, then=_QUOTAS),
    optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=None, clip=5.0),
    schedule=Schedule(epochs=6, batch_size=64, decay="linear", checkpoint_seconds=240),
    precision="bfloat16",
    max_tokens=48,
    publication=Publication("pwim-general", "Pairwise word interaction, any text: similarity, entailment and more"),
)

RECIPES = (
    _CROSS,
    _ROLES_RUN,
    replace(
        _ROLES_RUN,
        name="minilm-cross",
        reaches="see analyses/RESULTS.md; 10 minutes an epoch on one core",
        data=TaskPairs(tuple(_LAST)),
        objective=TasksConfig(first={}, first_epochs=0, then=_LAST),
        optimiser=replace(_CROSS.optimiser, learning_rate=3e-5, heads_learning_rate=3e-4),
        schedule=replace(_ROLES_RUN.schedule, epochs=2),
        start=_ROLES_RUN.name,
        publication=Publication(
            "minilm-cross",
            "MiniLM cross-encoder: similarity, entailment, paraphrase, relevance",
            max_tokens=128,
            blend=True,
        ),
    ),
    _PWIM,
)
