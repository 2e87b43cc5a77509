"""Static embeddings, where a text is the mean of its tokens' rows: sentence-transformers' own, and model2vec's."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from contract.manifest import Limits
from contract.wordpiece import WordPiece
from training.architectures.parts.layers import mask
from training.architectures.transformer import read_weights
from training.publishing.export import export_encoder
from training.publishing.families.siamese import ENCODER
from training.publishing.families.words import TOKENIZER, arrays_of, write_words
from training.publishing.parity import check_encoder
from training.words.storage import Storage
from training.words.storage import stored as stored_rows
from workbench.imports.files import (
    ImportRefused,
    id_of,
    read_modules,
    read_object,
    tokenizer_file,
    weights_file,
)
from workbench.imports.model import COSINE, Facts, Floats, Labelled, embeddings

MOST_TOKENS = 4096  # that a manifest may name: the library has no limit
MODEL2VEC_TOKENS = 512  # its own default


class StaticMean(nn.Module):
    """The mean of the rows of a text's tokens, without those of one id, and perhaps brought to length 1."""

    def __init__(self, embedding: nn.Module, dim: int, normalise: bool, left_out: int | None) -> None:
        """`left_out`: the id that model2vec does not read, that of unknown words."""
        super().__init__()
        self.embedding = embedding
        self.output_dim, self.normalise, self.left_out = dim, normalise, left_out

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] (each at least 1) -> embeddings [B, D]; 0 where every token is left out."""
        weights_BT = mask(lengths_B, input_ids_BT.shape[1])
        if self.left_out is not None:
            weights_BT = weights_BT * (input_ids_BT != self.left_out).float()
        sums_BD = torch.bmm(weights_BT[:, None, :], self.embedding(input_ids_BT)).squeeze(1)
        means_BD = sums_BD / weights_BT.sum(1, keepdim=True).clamp(min=1.0)
        return nn.functional.normalize(means_BD, dim=-1) if self.normalise else means_BD


@dataclass(frozen=True)
class Static:
    """A table of rows, one for each token."""

    folder: Path
    rows: Tensor  # [V, D]
    tokenizer: Path
    max_tokens: int
    normalise: bool
    left_out: int | None
    library: str
    notes: tuple[str, ...]

    storages: tuple[Storage, ...] = ("int8", "float16", "float32")
    label = None

    @property
    def facts(self) -> Facts:
        """What is said of it."""
        length = ", brought to length 1" if self.normalise else ""
        what = f"a table of {len(self.rows):,} tokens from {self.library}; a text is their mean{length}"
        settings = {"normalise": self.normalise, "left_out": self.left_out, "tokens": len(self.rows)}
        return Facts("static_mean", what, settings, self.notes)

    def ours(self, a: Sequence[str], b: Sequence[str], storage: Storage) -> Floats:
        """Embeddings of a, then of b [2 n, D]."""
        return embeddings(self._encoder(storage), WordPiece.load(self.tokenizer), [*a, *b], self.max_tokens)

    def theirs(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """The same by the library."""
        if self.library == "model2vec":
            from model2vec import StaticModel

            static = StaticModel.from_pretrained(self.folder)
            # Its own limit cuts characters first; without one, the texts of the comparison are short enough.
            return np.asarray(static.encode([*a, *b], max_length=None), dtype=np.float64)
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(self.folder), local_files_only=True, device="cpu")
        return np.asarray(model.encode([*a, *b], show_progress_bar=False), dtype=np.float64)

    def write(self, folder: Path, model_id: str, storage: Storage, labelled: Labelled | None) -> dict[str, Any]:
        """Its graph, rows and tokenizer."""
        encoder = self._encoder(storage)
        arrays = arrays_of(encoder.embedding, "embedding")
        export_encoder(encoder, folder / ENCODER, model_id, list(arrays))
        check_encoder(folder / ENCODER, encoder, len(self.rows), arrays)
        return {
            "family": "siamese",
            "dim": encoder.output_dim,
            "encoder": ENCODER,
            "tokenizer": TOKENIZER,
            "limits": Limits(max_tokens=self.max_tokens),
            "similarity": COSINE,
            "additive": not self.normalise and self.left_out is None,
            **write_words(arrays, WordPiece.load(self.tokenizer), folder)._asdict(),
        }

    def _encoder(self, storage: Storage) -> StaticMean:
        kept = stored_rows(self.rows, storage)
        return StaticMean(kept, self.rows.shape[1], self.normalise, self.left_out).eval()


def read_static(folder: Path, drafts: Path, max_tokens: int | None = None) -> Static:
    """Read a sentence-transformers folder whose first module is a `StaticEmbedding`.

    Raises:
        ImportRefused: it cannot be taken; names the file and the field.
    """
    modules = read_modules(folder)
    names = [name for name, _ in modules]
    if names not in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"]):
        raise ImportRefused(
            f"{folder / 'modules.json'}: modules {', '.join(names)}; taken are StaticEmbedding and, after it, Normalize"
        )
    inner = modules[0][1]
    path = weights_file(inner)
    found = read_weights(path)
    name = "embedding.weight" if "embedding.weight" in found else "embeddings"
    if unread := set(found) - {name}:
        raise ImportRefused(f"{path}: {', '.join(sorted(unread))}: a StaticEmbedding has rows only")
    rows = _rows(found.get(name), name, path)
    tokenizer = _tokenizer_of(inner, drafts, len(rows), path)
    limit = _limit(max_tokens, MOST_TOKENS)
    return Static(folder, rows, tokenizer, limit, len(names) == 2, None, "sentence-transformers", ())


def read_model2vec(folder: Path, drafts: Path, max_tokens: int | None = None) -> Static:
    """Read a model2vec folder: rows, perhaps with a weight for each token and a row that several tokens share.

    Raises:
        ImportRefused: it cannot be taken; names the file and the field.
    """
    config = read_object(folder / "config.json")
    path = weights_file(folder)
    found = read_weights(path)
    table = _rows(found.get("embeddings"), "embeddings", path)
    tokens, mapping, weights = len(table), found.get("mapping"), found.get("weights")
    if mapping is not None:
        tokens = len(mapping)
        if mapping.dim() != 1 or int(mapping.min()) < 0 or int(mapping.max()) >= len(table):
            raise ImportRefused(f"{path}: mapping names rows that embeddings does not have")
        table = table[mapping.long()]
    if weights is not None:
        if weights.shape != (tokens,):
            raise ImportRefused(f"{path}: weights has shape {list(weights.shape)}, expected [{tokens}]")
        table = table * weights.float()[:, None]
    tokenizer = _tokenizer_of(folder, drafts, tokens, path)
    own = config.get("max_length", MODEL2VEC_TOKENS)
    limit = _limit(max_tokens, own if isinstance(own, int) and 1 <= own <= MOST_TOKENS else MOST_TOKENS)
    notes = ("The library also cuts long texts by their characters, before it reads tokens; this does not.",)
    normalise = bool(config.get("normalize", False))
    return Static(folder, table, tokenizer, limit, normalise, id_of(tokenizer, "[UNK]"), "model2vec", notes)


def _rows(table: Tensor | None, name: str, path: Path) -> Tensor:
    if table is None:
        raise ImportRefused(f"{path}: there is no {name}")
    if table.dim() != 2:
        raise ImportRefused(f"{path}: {name} has shape {list(table.shape)}, expected [tokens, dimensions]")
    return table.float().contiguous()


def _tokenizer_of(folder: Path, drafts: Path, rows: int, weights: Path) -> Path:
    path = tokenizer_file(folder, drafts)
    if (ids := len(WordPiece.load(path))) != rows:
        raise ImportRefused(f"{weights}: {rows} rows, {path.name} has {ids} ids")
    return path


def _limit(wanted: int | None, most: int) -> int:
    if wanted is not None and wanted > most:
        raise ImportRefused(f"--max-tokens {wanted}: the model reads at most {most} tokens of a text")
    return wanted or most
