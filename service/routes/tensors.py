"""Tensors of the Open Inference Protocol: texts in, numbers out, as JSON or as its binary extension.

With the extension the values of a tensor follow the JSON, in the order of the tensors, and the JSON says how many bytes
they are. A text (BYTES) is its length as four bytes, the least first, and then its UTF-8. Source: the protocol's
"binary tensor data extension" (Triton), which KServe shares.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from service.errors import InvalidRequest, amount

# Binary tensors after JSON: their media type, and the header with the length of the JSON.
TENSORS, JSON_LENGTH = b"application/octet-stream", b"inference-header-content-length"
_LENGTH = 4  # bytes before a text that hold its length
DATATYPES = {np.dtype(np.float32): "FP32", np.dtype(np.float64): "FP64", np.dtype(np.int64): "INT64"}


class Binary(NamedTuple):
    """A body with binary tensors: JSON, and what follows it."""

    json: bytes
    rest: memoryview


def split(body: bytes, json_length: bytes | None) -> Binary:
    """Take a body apart at the length of its JSON, the value of its header Inference-Header-Content-Length.

    Raises:
        InvalidRequest: the header is no number, or more than the body has.
    """
    if json_length is None:
        return Binary(body, memoryview(b""))
    length = int(json_length) if json_length.isdigit() and len(json_length) < 12 else -1
    if not 0 <= length <= len(body):
        raise InvalidRequest(
            f"the header Inference-Header-Content-Length is no number from 0 to {len(body)}, the length of the body"
        )
    return Binary(body[:length], memoryview(body)[length:])


def elements(shape: Sequence[int], name: str) -> int:
    """The number of texts in a tensor of one dimension, or of several of which all but one are 1.

    Raises:
        InvalidRequest: more than one dimension is larger than 1.
    """
    if sum(size > 1 for size in shape) > 1:
        raise InvalidRequest(f"input {name} has the shape {list(shape)}: expected one dimension of texts", field=name)
    return prod(shape)


def texts_of_bytes(values: memoryview, count: int, name: str) -> list[str]:
    """`count` texts of a binary tensor.

    Raises:
        InvalidRequest: there are fewer or more of them, or one is not UTF-8.
    """
    texts, at = [], 0
    for i in range(count):
        start = at + _LENGTH
        at = start + int.from_bytes(values[at:start], "little")
        if start > len(values) or at > len(values):
            message = f"input {name}: its {amount(len(values), 'bytes')} end within text {i} of {count}"
            raise InvalidRequest(message, field=name)
        try:
            texts.append(str(values[start:at], "utf-8"))
        except UnicodeDecodeError:
            raise InvalidRequest("the text is not UTF-8", field=f"{name}.{i}") from None
    if at != len(values):
        message = f"input {name}: {amount(len(values) - at, 'bytes')} after its {amount(count, 'texts')}"
        raise InvalidRequest(message, field=name)
    return texts


def write(outputs: Iterable[tuple[str, npt.NDArray[Any], bool]]) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Tensors as JSON, and the binary values that follow it.

    Args:
        outputs: name, array of float32, float64 or int64, and whether its values are to be binary.
    """
    described: list[dict[str, Any]] = []
    values = []
    for name, array, binary in outputs:
        flat = np.ascontiguousarray(array).reshape(-1)
        tensor: dict[str, Any] = {"name": name, "datatype": DATATYPES[array.dtype], "shape": list(array.shape)}
        if binary:
            values.append(flat.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
            tensor["parameters"] = {"binary_data_size": len(values[-1])}
        else:
            tensor["data"] = flat.tolist()
        described.append(tensor)
    return described, values
