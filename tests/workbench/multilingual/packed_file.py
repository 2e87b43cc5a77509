"""A tiny encoder written in the form of the package's file."""

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

WIDTH, LAYERS, HEADS, INNER, POSITIONS, SEGMENTS = 32, 1, 4, 64, 16, 2
EPSILON = 1e-12
MORE_ROWS = 3  # of the table than there are pieces
PIECES = [
    ("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -3.0), ("e", -4.0), ("r", -4.5),
    ("h", -5.0), ("u", -5.0), ("n", -5.0), ("d", -5.0), ("q", -6.0), ("y", -6.0), (":", -6.0), ("p", -6.0),
    ("a", -6.0), ("s", -6.0), ("g", -6.0), ("\u2581hund", -7.0), ("\u2581query", -7.5), ("\u2581passage", -7.5),
    ("\u2581gehen", -8.0), ("er", -8.5), ("\u2581hunde", -9.0), ("\u2581perro", -9.5), ("<mask>", 0.0),
]  # fmt: skip


def rounded(values: npt.NDArray[np.float32]) -> tuple[bytes, npt.NDArray[np.float32]]:
    """A tensor's blocks, and the weights that they stand for: sixteen steps of a scale, low halves first."""
    rows = values.reshape(-1, 32)
    scale = (np.abs(rows).max(axis=1, keepdims=True) / 7).astype(np.float16)
    codes = np.clip(np.round(rows / scale.astype(np.float32)), -8, 7)
    halves = (codes + 8).astype(np.uint8)
    packed = [
        step.tobytes() + bytes(int(low) | int(high) << 4 for low, high in zip(row[:16], row[16:], strict=True))
        for step, row in zip(scale, halves, strict=True)
    ]
    return b"".join(packed), (codes * scale.astype(np.float32)).astype(np.float32).reshape(values.shape)


def tiny_tensors() -> dict[str, npt.NDArray[np.float32]]:
    """Random weights by the file's names."""
    shapes: dict[str, tuple[int, ...]] = {
        "emb.word": (len(PIECES) + MORE_ROWS, WIDTH),
        "emb.pos": (POSITIONS, WIDTH),
        "emb.type": (SEGMENTS, WIDTH),
        "emb.ln.w": (WIDTH,),
        "emb.ln.b": (WIDTH,),
    }
    matrices = dict.fromkeys(("q", "k", "v", "ao"), (WIDTH, WIDTH)) | {"fi": (INNER, WIDTH), "fo": (WIDTH, INNER)}
    for layer in range(LAYERS):
        for part, shape in matrices.items():
            shapes |= {f"l{layer}.{part}.w": shape, f"l{layer}.{part}.b": shape[:1]}
        for part in ("aln", "oln"):
            shapes |= {f"l{layer}.{part}.w": (WIDTH,), f"l{layer}.{part}.b": (WIDTH,)}
    rng = np.random.default_rng(1)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def write_tiny(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    """Write the file; returns its weights, as it can say them."""
    texts = [piece.encode() for piece, _ in PIECES]
    head = struct.pack(
        "<4si7ifi",
        *(b"E5S1", 1, WIDTH, LAYERS, HEADS, INNER, len(PIECES) + MORE_ROWS, POSITIONS, SEGMENTS, EPSILON, 32),
    )
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, texts)))
    head += np.cumsum([0, *map(len, texts)]).astype("<u4").tobytes()
    head += np.array([score for _, score in PIECES], "<f4").tobytes() + b"".join(texts)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 0xA0, 1, 0x20)  # one code point and what replaces it
    kept, entries = {}, []
    for name, values in tiny_tensors().items():
        packed = values.ndim == 2 and name not in ("emb.pos", "emb.type")
        content, kept[name] = rounded(values) if packed else (values.tobytes(), values)
        entries.append((name.encode(), int(packed), values.size, content))
    at = len(head) + 4 + sum(2 + len(name) + 21 for name, *_ in entries)
    directory, contents = struct.pack("<i", len(entries)), b""
    for name, kind, count, content in entries:
        directory += struct.pack("<H", len(name)) + name
        directory += struct.pack("<BIQQ", kind, count, at + len(contents), len(content))
        contents += content
    path.write_bytes(head + directory + contents)
    return kept
