"""Verified, opened and proven scorers by name. What `models/` holds is listed in `service/repository.py`."""

import logging
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path
from time import perf_counter
from typing import Literal, NamedTuple
from weakref import WeakValueDictionary

from contract.errors import ArtifactError, GraphMismatchError
from contract.golden import TOLERANCE, GoldenPair, GoldenPairs
from contract.graph import ENCODER, EXPLANATION, HEAD, PAIR, GraphSpec
from contract.manifest import MANIFEST_NAME, Manifest
from contract.scoring import Array, Run
from contract.tensors import load_tensors
from contract.tokenizer import Tokenizer
from service.cache import Policy, Tiers, VectorCache
from service.cpus import counts
from service.errors import InferenceFailed, ModelError, UnknownModel, UnknownVersion, UnsupportedTask
from service.interaction import InteractionScorer
from service.logs import fields
from service.repository import AT, Release, confine
from service.scorer import Scorer, SiameseScorer
from service.session import Session, open_session, provider_order
from service.settings import Settings
from service.telemetry import ModelTelemetry, Telemetry
from service.workers import Workers

log = logging.getLogger(__name__)

Capability = Literal["similarity", "entailment", "embedding", "explanation"]
ENTAILMENT_LABELS = 3


class Need(NamedTuple):
    """A name that a setting gives, and what its model must be able to do."""

    name: str
    capability: Capability | None = None


class Model:
    """A scorer with its golden pairs, the folder it came from and the place where it runs."""

    def __init__(
        self, release: Release, scorer: Scorer, telemetry: ModelTelemetry, golden: GoldenPairs, provider: str
    ) -> None:
        self.release = release
        self.scorer = scorer
        self.manifest = scorer.manifest
        self.telemetry = telemetry
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
                raise ModelError(f"model {self.release.name} does not answer as published: {problem}")
        a = self.scorer.tokenise([pair.a for pair in self._golden])
        b = self.scorer.tokenise([pair.b for pair in self._golden])
        try:
            problem = self.scorer.false_claim(a, b)
        except InferenceFailed as error:
            problem = error.message
        if problem:
            raise ModelError(f"model {self.release.name} is not what its manifest says: {problem}")
        self.tiers = self.scorer.measure([pair.a for pair in self._golden], [pair.b for pair in self._golden], policy)

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
    """Models by every name that a request may give; `replace` changes all of them at one moment.

    Iterates over one name of each model, which is also its label in metrics: the id of the version that the bare id
    means, and `ID@N` for others.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        """Begin without models; `telemetry` is told of each change."""
        self._telemetry = telemetry
        self._names: Mapping[str, Model] = {}
        self._labels: Mapping[str, Model] = {}
        self._versions: Mapping[str, tuple[int, ...]] = {}

    def __getitem__(self, name: str) -> Model:
        return self._names[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)

    @property
    def names(self) -> Mapping[str, Model]:
        """Every name, and who answers to it."""
        return self._names

    def replace(self, names: Mapping[str, Model], versions: Mapping[str, tuple[int, ...]]) -> None:
        """Serve these from now on; requests under way keep the scorers they have. In the event loop.

        Args:
            names: all that a request may call a model -> who answers.
            versions: id -> the versions in the model's folder, served or not.
        """
        models = sorted(
            {id(model): model for model in names.values()}.values(),
            key=lambda model: (model.release.id, names.get(model.release.id) is not model, model.release.version or 0),
        )
        self._names = dict(sorted(names.items(), key=lambda item: (item[1].release.id, item[0])))
        self._labels = {label_of(model, names): model for model in models}
        self._versions = dict(versions)
        self._telemetry.serve({label: model.telemetry for label, model in self._labels.items()})

    def versions(self, name: str) -> tuple[int, ...]:
        """The versions in the folder of the model with this id, served or not."""
        return self._versions.get(name, ())

    def able(self, capability: Capability) -> list[str]:
        """The models that can do it."""
        return [name for name, model in self._labels.items() if capability in model.capabilities]

    def find(self, name: str, task: Capability, field: str = "model") -> Model:
        """The model of a name.

        Args:
            name: an id, or one with its version.
            task: what it is wanted for, for messages.
            field: where in the request it is named, for messages.

        Raises:
            UnknownModel: there is none, or not in this version.
        """
        model = self._names.get(name)
        if model is not None:
            return model
        bare = name.partition(AT)[0]
        if bare == name or bare not in self._names:
            raise UnknownModel(name, task, list(self), self.able(task), field)
        served = [other for other in self._names if other.partition(AT)[0] == bare and other != bare]
        raise UnknownVersion(name, bare, served, self.versions(bare), field)

    def pick(self, name: str, capability: Capability, field: str = "model") -> Scorer:
        """The scorer of a model that can do what is asked.

        Args:
            name: an id, or one with its version.
            capability: what it must be able to do.
            field: where in the request it is named, for messages.

        Raises:
            UnknownModel: no such model, or not in this version.
            UnsupportedTask: it cannot do that.
        """
        model = self._names.get(name) or self.find(name, capability, field)
        if capability not in model.capabilities:
            raise UnsupportedTask(name, capability, self.able(capability), field)
        return model.scorer

    def pick_encoder(self, name: str) -> SiameseScorer:
        """The scorer of a model that embeds; raises like `pick`."""
        scorer = self.pick(name, "embedding")
        assert isinstance(scorer, SiameseScorer), "what the capability means"
        return scorer


def label_of(model: Model, names: Mapping[str, Model]) -> str:
    """What metrics call a model, where these are the names."""
    return model.release.id if names.get(model.release.id) is model else model.release.name


def unmet(needs: Iterable[tuple[str, Need]], names: Mapping[str, Model]) -> Iterator[tuple[Need, str]]:
    """What settings need and is not among the models: each need, and what is wrong in words.

    Args:
        needs: with the setting that says so.
        names: all that a request may call a model -> who answers.
    """
    for setting, need in needs:
        model = names.get(need.name)
        if model is not None and (need.capability is None or need.capability in model.capabilities):
            continue
        what = "which is not among the models" if model is None else f"which has no {need.capability}"
        able = sorted(
            name for name, other in names.items() if need.capability is None or need.capability in other.capabilities
        )
        with_it = "the models are" if need.capability is None else f"models with {need.capability}:"
        yield need, f"{setting} is {need.name!r}, {what}; {with_it} {', '.join(able) or 'none'}"


class Opener:
    """Opens and proves models, in any thread, one at a time."""

    def __init__(self, settings: Settings, cache: VectorCache, workers: Workers) -> None:
        """Say how.

        Args:
            settings: of the service.
            cache: keeps the embeddings of all models.
            workers: where their runs take place.

        Raises:
            ProviderError: CUDA was asked for, and is absent.
        """
        self._settings = settings
        self._cache = cache
        self._workers = workers
        self._providers = provider_order(settings.providers)
        # What several models have in common, by checksum: read, and kept in memory, once, as long as one has it.
        self._tensors: MutableMapping[str, Array] = WeakValueDictionary()
        self._tokenizers: MutableMapping[str, Tokenizer] = WeakValueDictionary()

    def open(self, release: Release) -> Model:
        """Verify, open and prove one model.

        Raises:
            ContractError: a file is not what the manifest says.
            ModelError: a path leads out of the models' folder, another model's manifest, an answer that differs from
                the published one.
            ProviderError: CUDA was asked for, and does not start.
        """
        started = perf_counter()
        folder = release.folder
        confine(self._settings.models_dir, folder / MANIFEST_NAME)
        manifest = Manifest.load(folder)
        if manifest.id != release.id:
            raise ModelError(f"{folder / MANIFEST_NAME}: the id is {manifest.id!r}, its folder's {release.id!r}")
        for name in manifest.files:
            confine(self._settings.models_dir, manifest.path_of(folder, name))
        manifest.verify(folder)
        of_tokenizer = manifest.files[manifest.tokenizer].sha256
        tokenizer = self._tokenizers.get(of_tokenizer)
        if tokenizer is None:
            tokenizer = Tokenizer.load(manifest.path_of(folder, manifest.tokenizer))
            self._tokenizers[of_tokenizer] = tokenizer
        golden_path = manifest.path_of(folder, manifest.golden)
        golden = GoldenPairs.load(golden_path)
        for text in [text for pair in golden.pairs for text in (pair.a, pair.b)] or [""]:
            if not tokenizer.encode(text, 1).ids:
                raise ArtifactError(f"{golden_path}: no golden pair, or one without words, {text!r}")
        tensors = load_tensors(folder, manifest, self._tensors)
        sessions = {
            name: _open_graph(manifest.path_of(folder, name), name, manifest, tensors, self._settings, self._providers)
            for name in manifest.graphs
        }
        provider = next(iter(sessions.values())).provider
        telemetry = ModelTelemetry(
            release.name,
            manifest.graphs,
            version="" if release.version is None else str(release.version),
            fingerprint=manifest.fingerprint,
            provider=provider,
            architecture=manifest.architecture,
        )
        scorer = self._scorer(manifest, tokenizer, sessions, telemetry)
        if release.version is not None:
            scorer.number(release.version)
        model = Model(release, scorer, telemetry, golden, provider)
        model.prove(self._settings.model_cache.get(release.id, self._settings.cache))
        log.info(
            "model opened",
            extra=fields(
                model=release.name,
                tasks=manifest.tasks,
                provider=provider,
                fingerprint=manifest.fingerprint[:16],
                cache=model.tiers.names,
                seconds=round(perf_counter() - started, 3),
            ),
        )
        return model

    def _scorer(
        self, manifest: Manifest, tokenizer: Tokenizer, runs: Mapping[str, Run], telemetry: ModelTelemetry
    ) -> Scorer:
        if manifest.family == "siamese":
            return SiameseScorer(manifest, tokenizer, runs, telemetry, self._workers, self._cache)
        return InteractionScorer(manifest, tokenizer, runs, telemetry, self._workers, self._cache)


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
