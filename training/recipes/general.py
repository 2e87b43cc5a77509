"""Models of several tasks for any text: a cross-encoder from all-MiniLM-L6-v2, and PWIM taught by labels and by it.

Ours, in none of the five papers. One encoder with a head a task: X. Liu et al., "Multi-Task Deep Neural Networks for
Natural Language Understanding", ACL 2019. A pair that is read together: R. Nogueira, K. Cho, "Passage Re-ranking with
BERT", 2019. docs/papers/cross_encoder.md and pwim.md have the scores.
"""


from training.architectures import CrossEncoderConfig, PWIMConfig, PWIMTasksConfig
from training.architectures.transformer import BERTConfig
from training.objectives.tasks import TasksConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.sources.tables import PretrainedEncoder, ServedTable
from training.sources.tasks import TaskPairs

MINILM = PretrainedEncoder("all-minilm-l6-v2")
HEADS = {"entailment": 3, "similarity": 1, "paraphrase": 1, "related": 1, "relevance": 1}

# Pairs of an epoch of some 900,000: small corpora several times, large ones and those without labels once or half.
_CROSS_EPOCH = {
    "snli-train": 106_000,
    "mnli-train": 63_000,
    "mnli-not": 11_000,
    "litl": 45_000,
    "san-wiki": 15_000,
    "wanli": 30_000,
    "fever-nli": 14_000,
    "fever-dev": 5_000,
    "fool-me-twice": 5_000,
    "entailment-bank": 3_000,
    "qnli-not": 2_800,
    "cad-nli": 13_000,
    "breaking-nli": 4_000,
    "cannot": 10_000,
    "sick": 9_600,
    "written-entailment": 6_700,
    "written-claims": 6_500,
    "reversed-entailment": 110_000,
    # relevance, in groups of five
    "wikiqa-hard": 8_000,
    "trecqa-half-hard": 8_000,
    "selqa-hard": 10_000,
    "qnli-dev-hard": 10_000,
    "nq-sentences-hard": 20_000,
    "medquad-hard": 5_000,
    "stackexchange-hard": 10_000,
    "written-answers-hard": 20_000,
    # the same in other words
    "msrp-whole": 11_000,
    "paws-wiki": 12_000,
    "argument-keypoint": 12_000,
    "request-edits": 12_000,
    "intents-banking77": 10_000,
    "intents-clinc150": 8_000,
    "intents-hwu64": 5_000,
    "paraphrase-ni": 8_000,
    "negations": 6_000,
    "twitter-labelled": 14_000,
    "qqp-labelled": 14_000,
    "parade": 7_500,
    "written-edits": 19_000,
    "written-crossed-edits": 9_600,
    # similarity
    "cosines": 200_000,
    "caption-contrast": 4_000,
    # edits by rule: who does what to whom, and what is not the same for one word or is the same for all marks
    "role-edits": 8_000,
    "swapped-captions": 3_500,
    "surface-edits": 6_000,
    "surface-entailment": 6_000,
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
    data=TaskPairs(tuple(_QUOTAS), rated_by="mpnet-pairs"),
    objective=TasksConfig(first={}, first_epochs=0, then=_QUOTAS),
    optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=None, clip=5.0),
    schedule=Schedule(epochs=6, batch_size=64, decay="linear", checkpoint_seconds=240),
    precision="bfloat16",
    max_tokens=48,
    publication=Publication("pwim-general", "Pairwise word interaction, any text: similarity, entailment and more"),
)

RECIPES = (
    Recipe(
        name="minilm-cross",
        reaches="see analyses/RESULTS.md",
        table=MINILM,
        architecture=CrossEncoderConfig(BERTConfig(dropout=0.1), HEADS),
        # SICK is not rated: its convention of what contradicts is its own.
        data=TaskPairs(
            tuple(_CROSS_EPOCH), sentences=100_000, rated_by="mpnet-pairs", rated_pairs=1_000_000, unrated=("sick",)
        ),
        objective=TasksConfig(first={}, first_epochs=0, then=_CROSS_EPOCH),
        optimiser=OptimiserConfig(
            "adamw",
            learning_rate=2e-4,
            layer_decay=0.9,
            heads_learning_rate=5e-4,
            embedding_learning_rate=None,
            clip=1.0,
        ),
        schedule=Schedule(epochs=3, batch_size=256, decay="warm", checkpoint_seconds=240, keep="last"),
        precision="bfloat16",
        max_tokens=96,
        publication=Publication(
            "minilm-cross",
            "MiniLM cross-encoder: similarity, entailment, paraphrase, relevance",
            max_tokens=128,
            blend=True,
        ),
    ),
    _PWIM,
)
