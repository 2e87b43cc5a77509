"""Weights that graphs leave outside themselves: read, held against their checksums, and against the graphs.

A word table that several models share is stored once, as a `.npy` file that each of them names in
`Manifest.tensors`. Their graphs keep only its name, type and shape, as an initializer whose data is EXTERNAL; a
runtime puts the array in its place when it opens the graph.
"""

import hashlib
import io
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from contract.errors import ArtifactError
from contract.manifest import Manifest

Array = npt.NDArray[np.generic]

# Numbers of fields in onnx.proto, and of the element types that a table of weights may have.
_GRAPH, _INITIALIZER, _DIMS, _DATA_TYPE, _NAME, _LOCATION = 7, 5, 1, 2, 8, 14
_EXTERNAL = 1
_TYPES = {1: "float32", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 10: "float16", 11: "float64"}


def load_tensors(
    folder: Path, manifest: Manifest, loaded: MutableMapping[str, Array] | None = None
) -> dict[str, Array]:
    """The arrays of a model's `tensors`, by the name of the initializer.

    Args:
        folder: the model's.
        manifest: what says which file each tensor is, and its checksum.
        loaded: arrays that other models have loaded, by sha256; new ones are added, so that a file that several
            models name is in memory once.

    Returns:
        Read-only arrays in C order.

    Raises:
        ArtifactError: a file is missing, of another size or checksum, or no `.npy` file of plain numbers.
    """
    loaded = {} if loaded is None else loaded
    found = {}
    for tensor, name in manifest.tensors.items():
        sha256 = manifest.files[name].sha256
        array = loaded.get(sha256)
        if array is None:  # held by the name too: the mapping may keep weak references only
            array = loaded[sha256] = _load(manifest.path_of(folder, name), manifest.files[name].bytes, sha256)
        found[tensor] = array
    return found


def external_tensors(graph: Path, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Those of a model's tensors that one of its graphs leaves outside, to be put in their places.

    Raises:
        ArtifactError: the file is no ONNX graph, leaves something outside that is not among the tensors, or expects
            another type or shape.
    """
    found = {}
    for name, (dtype, shape) in _left_outside(graph).items():
        if name not in tensors:
            known = ", ".join(tensors) or "none"
            raise ArtifactError(f"{graph}: leaves {name!r} outside, which is not among the manifest's tensors: {known}")
        array = tensors[name]
        if (array.dtype.name, array.shape) != (dtype, shape):
            raise ArtifactError(
                f"{graph}: expects tensor {name!r} as {dtype} {list(shape)}, "
                f"its file holds {array.dtype.name} {list(array.shape)}"
            )
        found[name] = array
    return found


def _load(path: Path, size: int, sha256: str) -> Array:
    """An array of exactly the bytes that were checked: the file may be replaced at any moment."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror or error}, expected sha256 {sha256}") from error
    if (len(content), found := hashlib.sha256(content).hexdigest()) != (size, sha256):
        raise ArtifactError(
            f"{path}: corrupted or replaced: {len(content)} bytes with sha256 {found}, "
            f"expected {size} bytes with sha256 {sha256}"
        )
    try:
        array: Array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ArtifactError(f"{path}: cannot be read as a .npy file: {error}") from error
    if array.dtype.name not in _TYPES.values() or not array.dtype.isnative or not array.flags.c_contiguous:
        raise ArtifactError(
            f"{path}: expected plain numbers in C order, found {array.dtype.str}"
            f"{'' if array.flags.c_contiguous else ' in another order'}"
        )
    array.flags.writeable = False
    return array


def _left_outside(graph: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Name -> type and shape of the initializers of an ONNX file whose data lies outside it.

    Reads the few fields of the protocol buffer that say so: the package that knows them all is needed only offline.
    """
    found = {}
    try:
        for content in _messages(memoryview(graph.read_bytes()), _GRAPH):
            for tensor in _messages(content, _INITIALIZER):
                name, dtype, dims, external = "", 0, [], False
                for number, value in _fields(tensor):
                    if number == _NAME and isinstance(value, memoryview):
                        name = bytes(value).decode()
                    elif number == _DATA_TYPE and isinstance(value, int):
                        dtype = value
                    elif number == _DIMS and isinstance(value, int):
                        dims.append(value)
                    elif number == _LOCATION:
                        external = value == _EXTERNAL
                if external:
                    found[name] = (_TYPES.get(dtype, f"type {dtype}"), tuple(dims))
    except OSError as error:
        raise ArtifactError(f"{graph}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ArtifactError(f"{graph}: cannot be read as an ONNX file: {error}") from error
    return found


def _messages(data: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, value in _fields(data):
        if number == wanted and isinstance(value, memoryview):
            yield value


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a protocol buffer: their numbers, with integers as such and all else as bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if key & 7 == 2:
            size, at = _varint(data, at)
        elif key & 7 in (1, 5):
            size = 8 if key & 7 == 1 else 4
        else:
            raise ValueError(f"unknown wire type {key & 7}")
        if at + size > len(data):
            raise ValueError("it ends within a field")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, the lowest first, and where the next field begins."""
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("it ends within a number")
