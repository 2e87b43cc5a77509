"""External weights of graphs, read and checked.

A word table that several models share, and weights that two graphs of a model hold, are stored once, as a `.npy` file
that `Manifest.tensors` names.
The graphs have its name, type and shape as an initializer with EXTERNAL data, which the runtime fills in.
"""

import hashlib
import io
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from core.errors import ArtifactError
from core.files import read_regular
from core.manifest import Manifest

T = TypeVar("T")
Array = npt.NDArray[np.generic]

_TYPES = frozenset({"float32", "uint8", "int8", "int32", "int64", "float16", "float64"})


def load_tensors(
    folder: Path, manifest: Manifest, loaded: MutableMapping[str, Array] | None = None
) -> dict[str, Array]:
    """The arrays of a model's `tensors`, by the name of the initializer.

    Args:
        folder: of the model.
        manifest: of the model.
        loaded: arrays of other models, by sha256; new ones are added, so that a shared file is in memory once.

    Returns:
        Read-only arrays in C order.

    Raises:
        ArtifactError: a file is missing, of another size or checksum, or not a `.npy` file of plain numbers.
    """
    loaded = {} if loaded is None else loaded
    found = {}
    for tensor, name in manifest.tensors.items():
        sha256 = manifest.files[name].sha256
        array = loaded.get(sha256)
        if array is None:  # also assigned to a name: the mapping may have weak references
            array = loaded[sha256] = _load(manifest.path_of(folder, name), manifest.files[name].bytes, sha256)
        found[tensor] = array
    return found


def tensors_of(graph: bytes, tensors: Mapping[str, T]) -> dict[str, T]:
    """Of a model's tensors, or of what is known of them, those that a graph names, which is the bytes of its file.

    ONNX Runtime refuses tensors that a graph does not have, or that do not fit it.
    """
    return {name: value for name, value in tensors.items() if _named(name) in graph}


def _named(tensor: str) -> bytes:
    """How ONNX writes the name of an initializer: field 8, the length (a byte for each 7 bits), the name."""
    name = tensor.encode()
    length = bytes([len(name)]) if len(name) < 128 else bytes([len(name) & 127 | 128, len(name) >> 7])
    return b"\x42" + length + name


def _load(path: Path, size: int, sha256: str) -> Array:
    """The array in a file, from the bytes that were checked: the file may be replaced meanwhile."""
    try:
        content = read_regular(path, size)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror or error}, expected sha256 {sha256}") from error
    if (len(content), found := hashlib.sha256(content).hexdigest()) != (size, sha256):
        raise ArtifactError(
            f"{path}: corrupted or replaced: {len(content)} bytes with sha256 {found}, "
            f"expected {size} bytes with sha256 {sha256}"
        )
    try:
        array: Array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except Exception as error:  # an odd header makes numpy raise a dozen kinds, MemoryError and TypeError among them
        raise ArtifactError(f"{path}: cannot be read as a .npy file: {error}") from error
    if array.dtype.name not in _TYPES or not array.dtype.isnative or not array.flags.c_contiguous:
        raise ArtifactError(
            f"{path}: expected plain numbers in C order, found {array.dtype.str}"
            f"{'' if array.flags.c_contiguous else ' in another order'}"
        )
    array.flags.writeable = False
    return array
