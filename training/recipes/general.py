"""Models of several tasks for any text: a cross-encoder from all-MiniLM-L6-v2, and PWIM taught by labels and by it.

Ours, in none of the five papers. One encoder with a head a task: X. Liu et al., "Multi-Task Deep Neural Networks for
Natural Language Understanding", ACL 2019. A pair that is read together: R. Nogueira, K. Cho, "Passage Re-ranking with
BERT", 2019. docs/papers/cross_encoder.md and pwim.md have the scores.
"""

from dataclasses import replace

from training.models import CrossEncoderConfig, PWIMConfig, PWIMTasksConfig
from training.models.transformer import BERTConfig
from training.objectives.tasks import TasksConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.sources.tables import PretrainedEncoder, ServedTable
from training.recipes.sources.tasks import TaskPairs

MINILM = PretrainedEncoder("all-minilm-l6-v2")
HEADS = {"entailment": 3, "similarity": 1, "paraphrase": 1, "related": 1, "relevance": 1}

# Pairs of an epoch of some 330,000; the small corpora come whole or more than once.
_CROSS_EPOCH = {
    "snli-train": 53_000,
    "mnli-train": 31_500,
    "mnli-not": 5_500,
    "litl": 22_500,
    "san-wiki": 7_500,
    "wanli": 15_000,
    "fever-nli": 7_000,
    "fever-dev": 2_500,
    "fool-me-twice": 2_500,
    "entailment-bank": 1_500,
    "qnli-not": 1_400,
    "cad-nli": 6_500,
    "breaking-nli": 2_000,
    "cannot": 5_000,
    "sick": 4_800,
    "written-entailment": 3_350,
    "written-claims": 3_250,
    # relevance, in groups of five
    "wikiqa-hard": 4_000,
    "trecqa-half-hard": 4_000,
    "selqa-hard": 5_000,
    "qnli-dev-hard": 5_000,
    "nq-sentences-hard": 10_000,
    "medquad-hard": 2_500,
    "stackexchange-hard": 5_000,
    "written-answers-hard": 10_000,
    # the same in other words
    "msrp-whole": 5_500,
    "paws-wiki": 6_000,
    "argument-keypoint": 6_000,
    "request-edits": 6_000,
    "intents-banking77": 5_000,
    "intents-clinc150": 4_000,
    "intents-hwu64": 2_500,
    "paraphrase-ni": 4_000,
    "negations": 3_000,
    "twitter-labelled": 7_000,
    "qqp-labelled": 7_000,
    "parade": 3_750,
    "written-edits": 9_500,
    "written-crossed-edits": 4_800,
    # similarity
    "cosines": 20_000,
    "caption-contrast": 2_000,
    # edits by rule: who does what to whom, and what is not the same for one word or is the same for all marks
    "role-edits": 4_000,
    "swapped-captions": 1_750,
    "surface-edits": 3_000,
    "surface-entailment": 3_000,
}
# SICK, whose convention of what contradicts is its own, and pairs of one kind, of which a rating says little more than
# the label.
_UNRATED = (
    "sick",
    "entailment-bank",
    "qnli-not",
    "breaking-nli",
    "cannot",
    "negations",
    "caption-contrast",
    "swapped-captions",
    "surface-edits",
    "surface-entailment",
    "intents-banking77",
    "intents-clinc150",
    "intents-hwu64",
)
# Then, for policies and permissions: what was written for this project, near twice, and some of the rest, so that it is
# not forgotten. Some 71,000 pairs.
_CROSS_SECOND = {
    "snli-train": 4_000,
    "mnli-train": 8_000,
    "mnli-not": 800,
    "litl": 1_500,
    "san-wiki": 800,
    "wanli": 4_000,
    "fever-nli": 1_500,
    "fool-me-twice": 500,
    "cad-nli": 1_500,
    "breaking-nli": 300,
    "cannot": 500,
    "sick": 2_000,
    "written-entailment": 6_000,
    "written-claims": 12_000,
    "written-near-claims": 4_000,
    # relevance, in groups of five
    "wikiqa-hard": 1_000,
    "trecqa-half-hard": 1_000,
    "qnli-dev-hard": 1_000,
    "nq-sentences-hard": 1_500,
    "stackexchange-hard": 600,
    "written-answers-hard": 2_000,
    # the same in other words
    "msrp-whole": 1_500,
    "paws-wiki": 2_000,
    "argument-keypoint": 700,
    "request-edits": 1_000,
    "intents-banking77": 700,
    "paraphrase-ni": 600,
    "negations": 300,
    "written-edits": 4_000,
    "written-crossed-edits": 1_500,
    "cosines": 2_500,
    "caption-contrast": 200,
    "role-edits": 700,
    "swapped-captions": 200,
    "surface-edits": 500,
    "surface-entailment": 500,
}
# The third run, of 22,000 pairs an epoch for the head of paraphrase alone: nearly the same words that mean the same,
# without which the second calls texts that differ in an article different ones.
_CROSS_THIRD = {
    "msrp-whole": 2_500,
    "paws-wiki": 2_500,
    "argument-keypoint": 500,
    "request-edits": 1_000,
    "paraphrase-ni": 500,
    "negations": 200,
    "role-edits": 400,
    "written-edits": 4_500,
    "written-crossed-edits": 2_000,
    "written-rewordings": 4_400,
    "surface-edits": 1_200,
    "edited-surface-edits": 2_300,
}
_RATED_AGAIN = ("snli-train", "mnli-train", "mnli-not", "litl", "san-wiki", "wanli", "fever-nli")
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
    reaches="see papers/RESULTS.md; 5 minutes an epoch on one core",
    table=WORDS,
    architecture=PWIMTasksConfig(
        PWIMConfig(hidden=200, grid=8, limit=LIMIT, word_scale=3.0, maps=(64, 96, 128, 128, 128), same_words=True),
        HEADS,
    ),
    data=TaskPairs(tuple(_QUOTAS), rated_by="minilm-cross"),
    objective=TasksConfig(_QUOTAS),
    optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=None, clip=5.0),
    schedule=Schedule(epochs=6, batch_size=64, decay="linear", checkpoint_seconds=240),
    precision="bfloat16",
    max_tokens=48,
    publication=Publication("pwim-general", "Pairwise word interaction, any text: similarity, entailment and more"),
)

_CROSS = Recipe(
    name="minilm-cross",
    reaches="see papers/RESULTS.md; four minutes of an H100 for two seeds side by side (some ten hours of a core "
    "each), after half an hour of encoding and rating on two cores",
    table=MINILM,
    architecture=CrossEncoderConfig(BERTConfig(dropout=0.1), HEADS),
    data=TaskPairs(
        tuple(_CROSS_EPOCH), sentences=100_000, rated_by="mpnet-pairs-second", rated_pairs=3_600, unrated=_UNRATED
    ),
    objective=TasksConfig(_CROSS_EPOCH),
    optimiser=OptimiserConfig(
        "adamw",
        learning_rate=2e-4,
        layer_decay=0.9,
        heads_learning_rate=5e-4,
        embedding_learning_rate=None,
        clip=1.0,
    ),
    schedule=Schedule(epochs=4, batch_size=256, decay="warm", checkpoint_seconds=240, keep="last"),
    precision="bfloat16",
    max_tokens=96,
)

_SECOND_PAIRS = TaskPairs(
    tuple(_CROSS_SECOND),
    sentences=20_000,
    rated_by="mpnet-pairs-second",
    rated_pairs=1_500,
    unrated=tuple(name for name in _CROSS_SECOND if name not in _RATED_AGAIN),
)
_SECOND = replace(
    _CROSS,
    name="minilm-cross-second",
    reaches="see papers/RESULTS.md; 35 minutes of two cores with AMX, half of it reading and encoding",
    data=_SECOND_PAIRS,
    objective=TasksConfig(_CROSS_SECOND),
    optimiser=replace(_CROSS.optimiser, learning_rate=1e-4, heads_learning_rate=2e-4),
    schedule=replace(_CROSS.schedule, epochs=1, batch_size=128),
    start="minilm-cross",
    start_seed=2,
)
_THIRD = replace(
    _SECOND,
    name="minilm-cross-third",
    reaches="see papers/RESULTS.md; 10 minutes of a core with AMX",
    data=TaskPairs(tuple(_CROSS_THIRD)),
    objective=TasksConfig(_CROSS_THIRD),
    optimiser=replace(_SECOND.optimiser, heads_learning_rate=2e-3, heads_only=True),
    schedule=replace(_SECOND.schedule, epochs=3),
    start="minilm-cross-second",
    start_seed=1,
    learnt_share=0.7,
    publication=Publication(
        "minilm-cross",
        "MiniLM cross-encoder: similarity, entailment, paraphrase, relevance",
        max_tokens=128,
        blend=True,
    ),
)

RECIPES = (
    _CROSS,
    _SECOND,
    _THIRD,
    _PWIM,
)
