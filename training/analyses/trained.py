"""Trained runs, opened once, and what they say of texts and pairs; the one place where analyses run models."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from contract.tokenizer import Tokenizer
from training.analyses.analysis import AnalysisError
from training.architectures import WordAveragingConfig, build_encoder
from training.batches import Sentences
from training.corpora import mixtures
from training.layers import WordEmbedding
from training.metrics import graded
from training.models import SiameseModel
from training.objectives.development import encode_all
from training.pairs import Pair
from training.recipe import ParaphrasePairs, Recipe
from training.recipes import find
from training.run import load_run
from training.tables import Matrix
from training.tokenised import tokenised_pairs

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Trained:
    """A model that is only asked, with the rows of the word table it began with."""

    recipe: Recipe
    model: SiameseModel
    tokenizer: Tokenizer
    table_rows: Matrix  # float32 [V, D], before training, not scaled

    @property
    def rows(self) -> Matrix:
        """Word vectors after training, float32 [V, D]."""
        rows: Matrix = self.model.embedding.weight.detach().cpu().numpy()
        return rows


def load(name: str, seed: int, runs: Path) -> Trained:
    """A trained run by the name of its recipe.

    Raises:
        KeyError: no such recipe.
        RunMissing: it was not trained.
    """
    recipe = find(name)
    model, table = load_run(recipe, runs, seed)
    return Trained(recipe, model.eval(), table.tokenizer, table.rows)


def averaging(trained: Trained, rows: Matrix) -> Trained:
    """Plain word averaging over other rows [V, D] of the same vocabulary."""
    model = SiameseModel(build_encoder(WordAveragingConfig(), WordEmbedding(rows)))
    return Trained(trained.recipe, model.eval(), trained.tokenizer, rows)


def vectors(trained: Trained, texts: Sequence[str]) -> Floats:
    """Sentence vectors [n, D]."""
    with torch.inference_mode():
        encoded = encode_all(trained.model, Sentences(texts, trained.tokenizer, trained.recipe.max_tokens))
    return encoded.cpu().numpy().astype(np.float64)


def unit(values: npt.NDArray[np.floating]) -> Floats:
    """Rows at length 1; rows of zeros stay."""
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.where(lengths == 0, 1, lengths), dtype=np.float64)


def cosines(trained: Trained, pairs: Sequence[Pair]) -> Floats:
    """Cosine of both sides [n]."""
    a, b = (unit(vectors(trained, side)) for side in ([p.a for p in pairs], [p.b for p in pairs]))
    return np.asarray((a * b).sum(axis=1))


def gold(pairs: Sequence[Pair]) -> Floats:
    """What people answered [n]."""
    return np.array([p.target for p in pairs], dtype=np.float64)


def pearson(trained: Trained, pairs: Sequence[Pair]) -> float:
    """Pearson r of the cosine with what people answered."""
    return graded(cosines(trained, pairs), gold(pairs))["pearson"]


def training_pairs(trained: Trained) -> tuple[Sentences, Sentences]:
    """The pairs a transfer run was trained on.

    Raises:
        AnalysisError: it was not trained on paraphrase pairs.
    """
    data = trained.recipe.data
    if not isinstance(data, ParaphrasePairs):
        raise AnalysisError(f"recipe {trained.recipe.name!r} is not trained on paraphrase pairs")
    pairs = mixtures.paraphrase_pairs(limit=data.limit, seed=data.seed)
    return tokenised_pairs(pairs, trained.tokenizer, trained.recipe.max_tokens)
