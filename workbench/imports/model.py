"""What every kind of imported model offers to `workbench.imports.folder`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from contract.manifest import SimilarityTask
from contract.padding import pad
from contract.wordpiece import WordPiece
from training.pairs import Pair
from training.words.storage import Storage

Floats = npt.NDArray[np.float64]
BATCH = 64
COSINE = SimilarityTask(comparison="cosine", raw_range=(-1.0, 1.0), symmetric=True)  # without a calibration


@dataclass(frozen=True)
class Labelled:
    """Pairs to calibrate on."""

    pairs: Sequence[Pair]
    scale: tuple[float, float]  # lowest and highest score there can be
    name: str  # of the file


class Facts(NamedTuple):
    """What the manifest and the card say of an imported model."""

    architecture: str
    what: str  # for the title
    settings: dict[str, Any]
    notes: tuple[str, ...]  # how it differs from what its library does


class ImportedModel(Protocol):
    """A model read from another library's folder."""

    @property
    def library(self) -> str:
        """The package that can answer with the same folder."""

    @property
    def storages(self) -> tuple[Storage, ...]:
        """How its weights can be stored; the first is the default."""

    @property
    def tokenizer(self) -> Path:
        """Its `tokenizer.json`."""

    @property
    def max_tokens(self) -> int:
        """Most tokens of a text."""

    @property
    def label(self) -> str | None:
        """The column of labels it is calibrated on; None: scores."""

    @property
    def facts(self) -> Facts:
        """What is said of it."""

    def ours(self, a: Sequence[str], b: Sequence[str], storage: Storage) -> Floats:
        """Our answers about n pairs with weights stored like that: embeddings of a and of b [2 n, D], or outputs
        [n, K]."""

    def theirs(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """The library's own answers; ModuleNotFoundError: it is not installed."""

    def write(self, folder: Path, model_id: str, storage: Storage, labelled: Labelled | None) -> dict[str, Any]:
        """Export into a folder; returns the fields of the manifest."""


@torch.no_grad()
def embeddings(encoder: nn.Module, tokenizer: WordPiece, texts: Sequence[str], max_tokens: int) -> Floats:
    """A module's embeddings of n texts [n, D]."""
    ids = [tokenizer.encode(text, max_tokens).ids for text in texts]
    found = []
    for start in range(0, len(ids), BATCH):
        input_ids, lengths = pad(ids[start : start + BATCH])
        found.append(encoder(torch.from_numpy(input_ids), torch.from_numpy(lengths)).double().numpy())
    return np.concatenate(found)
