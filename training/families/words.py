"""Models around an embedding of a word table: how they begin, and how their words are stored outside their graphs.

The words lie in files named by their checksums (`training.publish.shared_files`), which all graphs of a model use,
and so do all models with the same frozen words.
"""

from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from core.manifest import FileEntry
from core.subwords import AnyTokenizer
from training.data.words.storage import Int8Embedding, Storage, stored
from training.data.words.tables import Matrix, WordTable
from training.models.kinds import InteractionModel, SiameseModel
from training.publish.shared_files import share
from training.train.family import ModelFamily

TOKENIZER = "tokenizer.json"

Arrays = dict[str, npt.NDArray[np.generic]]
WordModel = TypeVar("WordModel", bound=SiameseModel | InteractionModel)


class WordFamily(ModelFamily[WordModel]):
    """Models around the rows of a word table, which training may move and scale."""

    def rows(self) -> Matrix:
        """The word vectors that an untrained model has; if they are drawn at random, that of the padding is zero."""
        if not self.recipe.random_start:
            return self.table.rows
        drawn = np.random.default_rng(self.seed).normal(0.0, 0.1, self.table.rows.shape).astype(np.float32)
        drawn[0] = 0.0
        return drawn

    def build(self, teacher: Path | None) -> WordModel:
        """The model as its training begins, its words scaled."""
        model = super().build(teacher)
        if self.recipe.row_scale != 1.0:
            with torch.no_grad():
                model.embedding.weight.mul_(self.recipe.row_scale)
                model.embedding.start.mul_(self.recipe.row_scale)
        return model

    def words_of(self, model: WordModel) -> tuple[WordTable, float]:
        """A model's words as a table and a factor: its word table's if it froze them, else its own rows and 1."""
        rows, factor = model.embedding.weight.detach().numpy(), row_scale(self)
        if np.array_equal(rows, self.table.rows * np.float32(factor)):
            return self.table, factor
        return WordTable(self.table.tokenizer, rows), 1.0


def row_scale(run: ModelFamily[Any]) -> float:
    """The product of the row scales of a run and of the runs it starts from."""
    return (1.0 if run.start is None else row_scale(run.start)) * run.recipe.row_scale


class OutsideWords(NamedTuple):
    """Their entries in a manifest."""

    tensors: dict[str, str]  # name of the initializer -> file
    shared: dict[str, FileEntry]  # the files


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


def write_words(arrays: Arrays, tokenizer: AnyTokenizer, folder: Path, kind: str = "embedding") -> OutsideWords:
    """Write the arrays and the tokenizer to the shared files beside a model's folder; the files' names begin with
    `kind`."""
    tokenizer.save(folder / TOKENIZER)
    tensors = {name: f"{kind}.{name.rpartition('.')[2]}.npy" for name in arrays}
    for name, file in tensors.items():
        np.save(folder / file, arrays[name], allow_pickle=False)
    return OutsideWords(tensors, {file: share(folder / file, folder.parent) for file in (*tensors.values(), TOKENIZER)})
