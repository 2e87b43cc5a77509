"""What every kind of imported model offers to `workbench.imports.folder`."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from core.labels import NLI
from core.manifest import (
    MANIFEST_NAME,
    SHARED_NAME,
    EntailmentTask,
    ModelId,
    ProbabilityTask,
    Prompts,
    Role,
    SimilarityTask,
    TrainingData,
)
from core.scoring import Logistic
from core.sequences import PoolingMode
from training.data.pairs import Pair
from workbench.imports.files import ImportRefused

Head = Literal["similarity", "relevance"]
Task = Literal["embedding", "similarity", "relevance", "entailment", "labels"]
Floats = npt.NDArray[np.float64]
Storage = Literal["float32", "float16", "int8"]  # of the weights
COSINE = SimilarityTask(comparison="cosine", raw_range=(-1.0, 1.0), symmetric=True)  # without a calibration
LABELS = NLI


@dataclass(frozen=True)
class ImportOptions:
    """What a folder does not say of its model, or what is wanted otherwise."""

    graph: str | None = None  # the file of the graph, within the folder; None: where such folders have it
    max_tokens: int | None = None  # fewer than the folder says
    head: Head | None = None  # what one output for a pair means; None: its relevance
    labels: Sequence[str] | None = None  # names of the outputs, where the folder names none
    pairs_head: bool | None = None  # whether a model of labels reads two texts; None: as its labels tell
    pooling: PoolingMode | None = None  # of the states, where no `modules.json` says it
    prompts: Mapping[str, str | None] = field(default_factory=dict)  # by role, instead of the folder's
    licence: str | None = None  # instead of what the README states
    languages: tuple[str, ...] | None = None  # ISO 639 codes, instead of what the README states

    def refuse(self, what: str, *names: str) -> None:
        """Raise ImportRefused where one of these options is given: `what` is imported has no use for it."""
        prompt = next((each for each in self.prompts.values() if each is not None), None)
        given = vars(self) | {"prompt": prompt}
        for name in names:
            if given[name] is not None:
                raise ImportRefused(f"--{name.replace('_', '-')}: {what} has no use for it")


NO_OPTIONS = ImportOptions()


def in_roles(a: Sequence[str], b: Sequence[str]) -> tuple[tuple[Role, Sequence[str]], ...]:
    """What an encoder is asked about n pairs: half of a as plain texts, the other half as queries, b as passages."""
    half = len(a) // 2
    return ("text", a[:half]), ("query", a[half:]), ("passage", b)


def prompted(prompts: Prompts | None, a: Sequence[str], b: Sequence[str]) -> list[str]:
    """The texts in these roles, behind their prompts."""
    found = prompts or Prompts()
    return [found.of(role) + text for role, texts in in_roles(a, b) for text in texts]


def encoded(model: Any, prompts: Prompts | None, a: Sequence[str], b: Sequence[str]) -> Floats:
    """What a model of sentence-transformers makes of the texts in these roles, each text alone."""
    asked = [((prompts or Prompts()).of(role), list(texts)) for role, texts in in_roles(a, b) if texts]
    made = [model.encode(texts, prompt=prompt, batch_size=1, show_progress_bar=False) for prompt, texts in asked]
    return np.concatenate(made).astype(np.float64)


def distance(ours: Floats, theirs: Floats, *, directions: bool) -> float:
    """Of answers from others, as a share of how far those lie apart; of embeddings by their `directions`."""
    if ours.shape != theirs.shape:
        return np.inf
    if directions:
        ours, theirs = (each / np.maximum(np.linalg.norm(each, axis=1)[:, None], 1e-12) for each in (ours, theirs))
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs - theirs.mean(axis=0)))


def tasks_of(graph: str, task: Task, labels: tuple[Any, ...]) -> dict[str, Any]:
    """The manifest's entries of a pair graph's tasks, which read logits; a relevance is a similarity as well."""
    if task == "entailment":
        return {"entailment": EntailmentTask(graph=graph, labels=labels)}
    common: dict[str, Any] = {"graph": graph, "symmetric": False}
    if labels:  # relevant and irrelevant, in some order
        right = (1, 0) if labels[0] == "relevant" else (0, 1)
        similarity = SimilarityTask(classes=right, raw_range=(0.0, 1.0), **common)
        return {"similarity": similarity, "relevance": ProbabilityTask(classes=right, **common)}
    similarity = SimilarityTask(sigmoid=True, raw_range=(0.0, 1.0), **common)
    if task == "similarity":
        return {"similarity": similarity}
    return {"similarity": similarity, "relevance": ProbabilityTask(calibration=Logistic(slope=1.0), **common)}


@dataclass(frozen=True)
class CalibrationPairs:
    """Pairs to calibrate on."""

    pairs: Sequence[Pair]
    scale: tuple[float, float] | None  # lowest and highest score there can be; None: 0 and 1, and no rating is shown
    name: str  # of the file
    licence: str = "not stated"
    source: str = "a local file"

    def credit(self) -> TrainingData:
        """What the manifest says of them."""
        use, rows = "calibration of the score", len(self.pairs)
        return TrainingData(name=self.name, use=use, rows=rows, licence=self.licence, source=self.source)


def check_id(model_id: str, models: Path, refused: type[ValueError]) -> None:
    """Raise `refused` where a model cannot have this id, one has it in the `models` that is served beside, or nothing
    can be written into `models`."""
    try:
        TypeAdapter(ModelId).validate_python(model_id)
    except ValidationError as error:
        text = f"--id {model_id}: small letters, digits and hyphens, at most 64, a letter or digit first"
        raise refused(text) from error
    if model_id == SHARED_NAME:
        raise refused(f"--id {model_id}: the folder of that name has the files that models share: give another --id")
    shipped = models.absolute().parent / "models" / model_id
    if shipped != models.absolute() / model_id and (shipped / MANIFEST_NAME).is_file():
        raise refused(f"--id {model_id}: {shipped} is a model of this id; give this one another")
    if os.path.lexists(place := models / model_id) and not place.is_dir():
        raise refused(f"--id {model_id}: {place} is no folder")
    there = next(each for each in (models, *models.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise refused(f"--models {models}: {there} cannot be written into")


class ImportFacts(NamedTuple):
    """What the manifest and the card say of an imported model."""

    architecture: str
    what: str  # for the title
    settings: dict[str, Any]
    notes: tuple[str, ...]  # how it differs from what its library does


class ImportedModel(Protocol):
    """A model read from another library's folder."""

    @property
    def library(self) -> str:
        """The package that answers with the same folder."""

    @property
    def label(self) -> str | None:
        """The column of labels it is calibrated on; None: scores."""

    @property
    def facts(self) -> ImportFacts:
        """What is said of it."""

    def library_answers(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """The library's own answers about n pairs: embeddings of a and b, in the roles of `in_roles` [2 n, D], or the
        outputs that its graph has [n, K]; ModuleNotFoundError: it is not installed."""

    def write(self, folder: Path, model_id: str, storage: Storage) -> dict[str, Any]:
        """Write graphs and tokenizer into a folder; returns the fields of the manifest."""
