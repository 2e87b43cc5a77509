"""Opens model folders: verifies the manifest, opens the graphs with ONNX Runtime, checks the golden pairs."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path
from time import perf_counter
from weakref import WeakValueDictionary

from contract.errors import ArtifactError, GraphMismatchError
from contract.golden import GoldenPairs
from contract.graph import SPECS
from contract.manifest import MANIFEST_NAME, Manifest
from contract.scoring import Array, Run
from contract.tensors import load_tensors
from contract.wordpiece import AnyTokenizer, load_tokenizer
from service.compute.cache import VectorCache
from service.compute.pool import Pool
from service.compute.session import CPU, CUDA, Placement, Session, cuda_options, open_session, provider_order
from service.cpus import counts
from service.errors import ModelError
from service.models.registry import Model
from service.models.repository import Release, confine, file_stamps
from service.observe.logs import fields
from service.observe.telemetry import ModelTelemetry
from service.scoring.interaction import InteractionScorer
from service.scoring.scorer import Scorer
from service.scoring.siamese import SiameseScorer
from service.settings import Settings

log = logging.getLogger(__name__)


class Opener:
    """Opens and proves models, in any thread, one at a time."""

    def __init__(self, settings: Settings, cache: VectorCache, pool: Pool) -> None:
        """Choose the execution providers.

        Raises:
            ProviderError: CUDA is required, and absent.
        """
        self._settings = settings
        self._cache = cache
        self._pool = pool
        self._providers = provider_order(settings.providers)
        # By checksum: files that several models share are in memory once, as long as one model uses them.
        self._tensors: MutableMapping[str, Array] = WeakValueDictionary()
        self._tokenizers: MutableMapping[str, AnyTokenizer] = WeakValueDictionary()

    def open(self, release: Release) -> Model:
        """Verify, open and prove one model.

        Raises:
            ContractError: a file is not what the manifest says.
            ModelError: a path leads out of the models folder, the manifest has another id, or an answer differs from
                the published one.
            ProviderError: CUDA is required, and does not start.
        """
        started = perf_counter()
        folder = release.folder
        confine(self._settings.models_dir, folder / MANIFEST_NAME)
        manifest = Manifest.load(folder)
        if manifest.id != release.id:
            raise ModelError(f"{folder / MANIFEST_NAME}: the id is {manifest.id!r}, its folder's {release.id!r}")
        for name in manifest.files:
            confine(self._settings.models_dir, manifest.path_of(folder, name))
        found = file_stamps(folder, manifest)  # before reading, so that later changes are noticed
        manifest.verify(folder, self._settings.max_model_bytes)
        of_tokenizer = manifest.files[manifest.tokenizer].sha256
        tokenizer = self._tokenizers.get(of_tokenizer)
        if tokenizer is None:
            tokenizer = load_tokenizer(manifest.path_of(folder, manifest.tokenizer))
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
        if CUDA in self._providers and not any(session.has_cuda for session in sessions.values()):
            log.warning(
                "CUDA does not start here: this model and all others run on the CPU", extra=fields(model=release.name)
            )
            self._providers = [CPU]  # one attempt, and its many lines of ONNX Runtime, are enough
        placement = _together(session.placement for session in sessions.values())
        provider = "cuda" if "cuda" in placement else "cpu"
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
        model = Model(release, scorer, telemetry, golden, {each: nodes.total() for each, nodes in placement.items()})
        model.stamps = found
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
        whole = provider == "cpu" and CUDA in self._providers  # CUDA started, and took none of the nodes
        if whole or len(placement) > 1:
            log.log(
                logging.WARNING if whole else logging.INFO,
                f"{'all' if whole else 'a part'} of the model runs on the CPU",
                extra=fields(model=release.name, nodes=model.placement, on_cpu=dict(placement["cpu"].most_common())),
            )
        return model

    def verify_again(self, model: Model) -> None:
        """Verify the files of a served model again.

        Raises:
            ArtifactError: a file is not as the manifest says.
        """
        folder = model.release.folder
        found = file_stamps(folder, model.manifest)
        model.manifest.verify(folder, self._settings.max_model_bytes)
        model.stamps = found

    def _scorer(
        self, manifest: Manifest, tokenizer: AnyTokenizer, runs: Mapping[str, Run], telemetry: ModelTelemetry
    ) -> Scorer:
        if manifest.family == "siamese":
            return SiameseScorer(manifest, tokenizer, runs, telemetry, self._pool, self._cache)
        return InteractionScorer(manifest, tokenizer, runs, telemetry, self._pool, self._cache)


def _together(placements: Iterable[Placement]) -> Placement:
    """Where the nodes of all of a model's graphs are."""
    found: dict[str, Counter[str]] = {}
    for placement in placements:
        for provider, operators in placement.items():
            found.setdefault(provider, Counter()).update(operators)
    return found


def _open_graph(
    path: Path,
    name: str,
    manifest: Manifest,
    tensors: Mapping[str, Array],
    settings: Settings,
    providers: list[str],
) -> Session:
    """Open a graph; its kind and sizes follow from its use in the manifest."""
    session = open_session(
        path,
        SPECS[manifest.kind_of(name)],
        providers,
        threads=counts(settings).ort_threads,
        must_use_cuda=settings.providers == "cuda",
        tensors=tensors,
        cuda=cuda_options(settings.cuda_device, settings.cuda_memory_bytes),
    )
    for who_says, axis, size in _wanted_sizes(name, manifest):
        if session.sizes.get(axis) != size:
            raise GraphMismatchError(f"{path}: {axis} is {session.sizes.get(axis)}, {who_says} {size}")
    return session


def _wanted_sizes(graph: str, manifest: Manifest) -> Iterator[tuple[str, str, int]]:
    """The sizes that fixed axes must have: the reason, for messages, the axis and the size."""
    if manifest.dim is not None:
        yield "the manifest says", "dim", manifest.dim
    if (outputs := manifest.outputs().get(graph)) is not None:
        yield "its tasks need", "outputs", outputs
    if manifest.explanation is not None and manifest.explanation.graph == graph:
        yield "explanation needs", "matrices", len(manifest.explanation.matrices)
