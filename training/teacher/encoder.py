"""A sentence-transformers model read from disk, and its encodings of many texts, cached and resumable.

The library is an extra (`pip install -e .[distill]`), imported only in this module.
"""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from core.files import replacing
from training.progress import tracked

BATCH = 16  # texts; of 64 the states leave a CPU's cache, at half of the speed with a base encoder
CHUNK = 8192  # texts per file on disk: the most work that an interruption loses


def _digest(folder: Path) -> str:
    """12 hex digits over the contents of a model folder."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(folder)).encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def bfloat16_is_fast() -> bool:
    """Whether this machine multiplies bfloat16 matrices natively.

    With AVX-512 BF16 MiniLM encodes three times as fast as in float32; without, torch emulates it, at a seventh of the
    speed (AMD EPYC with AVX2: 21 captions a second for 145).
    """
    return torch.cuda.is_available() or torch.cpu._is_avx512_bf16_supported()


class TextEncoder(Protocol):
    """Encodes texts as vectors."""

    name: str

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """n texts -> float32 [n, d]."""


class Teacher:
    """A sentence-transformers model in a folder."""

    def __init__(self, path: Path) -> None:
        """Load the model; never from a hub.

        Args:
            path: folder with `modules.json`.

        Raises:
            FileNotFoundError: no such model folder.
            ModuleNotFoundError: the `distill` extra is not installed.
        """
        if not (path / "modules.json").is_file():
            raise FileNotFoundError(f"{path}: not a sentence-transformers model (no modules.json)")
        try:
            from sentence_transformers import SentenceTransformer
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("reading a teacher needs the extra: pip install -e '.[distill]'") from error
        self.bfloat16 = bfloat16_is_fast()  # cosine to float32 encodings 0.99999 with MiniLM
        # The cache key of encodings; it differs for another model in a folder of the same name.
        self.name = f"{path.name}-{_digest(path)}{'-bf16' if self.bfloat16 else ''}"
        self.model = SentenceTransformer(str(path), local_files_only=True)

    @property
    def dim(self) -> int:
        """Width of its encodings."""
        return int(self.encode(["one text"]).shape[1])

    def cut_at(self, max_tokens: int) -> None:
        """Cut texts at so many tokens, special ones among them; encodings have another cache then."""
        self.model.max_seq_length = max_tokens
        self.name = f"{self.name}-{max_tokens}"

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """n texts -> float32 [n, d], through all of the model's modules (pooling, normalisation)."""
        device = self.model.device.type
        cast = torch.autocast(device, dtype=torch.bfloat16) if self.bfloat16 else contextlib.nullcontext()
        with cast:
            vectors = self.model.encode(list(texts), batch_size=BATCH, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)

    def whole_words(self) -> list[str]:
        """Alphabetic entries of the model's vocabulary that begin a word, for common tokenizers."""
        entries = self.model.tokenizer.get_vocab()
        # WordPiece marks continuations with ##; SentencePiece and byte-level BPE mark beginnings instead.
        marked = [e for e in entries if e.startswith(("\u2581", "\u0120"))]
        begin = (e[1:] for e in marked) if len(marked) > len(entries) // 10 else (e for e in entries if e[:2] != "##")
        return sorted({e.casefold() for e in begin if e.isalpha() and e.isascii()})


def encode_cached(teacher: TextEncoder, texts: Sequence[str], folder: Path, *, what: str) -> npt.NDArray[np.float16]:
    """Encode texts in chunks cached on disk, so that an interrupted run resumes.

    Args:
        teacher: the encoder.
        texts: n texts, in an order that does not change between calls.
        folder: of the cache; each list of texts and teacher has a subfolder.
        what: name of the texts beside the progress.

    Returns:
        float16 [n, d].
    """
    digest = hashlib.sha256(json.dumps([teacher.name, list(texts)]).encode("utf-8", "replace")).hexdigest()[:16]
    folder = folder / digest
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for start in tracked(range(0, len(texts), CHUNK), f"{teacher.name}: chunks of {CHUNK} {what}"):
        path = folder / f"{start:09d}.npy"
        if not path.exists():
            vectors = teacher.encode(texts[start : start + CHUNK]).astype(np.float16)
            with replacing(path) as partial, partial.open("wb") as file:
                np.save(file, vectors)
        parts.append(np.load(path, allow_pickle=False))
    return np.concatenate(parts)
