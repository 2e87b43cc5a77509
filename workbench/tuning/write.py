"""A tuned module -> the files and the manifest of a model folder, its score calibrated on the development part."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from contract.calibration import Calibration
from contract.golden import GOLDEN_TEXTS
from contract.manifest import EntailmentTask, Limits, Manifest, Provenance, SimilarityTask, TrainingData
from semblance.threshold.own_pairs import Kind
from training.architectures import MGIMConfig
from training.architectures.models import InteractionModel, output_dim
from training.architectures.parts.layers import WordEmbedding
from training.architectures.transformer import SentenceBERT
from training.objectives.supervised import LABELS
from training.pairs import Pair
from training.publishing.calibrate import fit_centred_isotonic, fit_platt, fit_temperature
from training.publishing.export import export_head
from training.publishing.families import interaction, siamese
from training.publishing.families.transformer import write_encoder
from training.publishing.parity import check_head
from training.publishing.runtime import PublishedModel
from training.words.storage import stored
from workbench.imports.calibration import sample
from workbench.imports.folder import assemble
from workbench.tuning.networks import InteractionPair, ScaledHead, SiamesePair
from workbench.tuning.objective import TuneObjective
from workbench.tuning.read_back import Start, TuneRefused

Floats = npt.NDArray[np.float64]


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
    model, kind = objective.model.eval(), objective.kind
    if isinstance(model, InteractionPair):
        fields = _interaction(start, model.model, folder)
    else:
        assert isinstance(model, SiamesePair)
        fields = _siamese(start, model, kind, folder, tokenizer, _temperature(objective))
    fields |= _tasks(start, kind, objective, scale)
    manifest = assemble(
        folder,
        fields,
        title=title,
        architecture=start.manifest.architecture,
        training_data=training_data,
        provenance=provenance,
    )
    if manifest.similarity is None:
        return manifest
    fit = _calibration(PublishedModel(folder, manifest), kind, objective.development, scale)
    return manifest.model_copy(update={"similarity": manifest.similarity.model_copy(update={"calibration": fit})})


def golden_texts(start: Start, model: nn.Module) -> list[tuple[str, str]]:
    """What the golden pairs ask: of a model that matches words, nothing whose score depends on rounding."""
    if not isinstance(model, InteractionPair):
        return list(GOLDEN_TEXTS)
    limit = start.manifest.limits.max_tokens
    return [
        texts for texts in GOLDEN_TEXTS if not interaction.hangs_on_rounding(model.model, start.tokenizer, limit, texts)
    ]


def _interaction(start: Start, model: InteractionModel, folder: Path) -> dict[str, Any]:
    explains = not isinstance(start.config, MGIMConfig) or start.config.attention
    limit = start.manifest.limits.max_tokens
    fields = interaction.write_graphs(model, start.tokenizer, folder, folder.name, limit, explains=explains)
    return {"limits": Limits(max_tokens=limit), **fields}


def _siamese(
    start: Start, model: SiamesePair, kind: Kind, folder: Path, tokenizer: Path, temperature: float
) -> dict[str, Any]:
    encoder, limits = model.encoder, start.manifest.limits
    task = "entailment" if kind == "entailment" else "similarity"
    head = model.heads["head"] if model.heads else None
    assert head is None or isinstance(head, ScaledHead)
    heads: dict[str, nn.Module] = {} if head is None else {task: head.folded(temperature)}
    spread = 1.0 if head is None else 1 / head.factor
    if isinstance(encoder, SentenceBERT):
        fields = write_encoder(
            encoder, tokenizer, folder, folder.name, storage=start.storage, max_tokens=limits.max_tokens
        )
        for folded in heads.values():
            export_head(folded, output_dim(encoder), folder / siamese.ENTAILMENT, folder.name)
            check_head(folder / siamese.ENTAILMENT, folded, output_dim(encoder), spread=spread)
        return fields
    words = encoder.embedding
    trained = isinstance(words, WordEmbedding)
    if isinstance(words, WordEmbedding):
        encoder.embedding = stored(words.weight.detach(), start.storage)
    fields = siamese.write_graphs(
        encoder, heads, start.tokenizer, folder, folder.name, shares=not trained, spread=spread
    )
    return {"limits": limits, "additive": start.manifest.additive, **fields}


def _tasks(start: Start, kind: Kind, objective: TuneObjective, scale: tuple[float, float]) -> dict[str, Any]:
    """The one task that was tuned: of others the model would answer with what it no longer is."""
    if kind == "entailment":
        return {"similarity": None, "entailment": EntailmentTask(graph=siamese.ENTAILMENT, labels=LABELS)}
    before = start.manifest.similarity
    assert before is not None  # `module_for` has seen to it
    ratings = scale if kind == "score" else None
    if objective.classes is None:
        changed = before.model_copy(update={"label_scale": ratings, "calibration": None})
        return {"similarity": changed, "entailment": None}
    graph = siamese.SIMILARITY if start.manifest.encoder is not None else interaction.PAIR
    similarity = SimilarityTask(
        graph=graph,
        classes=tuple(objective.classes.double().tolist()),
        raw_range=scale,
        label_scale=ratings,
        symmetric=before.symmetric,
    )
    return {"similarity": similarity, "entailment": None}


def _temperature(objective: TuneObjective) -> float:
    if objective.kind != "entailment":
        return 1.0
    gold = np.array([[*LABELS].index(pair.label) for pair in objective.development])  # type: ignore[arg-type]
    return fit_temperature(objective.answers(objective.held), gold)


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
