"""Files of a trained model with a head for each task: a cross-encoder, or PWIM with heads."""

import copy
import logging
from pathlib import Path
from typing import Any

from contract.golden import GOLDEN_TEXTS
from contract.manifest import Limits
from training.architectures import CrossEncoder
from training.publishing.families.blending import fit_blend
from training.publishing.families.heads import HeadCalibrations, Heads, calibrated, served_heads, task_fields
from training.publishing.families.interaction import PAIR, hangs_on_rounding, write_graphs
from training.publishing.families.transformer import write_cross_encoder
from training.publishing.families.words import embedding
from training.recipes.recipe import Publication, Recipe
from training.runs.folder import run_folder
from training.runs.tables import load_table
from training.runs.tasks import TOKENIZER_NAME, load_heads, load_start, tokenizer_for

logger = logging.getLogger(__name__)


def write_folder(recipe: Recipe, publication: Publication, runs: Path, folder: Path, seed: int) -> dict[str, Any]:
    """Calibrate and export a trained run.

    Args:
        recipe: what was trained.
        publication: how it is stored.
        runs: where its run lies.
        folder: of the model; what can be shared goes beside it.
        seed: of the run.

    Returns:
        The fields of the manifest that only this family has, or that depend on the model; `shared` are the entries of
        files that lie among the shared ones.

    Raises:
        RunMissing: it was not trained, or the encoder that it started from is gone.
        CorpusError: a development part is missing or malformed.
        ParityError, GraphMismatchError: the export does not compute what was trained.
    """
    model = served_heads(load_heads(recipe, runs, seed))
    run = run_folder(runs, recipe, seed)
    if isinstance(model, CrossEncoder):
        tokenizer, limit = tokenizer_for(recipe, runs, run), publication.max_tokens
        blend, fitted = None, None
        if publication.blend:
            blend, fitted = fit_blend(model, load_start(recipe, runs, seed), tokenizer, limit)
        calibrations = calibrated(model, tokenizer, limit, fitted)
        fields = write_cross_encoder(model, run / TOKENIZER_NAME, folder, publication.model_id, calibrations, blend)
    else:
        words = load_table(recipe.table, runs)
        model.embedding = embedding(words, publication.storage, 1.0)
        calibrations = calibrated(model, words.tokenizer, model.tasks.limit)
        heads, limit = Heads(model, calibrations), model.tasks.limit
        fields = write_graphs(heads, model, words.tokenizer, folder, publication.model_id, limit)
        fields |= {"limits": Limits(max_tokens=limit), **task_fields(PAIR, heads.columns, calibrations)}
    return fields


def golden_texts(recipe: Recipe, runs: Path, seed: int, max_tokens: int) -> list[tuple[str, str]]:
    """The golden texts; without those whose answers depend on rounding, which may differ between machines."""
    model = served_heads(load_heads(recipe, runs, seed))
    if isinstance(model, CrossEncoder):
        return list(GOLDEN_TEXTS)
    tokenizer, heads = load_table(recipe.table, runs).tokenizer, Heads(copy.deepcopy(model), HeadCalibrations())
    return [texts for texts in GOLDEN_TEXTS if not hangs_on_rounding(heads, tokenizer, max_tokens, texts)]
