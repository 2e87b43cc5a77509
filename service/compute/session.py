"""An ONNX Runtime session, whose signature is checked when it is opened."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import current_thread, main_thread
from time import monotonic
from typing import Literal

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from contract.errors import ArtifactError
from contract.graph import GraphSpec, Signature, check_signature
from contract.scoring import Array
from contract.tensors import tensors_of
from service.errors import ProviderError
from service.machine import trim_allocator

log = logging.getLogger(__name__)

GIVE_BACK_SECONDS = 60.0
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
# How ONNX writes where a tensor's data outside of the file lies: the key "location", before its value.
_OUTSIDE = b"\x0a\x08location\x12"
_DTYPES = {"tensor(int64)": "int64", "tensor(float)": "float32"}


class Session:
    """A graph that can be run; a `contract.scoring.Run`."""

    def __init__(
        self, session: ort.InferenceSession, sizes: Mapping[str, int], weights: Sequence[ort.OrtValue] = ()
    ) -> None:
        self._run = session.run
        self._gives_back = CUDA not in session.get_providers()
        self._weights = weights  # the session uses their memory
        self._outputs = [tensor.name for tensor in session.get_outputs()]
        self.sizes = sizes  # of the axes the model fixes: dim, outputs
        self.has_cuda = CUDA in session.get_providers()

    def __call__(self, feeds: Mapping[str, Array]) -> npt.NDArray[np.float32]:
        """Run the graph: feeds by tensor name -> its one output."""
        if self._gives_back and _MEMORY.is_due():
            return _MEMORY.give_back(lambda options: self._run(self._outputs, feeds, options)[0])
        output: npt.NDArray[np.float32] = self._run(self._outputs, feeds)[0]
        return output


class _Memory:
    """What graphs needed for their largest batches, given back to the system once a minute, in some milliseconds.

    The arena keeps all it ever took. Rare texts need more than all before them, so it would grow for hours.
    """

    def __init__(self) -> None:
        self._next = 0.0
        self._options = ort.RunOptions()
        self._options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def is_due(self) -> bool:
        """Whether this thread's run is to do it; not in the event loop. Health checks run often enough elsewhere."""
        return monotonic() >= self._next and current_thread() is not main_thread()

    def give_back(self, run: Callable[[ort.RunOptions], npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
        """Do it at the end of this run."""
        self._next = monotonic() + GIVE_BACK_SECONDS
        output = run(self._options)
        trim_allocator()
        return output


_MEMORY = _Memory()


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
    spec: GraphSpec,
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
        spec: its kind.
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
    if (named := content.count(_OUTSIDE)) > len(outside):  # also one that no node uses, which ONNX Runtime passes over
        raise ArtifactError(f"{path}: it names {named} tensors outside of the file, the manifest {len(outside)}")
    if CUDA in providers:
        _load_cuda()
    ordered = [(name, dict(cuda or {}) if name == CUDA else {}) for name in providers]
    try:
        session = ort.InferenceSession(str(path), sess_options=options, providers=ordered)
    except Exception as error:  # onnxruntime's own exceptions share no public base class
        raise ArtifactError(f"{path}: onnxruntime cannot open it: {_first_line(error)}") from error
    sizes = check_signature(spec, _signature(session.get_inputs()), _signature(session.get_outputs()), where=str(path))
    opened = Session(session, sizes, list(weights.values()))
    if must_use_cuda and not opened.has_cuda:
        raise ProviderError(f"SEMBLANCE_PROVIDERS=cuda, but CUDA does not start here: {path} opened on the CPU")
    return opened


def _signature(tensors: Sequence[ort.NodeArg]) -> Signature:
    return {tensor.name: (_DTYPES.get(tensor.type, tensor.type), tuple(tensor.shape)) for tensor in tensors}


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
