"""`manifest.json`: the description of a model in its folder.

`training/publish/publish.py` writes it, the service reads it. Unknown keys are refused. Each file has its size and
sha256. The *fingerprint* is a digest of everything that affects scores, and so a safe cache key.
"""

import hashlib
import json
from datetime import date
from pathlib import Path
from typing import Annotated, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator, model_validator

from core.errors import ArtifactError, ManifestError, one_line
from core.files import FileEntry as FileEntry
from core.files import Sha256, check, read_regular, replacing
from core.files import describe_file as describe_file
from core.graph import CONTRACT_VERSION, GraphKind
from core.labels import ClassificationTask as ClassificationTask
from core.labels import EntailmentLabel as EntailmentLabel
from core.labels import EntailmentTask as EntailmentTask
from core.labels import Label as Label
from core.ranking import ConfidenceFit
from core.scoring import FileName
from core.scoring import ProbabilityTask as ProbabilityTask
from core.scoring import ScoreTask as ScoreTask
from core.scoring import SimilarityTask as SimilarityTask
from core.sequences import Pooling

MANIFEST_NAME = "manifest.json"
SHARED_NAME = "shared"  # folder of files that several models share
MAX_MANIFEST_BYTES = 1 << 20  # published ones have some 20 KB
MAX_MODEL_BYTES = 1 << 30  # of all files together
MAX_TOKENS = 8192  # that a model may be said to read
MAX_PROMPT = 1000  # characters: it stands before every text

Role = Literal["text", "query", "passage"]  # what a text is for
Task = Literal["similarity", "entailment", "paraphrase", "relevance", "classification"]
Elsewhere = Literal["good", "chance", "unmeasured"]
Family = Literal["siamese", "interaction"]
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]  # ISO 639: en, de
ModelId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
AnyTask = SimilarityTask | EntailmentTask | ProbabilityTask | ClassificationTask
TensorName = Annotated[str, Field(min_length=1, max_length=256)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Limits(_Frozen):
    """Limits of the model's input."""

    max_tokens: int = Field(ge=1, le=MAX_TOKENS, description="longer sentences are truncated")
    max_pair_tokens: int | None = Field(
        None, ge=2, le=MAX_TOKENS, description="of both texts of a pair together: the longer one is truncated first"
    )


class Prompts(_Frozen):
    """What is put before a text, by what it is for."""

    text: str = Field(
        "",
        max_length=MAX_PROMPT,
        description="before both texts of a similarity, and texts that are embedded or labelled",
    )
    query: str = Field("", max_length=MAX_PROMPT, description="before what is looked for")
    passage: str = Field("", max_length=MAX_PROMPT, description="before what is found")

    def of(self, role: Role) -> str:
        """The one of a role."""
        return {"text": self.text, "query": self.query, "passage": self.passage}[role]


class Matrix(_Frozen):
    """One matrix of an EXPLANATION graph: rows are tokens of a, columns tokens of b."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    description: str
    range: tuple[float, float] = Field(description="lowest and highest possible value")


class ExplanationGraph(_Frozen):
    """An EXPLANATION graph, and its matrices in order."""

    graph: FileName
    matrices: tuple[Matrix, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [matrix.name for matrix in self.matrices]
        if len(set(names)) != len(names):
            raise ValueError(f"each matrix has a name of its own, got {names}")
        return self


class BiEncoder(_Frozen):
    """The ENCODER graph whose cosine is blended into tasks of an interaction model."""

    graph: FileName
    dim: int = Field(ge=1, description="width of its sentence embedding")
    pooling: Pooling | None = Field(None, description="as of the model")


class TrainingData(_Frozen):
    """A corpus used to train the model or to choose its settings."""

    name: str
    use: str
    rows: int = Field(ge=0)
    licence: str
    source: str


class Figure(_Frozen):
    """A measured figure of the published files, computed by the code that the service uses."""

    task: Task
    corpus: str
    split: str
    metric: str
    value: float
    rows: int = Field(ge=1)


class TaskDomain(_Frozen):
    """For what text one task is: the corpora whose labels taught it, and what it is worth on text of another kind."""

    task: Task
    learnt_from: tuple[str, ...] = Field(description="corpora whose labels taught it; none: it learnt without labels")
    elsewhere: Elsewhere = Field(description="on text of other kinds: good, at or near chance, or not measured")
    measured_on: tuple[str, ...] = Field((), description="the corpora, or sets, of other kinds that say so")


class Origin(_Frozen):
    """The model of a hub that an imported model was made from, at one commit."""

    hub: str = Field(pattern=r"^[a-z0-9._:\[\]-]{1,260}$", description="its host: huggingface.co")
    name: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$", max_length=200, description="owner/name")
    revision: str = Field(pattern=r"^[0-9a-f]{40}$", description="the commit")


class Provenance(_Frozen):
    """What is needed to train the model again."""

    created: date
    recipe: dict[str, JsonValue]
    commands: tuple[str, ...] = Field(min_length=1)
    seed: int
    environment: dict[str, str] = Field(description="versions that can affect figures")
    epoch_kept: int | None = Field(None, ge=0, description="whose weights these are; 0: those before training")
    epochs: int | None = Field(None, ge=0, description="trained in this run, of which one was kept")


class Manifest(_Frozen):
    """The content of `manifest.json`."""

    contract_version: Literal[3] = CONTRACT_VERSION
    id: ModelId
    title: str
    architecture: str
    family: Family
    dim: int | None = Field(None, ge=1, description="width of the sentence embedding; siamese models only")
    encoder: FileName | None = Field(None, description="the ENCODER graph; siamese models only")
    pooling: Pooling | None = Field(
        None, description="from the states that a transformer's encoder gives to its embedding; null: it gives that"
    )
    network_config: FileName | None = Field(
        None, description="a transformer's config.json, from which `tune` builds the network; not needed to serve it"
    )
    tokenizer: FileName
    golden: FileName
    files: dict[FileName, FileEntry] = Field(min_length=1)
    fingerprint: Sha256
    limits: Limits
    similarity: SimilarityTask | None = None
    entailment: EntailmentTask | None = None
    paraphrase: ProbabilityTask | None = Field(None, description="interaction models only, beside a similarity")
    relevance: ProbabilityTask | None = Field(
        None, description="that b answers, or is about, a; interaction models only, beside a similarity"
    )
    classification: ClassificationTask | None = Field(None, description="siamese models only")
    prompts: Prompts | None = Field(None, description="null: nothing is put before a text; siamese models only")
    dimensions: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (), description="sizes to which an embedding may be cut (Matryoshka), ascending; siamese models only"
    )
    additive: bool = Field(False, description="an embedding is the mean of its tokens' embeddings; siamese models only")
    token_embeddings: FileName | None = Field(
        None, description="the TOKENS graph, if the embedding is a mean over tokens in context; siamese models only"
    )
    explanation: ExplanationGraph | None = Field(None, description="interaction models only")
    bi_encoder: BiEncoder | None = Field(None, description="interaction models with a blend, and only those")
    tensors: dict[TensorName, FileName] = Field(
        default_factory=dict, description="external weights of the graphs: name of the initializer -> .npy file"
    )
    on_cuda: dict[FileName, FileName] = Field(
        default_factory=dict, description="graphs that multiply integers -> what a GPU opens instead, in float32"
    )
    training_data: tuple[TrainingData, ...] = Field(min_length=1)
    figures: tuple[Figure, ...]
    domain: tuple[TaskDomain, ...] | None = Field(
        None, description="for what text each task is; null: nothing is known of it"
    )
    confidence: tuple[ConfidenceFit, ...] = Field(
        (), description="how probable it is that the first of a ranking is right: alone, and before a second stage"
    )
    languages: tuple[Language, ...] | None = Field(
        None, description="of the texts that it is for, the commonest first; null: not known"
    )
    origin: Origin | None = Field(None, description="of an import by name; null: trained here, or from a local folder")
    provenance: Provenance

    @field_validator("contract_version", mode="before")
    @classmethod
    def _not_of_before(cls, version: object) -> object:
        if version in (1, 2):
            raise ValueError(f"{version} is of an earlier version: import or tune the model anew")
        return version

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.tasks:
            raise ValueError("a model has at least one task")
        siamese = self.family == "siamese"
        if siamese != (self.encoder is not None) or siamese != (self.dim is not None):
            raise ValueError("encoder and dim belong to the siamese family, and only to it")
        if not siamese and self.similarity is not None and self.similarity.comparison is not None:
            raise ValueError("an interaction model has no embeddings to compare")
        if self.classification is not None and not siamese:
            raise ValueError("classification belongs to the siamese family: it reads one sentence embedding")
        if (self.paraphrase or self.relevance) and (siamese or self.similarity is None):
            raise ValueError("paraphrase and relevance belong to interaction models with a similarity")
        if (self.additive or self.token_embeddings is not None) and not siamese:
            raise ValueError("additive and token_embeddings belong to the siamese family")
        if self.additive and self.token_embeddings is not None:
            raise ValueError("give either additive or token_embeddings: an additive model's tokens need no context")
        if (self.prompts is not None or self.dimensions) and not siamese:
            raise ValueError("prompts and dimensions belong to the siamese family")
        if list(self.dimensions) != sorted(set(self.dimensions)) or max(self.dimensions, default=0) >= (self.dim or 1):
            raise ValueError(f"dimensions rise, and are less than dim, got {self.dimensions}")
        if siamese and self.limits.max_pair_tokens is not None:
            raise ValueError("max_pair_tokens belongs to the interaction family")
        if (self.bi_encoder is None) == any(task.blend is not None for task in self.score_tasks.values()):
            raise ValueError("a task with a blend needs bi_encoder, and bi_encoder such a task")
        if siamese and self.bi_encoder is not None:
            raise ValueError("bi_encoder belongs to the interaction family")
        if self.pooling is not None and not siamese:
            raise ValueError("pooling belongs to the siamese family, or to bi_encoder")
        if self.languages is not None and (not self.languages or len(set(self.languages)) != len(self.languages)):
            raise ValueError(f"languages, where they are known, are one or more, each once, got {self.languages}")
        stated = [each.task for each in self.domain or ()]
        if len(set(stated)) != len(stated) or not set(stated) <= set(self.tasks):
            raise ValueError(f"domain states each task of the model once, got {stated}")
        if self.explanation is not None and siamese:
            raise ValueError("explanation belongs to the interaction family")
        if not self.on_cuda.keys() <= set(self.graphs):
            raise ValueError(f"on_cuda replaces graphs of the model, got {', '.join(self.on_cuda)}")
        named = (self.tokenizer, self.golden, self.network_config, *self.graphs, *self.tensors.values())
        for name in (*named, *self.on_cuda.values()):
            if name is not None and name not in self.files:
                raise ValueError(f"{name!r} is used but not listed in files")
        return self

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks of the model."""
        return tuple(self._tasks())

    def _tasks(self) -> dict[Task, AnyTask]:
        tasks: dict[Task, AnyTask | None] = {
            "similarity": self.similarity,
            "entailment": self.entailment,
            "paraphrase": self.paraphrase,
            "relevance": self.relevance,
            "classification": self.classification,
        }
        return {name: task for name, task in tasks.items() if task is not None}

    def task(self, name: Task) -> AnyTask:
        """The task of that name, which the model must have."""
        return self._tasks()[name]

    @property
    def score_tasks(self) -> dict[ScoreTask, SimilarityTask | ProbabilityTask]:
        """Those of its tasks that give a pair one score."""
        scores = SimilarityTask | ProbabilityTask
        return {cast(ScoreTask, name): task for name, task in self._tasks().items() if isinstance(task, scores)}

    @property
    def ranking_task(self) -> ScoreTask:
        """What candidates are ordered by: relevance, where the model has it."""
        return "similarity" if self.relevance is None else "relevance"

    def graphs_of_classes(self) -> set[str]:
        """The graphs whose outputs are log-probabilities of classes."""
        return {task.graph for task in self._tasks().values() if task.of_classes and task.graph is not None}

    def pooling_of(self, graph: str) -> Pooling | None:
        """How the states that a graph gives are pooled."""
        if self.bi_encoder is not None and graph == self.bi_encoder.graph:
            return self.bi_encoder.pooling
        return self.pooling if graph == self.encoder else None

    def max_tokens(self, graph: str) -> int:
        """The most tokens that a graph reads: of a text, or of both texts of a pair."""
        most = self.limits.max_tokens
        return (self.limits.max_pair_tokens or 2 * most) if self.graph_kinds[graph] == "pair" else most

    def outputs(self) -> dict[str, int]:
        """How many outputs each graph of a task has."""
        found: dict[str, int] = {}
        for task in self._tasks().values():
            if task.graph is not None:
                found[task.graph] = max(found.get(task.graph, 0), task.columns[1] if task.columns else task.width)
        return found

    @property
    def graph_kinds(self) -> dict[str, GraphKind]:
        """The kind of each ONNX graph, by its file name; the encoder first."""
        of_pairs: GraphKind = "pair" if self.encoder is None else "head"
        kinds: dict[str | None, GraphKind] = {self.encoder: "encoder", self.token_embeddings: "tokens"}
        for name, task in self._tasks().items():
            kinds[task.graph] = "classifier" if name == "classification" else of_pairs
        if self.explanation is not None:
            kinds[self.explanation.graph] = "explanation"
        if self.bi_encoder is not None:
            kinds[self.bi_encoder.graph] = "encoder"
        return {name: kind for name, kind in kinds.items() if name is not None}

    @property
    def graphs(self) -> tuple[str, ...]:
        """File names of all ONNX graphs, each once."""
        return tuple(self.graph_kinds)

    def expected_fingerprint(self) -> str:
        """Digest of everything that affects scores: files (except golden pairs), limits, tasks, contract version."""
        fingerprinted: dict[str, object] = {
            "contract_version": self.contract_version,
            "architecture": self.architecture,
            "files": {n: self.files[n].sha256 for n in sorted({*self.graphs, self.tokenizer})},
            "encoder": self.encoder,
            "limits": self.limits.model_dump(mode="json", exclude_none=True),
            "similarity": _settings(self.similarity),
            "entailment": _settings(self.entailment),
        }
        fingerprinted |= {name: _settings(task) for name, task in self._tasks().items() if name not in fingerprinted}
        for part, said in (("pooling", self.pooling), ("prompts", self.prompts), ("bi_encoder", self.bi_encoder)):
            if said is not None:
                fingerprinted[part] = said.model_dump(mode="json")
        if self.tensors:
            fingerprinted["tensors"] = {each: self.files[name].sha256 for each, name in sorted(self.tensors.items())}
        return hashlib.sha256(json.dumps(fingerprinted, sort_keys=True).encode()).hexdigest()

    def save(self, folder: Path) -> None:
        """Write `manifest.json` into the folder; raises OSError on a full disk, and an earlier one stays."""
        with replacing(folder / MANIFEST_NAME) as partial:
            partial.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read and validate `manifest.json`; does not read the other files (see `verify`).

        Raises:
            ManifestError: missing, unreadable, another contract version, an invalid field, or a wrong fingerprint.
        """
        path = folder / MANIFEST_NAME
        try:
            manifest = cls.model_validate_json(read_regular(path, MAX_MANIFEST_BYTES))
        except OSError as error:
            raise ManifestError(f"{path}: cannot be read: {error.strerror or error}") from error
        except ValidationError as error:
            raise ManifestError(f"{path}: {one_line(error)}") from error
        if manifest.fingerprint != (expected := manifest.expected_fingerprint()):
            raise ManifestError(f"{path}: fingerprint is {manifest.fingerprint}, its contents give {expected}")
        return manifest

    def path_of(self, folder: Path, name: str) -> Path:
        """The path of a file: in `folder`, or in `shared` beside it, where its name is its checksum."""
        entry = self.files[name]
        if not entry.shared:
            return folder / name
        return folder.parent / SHARED_NAME / f"{entry.sha256}{Path(name).suffix}"

    def verify(self, folder: Path, known: dict[Path, FileEntry] | None = None) -> None:
        """Check every file against its entry: first all sizes, then all checksums.

        Args:
            folder: of the model.
            known: what files were just found to be, which are not read again; gets this model's.

        Raises:
            ArtifactError: more than `MAX_MODEL_BYTES`, a file missing, a link, or of another size or checksum.
        """
        if (in_all := sum(entry.bytes for entry in self.files.values())) > MAX_MODEL_BYTES:
            raise ArtifactError(f"{folder}: the files have {in_all:,} bytes, the limit is {MAX_MODEL_BYTES:,}")
        entries = [(self.path_of(folder, name), entry) for name, entry in self.files.items()]
        check(entries, {} if known is None else known)


def _settings(task: BaseModel | None) -> dict[str, object] | None:
    """All that a manifest says about a task, without what it leaves as it is: a later field changes no digest."""
    return None if task is None else task.model_dump(mode="json", exclude_defaults=True)
