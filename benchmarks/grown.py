"""Larger folders of models for `benchmarks/curves.py`: a model with ten times the words, and many models."""

import hashlib
import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from benchmarks.apps import MODELS
from contract.manifest import Manifest

CODES, SCALE = "embedding.codes", "embedding.scale"  # the tables of an averaging model's encoder: a row for each id


def with_words(model: str, times: int, folder: Path) -> list[str]:
    """Write an averaging model with so many times its words; the new ones have rows of old ones.

    Returns:
        All its words.
    """
    manifest = Manifest.load(MODELS / model)
    target = folder / model
    shutil.copytree(MODELS / model, target)
    assert manifest.encoder is not None, "an averaging model"
    tokenizer = json.loads((target / manifest.tokenizer).read_text())
    words: list[str] = tokenizer["words"]
    old, new = len(words), len(words) * (times - 1)
    words += [f"zq{i}qz" for i in range(new)]
    (target / manifest.tokenizer).write_text(json.dumps(tokenizer, ensure_ascii=False, indent=0) + "\n")
    graph = onnx.load(str(target / manifest.encoder))
    for tensor in graph.graph.initializer:
        if tensor.name in (CODES, SCALE):
            rows = numpy_helper.to_array(tensor)
            after = old + 1  # row 0 is padding
            more = rows[1 + np.arange(new) % old]
            tensor.CopyFrom(numpy_helper.from_array(np.concatenate([rows[:after], more, rows[after:]]), tensor.name))
    onnx.save(graph, str(target / manifest.encoder))
    _sign(target, model)
    return words


def copies(model: str, number: int, folder: Path) -> None:
    """Write so many models that differ in their ids and in the bytes of their tokenizers, so that nothing is shared."""
    for n in range(number):
        target = folder / (model if n == 0 else f"{model}-{n}")
        shutil.copytree(MODELS / model, target)
        tokenizer = target / Manifest.load(target).tokenizer
        tokenizer.write_text(tokenizer.read_text() + "\n" * n)
        _sign(target, target.name)


def texts(words: Sequence[str], number: int, rng: random.Random) -> list[str]:
    """So many texts of twenty words from all of the vocabulary."""
    return [" ".join(rng.choices(words, k=20)) for _ in range(number)]


def _sign(target: Path, model: str) -> None:
    """Write the manifest of the files as they are."""
    manifest = Manifest.load(target)
    files = {}
    for name, entry in manifest.files.items():
        content = (target / name).read_bytes()
        files[name] = entry.model_copy(update={"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    manifest = manifest.model_copy(update={"id": model, "files": files})
    manifest.model_copy(update={"fingerprint": manifest.expected_fingerprint()}).save(target)
