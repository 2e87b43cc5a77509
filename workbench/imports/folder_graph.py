"""The graph of a transformer's folder: the one in it, or one that torch exports; opened, and tried."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto

from core.errors import GraphMismatchError
from core.graph import IDS, MASK, POSITIONS, SEGMENTS, GraphSignature, read_signature
from workbench.imports.files import GRAPHS, ImportRefused, check_weights, has_weights, is_within
from workbench.imports.model import ImportOptions

_TOLERANCE = 1e-4  # of an exported graph beside its module
_DTYPES = {"tensor(int64)": "int64", "tensor(float)": "float32"}


def graph_in(folder: Path, options: ImportOptions) -> tuple[Path, ModelProto] | tuple[None, None]:
    """The graph that runs as it is, and where it lies: the one that is asked for, or where the folder has no weights
    (or torch is missing) the one in it. None: torch exports the weights."""
    if options.graph is not None and not is_within(options.graph):
        raise ImportRefused(f"--graph {options.graph}: not within the folder")
    if options.graph is None and has_weights(folder) and find_spec("torch") is not None:
        return None, None
    names = (options.graph,) if options.graph is not None else GRAPHS
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None and options.graph is not None:
        raise ImportRefused(f"--graph {options.graph}: {folder / options.graph}: no such file")
    try:
        return (None, None) if path is None else (path, onnx.load(path))
    except Exception as error:  # protobuf's own share no public base class
        raise ImportRefused(f"{path}: onnxruntime cannot open it: {error}") from error


def exported(folder: Path, has_head: bool, longest: int) -> ModelProto:
    """The graph that torch exports."""
    check_weights(folder)
    try:
        from workbench.imports.exporting import export
    except ModuleNotFoundError as error:
        raise ImportRefused(
            f"{folder}: no {' or '.join(GRAPHS)}, and {error.name}, which exports one, is not installed: "
            "pip install -e '.[training,distill]'"
        ) from None
    return export(folder, has_head, longest, _TOLERANCE)


def signature_of(graph: ModelProto, where: Path, tokens: int, last_id: int) -> GraphSignature:
    """The signature of a graph, tried with as many tokens as it is said to read, and the tokenizer's last one; the
    width of its outputs is written into it where it is a symbol.

    Raises:
        ImportRefused: it is no transformer that is served, or cannot run.
    """
    session = open_graph(graph.SerializeToString(), where)
    inputs = {each.name: (_DTYPES.get(each.type, each.type), tuple(each.shape)) for each in session.get_inputs()}
    if not {IDS, MASK} <= set(inputs) <= {IDS, MASK, SEGMENTS, POSITIONS}:
        found = ", ".join(f"{name} {kind}" for name, (kind, _) in inputs.items())
        raise ImportRefused(f"{where}: inputs {found}; taken are int64 {IDS}, {MASK} and perhaps {SEGMENTS}")
    ids = np.full((1, tokens), 5)
    ids[0, -1] = last_id
    every = {IDS: ids, MASK: np.ones_like(ids), SEGMENTS: np.zeros_like(ids), POSITIONS: np.arange(tokens)[None]}
    try:
        found = session.run(None, {name: every[name] for name in inputs})
    except Exception as error:  # onnxruntime's own exceptions share no public base class
        reason = str(error).splitlines()[0]
        raise ImportRefused(
            f"{where}: cannot run with {tokens} tokens (--max-tokens), of which one has the tokenizer's last id, "
            f"{last_id}: {reason}"
        ) from error
    for value, output in zip(graph.graph.output, found, strict=True):
        dims = value.type.tensor_type.shape.dim
        if len(dims) == output.ndim and output.ndim > 1 and not dims[-1].HasField("dim_value"):
            dims[-1].dim_value = output.shape[-1]
    outputs = {
        value.name: (str(output.dtype), (*(None,) * (output.ndim - 1), output.shape[-1] if output.ndim else None))
        for value, output in zip(graph.graph.output, found, strict=True)
    }
    try:
        return read_signature("encoder", inputs, outputs, where=str(where))
    except GraphMismatchError as error:
        raise ImportRefused(str(error)) from None


def open_graph(content: bytes, where: Path) -> onnxruntime.InferenceSession:
    """Open a graph in one thread; raises ImportRefused, which names `where` it lies."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions share no public base class
        raise ImportRefused(f"{where}: onnxruntime cannot open it: {str(error).strip()}") from error
