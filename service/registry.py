"""`models/` -> verified, opened and proven scorers by name. A broken model stops start-up; none is skipped."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Literal

from contract.errors import ArtifactError, ContractError, GraphMismatchError
from contract.golden import TOLERANCE, GoldenPair, GoldenPairs
from contract.graph import ENCODER, EXPLANATION, HEAD, PAIR, GraphSpec
from contract.manifest import MANIFEST_NAME, SHARED_NAME, Manifest
from contract.scoring import Array, Run
from contract.tensors import load_tensors
from contract.tokenizer import Tokenizer
from service.cache import Policy, Tiers, VectorCache
from service.cpus import counts
from service.errors import InferenceFailed, ModelError, UnknownModel, UnsupportedTask
from service.interaction import InteractionScorer
from service.logs import fields
from service.scorer import Scorer, SiameseScorer
from service.session import Session, open_session, provider_order
from service.settings import Settings
from service.telemetry import Telemetry
from service.workers import Workers

log = logging.getLogger(__name__)

Capability = Literal["similarity", "entailment", "embedding", "explanation"]
ENTAILMENT_LABELS = 3


@dataclass(frozen=True, slots=True)
class _Shared:
    """What several models may have in common, by checksum: read, and kept in memory, once."""

    tensors: dict[str, Array] = field(default_factory=dict)
    tokenizers: dict[str, Tokenizer] = field(default_factory=dict)


class Model:
    """A scorer with its golden pairs and the place where it runs."""

    def __init__(self, scorer: Scorer, golden: GoldenPairs, provider: str) -> None:
        self.scorer = scorer
        self.manifest = scorer.manifest
        self.provider = provider
        self.tiers = Tiers(memory=False, redis=False)  # of the cache; chosen by `prove`
        self.capabilities = _capabilities(scorer)  # what it can be asked
        self._golden = golden.pairs

    def prove(self, policy: Policy) -> None:
        """Ask every golden pair, hold the manifest's other claims against them, and learn what a run costs here.

        Args:
            policy: of the cache; `auto` is decided by what a run costs.

        Raises:
            ModelError: an answer differs from the published one, or a claim does not hold.
        """
        for pair in self._golden:
            if problem := self._differs(pair):
                raise ModelError(f"model {self.manifest.id} does not answer as published: {problem}")
        a = self.scorer.tokenise([pair.a for pair in self._golden])
        b = self.scorer.tokenise([pair.b for pair in self._golden])
        try:
            problem = self.scorer.false_claim(a, b)
        except InferenceFailed as error:
            problem = error.message
        if problem:
            raise ModelError(f"model {self.manifest.id} is not what its manifest says: {problem}")
        self.tiers = self.scorer.measure(a, b, policy)

    def problem(self) -> str | None:
        """What is wrong with it at this moment: its first golden pair is asked again."""
        return self._differs(self._golden[0])

    def _differs(self, pair: GoldenPair) -> str | None:
        a, b = self.scorer.tokenise([pair.a]), self.scorer.tokenise([pair.b])
        try:
            published: dict[str, float] = {}
            found: dict[str, float] = {}
            if self.manifest.similarity is not None:
                answer = self.scorer.similarity_now(a, b)
                for name, value, now in (
                    ("raw_score", pair.raw_score, answer.raw_score),
                    ("score", pair.score, answer.score),
                ):
                    if value is not None:
                        published[name], found[name] = value, float(now[0])
            if self.manifest.entailment is not None and pair.probabilities is not None:
                published.update((str(label), value) for label, value in pair.probabilities.items())
                found |= self.scorer.entailment_now(a, b)[0]
        except InferenceFailed as error:
            return error.message
        for name, value in published.items():
            if not abs(found[name] - value) <= TOLERANCE:
                return f"golden pair {pair.a!r} / {pair.b!r}: {name} is {found[name]:.6f}, published {value:.6f}"
        return None


def _capabilities(scorer: Scorer) -> tuple[Capability, ...]:
    found: list[Capability] = [*scorer.manifest.tasks]
    if isinstance(scorer, SiameseScorer):
        found.append("embedding")
    if scorer.manifest.similarity is not None:  # what is explained is its score
        found.append("explanation")
    return tuple(found)


class Registry(Mapping[str, Model]):
    """Models by id, and the default for each kind of request."""

    def __init__(self, models: Mapping[str, Model], defaults: Mapping[str, tuple[str, Capability]]) -> None:
        """Check the defaults.

        Args:
            models: at least one.
            defaults: setting -> (model, what it must be able to do).

        Raises:
            ModelError: a default that is not there, or cannot do what it is the default for.
        """
        self._models = dict(models)
        for setting, (name, capability) in defaults.items():
            able = self.able(capability)
            if name not in able:
                what = "which is not among the models" if name not in self._models else f"which has no {capability}"
                raise ModelError(
                    f"{setting} is {name!r}, {what}; models with {capability}: {', '.join(able) or 'none'}"
                )

    def __getitem__(self, name: str) -> Model:
        return self._models[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)

    def able(self, capability: Capability) -> list[str]:
        """The models that can do it."""
        return [name for name, model in self._models.items() if capability in model.capabilities]

    def pick(self, name: str, capability: Capability, field: str = "model") -> Scorer:
        """The scorer of a model that can do what is asked.

        Args:
            name: the model's id.
            capability: what it must be able to do.
            field: where in the request it is named, for messages.

        Raises:
            UnknownModel: no such model.
            UnsupportedTask: it cannot do that.
        """
        model = self._models.get(name)
        if model is None:
            raise UnknownModel(name, capability, list(self._models), self.able(capability), field)
        if capability not in model.capabilities:
            raise UnsupportedTask(name, capability, self.able(capability), field)
        return model.scorer

    def pick_encoder(self, name: str) -> SiameseScorer:
        """The scorer of a model that embeds; raises like `pick`."""
        scorer = self.pick(name, "embedding")
        assert isinstance(scorer, SiameseScorer), "what the capability means"
        return scorer


def open_models(settings: Settings, telemetry: Telemetry, cache: VectorCache, workers: Workers) -> dict[str, Model]:
    """Open and prove every model of the folder.

    Raises:
        ModelError: no folder, no models, a broken one, two of one name.
        ProviderError: CUDA was asked for, and is absent.
    """
    root = settings.models_dir
    try:
        folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
        folders = [path for path in folders if path.name != SHARED_NAME]
    except OSError as error:
        raise ModelError(f"SEMBLANCE_MODELS_DIR: {root.absolute()}: {error.strerror or error}") from error
    if not folders:
        raise ModelError(f"SEMBLANCE_MODELS_DIR: {root.absolute()} holds no model (a folder with {MANIFEST_NAME})")
    providers = provider_order(settings.providers)
    shared = _Shared()
    models: dict[str, Model] = {}
    for folder in folders:
        started = perf_counter()
        try:
            model = _open_model(folder, shared, settings, providers, telemetry, cache, workers)
        except ContractError as error:
            raise ModelError(str(error)) from error
        if model.manifest.id in models:
            raise ModelError(f"{folder}: a second model with the id {model.manifest.id!r}")
        models[model.manifest.id] = model
        log.info(
            "model opened",
            extra=fields(
                model=model.manifest.id,
                tasks=model.manifest.tasks,
                provider=model.provider,
                fingerprint=model.manifest.fingerprint[:16],
                cache=model.tiers.names,
                seconds=round(perf_counter() - started, 3),
            ),
        )
    return models


def _open_model(
    folder: Path,
    shared: _Shared,
    settings: Settings,
    providers: list[str],
    telemetry: Telemetry,
    cache: VectorCache,
    workers: Workers,
) -> Model:
    _confine(settings.models_dir, folder / MANIFEST_NAME)
    manifest = Manifest.load(folder)
    for name in manifest.files:
        _confine(settings.models_dir, manifest.path_of(folder, name))
    manifest.verify(folder)
    of_tokenizer = manifest.files[manifest.tokenizer].sha256
    if of_tokenizer not in shared.tokenizers:
        shared.tokenizers[of_tokenizer] = Tokenizer.load(manifest.path_of(folder, manifest.tokenizer))
    tokenizer = shared.tokenizers[of_tokenizer]
    golden_path = manifest.path_of(folder, manifest.golden)
    golden = GoldenPairs.load(golden_path)
    for text in [text for pair in golden.pairs for text in (pair.a, pair.b)] or [""]:
        if not tokenizer.encode(text, 1).ids:
            raise ArtifactError(f"{golden_path}: no golden pair, or one without words, {text!r}")
    tensors = load_tensors(folder, manifest, shared.tensors)
    sessions = {
        name: _open_graph(manifest.path_of(folder, name), name, manifest, tensors, settings, providers)
        for name in manifest.graphs
    }
    provider = next(iter(sessions.values())).provider
    series = telemetry.model(
        manifest.id,
        manifest.graphs,
        fingerprint=manifest.fingerprint,
        provider=provider,
        architecture=manifest.architecture,
    )
    runs: Mapping[str, Run] = sessions
    scorer: Scorer
    if manifest.family == "siamese":
        scorer = SiameseScorer(manifest, tokenizer, runs, series, workers, cache)
    else:
        scorer = InteractionScorer(manifest, tokenizer, runs, series, workers, cache)
    model = Model(scorer, golden, provider)
    model.prove(settings.model_cache.get(manifest.id, settings.cache))
    return model


def _confine(root: Path, path: Path) -> None:
    """Hold a path against the models' folder; a link, or a name that is a path, may lead out of it.

    Raises:
        ModelError: it does.
    """
    target = path.resolve()
    if not target.is_relative_to(root.resolve()):
        raise ModelError(f"{path}: leads out of SEMBLANCE_MODELS_DIR, to {target}")


def _open_graph(
    path: Path,
    name: str,
    manifest: Manifest,
    tensors: Mapping[str, Array],
    settings: Settings,
    providers: list[str],
) -> Session:
    """A graph of the kind that its use in the manifest says, and of the sizes that its uses need."""
    session = open_session(
        path,
        _kind(name, manifest),
        providers,
        threads=counts(settings).ort_threads,
        must_use_cuda=settings.providers == "cuda",
        tensors=tensors,
    )
    for who_says, axis, size in _wanted_sizes(name, manifest):
        if session.sizes.get(axis) != size:
            raise GraphMismatchError(f"{path}: {axis} is {session.sizes.get(axis)}, {who_says} {size}")
    return session


def _kind(graph: str, manifest: Manifest) -> GraphSpec:
    if graph == manifest.encoder:
        return ENCODER
    if manifest.explanation is not None and graph == manifest.explanation.graph:
        return EXPLANATION
    return HEAD if manifest.family == "siamese" else PAIR


def _wanted_sizes(graph: str, manifest: Manifest) -> Iterator[tuple[str, str, int]]:
    """The sizes of the axes that the model fixes, and who says so."""
    if manifest.dim is not None:
        yield "the manifest says", "dim", manifest.dim
    if manifest.similarity is not None and manifest.similarity.graph == graph:
        yield "similarity needs", "outputs", len(manifest.similarity.classes or (0,))
    if manifest.entailment is not None and manifest.entailment.graph == graph:
        yield "entailment needs", "outputs", ENTAILMENT_LABELS
    if manifest.explanation is not None and manifest.explanation.graph == graph:
        yield "explanation needs", "matrices", len(manifest.explanation.matrices)
