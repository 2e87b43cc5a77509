"""Models of several tasks for any text: a cross-encoder from all-MiniLM-L6-v2, and PWIM taught by labels and by it.

Ours, in none of the five papers. One encoder with a head a task: X. Liu et al., "Multi-Task Deep Neural Networks for
Natural Language Understanding", ACL 2019. A pair that is read together: R. Nogueira, K. Cho, "Passage Re-ranking with
BERT", 2019. docs/papers/cross_encoder.md and pwim.md have the scores.
"""

from dataclasses import replace

from training.architectures import CrossEncoderConfig, PWIMConfig, PWIMTasksConfig
from training.architectures.transformer import BERTConfig
from training.objectives.tasks import TasksConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.sources.tables import PretrainedEncoder, ServedTable
from training.sources.tasks import TaskPairs

MINILM = PretrainedEncoder("all-minilm-l6-v2")
HEADS = {"entailment": 3, "similarity": 1, "paraphrase": 1, "related": 1, "relevance": 1}

# Pairs of an epoch. Entailment nearly once through the pool; corpora that are nearly all contradictions less, SICK
# twice.
_ENTAILMENT = {
    "snli-train": 31_800,
    "mnli-train": 9_500,
    "mnli-not": 1_100,
    "litl": 13_500,
    "san-wiki": 4_500,
    "wanli": 4_500,
    "fever-nli": 4_200,
    "fever-dev": 1_600,
    "fool-me-twice": 760,
    "entailment-bank": 1_800,
    "qnli-not": 280,
    "cad-nli": 2_000,
    "breaking-nli": 800,
    "cannot": 2_700,
    "sick": 1_900,
}
_OTHERS = {
    # relevance, in groups of five
    "wikiqa-hard": 1_500,
    "trecqa-half-hard": 2_000,
    "selqa-hard": 2_500,
    "qnli-dev-hard": 1_500,
    "nq-sentences-hard": 4_000,
    "medquad-hard": 1_000,
    "stackexchange-hard": 1_500,
    # the same in other words
    "msrp-whole": 3_000,  # two and a half times
    "paws-wiki": 900,
    "argument-keypoint": 2_000,
    "request-edits": 3_000,
    "intents-banking77": 1_500,
    "intents-clinc150": 600,
    "intents-hwu64": 400,
    "paraphrase-ni": 600,
    "negations": 500,
    "twitter-labelled": 1_000,
    "qqp-labelled": 1_500,
    "parade": 750,
    # similarity
    "cosines": 4_000,
    "caption-contrast": 600,
}
# A tenth, from the second epoch on: who does what to whom, and what is not the same for one word or is the same for
# all marks.
_EDITS = {
    "role-edits": 3_800,
    "swapped-captions": 1_600,
    "surface-edits": 2_800,
    "surface-entailment": 2_800,
}
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

# The second run of the cross-encoder: entailment once more, PAWS whole and roles, which the first did not learn; of the
# rest less.
_SECOND = {
    **_ENTAILMENT,
    "sick": 3_800,
    # relevance, in groups of five
    "wikiqa-hard": 1_000,
    "trecqa-half-hard": 1_000,
    "selqa-hard": 1_000,
    "qnli-dev-hard": 750,
    "nq-sentences-hard": 2_000,
    "medquad-hard": 500,
    "stackexchange-hard": 1_500,
    # the same in other words
    "msrp-whole": 3_000,
    "paws-wiki": 3_000,
    "argument-keypoint": 1_000,
    "request-edits": 3_000,
    "intents-banking77": 1_000,
    "intents-clinc150": 400,
    "intents-hwu64": 300,
    "paraphrase-ni": 600,
    "negations": 500,
    "twitter-labelled": 800,
    "qqp-labelled": 1_500,
    "parade": 750,
    # similarity
    "cosines": 2_000,
    "caption-contrast": 600,
    # edits
    "role-edits": 3_000,
    "swapped-captions": 1_200,
    "surface-edits": 1_500,
    "surface-entailment": 1_500,
}

_CROSS = Recipe(
    name="minilm-cross-first",
    reaches="the start of minilm-cross; 2 hours on two cores, after 20 minutes of encoding texts",
    table=MINILM,
    architecture=CrossEncoderConfig(BERTConfig(dropout=0.1), HEADS),
    data=TaskPairs((*_ENTAILMENT, *_OTHERS, *_EDITS)),
    objective=TasksConfig(
        first={**_ENTAILMENT, **_OTHERS},
        first_epochs=1,
        then={**_ENTAILMENT, **_OTHERS, **_EDITS},
        corpora={"paws-wiki": 0.5, "negations": 0.5},
    ),
    optimiser=OptimiserConfig(
        "adamw",
        learning_rate=6e-5,
        layer_decay=0.9,
        heads_learning_rate=3e-4,
        embedding_learning_rate=None,
        clip=1.0,
    ),
    schedule=Schedule(epochs=3, batch_size=32, decay="warm", checkpoint_seconds=240, keep="last"),
    precision="bfloat16",
    max_tokens=96,
)

# The third run, not published yet: one pool of pairs, rated by the pair teacher; an epoch sees two thirds of them.
_THIRD = {
    "snli-train": 7_000,
    "mnli-train": 10_000,
    "mnli-not": 600,
    "litl": 2_000,
    "san-wiki": 1_500,
    "wanli": 5_000,
    "fever-nli": 1_500,
    "fever-dev": 1_000,
    "fool-me-twice": 800,
    "entailment-bank": 500,
    "qnli-not": 300,
    "cad-nli": 1_500,
    "breaking-nli": 500,
    "cannot": 1_500,
    "sick": 3_200,
    "written-entailment": 1_400,
    "written-claims": 1_000,
    # relevance, in groups of five
    "wikiqa-hard": 1_000,
    "trecqa-half-hard": 1_000,
    "selqa-hard": 1_000,
    "qnli-dev-hard": 1_000,
    "nq-sentences-hard": 2_000,
    "medquad-hard": 800,
    "stackexchange-hard": 1_500,
    "written-answers-hard": 4_000,
    # the same in other words
    "msrp-whole": 2_400,
    "paws-wiki": 3_000,
    "argument-keypoint": 800,
    "request-edits": 1_500,
    "intents-banking77": 800,
    "intents-clinc150": 300,
    "paraphrase-ni": 400,
    "negations": 300,
    "twitter-labelled": 700,
    "qqp-labelled": 1_500,
    "parade": 700,
    "written-edits": 6_000,
    "written-crossed-edits": 3_000,
    # similarity
    "cosines": 2_000,
    "caption-contrast": 600,
    # edits by rule
    "role-edits": 1_500,
    "swapped-captions": 800,
    "surface-edits": 800,
    "surface-entailment": 800,
}

_CROSS_SECOND = replace(
    _CROSS,
    name="minilm-cross-second",
    reaches="the start of minilm-cross; an hour on two cores after minilm-cross-first",
    objective=TasksConfig(first={}, first_epochs=0, then=_SECOND),
    optimiser=replace(_CROSS.optimiser, learning_rate=5e-5),
    schedule=replace(_CROSS.schedule, epochs=2),
    start="minilm-cross-first",
)

RECIPES = (
    _CROSS,
    _CROSS_SECOND,
    replace(
        _CROSS_SECOND,
        name="minilm-cross",
        reaches="see analyses/RESULTS.md; half an hour of one core after minilm-cross-second and 40 minutes of rating",
        data=TaskPairs(
            tuple(_THIRD), rated_by="mpnet-pairs-second", rated_pairs=12_000, unrated=("sick",), drawn=_THIRD
        ),
        objective=TasksConfig(first={}, first_epochs=0, then={name: 2 * count // 3 for name, count in _THIRD.items()}),
        start="minilm-cross-second",
        publication=Publication(
            "minilm-cross",
            "MiniLM cross-encoder: similarity, entailment, paraphrase, relevance",
            max_tokens=128,
            blend=True,
        ),
    ),
    _PWIM,
)
