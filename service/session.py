"""An open ONNX Runtime graph, held against its kind before it may answer."""

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from contract.errors import ArtifactError
from contract.graph import GraphSpec, Signature, check_signature
from contract.scoring import Array
from contract.tensors import external_tensors
from service.errors import ProviderError

log = logging.getLogger(__name__)

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
_DTYPES = {"tensor(int64)": "int64", "tensor(float)": "float32"}


class Session:
    """A graph that can be run; a `contract.scoring.Run`."""

    def __init__(
        self, session: ort.InferenceSession, sizes: Mapping[str, int], weights: Sequence[ort.OrtValue] = ()
    ) -> None:
        self._run = session.run
        self._weights = weights  # the session reads them where they lie: without this they would be freed under it
        self._outputs = [tensor.name for tensor in session.get_outputs()]
        self.sizes = sizes  # of the axes the model fixes: dim, outputs
        self.provider: str = session.get_providers()[0].removesuffix("ExecutionProvider").lower()

    def __call__(self, feeds: Mapping[str, Array]) -> npt.NDArray[np.float32]:
        """Run the graph: feeds by tensor name -> its one output."""
        output: npt.NDArray[np.float32] = self._run(self._outputs, feeds)[0]
        return output


def provider_order(wanted: Literal["auto", "cuda", "cpu"]) -> list[str]:
    """ONNX Runtime's names of the providers to try, in order.

    Raises:
        ProviderError: CUDA was asked for, and this installation of ONNX Runtime has none.
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
def _share_memory() -> None:
    """Let all sessions of this process take what they compute in from one arena.

    An arena keeps what its sessions once needed, so that one for each of them holds the sum of what they ever needed,
    and one for all of them the most that was needed at a time.
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
) -> Session:
    """Open a graph file.

    One request is one small graph run, so threads inside a run are few, and never spin for work.

    Args:
        path: the file.
        spec: what kind of graph it must be.
        providers: ONNX Runtime's names, the first choice first.
        threads: inside one run.
        must_use_cuda: refuse to run it elsewhere.
        tensors: the model's weights that lie outside its graphs; on a CPU the session uses them in place.

    Raises:
        ArtifactError: ONNX Runtime cannot read the file, or needs a tensor that is not given, or another one.
        GraphMismatchError: it is not a graph of this kind.
        ProviderError: CUDA was asked for, and does not start.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    _share_memory()
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")  # weights stay for good
    options.log_severity_level = 3  # errors; what matters is raised
    weights = {name: ort.OrtValue.ortvalue_from_numpy(a) for name, a in external_tensors(path, tensors or {}).items()}
    if weights:
        # The first call fills the graph in, with copies; the second makes a session on a CPU drop those again and
        # read the arrays themselves, so that many sessions hold one table. Another device has copies of its own.
        options.add_external_initializers(list(weights), list(weights.values()))
        if list(providers) == [CPU]:
            for name, value in weights.items():
                options.add_initializer(name, value)
    try:
        session = ort.InferenceSession(str(path), sess_options=options, providers=list(providers))
    except Exception as error:  # onnxruntime's own exceptions share no public base class
        raise ArtifactError(f"{path}: onnxruntime cannot open it: {_first_line(error)}") from error
    sizes = check_signature(spec, _signature(session.get_inputs()), _signature(session.get_outputs()), where=str(path))
    opened = Session(session, sizes, list(weights.values()))
    if must_use_cuda and opened.provider != "cuda":
        raise ProviderError(
            f"SEMBLANCE_PROVIDERS=cuda, but CUDA does not start here: {path} opened on {opened.provider}"
        )
    return opened


def _signature(tensors: Sequence[ort.NodeArg]) -> Signature:
    return {tensor.name: (_DTYPES.get(tensor.type, tensor.type), tuple(tensor.shape)) for tensor in tensors}


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
