"""A tuned module -> the files and the manifest of a model folder, its score calibrated on the development part."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core.manifest import Manifest, Provenance, TrainingData
from core.scoring import Calibration
from semblance.tables.labelled_pairs import Kind
from training.data.pairs import Pair
from training.data.words.storage import stored
from training.families import siamese
from training.families.transformer import write_encoder
from training.models.layers import WordEmbedding
from training.models.transformer import SequenceEncoder
from training.publish.calibrate import fit_centred_isotonic, fit_platt
from training.publish.folders import assemble
from training.publish.runtime import PublishedModel
from workbench.imports.calibration import sample
from workbench.tuning.objective import TuneObjective
from workbench.tuning.read_back import Start, TuneRefused


def write_tuned(
    start: Start,
    objective: TuneObjective,
    scale: tuple[float, float],
    folder: Path,
    *,
    tokenizer: Path,
    title: str,
    training_data: Sequence[TrainingData],
    provenance: Provenance,
) -> Manifest:
    """Write the files of a model, whose id is the folder's name; its manifest still lacks figures and golden pairs.

    It has the one task that was tuned: of others it would answer with what it no longer is.

    Args:
        start: the model it was tuned from.
        objective: with the tuned module, and the development part.
        scale: of the scores.
        folder: to write into; what can be shared goes beside it.
        tokenizer: the start's file.
        title: for people.
        training_data: everything that moved a weight or a choice.
        provenance: how to make it again.

    Raises:
        ParityError, GraphMismatchError: a graph does not compute what was trained.
        TuneRefused: the score cannot be calibrated.
    """
    kind, before = objective.kind, start.manifest.similarity
    assert before is not None  # `check_kind` has seen to it
    fields = _graphs(start, objective, folder, tokenizer)
    ratings = scale if kind == "score" else None
    fields |= {"similarity": before.model_copy(update={"label_scale": ratings, "calibration": None})}
    manifest = assemble(
        folder,
        fields,
        title=title,
        architecture=start.manifest.architecture,
        training_data=training_data,
        provenance=provenance,
        languages=start.manifest.languages,
    )
    assert manifest.similarity is not None
    fit = _calibration(PublishedModel(folder, manifest), kind, objective.development, scale)
    return manifest.model_copy(update={"similarity": manifest.similarity.model_copy(update={"calibration": fit})})


def _graphs(start: Start, objective: TuneObjective, folder: Path, tokenizer: Path) -> dict[str, Any]:
    encoder, limits = objective.model.eval().encoder, start.manifest.limits
    if isinstance(encoder, SequenceEncoder):
        fields = write_encoder(
            encoder, tokenizer, folder, folder.name, storage=start.storage, max_tokens=limits.max_tokens
        )
        return fields | {"prompts": start.manifest.prompts}
    words = encoder.embedding
    assert isinstance(words, WordEmbedding)
    encoder.embedding = stored(words.weight.detach(), "int8" if start.storage == "int8" else "float32")
    fields = siamese.write_graphs(encoder, {}, start.tokenizer, folder, folder.name, words_are_shared=False)
    return {"limits": limits, "additive": True, **fields}


def _calibration(model: PublishedModel, kind: Kind, pairs: Sequence[Pair], scale: tuple[float, float]) -> Calibration:
    """Raw score -> rating on the scale, or -> the probability of the label 1.

    For labels, each rated pair of `sample` counts as one more, its rating as a probability: a few easy pairs alone give
    a curve that is sure of what it has not seen. Beside many pairs these few change little.
    """
    task = model.manifest.similarity
    assert task is not None
    more = [] if kind != "label" else [pair for pair in sample().pairs if _has_tokens(model, pair)]
    every = [*pairs, *more]
    raw = model.similarity([pair.a for pair in every], [pair.b for pair in every]).raw_score
    gold = np.array([pair.target for pair in every], dtype=np.float64)
    if kind == "score":
        return fit_centred_isotonic(raw, gold, raw_range=task.raw_range, target_range=scale)
    # A rated pair is right as often as its rating says, and wrong otherwise.
    rated = gold[len(pairs) :]
    right = np.concatenate([gold[: len(pairs)] > 0, np.ones(len(rated), bool), np.zeros(len(rated), bool)])
    weight = np.concatenate([np.ones(len(pairs)), rated, 1 - rated])
    try:
        return fit_platt(np.concatenate([raw, raw[len(pairs) :]]), right, weight)
    except ValueError as error:
        raise TuneRefused(f"the score cannot be calibrated on the {len(pairs)} pairs to choose on: {error}") from None


def _has_tokens(model: PublishedModel, pair: Pair) -> bool:
    return all(model.tokenizer.encode(text, 1).ids for text in (pair.a, pair.b))
