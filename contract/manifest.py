"""`manifest.json`: the typed, versioned description that makes a folder a model.

Written by `training/publish.py`, read by the service. Unknown keys are refused, every file is named with its
size and sha256, and the *fingerprint* digests all that can move a score, so that a cache keyed by it can never
serve another model's numbers.
"""

import hashlib
import json
import re
from datetime import date
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from contract.calibration import Calibration
from contract.errors import ArtifactError, ManifestError
from contract.graph import CONTRACT_VERSION

MANIFEST_NAME = "manifest.json"
SHARED_NAME = "shared"  # the folder beside the models' own that keeps what several of them name
VERSION_NAME = re.compile(r"[1-9][0-9]{0,8}")  # the folder of one version, within its model's own

FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]  # never a path
ModelId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
TensorName = Annotated[str, Field(min_length=1, max_length=256)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Task = Literal["similarity", "entailment"]
EntailmentLabel = Literal["entailment", "neutral", "contradiction"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class FileEntry(_Frozen):
    """Size and checksum of one file of the model."""

    bytes: int = Field(ge=0)
    sha256: Sha256
    shared: bool = Field(False, description="lies in models/shared/, stored once for all models that name it")


class Limits(_Frozen):
    """What the model can read."""

    max_tokens: int = Field(ge=1, le=4096, description="longer sentences are cut here, and reported as truncated")


class SimilarityTask(_Frozen):
    """How two sentences become a score.

    Exactly one source of the raw score: a parameter-free `comparison` of two embeddings, or a `graph` (HEAD or
    PAIR) whose output is either log-probabilities over the ratings in `classes`, or one value.
    """

    kind: Literal["similarity"] = "similarity"
    comparison: Literal["cosine", "exp_l1"] | None = None
    graph: FileName | None = None
    classes: tuple[float, ...] | None = Field(None, min_length=2)
    raw_range: tuple[float, float] = Field(description="the lowest and highest raw score there can be")
    label_scale: tuple[float, float] | None = Field(None, description="the corpus' rating scale, such as 1..5")
    calibration: Calibration | None = Field(
        None, description="raw score -> rating on label_scale, or -> 0..1 when there is no scale"
    )
    symmetric: bool = Field(description="swapping the two sentences does not move the score")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.comparison is None) == (self.graph is None):
            raise ValueError("give either comparison or graph, not both and not neither")
        if self.classes is not None and self.graph is None:
            raise ValueError("classes belong to a graph's output")
        for name, bounds in (("raw_range", self.raw_range), ("label_scale", self.label_scale)):
            if bounds is not None and bounds[0] >= bounds[1]:
                raise ValueError(f"{name} must rise, got {bounds}")
        return self


class EntailmentTask(_Frozen):
    """How a premise and a hypothesis become a label: a graph's log-probabilities, in the order of `labels`."""

    kind: Literal["entailment"] = "entailment"
    graph: FileName
    labels: tuple[EntailmentLabel, EntailmentLabel, EntailmentLabel]

    @model_validator(mode="after")
    def _all_labels(self) -> Self:
        if len(set(self.labels)) != 3:
            raise ValueError(f"each label once, got {self.labels}")
        return self


class Matrix(_Frozen):
    """One matrix of an EXPLANATION graph: rows are tokens of a, columns tokens of b."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    description: str
    range: tuple[float, float] = Field(description="the lowest and highest value there can be")


class Explanation(_Frozen):
    """How a model shows what met what: a graph, and what its matrices are, in their order."""

    graph: FileName
    matrices: tuple[Matrix, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [matrix.name for matrix in self.matrices]
        if len(set(names)) != len(names):
            raise ValueError(f"each matrix has a name of its own, got {names}")
        return self


class TrainingData(_Frozen):
    """One corpus that moved a weight or a choice of this model."""

    name: str
    use: str
    rows: int = Field(ge=0)
    licence: str
    source: str


class Figure(_Frozen):
    """One measured number, of the published files, through the code path the service uses."""

    task: Task | Literal["sentiment"]  # also of what is measured and not served
    corpus: str
    split: str
    metric: str
    value: float
    rows: int = Field(ge=1)


class Provenance(_Frozen):
    """Where the model comes from: enough to train it again."""

    created: date
    recipe: dict[str, JsonValue]
    commands: tuple[str, ...] = Field(min_length=1)
    seed: int
    environment: dict[str, str] = Field(description="versions that can move a number")


class Manifest(_Frozen):
    """Everything a runtime needs to know about a model, and everything a person should."""

    contract_version: Literal[1] = CONTRACT_VERSION
    id: ModelId
    title: str
    architecture: str
    family: Literal["siamese", "interaction"]
    dim: int | None = Field(None, ge=1, description="width of the sentence embedding; siamese models only")
    encoder: FileName | None = Field(None, description="the ENCODER graph; siamese models only")
    tokenizer: FileName
    golden: FileName
    files: dict[FileName, FileEntry] = Field(min_length=1)
    fingerprint: Sha256
    limits: Limits
    similarity: SimilarityTask | None = None
    entailment: EntailmentTask | None = None
    additive: bool = Field(
        False, description="an embedding is the mean of those of its tokens alone; siamese models only"
    )
    explanation: Explanation | None = Field(None, description="interaction models only")
    tensors: dict[TensorName, FileName] = Field(
        default_factory=dict,
        description="weights that the graphs leave outside themselves: name of the initializer -> a .npy file",
    )
    training_data: tuple[TrainingData, ...] = Field(min_length=1)
    figures: tuple[Figure, ...]
    provenance: Provenance

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.tasks:
            raise ValueError("a model has at least one task")
        siamese = self.family == "siamese"
        if siamese != (self.encoder is not None) or siamese != (self.dim is not None):
            raise ValueError("encoder and dim belong to the siamese family, and only to it")
        if not siamese and self.similarity is not None and self.similarity.comparison is not None:
            raise ValueError("an interaction model has no embeddings to compare")
        if self.additive and not siamese:
            raise ValueError("additive belongs to the siamese family")
        if self.explanation is not None and siamese:
            raise ValueError("explanation belongs to the interaction family")
        for name in (self.tokenizer, self.golden, *self.graphs, *self.tensors.values()):
            if name not in self.files:
                raise ValueError(f"{name!r} is used but not listed in files")
        return self

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What the model can be asked."""
        tasks: list[Task] = []
        if self.similarity is not None:
            tasks.append("similarity")
        if self.entailment is not None:
            tasks.append("entailment")
        return tuple(tasks)

    @property
    def graphs(self) -> tuple[str, ...]:
        """File names of all ONNX graphs, the encoder first, each once."""
        names = [
            self.encoder,
            self.similarity and self.similarity.graph,
            self.entailment and self.entailment.graph,
            self.explanation and self.explanation.graph,
        ]
        return tuple(dict.fromkeys(name for name in names if name))

    def expected_fingerprint(self) -> str:
        """Digest of all that can move a score: files (golden pairs aside), limits, tasks, contract version."""
        moves: dict[str, object] = {
            "contract_version": self.contract_version,
            "architecture": self.architecture,
            "files": {n: self.files[n].sha256 for n in sorted({*self.graphs, self.tokenizer})},
            "encoder": self.encoder,
            "limits": self.limits.model_dump(mode="json"),
            "similarity": self.similarity and self.similarity.model_dump(mode="json"),
            "entailment": self.entailment and self.entailment.model_dump(mode="json"),
        }
        if self.tensors:
            moves["tensors"] = {tensor: self.files[name].sha256 for tensor, name in sorted(self.tensors.items())}
        return hashlib.sha256(json.dumps(moves, sort_keys=True).encode()).hexdigest()

    def save(self, folder: Path) -> None:
        """Write `manifest.json` into the folder."""
        (folder / MANIFEST_NAME).write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read and validate `manifest.json`; does not read the other files (see `verify`).

        Raises:
            ManifestError: missing, unreadable, another contract version, a field that does not fit, or a
                fingerprint that is not that of the contents.
        """
        path = folder / MANIFEST_NAME
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise ManifestError(f"{path}: cannot be read: {error.strerror or error}") from error
        try:
            manifest = cls.model_validate_json(raw)
        except ValidationError as error:
            raise ManifestError(f"{path}: {one_line(error)}") from error
        if manifest.fingerprint != (expected := manifest.expected_fingerprint()):
            raise ManifestError(f"{path}: fingerprint is {manifest.fingerprint}, its contents give {expected}")
        return manifest

    def path_of(self, folder: Path, name: str) -> Path:
        """Where a file of the model in `folder` lies: there, or among the shared ones, called by its checksum.

        The folder is `models/<any name>`, or that of one version, `models/<id>/<version>`; the shared files of both lie
        in `models/shared`.
        """
        entry = self.files[name]
        if not entry.shared:
            return folder / name
        is_version = folder.parent.name == self.id and VERSION_NAME.fullmatch(folder.name) is not None
        models = folder.parent.parent if is_version else folder.parent
        return models / SHARED_NAME / f"{entry.sha256}{Path(name).suffix}"

    def verify(self, folder: Path) -> None:
        """Hold every file against its entry.

        Raises:
            ArtifactError: a file is missing, a link, or of another size or checksum; both values are named.
        """
        for name, entry in self.files.items():
            path = self.path_of(folder, name)
            if path.is_symlink() or not path.is_file():
                raise ArtifactError(f"{path}: missing (or not a plain file), expected sha256 {entry.sha256}")
            found = describe_file(path)
            if (found.bytes, found.sha256) != (entry.bytes, entry.sha256):
                raise ArtifactError(
                    f"{path}: corrupted or replaced: {found.bytes} bytes with sha256 {found.sha256}, "
                    f"expected {entry.bytes} bytes with sha256 {entry.sha256}"
                )


def one_line(error: ValidationError) -> str:
    """The first thing pydantic found wrong, as `field: what`, and how many more there are."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"])) or "the file"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where}: {first['msg']}{more}"


def describe_file(path: Path) -> FileEntry:
    """Size and sha256 of a file, as the manifest lists them."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileEntry(bytes=path.stat().st_size, sha256=digest)
