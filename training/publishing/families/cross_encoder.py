"""A trained cross-encoder's files: one graph for all of its tasks, each calibrated on development pairs."""

import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from contract.calibration import Logistic
from contract.golden import GOLDEN_TEXTS
from contract.manifest import Manifest
from contract.wordpiece import WordPiece
from training.architectures import CrossEncoder
from training.corpora.readers import nli, sick, stsb
from training.corpora.tasks import CALIBRATION_PAIRS, development
from training.objectives.supervised import LABELS
from training.objectives.tasks import PairTokens, predict
from training.pairs import Pair
from training.publishing.calibrate import fit_centred_isotonic, fit_temperature
from training.publishing.families.siamese import STS_SCALE
from training.publishing.families.transformer import RAW_RANGE, HeadCalibrations, write_cross_encoder
from training.recipes.recipe import Publication, Recipe
from training.runs.cross import TOKENIZER_NAME, load_cross
from training.runs.folder import run_folder

logger = logging.getLogger(__name__)

SERVED = ("entailment", "similarity", "paraphrase", "relevance")


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
        RunMissing: it was not trained.
        CorpusError: a development part is missing or malformed.
        ParityError, GraphMismatchError: the export does not compute what was trained.
    """
    model = served_heads(load_cross(recipe, runs, seed))
    tokenizer = run_folder(runs, recipe, seed) / TOKENIZER_NAME
    calibrations = calibrated(model, WordPiece.load(tokenizer), publication.max_tokens)
    fields = write_cross_encoder(model, tokenizer, folder, publication.model_id, calibrations)
    limits = fields.pop("limits")
    return {**fields, "max_tokens": limits.max_tokens}


def calibrate(manifest: Manifest, recipe: Recipe, runs: Path, folder: Path, seed: int) -> Manifest:
    """The same manifest: `write_folder` calibrates the heads before they are exported."""
    return manifest


def golden_texts(recipe: Recipe, runs: Path, seed: int, max_tokens: int) -> list[tuple[str, str]]:
    """The golden texts, all of them."""
    return list(GOLDEN_TEXTS)


def served_heads(model: CrossEncoder) -> CrossEncoder:
    """The model without the heads that only helped to train it."""
    kept = {name: outputs for name, outputs in model.config.heads.items() if name in SERVED}
    served = CrossEncoder(dataclasses.replace(model.config, heads=kept))
    served.load_state_dict({name: value for name, value in model.state_dict().items() if name in served.state_dict()})
    return served.eval()


def calibrated(model: CrossEncoder, tokenizer: WordPiece, max_tokens: int) -> HeadCalibrations:
    """Calibrations on development parts: SNLI, MultiNLI and SICK; STS-B; MSRP; WikiQA."""
    labels = [*nli.snli("dev")[:CALIBRATION_PAIRS], *nli.multinli()[:CALIBRATION_PAIRS], *sick.read("dev")]

    def outputs(task: str, pairs: Sequence[Pair]) -> npt.NDArray[np.float64]:
        return predict(model, PairTokens(pairs, tokenizer, max_tokens))[task].astype(np.float64)

    rated = stsb.read("dev")
    raw = 1 / (1 + np.exp(-outputs("similarity", rated)[:, 0]))
    gold = np.array([pair.target for pair in rated], dtype=np.float64)
    found = HeadCalibrations(
        temperature=fit_temperature(
            outputs("entailment", labels),
            np.array([LABELS.index(pair.label) for pair in labels]),
        ),
        similarity=fit_centred_isotonic(raw, gold, raw_range=RAW_RANGE, target_range=STS_SCALE),
        paraphrase=_logistic(outputs("paraphrase", development("msrp")), development("msrp")),
        relevance=_logistic(outputs("relevance", development("wikiqa")), development("wikiqa")),
    )
    logger.info("temperature %.3f, %s, %s", found.temperature, found.paraphrase, found.relevance)
    return found


def _logistic(raw: npt.NDArray[np.float64], pairs: Sequence[Pair]) -> Logistic:
    """Platt scaling of raw outputs [n, 1] to the share of pairs labelled 1."""
    fit = LogisticRegression(C=np.inf).fit(raw, [pair.label == "1" for pair in pairs])
    return Logistic(slope=float(fit.coef_[0, 0]), intercept=float(fit.intercept_[0]))
