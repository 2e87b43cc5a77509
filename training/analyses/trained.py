"""Trained runs, their vectors and cosines; all analyses of runs use these functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from contract.manifest import MANIFEST_NAME
from contract.tokenizer import Tokenizer
from training.analyses.analysis import AnalysisError
from training.architectures import WordAveragingConfig, build_encoder
from training.architectures.models import SiameseModel
from training.architectures.parts.layers import WordEmbedding
from training.corpora import mixtures
from training.objectives.development import encode_all
from training.objectives.metrics import graded
from training.objectives.parts.batches import Sentences, tokenised_pairs
from training.pairs import Pair
from training.publishing.runtime import PublishedModel
from training.recipes import find
from training.recipes.recipe import Recipe
from training.runs.build import load_run
from training.sources.transfer import ParaphrasePairs
from training.words.tables import Matrix

Floats = npt.NDArray[np.float64]
MODELS = Path("models")


@dataclass(frozen=True)
class Trained:
    """A trained model for inference, with the rows of its word table before training."""

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


def published(model_id: str) -> PublishedModel:
    """A model of `models/`.

    Raises:
        AnalysisError: it is not published.
    """
    folder = MODELS / model_id
    if not (folder / MANIFEST_NAME).is_file():
        raise AnalysisError(f"{folder} is not published: run `python -m training publish {model_id}` first")
    return PublishedModel(folder)


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
    """Rows scaled to length 1; zero rows are unchanged."""
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.where(lengths == 0, 1, lengths), dtype=np.float64)


def cosines(trained: Trained, pairs: Sequence[Pair]) -> Floats:
    """Cosine of both sides [n]."""
    a, b = (unit(vectors(trained, side)) for side in ([p.a for p in pairs], [p.b for p in pairs]))
    return np.asarray((a * b).sum(axis=1))


def gold(pairs: Sequence[Pair]) -> Floats:
    """Human ratings [n]."""
    return np.array([p.target for p in pairs], dtype=np.float64)


def pearson(trained: Trained, pairs: Sequence[Pair]) -> float:
    """Pearson r of the cosine with the human ratings."""
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
