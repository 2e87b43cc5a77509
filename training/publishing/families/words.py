"""Word vectors outside a model's graphs, in files named by their checksums (`training.publishing.shared_files`).

All graphs of a model use them, and so do all models with the same frozen words.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from contract.manifest import FileEntry
from contract.subwords import AnyTokenizer
from training.publishing.shared_files import share
from training.recipes import find
from training.recipes.recipe import Recipe
from training.words.storage import Int8Embedding, Storage, stored
from training.words.tables import Matrix, WordTable

TOKENIZER = "tokenizer.json"

Arrays = dict[str, npt.NDArray[np.generic]]


class OutsideWords(NamedTuple):
    """Their entries in a manifest."""

    tensors: dict[str, str]  # name of the initializer -> file
    shared: dict[str, FileEntry]  # the files


def unscaled(recipe: Recipe, table: WordTable, rows: Matrix) -> tuple[WordTable, float]:
    """A model's words as a table and a factor: those of its word table if it froze them, else its own rows and 1."""
    factor = row_scale(recipe)
    if np.array_equal(rows, table.rows * np.float32(factor)):
        return table, factor
    return WordTable(table.tokenizer, rows), 1.0


def row_scale(recipe: Recipe) -> float:
    """The product of the row scales of this recipe and of the runs it starts from."""
    before = row_scale(find(recipe.start)) if recipe.start is not None else 1.0
    return before * recipe.row_scale


def embedding(words: WordTable, storage: Storage, factor: float) -> nn.Module:
    """The rows times a factor. For int8 the factor multiplies the scales, so models of one table share the codes."""
    kept = stored(torch.from_numpy(words.rows), storage)
    if isinstance(kept, Int8Embedding):
        kept.scale *= factor
        return kept
    return stored(torch.from_numpy(words.rows * np.float32(factor)), storage)


def arrays_of(kept: nn.Module, prefix: str) -> Arrays:
    """The arrays of an embedding, by the names of their initializers; `prefix` is its name in the module exported."""
    return {
        f"{prefix}.{name}": value.detach().numpy() for name, value in (*kept.named_parameters(), *kept.named_buffers())
    }


def write_words(arrays: Arrays, tokenizer: AnyTokenizer, folder: Path) -> OutsideWords:
    """Write the arrays and the tokenizer to the shared files beside a model's folder."""
    tokenizer.save(folder / TOKENIZER)
    tensors = {name: f"{name[name.index('embedding.') :]}.npy" for name in arrays}
    for name, file in tensors.items():
        np.save(folder / file, arrays[name], allow_pickle=False)
    return OutsideWords(tensors, {file: share(folder / file, folder.parent) for file in (*tensors.values(), TOKENIZER)})
