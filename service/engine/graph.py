"""A model's graph: its session, the padding of what it reads, the check of what it gives, and its counters.

A session is a graph that ONNX Runtime has opened; its signature is checked then.

A `reproducible` graph pads a text to the next multiple of `LENGTH_STEP` tokens, and only texts of one padded length
share a run: padding is what moves last digits, on a CPU a row is the same bit for bit beside any others of its length
(not of rnn and mgim, whose products depend on the number of rows; one by one, all others would take two to eight times
as long).
Fewer digits would not do: some would still differ. On a GPU kernels are chosen by the number of rows too. Transformers
always are (`core.sequences`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import current_thread, main_thread
from time import monotonic, perf_counter
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from core.errors import ArtifactError
from core.graph import SLOW_FUSIONS, GraphKind, GraphSignature, Signature, read_signature
from core.manifest import Manifest
from core.scoring import Array, Run
from core.sequences import Feeds, Ids, Pair, SequenceFeeds, WordFeeds
from core.tensors import tensors_of
from service.errors import InferenceFailed, ProviderError
from service.machine import trim_allocator
from service.observe.telemetry import ModelTelemetry

SHRINK_SECONDS = 60.0
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
# How ONNX writes where a tensor's data outside of the file lies: the key "location", before its value.
_EXTERNAL_DATA = b"\x0a\x08location\x12"
# How ONNX writes the kinds of node that run a graph again and again: the key "op_type", before its value.
_LOOP_NODES = (b"\x22\x04Loop", b"\x22\x04Scan")
_INTEGER_NODES = (b"\x22\x0dMatMulInteger", b"\x22\x14MatMulIntegerToFloat")
_DTYPES = {"tensor(int64)": "int64", "tensor(float)": "float32"}

_MIN_LOGARITHM = -1e4  # stands for the logarithm of 0, and fits into float16

K = TypeVar("K")
Rows = npt.NDArray[np.float32]  # [n, outputs of the graph]: a row for each of n keys
Shape = tuple[int, ...]  # number of tokens of a sentence, or of both sentences of a pair


class Session:
    """A graph that can be run; a `core.scoring.Run`.

    The arena of all sessions keeps what it ever took, and rare texts need more than all before them, so it would grow
    for hours. A run gives that back to the system once a minute, in some milliseconds.
    """

    _next_shrink = 0.0  # next, of all sessions
    _shrinking = ort.RunOptions()
    _shrinking.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def __init__(
        self,
        session: ort.InferenceSession,
        signature: GraphSignature,
        weights: Sequence[ort.OrtValue] = (),
        *,
        has_loop: bool = False,
        has_integers: bool = False,
    ) -> None:
        self._run = session.run
        self._weights = weights  # the session uses their memory
        self._outputs = [signature.output]
        self.signature = signature
        self.has_cuda = CUDA in session.get_providers()
        self.has_loop = has_loop  # a loop in it may take any time, whatever shorter runs took
        self.has_integers = has_integers  # it multiplies integers: its answers follow from the kind of CPU

    def __call__(self, feeds: Mapping[str, Array]) -> npt.NDArray[np.float32]:
        """Run the graph: feeds by tensor name -> its one output."""
        output: npt.NDArray[np.float32]
        # Not in the event loop: health checks run often enough elsewhere.
        if self.has_cuda or monotonic() < Session._next_shrink or current_thread() is main_thread():
            (output,) = self._run(self._outputs, feeds)
            return output
        Session._next_shrink = monotonic() + SHRINK_SECONDS
        (output,) = self._run(self._outputs, feeds, self._shrinking)
        trim_allocator()
        return output


def cuda_options(memory_bytes: int) -> dict[str, str]:
    """Options of the CUDA provider: ONNX Runtime's names and values.

    TensorFloat-32 is off: its products have 10 bits of mantissa, and scores would move in their third digit.

    Args:
        memory_bytes: most that a session's arena may take; 0 for no limit.
    """
    options = {"use_tf32": "0"}
    if memory_bytes:
        options |= {"gpu_mem_limit": str(memory_bytes), "arena_extend_strategy": "kSameAsRequested"}
    return options


def provider_order(wanted: Literal["auto", "cuda", "cpu"]) -> list[str]:
    """ONNX Runtime's names of the providers to try, in order.

    Raises:
        ProviderError: CUDA is wanted, and this installation of ONNX Runtime has none.
    """
    if wanted == "cpu":
        return [CPU]
    offered = ort.get_available_providers()
    if CUDA in offered:
        return [CUDA, CPU]
    if wanted == "cuda":
        raise ProviderError(
            f"SEMBLANCE_PROVIDERS=cuda, but this onnxruntime offers only {', '.join(offered)}; "
            "install onnxruntime-gpu, or set auto or cpu"
        )
    return [CPU]


@cache
def _load_cuda() -> None:
    """Load CUDA's libraries from the packages that the extra `gpu` installs; those of the system need nothing."""
    ort.preload_dlls(directory="")


@cache
def _share_memory() -> None:
    """Use one memory arena for all sessions of this process.

    One for each session would hold the sum of their peaks, a common one holds the common peak, until it is given back.
    """
    memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    as_usual = {
        "max_mem": 0,
        "arena_extend_strategy": -1,
        "initial_chunk_size_bytes": -1,
        "max_dead_bytes_per_chunk": -1,
    }
    ort.create_and_register_allocator(memory, ort.OrtArenaCfg(as_usual))


def open_session(
    path: Path,
    kind: GraphKind,
    providers: Sequence[str],
    *,
    threads: int,
    must_use_cuda: bool,
    tensors: Mapping[str, Array] | None = None,
    cuda: Mapping[str, str] | None = None,
) -> Session:
    """Open a graph file.

    Graph runs are small, so threads inside a run are few, and do not spin.

    Args:
        path: the file.
        kind: which it is to be.
        providers: ONNX Runtime's names, in order of preference.
        threads: inside one run.
        must_use_cuda: refuse any other provider.
        tensors: the model's weights outside its graphs; on a CPU the session uses them in place.
        cuda: options of that provider (`cuda_options`).

    Raises:
        ArtifactError: ONNX Runtime cannot read the file, the tensors do not fit it, or it names others outside of it.
        GraphMismatchError: it is not a graph of this kind.
        ProviderError: CUDA is required, and does not start.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    _share_memory()
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")  # weights are never freed
    # It would keep a plan for each shape that ever came: 7 MB in 13 minutes of a soak.
    options.enable_mem_pattern = False
    options.log_severity_level = 3  # errors
    # ONNX Runtime must load no other weights than those given: this path is not a folder.
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path))
    try:
        content = path.read_bytes()
    except OSError:
        content = b""  # ONNX Runtime says why
    outside = tensors_of(content, tensors or {})
    weights = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in outside.items()}
    if weights:
        # The first call completes the graph, with copies of the weights. The second makes a session on a CPU drop the
        # copies and use the arrays, so that all sessions share one table.
        options.add_external_initializers(list(weights), list(weights.values()))
        if list(providers) == [CPU]:
            for name, value in weights.items():
                options.add_initializer(name, value)
    # Also one that no node uses, which ONNX Runtime passes over.
    if (named := content.count(_EXTERNAL_DATA)) > len(outside):
        raise ArtifactError(f"{path}: it names {named} tensors outside of the file, the manifest {len(outside)}")
    if CUDA in providers:
        _load_cuda()
    ordered = [(name, dict(cuda or {}) if name == CUDA else {}) for name in providers]
    slow = [] if CUDA in providers else list(SLOW_FUSIONS)
    try:
        session = ort.InferenceSession(str(path), options, ordered, disabled_optimizers=slow)
    except Exception as error:  # onnxruntime's own exceptions share no public base class
        first_line, _, _ = str(error).strip().partition("\n")
        raise ArtifactError(f"{path}: onnxruntime cannot open it: {first_line}") from error
    found = read_signature(kind, _signature(session.get_inputs()), _signature(session.get_outputs()), where=str(path))
    has_loop = any(each in content for each in _LOOP_NODES)
    has_integers = any(each in content for each in _INTEGER_NODES)
    opened = Session(session, found, list(weights.values()), has_loop=has_loop, has_integers=has_integers)
    if must_use_cuda and not opened.has_cuda:
        raise ProviderError(f"SEMBLANCE_PROVIDERS=cuda, but CUDA does not start here: {path} opened on the CPU")
    return opened


def _signature(tensors: Sequence[ort.NodeArg]) -> Signature:
    return {tensor.name: (_DTYPES.get(tensor.type, tensor.type), tuple(tensor.shape)) for tensor in tensors}


class Padding(NamedTuple):
    """The shape of a padded batch: every sentence as long as the longest."""

    longest: Shape
    items: int

    def with_(self, other: "Padding") -> "Padding":
        """The shape of both batches in one."""
        return Padding(tuple(map(max, self.longest, other.longest)), self.items + other.items)


class BatchBudget(NamedTuple):
    """The largest batch of one run; keeps its memory at some megabytes, and what it touches in the CPU's cache."""

    size: int  # padded: longest x count for sentences, longest of a x longest of b x count for pairs
    items: int


class Graph:
    """A graph that can be run; a `core.scoring.Run`. Raises unless all its outputs are finite.

    A log-probability may be minus infinity, and is replaced by `_MIN_LOGARITHM`.
    """

    def __init__(
        self, name: str, run: Run, manifest: Manifest, telemetry: ModelTelemetry, *, has_loop: bool = False
    ) -> None:
        """Take the graph of that file; `run` is its session, and `telemetry` counts its runs.

        `has_loop`: it has a loop. Then no measured time is a bound, and no run is in the event loop.
        """
        self.run = run
        self.has_cuda = getattr(run, "has_cuda", False)
        self.has_loop = has_loop
        self._name = name
        self._model = manifest.id
        self._telemetry = telemetry
        self._logarithms = name in manifest.graphs_of_classes()

    def __call__(self, feeds: Mapping[str, Array]) -> Rows:
        """Run the graph: feeds by tensor name -> its one output.

        Raises:
            InferenceFailed: it raised, or gave a number that is not finite.
        """
        started = perf_counter()
        try:
            output = self.run(feeds)
        except Exception as error:  # onnxruntime's own exceptions share no public base class
            self._telemetry.failed()
            raise InferenceFailed(self._model, f"{self._name} raised {type(error).__name__}") from error
        if not np.isfinite(output).all():
            if not (self._logarithms and np.isfinite(output.max(axis=1)).all()):  # max is NaN if one is NaN
                self._telemetry.failed()
                raise InferenceFailed(self._model, f"{self._name} gave a number that is not finite")
            output = np.maximum(output, np.float32(_MIN_LOGARITHM))
        self._telemetry.ran(self._name, len(output), perf_counter() - started)
        return output


class TextGraph(Graph, ABC, Generic[K]):
    """A graph that reads token ids; a key is those of one sentence, or of one pair."""

    budget: ClassVar[BatchBudget]  # of one run

    def __init__(
        self,
        name: str,
        run: Run,
        manifest: Manifest,
        telemetry: ModelTelemetry,
        feeds: Feeds,
        *,
        reproducible: bool = False,
        has_loop: bool = False,
    ) -> None:
        """Take the graph of that file, as `Graph`; `feeds` says what it reads of ids.

        `reproducible`: texts are padded by their own length alone. A row's last digits hang on how far its texts are
        padded, and on nothing else of its batch.
        """
        super().__init__(name, run, manifest, telemetry, has_loop=has_loop)
        self.is_transformer = isinstance(feeds, SequenceFeeds)
        self.reproducible = reproducible or self.is_transformer
        if reproducible and isinstance(feeds, WordFeeds):
            feeds = replace(feeds, most=manifest.limits.max_tokens)
        self.feeds = feeds
        self.shapes: Callable[[Sequence[K]], list[Shape]] = feeds.shapes

    @abstractmethod
    def rows(self, keys: Sequence[K], longest: Shape = ()) -> Rows:
        """n keys -> n rows, in any thread; `longest` is their shape together, where it is known.

        A row does not depend on the other keys.

        Raises:
            InferenceFailed: the graph raised, or gave a number that is not finite.
        """

    @abstractmethod
    def resized(self, key: K, shape: Shape) -> K:
        """A key of this shape, with the tokens of another one: cut, or repeated."""

    def _longest(self, keys: Sequence[K]) -> Shape:
        return tuple(map(max, zip(*self.shapes(keys), strict=True)))


class SentenceGraph(TextGraph[Ids]):
    """Reads one sentence: an encoder, or the vectors of its tokens."""

    # 64 sentences of 16 tokens. An averaging model takes .13 us a padded token in batches of this size, .24 in batches
    # of 4096 and .33 in those of 8192; models that compute more take the same in all of them.
    budget = BatchBudget(1024, 1024)

    def rows(self, keys: Sequence[Ids], longest: Shape = ()) -> Rows:
        """One row for each sentence, as in `TextGraph.rows`."""
        return self.feeds.rows(self, [keys], longest or self._longest(keys))

    def resized(self, key: Ids, shape: Shape) -> Ids:
        """A sentence of this shape, as in `TextGraph.resized`."""
        return _resized(key, max(1, shape[0] - self.feeds.added))


class PairGraph(TextGraph[Pair]):
    """Reads both sentences of a pair together: scores of a task, or matrices that explain one."""

    # Eight pairs of 32 tokens each. A graph of pairs computes many numbers for each pair of tokens, and may pad further
    # within itself: 64 pairs took pwim-sick 355 ms in batches of 32, 295 in batches of 8, and 316 in batches of 4.
    budget = BatchBudget(8 * 32 * 32, 8)

    def rows(self, keys: Sequence[Pair], longest: Shape = ()) -> Rows:
        """One row for each pair, as in `TextGraph.rows`."""
        return self.feeds.rows(self, [[a for a, _ in keys], [b for _, b in keys]], longest or self._longest(keys))

    def resized(self, key: Pair, shape: Shape) -> Pair:
        """A pair of this shape, as in `TextGraph.resized`."""
        if len(shape) == 1:
            tokens = max(2, shape[0] - self.feeds.added)
            shape = (tokens - tokens // 2, tokens // 2)
        return _resized(key[0], shape[0]), _resized(key[1], shape[1])


def _resized(ids: Ids, length: int) -> Ids:
    return (ids * -(-length // len(ids)))[:length]


KINDS: Mapping[GraphKind, type[TextGraph[Any]]] = {
    "encoder": SentenceGraph,
    "tokens": SentenceGraph,
    "pair": PairGraph,
    "explanation": PairGraph,
}
