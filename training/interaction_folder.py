"""An interaction model's files: its graphs, held against the model, and its words, which other models may share.

The words stay outside the graphs, in files called by their checksums (`training.shared`): both graphs of a model use
them, and so does every model that froze the same words, be it those of the word table or of the run it started from.
"""

import copy
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from contract.golden import TOLERANCE as GOLDEN_TOLERANCE
from contract.manifest import Explanation, FileEntry, SimilarityTask
from contract.padding import pad
from contract.tokenizer import Tokenizer
from training.architectures import MGIM, PWIM, MGIMConfig, PWIMConfig
from training.export import export_explanation, export_pair
from training.layers import Int8Embedding
from training.models import InteractionModel
from training.objectives.pairwise import YES_OR_NO, PairwiseConfig
from training.parity import check_explanation, check_pair, moved_by_rounding
from training.recipe import Publication, Recipe
from training.recipes import find
from training.shared import share
from training.storage import Storage, shrink, stored
from training.tables import WordTable

logger = logging.getLogger(__name__)

PAIR, EXPLANATION, TOKENIZER = "pair.onnx", "explanation.onnx", "tokenizer.json"


class InteractionFolder(NamedTuple):
    """What the manifest says of the files that were written."""

    similarity: SimilarityTask
    explanation: Explanation | None  # none of a model without attention
    max_tokens: int
    tensors: dict[str, str]  # name of the initializer -> file
    shared: dict[str, FileEntry]  # those of the files that lie among the shared ones


def write_folder(
    recipe: Recipe, publication: Publication, model: InteractionModel, table: WordTable, folder: Path
) -> InteractionFolder:
    """Export a trained model and its words.

    Args:
        recipe: what was trained.
        publication: how it is stored.
        model: trained.
        table: the word table it was trained from.
        folder: of the model; what can be shared goes beside it.

    Raises:
        ParityError, GraphMismatchError: an export does not compute what was trained.
    """
    assert isinstance(recipe.objective, PairwiseConfig)
    assert isinstance(recipe.architecture, PWIMConfig | MGIMConfig)
    rows, factor = model.embedding.weight.detach().numpy(), row_scale(recipe)
    if np.array_equal(rows, table.rows * np.float32(factor)):
        words = table
    else:  # trained
        words, factor = WordTable(table.tokenizer, rows), 1.0
    if publication.keep_words is not None:
        words = shrink(words, publication.keep_words, [])
    model = copy.deepcopy(model)
    network = model.network
    assert isinstance(network, PWIM | MGIM)
    embedding = network.embedding = _embedding(words, publication.storage, factor)
    arrays = {
        f"network.embedding.{name}": value.detach().numpy()
        for name, value in (*embedding.named_parameters(), *embedding.named_buffers())
    }

    limit, vocabulary = recipe.architecture.limit or publication.max_tokens, len(words.tokenizer)
    export_pair(model, folder / PAIR, publication.model_id, list(arrays))
    found = [check_pair(folder / PAIR, model, vocabulary, limit, arrays)]
    explanation = None
    if not isinstance(recipe.architecture, MGIMConfig) or recipe.architecture.attention:
        export_explanation(network, folder / EXPLANATION, publication.model_id, list(arrays))
        found.append(check_explanation(folder / EXPLANATION, network, vocabulary, limit, arrays))
        explanation = Explanation(graph=EXPLANATION, matrices=network.MATRICES)
    for graph, agreement in zip((PAIR, EXPLANATION), found, strict=False):
        logger.info(
            "%s/%s equals its module to %.1e, but for %d near ties among %d pairs", folder.name, graph, *agreement
        )

    words.tokenizer.save(folder / TOKENIZER)
    tensors = {name: f"{name.removeprefix('network.')}.npy" for name in arrays}
    for name, file in tensors.items():
        np.save(folder / file, arrays[name], allow_pickle=False)
    shared = {file: share(folder / file, folder.parent) for file in (*tensors.values(), TOKENIZER)}
    classes = recipe.objective.classes
    scale = (classes[0], classes[-1])
    similarity = SimilarityTask(
        graph=PAIR,
        classes=classes,
        raw_range=scale,
        label_scale=None if classes == YES_OR_NO else scale,
        symmetric=recipe.objective.both_orders,
    )
    return InteractionFolder(similarity, explanation, limit, tensors, shared)


def row_scale(recipe: Recipe) -> float:
    """What the rows of the word table were multiplied by until this recipe trained on them, or froze them."""
    before = row_scale(find(recipe.start)) if recipe.start is not None else 1.0
    return before * recipe.row_scale


def hangs_on_rounding(model: InteractionModel, tokenizer: Tokenizer, limit: int, texts: Sequence[str]) -> bool:
    """Whether the answer to a pair of texts may differ on a machine that rounds otherwise."""
    feeds = {}
    for side, text in zip("ab", texts, strict=True):
        feeds[f"input_ids_{side}"], feeds[f"lengths_{side}"] = pad([tokenizer.encode(text, limit).ids])
    # The noise is some tens of times larger than rounding, and so is what it moves where nothing hangs on it.
    return moved_by_rounding(model.eval(), feeds) > 10 * GOLDEN_TOLERANCE


def _embedding(words: WordTable, storage: Storage, factor: float) -> nn.Module:
    """The rows times a factor. In int8 it falls on their scales: the codes are those of every model of that table."""
    embedding = stored(torch.from_numpy(words.rows), storage)
    if isinstance(embedding, Int8Embedding):
        embedding.scale *= factor
        return embedding
    return stored(torch.from_numpy(words.rows * np.float32(factor)), storage)
