"""An averaging model as a table of rows with a tokenizer: `StaticEmbedding` of sentence-transformers, or model2vec."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from contract.scoring import Embeddings
from contract.tokenizer import Tokenizer
from training.publishing.runtime import PublishedModel
from workbench.save_as.vocabulary import UNKNOWN, vocabulary_of

_STATIC = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}


class SaveRefused(ValueError):
    """A model that has no such form; says why, and which form it has."""


def save_sentence_transformers(model: PublishedModel, folder: Path) -> None:
    """Write the folder that `SentenceTransformer(folder)` reads.

    Raises:
        SaveRefused: it is no average of words, or its tokenizer has another form.
    """
    _save(model, folder, "embedding.weight")
    config = {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine", "prompts": {}}
    _write_json(folder / "modules.json", [_STATIC])
    _write_json(folder / "config_sentence_transformers.json", config | {"default_prompt_name": None})


def save_model2vec(model: PublishedModel, folder: Path) -> None:
    """Write the folder that `StaticModel.from_pretrained(folder)` reads; raises as `save_sentence_transformers`."""
    _save(model, folder, "embeddings")
    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": False}
    limit = {"max_length": model.manifest.limits.max_tokens, "embedding_dtype": "float32"}
    _write_json(folder / "config.json", config | limit)
    _write_json(folder / "modules.json", [_STATIC | {"path": "."}])


def read_sentence_transformers(folder: Path) -> Callable[[list[str]], Embeddings]:
    """The library's own function of texts; ModuleNotFoundError: it is not installed."""
    from sentence_transformers import SentenceTransformer

    read = SentenceTransformer(str(folder), local_files_only=True, device="cpu")
    return lambda texts: np.asarray(read.encode(texts, show_progress_bar=False), dtype=np.float32)


def read_model2vec(folder: Path) -> Callable[[list[str]], Embeddings]:
    """Likewise."""
    from model2vec import StaticModel

    read = StaticModel.from_pretrained(folder)
    return lambda texts: np.asarray(read.encode(texts), dtype=np.float32)


def _save(model: PublishedModel, folder: Path, name: str) -> None:
    manifest = model.manifest
    if not manifest.additive:
        raise SaveRefused(
            f"{manifest.id}: its architecture, {manifest.architecture}, is no average of words"
            + ("; it can be saved as onnx" if manifest.encoder is not None else "")
        )
    if not isinstance(model.tokenizer, Tokenizer):
        raise SaveRefused(f"{manifest.id}: its tokenizer is WordPiece already: it came from such a folder")
    try:
        from safetensors.numpy import save_file
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("writing weights needs the extra: pip install -e '.[distill]'") from error
    vocabulary = vocabulary_of(model.tokenizer)
    rows = model.embed_ids([(i,) for i in range(1, len(model.tokenizer))])
    rows = np.concatenate([np.zeros_like(rows[:1]), rows])[vocabulary.ids]
    buckets = model.tokenizer.buckets
    unknown = vocabulary.tokenizer.token_to_id(UNKNOWN)
    ours = model.embed_ids([(i,) for i in range(len(model.tokenizer) - buckets, len(model.tokenizer))])
    rows[unknown] = ours.mean(axis=0)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(rows, dtype=np.float32)}, folder / "model.safetensors")
    vocabulary.tokenizer.save(str(folder / "tokenizer.json"))


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
