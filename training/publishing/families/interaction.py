"""Files of an interaction model: its graphs, compared with the model, and its words, which other models may share."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from contract.golden import GOLDEN_TEXTS
from contract.golden import TOLERANCE as GOLDEN_TOLERANCE
from contract.manifest import ExplanationGraph, Limits, SimilarityTask
from contract.padding import pad
from contract.subwords import AnyTokenizer
from training.architectures import MGIM, PWIM, InteractionNetwork, MGIMConfig, PWIMConfig
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
    classes = recipe.objective.classes
    scale = (classes[0], classes[-1])
    similarity = SimilarityTask(
        graph=PAIR,
        classes=classes,
        raw_range=scale,
        label_scale=None if classes == YES_OR_NO else scale,
        symmetric=recipe.objective.both_orders,
    )
    written = write_graphs(model, model.network, words.tokenizer, folder, publication.model_id, limit)
    return {"limits": Limits(max_tokens=limit), "similarity": similarity, **written}


def write_graphs(
    model: nn.Module, network: InteractionNetwork, tokenizer: AnyTokenizer, folder: Path, model_id: str, limit: int
) -> dict[str, Any]:
    """Export a model around its words as they are stored, which go among the shared files beside the folder.

    Args:
        model: of pairs, whose part `network` it is.
        network: with the words, and matrices to show unless it has none.
        tokenizer: of its words.
        folder: of the model.
        model_id: what the graphs say of themselves.
        limit: most tokens of a sentence.

    Returns:
        Manifest fields, without those of the tasks; `shared`: entries of shared files.

    Raises:
        ParityError, GraphMismatchError: an exported graph differs from its module.
    """
    assert isinstance(network.embedding, nn.Module)
    arrays = arrays_of(network.embedding, "network.embedding")
    export_pair(model, folder / PAIR, model_id, list(arrays))
    found = {PAIR: check_pair(folder / PAIR, model, len(tokenizer), limit, arrays)}
    if explains := not isinstance(network, MGIM) or network.attention is not None:
        export_explanation(network, folder / EXPLANATION, model_id, list(arrays))
        found[EXPLANATION] = check_explanation(folder / EXPLANATION, network, len(tokenizer), limit, arrays)
    for graph, agreement in found.items():
        logger.info("%s/%s equals its module to %.1e, but for %d near ties among %d pairs", model_id, graph, *agreement)
    return {
        "family": "interaction",
        "tokenizer": TOKENIZER,
        "explanation": ExplanationGraph(graph=EXPLANATION, matrices=network.MATRICES) if explains else None,
        **write_words(arrays, tokenizer, folder)._asdict(),
    }


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
