"""A cross-encoder of several tasks, started from all-MiniLM-L6-v2. Ours, in none of the five papers.

One encoder with a head a task: X. Liu et al., "Multi-Task Deep Neural Networks for Natural Language Understanding", ACL
2019. A pair that is read together: R. Nogueira, K. Cho, "Passage Re-ranking with BERT", 2019.
"""

from collections.abc import Mapping

from training.architectures import CrossEncoderConfig
from training.objectives.tasks import TasksConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.sources.tables import PretrainedEncoder
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
# Corpora whose licences allow any use, with attribution or under the same terms.
PERMISSIVE = (
    *("snli-train", "mnli-train", "san-wiki", "wanli", "fever-nli", "cad-nli", "breaking-nli", "cannot"),
    *("paws-wiki", "selqa", "qnli-dev", "caption-contrast", "cosines"),
)


def _cross(name: str, reaches: str, publication: Publication | None, *, only: tuple[str, ...] = tuple(_THEN)) -> Recipe:
    first, then = (share(quotas, only) for quotas in (_FIRST, _THEN))
    taught = TaskPairs(tuple({**first, **then}))
    return Recipe(
        name=name,
        reaches=reaches,
        table=MINILM,
        architecture=CrossEncoderConfig(heads=HEADS),
        data=taught,
        objective=TasksConfig(first=first, first_epochs=3, then=then),
        optimiser=OptimiserConfig(
            "adamw", learning_rate=8e-5, heads_learning_rate=8e-4, embedding_learning_rate=None, clip=1.0
        ),
        schedule=Schedule(epochs=8, batch_size=32, decay="linear", stop_after=6, checkpoint_seconds=240),
        precision="bfloat16",
        max_tokens=56,
        publication=publication,
    )


def share(quotas: Mapping[str, int], only: tuple[str, ...]) -> dict[str, int]:
    """The quotas of some corpora, enlarged alike so that an epoch stays as large."""
    kept = {name: quota for name, quota in quotas.items() if name in only}
    factor = sum(quotas.values()) / sum(kept.values())
    return {name: round(quota * factor) for name, quota in kept.items()}


RECIPES = (
    _cross(
        "minilm-cross",
        "see analyses/RESULTS.md",
        Publication(
            "minilm-cross", "MiniLM cross-encoder: similarity, entailment, paraphrase, relevance", max_tokens=128
        ),
    ),
    _cross(
        "minilm-cross-permissive",
        "what licences that allow any use cost: no SICK, MSRP, WikiQA, TrecQA, tweets, Quora or unlicensed corpora",
        None,
        only=PERMISSIVE,
    ),
)
