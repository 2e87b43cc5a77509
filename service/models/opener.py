"""Reads and opens model folders: a model's files are held against its manifest; its graphs are opened with ONNX
Runtime, and must answer the golden pairs.
"""

import asyncio
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from core.errors import ArtifactError, ContractError, GraphMismatchError
from core.golden import GoldenPairs
from core.graph import GraphKind
from core.manifest import MANIFEST_NAME, FileEntry, Manifest
from core.scoring import Array
from core.sequences import feeds_of
from core.subwords import AnyTokenizer, load_tokenizer
from core.tensors import load_tensors, tensors_of
from service.engine.cache import VectorCache
from service.engine.graph import CPU, CUDA, KINDS, Graph, Session, cuda_options, open_session, provider_order
from service.engine.queue import Queue
from service.errors import ModelError, ServiceError
from service.machine import counts, trim_allocator
from service.models.model import OpenModel, ServedModel
from service.models.repository import ModelFolder, confine, file_stamps
from service.observe.logs import fields
from service.observe.telemetry import ModelTelemetry
from service.scoring.families import FAMILIES
from service.scoring.tokenising import ScorerParts
from service.settings import Settings

log = logging.getLogger(__name__)

THREAD = "models"  # how the name of the thread begins
STEP_SECONDS = 60.0  # for opening one model, or listing the folder: longer means that the storage hangs
_MAX_REASON = 1000  # characters: everybody can read it, and a manifest may have any word

# An absolute path and everything after it: a path may contain spaces, so its end is unknown.
_ABSOLUTE_PATH = re.compile(r"[\s\"'(]*(?<![\w./-])/(?=\S).*", re.DOTALL)
P = ParamSpec("P")
T = TypeVar("T")


class Opener:
    """Reads, opens and proves models, in any thread, one at a time."""

    def __init__(self, settings: Settings, cache: VectorCache, queue: Queue) -> None:
        """Choose the execution providers.

        Raises:
            ProviderError: CUDA is required, and absent.
        """
        self._settings = settings
        self._cache = cache
        self._queue = queue
        self._providers = provider_order(settings.providers)
        # By checksum: files that several models share are in memory once, as long as one model uses them.
        self._tensors: MutableMapping[str, Array] = WeakValueDictionary()
        self._sessions: MutableMapping[tuple[object, ...], Session] = WeakValueDictionary()
        self._tokenizers: MutableMapping[str, AnyTokenizer] = WeakValueDictionary()
        # One thread for reloads and first requests, because the allocator keeps memory for each thread.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=THREAD)
        self._lock = asyncio.Lock()
        self._timed_out: asyncio.Future[Any] | None = None  # timed out, and still running in the thread
        self._opening: str | None = None  # the model whose graphs the work in the thread has come to

    def read(self, release: ModelFolder, known: dict[Path, FileEntry] | None = None) -> ServedModel:
        """Read a model's manifest and hold its files against it; opens no graph.

        Args:
            release: the model.
            known: what files were just found to be, so that those of several models are read once; gets this one's.

        Raises:
            ContractError: a file is not what the manifest says.
            ModelError: a path leads out of the models folder, or the manifest has another id.
        """
        folder, root = release.folder, release.root
        manifest = Manifest.load(folder)
        if manifest.id != release.id:
            raise ModelError(f"{folder / MANIFEST_NAME}: the id is {manifest.id!r}, its folder's {release.id!r}")
        for name in manifest.files:
            confine(root, manifest.path_of(folder, name))
        stamps = file_stamps(folder, manifest)  # before reading, so that later changes are noticed
        manifest.verify(folder, known=known)
        return ServedModel(release, manifest, stamps)

    def verify_again(self, model: ServedModel) -> None:
        """Verify the files of a model again.

        Raises:
            ArtifactError: a file is not as the manifest says.
        """
        stamps = file_stamps(model.release.folder, model.manifest)
        model.manifest.verify(model.release.folder)
        model.stamps = stamps

    def open(self, model: ServedModel) -> OpenModel:
        """Open and prove one model. Files that have changed since they were verified are verified first.

        Raises:
            ContractError: a file is not what the manifest says.
            ModelError: the manifest is another one by now, or an answer differs from the published one.
            ProviderError: CUDA is required, and does not start.
        """
        started, self._opening = perf_counter(), model.release.id
        release, manifest, folder = model.release, model.manifest, model.release.folder
        if file_stamps(folder, manifest) != model.stamps:
            if Manifest.load(folder) != manifest:
                raise ModelError(f"{folder}: the model has changed since it was read; a reload takes it up")
            self.verify_again(model)
        tokenizer, golden = self._tokenizer(model), self._golden(model)
        tensors = load_tensors(folder, manifest, self._tensors)
        sessions = self._open_sessions(model, tensors)
        has_cuda = any(session.has_cuda for session in sessions.values())
        if CUDA in self._providers and not has_cuda:
            log.warning(
                "CUDA does not start here: this model and all others run on the CPU", extra=fields(model=release.id)
            )
            self._providers = [CPU]  # one attempt, and its many lines of ONNX Runtime, are enough
            sessions = self._open_sessions(model, tensors)  # of other graphs, where a GPU has its own
        provider = "cuda" if has_cuda else "cpu"
        telemetry = ModelTelemetry(manifest.graphs)
        graphs: dict[str, Graph] = {}
        for name, kind in manifest.graph_kinds.items():
            session = sessions[name]
            if kind not in KINDS:  # it reads embeddings
                graphs[name] = Graph(name, session, manifest, telemetry, has_loop=session.has_loop)
                continue
            pooling, most = manifest.pooling_of(name), manifest.max_tokens(name)
            feeds = feeds_of(session.signature, kind, tokenizer, pooling, most, where=name)
            alike = self._settings.reproducible and kind in ("encoder", "pair")
            more = {"reproducible": alike, "has_loop": session.has_loop}
            graphs[name] = KINDS[kind](name, session, manifest, telemetry, feeds, **more)
        parts = ScorerParts(manifest, tokenizer, graphs, telemetry, self._queue, self._cache)
        scorer = FAMILIES[manifest.family](parts)
        has_integers = bool(manifest.on_cuda) or any(session.has_integers for session in sessions.values())
        opened = OpenModel(release.id, scorer, telemetry, golden, provider, has_integers=has_integers)
        opened.prove(self._settings.cache)
        log.info(
            "model opened",
            extra=fields(
                model=release.id,
                tasks=manifest.tasks,
                provider=provider,
                fingerprint=manifest.fingerprint[:16],
                cache=opened.tiers.names,
                seconds=round(perf_counter() - started, 3),
            ),
        )
        trim_allocator()  # opening a graph copies its external weights for a moment
        return opened

    async def run_in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in the opener's thread, after what waits for it.

        Raises:
            ModelError: it takes too long, or earlier work that took too long still runs.
        """
        async with self._lock:  # so that waiting for others is no part of the time limit
            if self._timed_out is not None and not self._timed_out.done():
                if self._opening is not None:
                    raise ModelError(
                        f"{self._opening}, which was opened before this, has not ended: a graph of it never ends, or "
                        "the storage hangs; take it away, and start the service again"
                    )
                raise ModelError("what was read before this hangs: is the storage of SEMBLANCE_MODELS_DIR there?")
            self._opening = None
            doing = asyncio.get_running_loop().run_in_executor(self._thread, partial(work, *args, **kwargs))
            done, _ = await asyncio.wait([doing], timeout=STEP_SECONDS)
            if not done:
                self._timed_out = doing
                doing.add_done_callback(lambda late: late.cancelled() or late.exception())  # retrieves the exception
                raise ModelError(f"not read and opened within {STEP_SECONDS:g} seconds, and given up")
            return doing.result()

    def describe_error(self, error: object) -> str:
        """An error of a model, without the path of the models folder; an unexpected one is also logged."""
        if isinstance(error, Exception) and not isinstance(error, ContractError | ServiceError):
            log.error("a model could not be opened", exc_info=error)
        roots, reason = self._settings.models_dir, str(error)
        spellings = {str(path) for root in roots for path in (root, root.absolute(), root.resolve())}
        for path in sorted(spellings, key=len, reverse=True):
            reason = reason.replace(f"{path}{os.sep}", "")
        for root in roots:
            reason = reason.replace(str(root.absolute()), "the models folder")
        return reason[:_MAX_REASON] or type(error).__name__

    def close(self) -> None:
        """Cancel the openings that have not begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _tokenizer(self, model: ServedModel) -> AnyTokenizer:
        manifest = model.manifest
        digest = manifest.files[manifest.tokenizer].sha256
        tokenizer = self._tokenizers.get(digest)
        if tokenizer is None:
            tokenizer = load_tokenizer(manifest.path_of(model.release.folder, manifest.tokenizer))
            self._tokenizers[digest] = tokenizer
        return tokenizer

    def _golden(self, model: ServedModel) -> GoldenPairs:
        path = model.manifest.path_of(model.release.folder, model.manifest.golden)
        golden, tokenizer = GoldenPairs.load(path), self._tokenizer(model)
        for text in [text for pair in golden.pairs for text in (pair.a, pair.b)] or [""]:
            if not tokenizer.encode(text, 1).ids:
                raise ArtifactError(f"{path}: no golden pair, or one without words, {text!r}")
        return golden

    def _open_sessions(self, model: ServedModel, tensors: Mapping[str, Array]) -> dict[str, Session]:
        return {name: self._session(model, name, kind, tensors) for name, kind in model.manifest.graph_kinds.items()}

    def _session(self, model: ServedModel, name: str, kind: GraphKind, tensors: Mapping[str, Array]) -> Session:
        """Open a graph, or what a GPU has in its place; its sizes follow from its use in the manifest."""
        settings, manifest = self._settings, model.manifest
        file = manifest.on_cuda.get(name, name) if CUDA in self._providers else name
        path = manifest.path_of(model.release.folder, file)
        outside = {tensor: manifest.files[each].sha256 for tensor, each in manifest.tensors.items()}
        same = (kind, manifest.files[file].sha256, *sorted(tensors_of(path.read_bytes(), outside).items()))
        session = self._sessions.get(same)
        if session is None:
            session = self._sessions[same] = open_session(
                path,
                kind,
                self._providers,
                threads=counts(settings).ort_threads,
                must_use_cuda=settings.providers == "cuda",
                tensors=tensors,
                cuda=cuda_options(settings.cuda_memory_bytes),
            )
        for who_says, axis, size in _wanted_sizes(name, manifest):
            if (found := session.signature.sizes.get(axis)) != size:
                raise GraphMismatchError(f"{path}: {axis} is {found}, {who_says} {size}")
        return session


def without_paths(reason: str) -> str:
    """A reason without paths of this machine, for readiness and answers, which everybody can read."""
    return _ABSOLUTE_PATH.sub(" ...", reason)


def _wanted_sizes(graph: str, manifest: Manifest) -> Iterator[tuple[str, str, int]]:
    """The sizes that fixed axes must have: the reason, for messages, the axis and the size."""
    dim = manifest.dim if manifest.bi_encoder is None else manifest.bi_encoder.dim
    if dim is not None and manifest.graph_kinds[graph] not in ("pair", "explanation"):
        yield "the manifest says", "dim", dim
    if (outputs := manifest.outputs().get(graph)) is not None:
        yield "its tasks need", "outputs", outputs
    if manifest.explanation is not None and manifest.explanation.graph == graph:
        yield "explanation needs", "matrices", len(manifest.explanation.matrices)
