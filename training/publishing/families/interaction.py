"""Files of an interaction model: its graphs, compared with the model, and its words, which other models may share."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from contract.golden import GOLDEN_TEXTS
from contract.golden import TOLERANCE as GOLDEN_TOLERANCE
from contract.manifest import Explanation, Manifest, SimilarityTask
from contract.padding import pad
from contract.subwords import AnyTokenizer
from training.architectures import MGIM, PWIM, MGIMConfig, PWIMConfig
from training.architectures.models import InteractionModel
from training.objectives.pairwise import YES_OR_NO, PairwiseConfig
from training.publishing.export import export_explanation, export_pair
from training.publishing.families.words import TOKENIZER, arrays_of, embedding, unscaled, write_words
from training.publishing.parity import check_explanation, check_pair, moved_by_rounding
from training.recipes.recipe import Publication, Recipe
from training.runs.build import load_interaction_run, mark_numbers
from training.words.storage import shrink

logger = logging.getLogger(__name__)

PAIR, EXPLANATION = "pair.onnx", "explanation.onnx"


def write_folder(recipe: Recipe, publication: Publication, runs: Path, folder: Path, seed: int) -> dict[str, Any]:
    """As `siamese.write_folder`; files that can be shared are written beside the folder."""
    model, table = load_interaction_run(recipe, runs, seed)
    assert isinstance(recipe.objective, PairwiseConfig)
    assert isinstance(recipe.architecture, PWIMConfig | MGIMConfig)
    words, factor = unscaled(recipe, table, model.embedding.weight.detach().numpy())
    if publication.keep_words is not None:
        words = shrink(words, publication.keep_words, [])
    assert isinstance(model.network, PWIM | MGIM)
    model.network.embedding = embedding(words, publication.storage, factor)
    mark_numbers(model.network, words.tokenizer)  # of a shorter vocabulary perhaps
    limit = recipe.architecture.limit if isinstance(recipe.architecture, PWIMConfig) else publication.max_tokens
    explains = not isinstance(recipe.architecture, MGIMConfig) or recipe.architecture.attention
    classes = recipe.objective.classes
    return {
        "max_tokens": limit,
        "similarity": similarity_of(classes, symmetric=recipe.objective.both_orders),
        **write_graphs(model, words.tokenizer, folder, publication.model_id, limit, explains=explains),
    }


def similarity_of(classes: Sequence[float], *, symmetric: bool) -> SimilarityTask:
    """The task of a model whose outputs are these ratings."""
    scale = (classes[0], classes[-1])
    return SimilarityTask(
        graph=PAIR,
        classes=tuple(classes),
        raw_range=scale,
        label_scale=None if scale == (YES_OR_NO[0], YES_OR_NO[-1]) else scale,
        symmetric=symmetric,
    )


def write_graphs(
    model: InteractionModel, tokenizer: AnyTokenizer, folder: Path, model_id: str, limit: int, *, explains: bool
) -> dict[str, Any]:
    """Export a model around its words as they are stored, which go among the shared files beside the folder.

    Args:
        model: of pairs.
        tokenizer: of its words.
        folder: of the model.
        model_id: what the graphs say of themselves.
        limit: most tokens of a sentence.
        explains: whether it has matrices to show.

    Returns:
        Manifest fields, without those of the task; `shared`: entries of shared files.

    Raises:
        ParityError, GraphMismatchError: an exported graph differs from its module.
    """
    network = model.network
    assert isinstance(network, PWIM | MGIM)
    arrays = arrays_of(network.embedding, "network.embedding")
    export_pair(model, folder / PAIR, model_id, list(arrays))
    found = [check_pair(folder / PAIR, model, len(tokenizer), limit, arrays)]
    explanation = None
    if explains:
        export_explanation(network, folder / EXPLANATION, model_id, list(arrays))
        found.append(check_explanation(folder / EXPLANATION, network, len(tokenizer), limit, arrays))
        explanation = Explanation(graph=EXPLANATION, matrices=network.MATRICES)
    for graph, agreement in zip((PAIR, EXPLANATION), found, strict=False):
        logger.info("%s/%s equals its module to %.1e, but for %d near ties among %d pairs", model_id, graph, *agreement)
    return {
        "family": "interaction",
        "tokenizer": TOKENIZER,
        "explanation": explanation,
        **write_words(arrays, tokenizer, folder)._asdict(),
    }


def calibrate(manifest: Manifest, recipe: Recipe, runs: Path, folder: Path, seed: int) -> Manifest:
    """The same manifest: expected ratings and probabilities need no calibration."""
    return manifest


def golden_texts(recipe: Recipe, runs: Path, seed: int, max_tokens: int) -> list[tuple[str, str]]:
    """The golden texts without those whose score depends on rounding, which may differ between machines."""
    model, table = load_interaction_run(recipe, runs, seed)
    return [texts for texts in GOLDEN_TEXTS if not hangs_on_rounding(model, table.tokenizer, max_tokens, texts)]


def hangs_on_rounding(model: nn.Module, tokenizer: AnyTokenizer, limit: int, texts: Sequence[str]) -> bool:
    """Whether the score of a pair of texts depends on rounding errors."""
    feeds = {}
    for side, text in zip("ab", texts, strict=True):
        feeds[f"input_ids_{side}"], feeds[f"lengths_{side}"] = pad([tokenizer.encode(text, limit).ids])
    # The noise is some tens of times larger than rounding errors, and so is its effect on a continuous score.
    return moved_by_rounding(model.eval(), feeds) > 10 * GOLDEN_TOLERANCE
