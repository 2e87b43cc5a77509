"""Files of a siamese model: encoder and heads as graphs, compared with the model, and the calibration."""

import copy
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from contract.calibration import Calibration
from contract.golden import GOLDEN_TEXTS
from contract.graph import CLASSIFIER
from contract.manifest import ClassificationTask, EntailmentTask, Limits, Manifest, SimilarityTask
from contract.subwords import AnyTokenizer
from training.architectures import GRAN, ProjectionConfig, WordAveragingConfig
from training.architectures.models import SiameseModel, output_dim
from training.corpora.readers import sts
from training.objectives.manhattan import ManhattanConfig
from training.objectives.sentiment import HEAD as SENTIMENT
from training.objectives.sentiment import LABELS as SENTIMENTS
from training.objectives.supervised import LABELS, SupervisedConfig
from training.publishing.calibrate import Floats, fit_centred_isotonic, fit_local_linear, fit_temperature
from training.publishing.export import export_encoder, export_head, export_tokens
from training.publishing.families.words import TOKENIZER, arrays_of, embedding, unscaled, write_words
from training.publishing.parity import check_encoder, check_head, check_tokens
from training.publishing.runtime import PublishedModel
from training.recipes.recipe import Publication, Recipe
from training.runs.build import load_run
from training.runs.folder import run_folder
from training.runs.malstm_finish import OUT_OF_FOLD_NAME
from training.sources.rated import supervised_pairs
from training.words.storage import shrink

logger = logging.getLogger(__name__)

ENCODER, TOKENS, SIMILARITY, ENTAILMENT = "encoder.onnx", "tokens.onnx", "similarity.onnx", "entailment.onnx"
CLASSIFICATION = "classification.onnx"
STS_SCALE = (0.0, 5.0)


def write_folder(recipe: Recipe, publication: Publication, runs: Path, folder: Path, seed: int) -> dict[str, Any]:
    """Export a trained run and its words.

    Args:
        recipe: what was trained.
        publication: how it is stored.
        runs: folder of runs.
        folder: of the model.
        seed: of the run.

    Returns:
        Manifest fields of this family and of this model; `shared`: entries of shared files.

    Raises:
        RunMissing: it was not trained.
        ParityError, GraphMismatchError: an exported graph differs from the trained model.
    """
    model, table = load_run(recipe, runs, seed)
    table, factor = unscaled(recipe, table, model.embedding.weight.detach().numpy())
    shares = recipe.optimiser.embedding_learning_rate is None and publication.keep_words is None
    if publication.keep_words is not None:
        table = shrink(table, publication.keep_words, recipe.data.vocabulary())
    encoder = copy.deepcopy(model.encoder)
    encoder.embedding = embedding(table, publication.storage, factor)
    return {
        "limits": Limits(max_tokens=publication.max_tokens),
        "similarity": _similarity_task(recipe, model),
        "entailment": EntailmentTask(graph=ENTAILMENT, labels=LABELS) if "entailment" in model.heads else None,
        "classification": ClassificationTask(graph=CLASSIFICATION, labels=SENTIMENTS)
        if SENTIMENT in model.heads
        else None,
        "additive": isinstance(recipe.architecture, WordAveragingConfig | ProjectionConfig),
        **write_graphs(encoder, model.heads, table.tokenizer, folder, publication.model_id, shares=shares),
    }


def write_graphs(
    encoder: nn.Module,
    heads: Mapping[str, nn.Module] | nn.ModuleDict,
    tokenizer: AnyTokenizer,
    folder: Path,
    model_id: str,
    *,
    shares: bool,
    spread: float = 1.0,
) -> dict[str, Any]:
    """Export an encoder, around its words as they are stored, and its heads.

    Args:
        encoder: of single sentences.
        heads: by task; others than similarity, entailment and sentiment are not served.
        tokenizer: of its words.
        folder: of the model.
        model_id: what the graphs say of themselves.
        shares: words go among the shared files beside the folder, as the tokenizer always does: they are frozen, so
            other models may have the same.
        spread: deviation of the embeddings that the heads are compared on.

    Returns:
        Manifest fields, without those of the tasks; `shared`: entries of shared files.

    Raises:
        ParityError, GraphMismatchError: an exported graph differs from its module.
    """
    kept = encoder.embedding
    assert isinstance(kept, nn.Module)
    arrays = arrays_of(kept, "embedding") if shares else {}
    export_encoder(encoder, folder / ENCODER, model_id, list(arrays))
    difference = check_encoder(folder / ENCODER, encoder, len(tokenizer), arrays)
    tokens = TOKENS if isinstance(encoder, GRAN) and encoder.has_token_parts else None
    if tokens is not None:
        export_tokens(encoder, folder / tokens, model_id, list(arrays))
        difference = max(difference, check_tokens(folder / tokens, encoder, len(tokenizer), arrays))
    words = write_words(arrays, tokenizer, folder)
    dim = output_dim(encoder)  # an encoder may project to another width than that of the words
    for task, name in (("similarity", SIMILARITY), ("entailment", ENTAILMENT)):
        if task in heads:
            export_head(heads[task], dim, folder / name, model_id)
            difference = max(difference, check_head(folder / name, heads[task], dim, spread=spread))
    if SENTIMENT in heads:
        export_head(heads[SENTIMENT], dim, folder / CLASSIFICATION, model_id, CLASSIFIER)
        difference = max(difference, check_head(folder / CLASSIFICATION, heads[SENTIMENT], dim, "classifier"))
    logger.info("%s: graphs equal their modules to %.1e", model_id, difference)
    return {
        "family": "siamese",
        "dim": dim,
        "encoder": ENCODER,
        "tokenizer": TOKENIZER,
        "token_embeddings": tokens,
        **words._asdict(),
    }


def calibrate(manifest: Manifest, recipe: Recipe, runs: Path, folder: Path, seed: int) -> Manifest:
    """The manifest with the calibration of its score, where the score is a comparison of embeddings and no head.

    Probabilities of a sentence's labels get the temperature that fits the development part best.
    """
    if (task := manifest.classification) is not None:
        dev = recipe.data.dev()
        said = PublishedModel(folder, manifest).classification([text for text, _ in dev])
        found = np.log([[each[label] for label in task.labels] for each in said])
        temperature = fit_temperature(found, np.array([label for _, label in dev]))
        manifest = manifest.model_copy(update={"classification": task.model_copy(update={"temperature": temperature})})
    if manifest.similarity is None or manifest.similarity.comparison is None:
        return manifest
    raw, gold = _calibration_points(recipe, PublishedModel(folder, manifest), run_folder(runs, recipe, seed))
    malstm = isinstance(recipe.objective, ManhattanConfig)
    return manifest.model_copy(update={"similarity": _calibrated(manifest.similarity, raw, gold, malstm=malstm)})


def golden_texts(recipe: Recipe, runs: Path, seed: int, max_tokens: int) -> list[tuple[str, str]]:
    """The golden texts, all of them."""
    return list(GOLDEN_TEXTS)


def _similarity_task(recipe: Recipe, model: SiameseModel) -> SimilarityTask | None:
    if isinstance(recipe.objective, ManhattanConfig):
        comparison, scale = recipe.objective.similarity, recipe.objective.scale
        lowest = -1.0 if comparison == "cosine" else 0.0
        return SimilarityTask(comparison=comparison, raw_range=(lowest, 1.0), label_scale=scale, symmetric=True)
    if "similarity" in model.heads:
        assert isinstance(recipe.objective, SupervisedConfig)
        classes = recipe.objective.classes
        assert classes is not None
        scale = (classes[0], classes[-1])
        return SimilarityTask(graph=SIMILARITY, classes=classes, raw_range=scale, label_scale=scale, symmetric=True)
    if model.heads:
        return None
    return SimilarityTask(comparison="cosine", raw_range=(-1.0, 1.0), label_scale=STS_SCALE, symmetric=True)


def _calibration_points(recipe: Recipe, model: PublishedModel, run: Path) -> tuple[Floats, Floats]:
    """Raw scores and ratings to fit on: STS 2016 for a cosine; for MaLSTM the part its recipe names."""
    config = recipe.objective
    if isinstance(config, ManhattanConfig) and config.calibrate_on == "out-of-fold":
        with np.load(run / OUT_OF_FOLD_NAME, allow_pickle=False) as scores:
            return scores["g"].astype(np.float64), scores["rating"].astype(np.float64)
    if isinstance(config, ManhattanConfig):
        pairs = supervised_pairs()
    else:
        pairs = [pair for rated in sts.read_year("2016-test").values() for pair in rated]
    raw = model.similarity([p.a for p in pairs], [p.b for p in pairs]).raw_score
    return raw, np.array([p.target for p in pairs], dtype=np.float64)


def _calibrated(task: SimilarityTask, raw: Floats, gold: Floats, *, malstm: bool) -> SimilarityTask:
    """Raw score -> expected rating: monotone for a cosine, local-linear regression for a MaLSTM."""
    scale = task.label_scale
    assert scale is not None  # both comparisons have one
    if malstm:
        fit: Calibration = fit_local_linear(raw, gold, target_range=scale)
    else:
        fit = fit_centred_isotonic(raw, gold, raw_range=task.raw_range, target_range=scale)
    return task.model_copy(update={"calibration": fit})
