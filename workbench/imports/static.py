"""Static embeddings, where a text is the mean of its tokens' rows: sentence-transformers' own, and model2vec's."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.manifest import MAX_TOKENS, Limits, Prompts
from core.subwords import Subwords
from workbench.imports.described import read_plain_tokenizer, read_prompts
from workbench.imports.files import (
    TOKENIZER,
    WEIGHTS,
    ImportRefused,
    check_weights,
    read_modules,
    read_object,
    read_tensors,
    sentence_model,
)
from workbench.imports.model import COSINE, Floats, ImportFacts, ImportOptions, Storage, encoded, prompted
from workbench.imports.small_graphs import mean_graph, save_graph
from workbench.imports.transformer import ENCODER

MODEL2VEC_TOKENS = 512  # its own default
Rows = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Static:
    """A table of rows, one for each token."""

    folder: Path
    rows: Rows  # [V, D]
    tokenizer: Subwords
    max_tokens: int
    normalise: bool
    left_out: int | None  # the id that model2vec does not read, that of unknown words
    library: str
    prompts: Prompts | None
    notes: tuple[str, ...] = ()

    label = None

    @property
    def facts(self) -> ImportFacts:
        """What is said of it."""
        length = ", brought to length 1" if self.normalise else ""
        what = f"a table of {len(self.rows):,} tokens from {self.library}; a text is their mean{length}"
        settings = {"normalise": self.normalise, "left_out": self.left_out, "tokens": len(self.rows)}
        return ImportFacts("static_mean", what, settings, self.notes)

    def library_answers(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """Embeddings of a, then of b, by the library."""
        if self.library == "model2vec":
            from model2vec import StaticModel

            texts = prompted(self.prompts, a, b)
            static = StaticModel.from_pretrained(self.folder)
            static.median_token_length = max(map(len, texts))  # no text is cut by its characters
            most = min(static.max_length or self.max_tokens, self.max_tokens)
            return np.asarray(static.encode(texts, max_length=most), dtype=np.float64)
        model = sentence_model(self.folder)
        own = model.tokenizer.truncation
        if own is None or own["max_length"] > self.max_tokens:
            model.tokenizer.enable_truncation(self.max_tokens)
        return encoded(model, self.prompts, a, b)

    def write(self, folder: Path, model_id: str, storage: Storage) -> dict[str, Any]:
        """Write graph and tokenizer, as in `ImportedModel.write`."""
        save_graph(mean_graph(self.rows, self.left_out, self.normalise, model_id), folder / ENCODER, storage)
        self.tokenizer.save(folder / TOKENIZER)
        return {
            "family": "siamese",
            "dim": self.rows.shape[1],
            "encoder": ENCODER,
            "tokenizer": TOKENIZER,
            "limits": Limits(max_tokens=self.max_tokens),
            "similarity": COSINE,
            "prompts": self.prompts,
            "additive": not self.normalise and self.left_out is None,
        }


def read_static(folder: Path, options: ImportOptions) -> Static:
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
    found, path = _weights(modules[0][1])
    name = "embedding.weight" if "embedding.weight" in found else "embeddings"
    if unread := set(found) - {name}:
        raise ImportRefused(f"{path}: {', '.join(sorted(unread))}: a StaticEmbedding has rows only")
    rows = _rows(found.get(name), name, path)
    tokens = _tokens_of(modules[0][1], len(rows), path)
    cut = read_object(modules[0][1] / TOKENIZER).get("truncation") or {"max_length": MAX_TOKENS}
    if cut.get("direction", "Right") != "Right" or cut.get("strategy") == "OnlySecond" or not cut["max_length"]:
        raise ImportRefused(f"{modules[0][1] / TOKENIZER}: truncation: texts are cut at their end here, found {cut}")
    limit, prompts = _limit(options, min(cut["max_length"], MAX_TOKENS)), read_prompts(folder, options.prompts)
    return Static(folder, rows, tokens, limit, len(names) == 2, None, "sentence-transformers", prompts)


def read_model2vec(folder: Path, options: ImportOptions) -> Static:
    """Read a model2vec folder: rows, perhaps with a weight for each token and a row that several tokens share.

    Raises:
        ImportRefused: it cannot be taken; names the file and the field.
    """
    config = read_object(folder / "config.json")
    found, path = _weights(folder)
    table = _rows(found.get("embeddings"), "embeddings", path)
    ids, mapping, weights = len(table), found.get("mapping"), found.get("weights")
    if mapping is not None:
        ids = len(mapping)
        if mapping.ndim != 1 or int(mapping.min()) < 0 or int(mapping.max()) >= len(table):
            raise ImportRefused(f"{path}: mapping names rows that embeddings does not have")
        table = table[mapping]
    if weights is not None:
        if weights.shape != (ids,):
            raise ImportRefused(f"{path}: weights has shape {list(weights.shape)}, expected [{ids}]")
        table = table * weights.astype(np.float32)[:, None]
    tokens = _tokens_of(folder, ids, path)
    own = config.get("max_length", MODEL2VEC_TOKENS)
    limit = _limit(options, own if isinstance(own, int) and 1 <= own <= MAX_TOKENS else MAX_TOKENS)
    prompts, normalise = read_prompts(folder, options.prompts), bool(config.get("normalize", False))
    notes = ("The library also cuts long texts by their characters, before it reads tokens; this does not.",)
    return Static(folder, table, tokens, limit, normalise, tokens.unknown, "model2vec", prompts, notes)


def _weights(folder: Path) -> tuple[dict[str, Any], Path]:
    check_weights(folder)
    return read_tensors(folder / WEIGHTS), folder / WEIGHTS


def _rows(table: npt.NDArray[Any] | None, name: str, path: Path) -> Rows:
    if table is None:
        raise ImportRefused(f"{path}: there is no {name}")
    if table.ndim != 2:
        raise ImportRefused(f"{path}: {name} has shape {list(table.shape)}, expected [tokens, dimensions]")
    return np.ascontiguousarray(table, dtype=np.float32)


def _tokens_of(folder: Path, rows: int, weights: Path) -> Subwords:
    tokens = read_plain_tokenizer(folder)
    if (ids := len(tokens)) != rows:
        raise ImportRefused(f"{weights}: {rows} rows, {TOKENIZER} has {ids} ids")
    return tokens


def _limit(options: ImportOptions, most: int) -> int:
    options.refuse("a table of rows", "graph", "head", "labels", "pairs_head", "pooling")
    wanted = options.max_tokens
    if wanted is not None and wanted > most:
        raise ImportRefused(f"--max-tokens {wanted}: the model reads at most {most} tokens of a text")
    return wanted or most
