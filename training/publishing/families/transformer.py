"""Transformers as model folders: weights int8, activations float32, the tokenizer of their vocabulary.

Each matrix has one scale for every 32 weights of an output (symmetric, 127 steps), each word one for its row. With one
scale for a whole output a few large weights make the steps of all others coarse: the cross-encoder's logits were off by
.5 (entailment) and 1.7 (paraphrase), with blocks by .03 and .10 (root mean squares). Dynamic int8, which
rounds activations too, is refused: its answers depend on the other texts of a batch (by up to .004 in a component of an
embedding), for what is rounded up or down hangs on the last bits.

`write_cross_encoder` takes any `CrossEncoder` with its calibrations, `write_encoder` a bi-encoder.
"""

import copy
import logging
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from contract.errors import TokenizerError
from contract.manifest import FileEntry, Limits, SimilarityTask
from contract.subwords import Subwords
from training.architectures.transformer import BERT, CrossEncoder, SentenceBERT
from training.publishing.export import export_encoder, export_pair
from training.publishing.families.heads import Columns, HeadCalibrations, Heads, task_fields
from training.publishing.families.siamese import ENCODER, STS_SCALE
from training.publishing.families.words import TOKENIZER, Arrays, OutsideWords, arrays_of
from training.publishing.parity import check_encoder, check_pair
from training.publishing.shared_files import share
from training.words.storage import Int8Embedding, Storage

logger = logging.getLogger(__name__)

PAIR, BLEND = "pair.onnx", "blend.onnx"
MAX_TOKENS = 128
BLOCK = 32  # weights of an output that share a scale; fewer where the inputs are no multiple of it
_LINEAR = ("query", "key", "value", "attended", "inner", "outer")


class Int8Linear(nn.Module):
    """A linear layer whose weights are int8 with one scale for each block of an output's weights."""

    codes: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        """Quantise symmetrically: code = round(127 * value / the block's largest)."""
        super().__init__()
        # [inputs, outputs], as the product of matrices reads it: no runtime has to turn it round.
        weight = linear.weight.detach().float().T.contiguous()
        blocks = weight.reshape(-1, math.gcd(len(weight), BLOCK), weight.shape[1])
        scale = blocks.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127.0  # [blocks, 1, outputs]
        self.register_buffer("codes", torch.round(blocks / scale).to(torch.int8).reshape(weight.shape))
        self.register_buffer("scale", scale)
        self.register_buffer("bias", linear.bias.detach().float().clone())

    def forward(self, x: Tensor) -> Tensor:
        """[..., inputs] -> [..., outputs]."""
        # The weights are made float32 before the product: a runtime does that once, when it opens the graph.
        blocks = self.codes.float().reshape(len(self.scale), -1, self.codes.shape[1])
        return x @ (blocks * self.scale).reshape(self.codes.shape) + self.bias


def quantised(bert: BERT) -> BERT:
    """A copy with int8 weights."""
    kept = copy.deepcopy(bert).eval()
    for layer in kept.layers:
        for name in _LINEAR:
            setattr(layer, name, Int8Linear(getattr(layer, name)))
    kept.words = Int8Embedding(bert.words.weight.detach().float())  # type: ignore[assignment]
    return kept


Network = TypeVar("Network", SentenceBERT, CrossEncoder)


def stored(model: Network, storage: Storage) -> Network:
    """A copy of a model as it is published.

    Raises:
        ValueError: a storage other than int8 and float32.
    """
    if storage not in ("int8", "float32"):
        raise ValueError(f"transformers are stored as int8 or float32, not as {storage}")
    kept = copy.deepcopy(model).eval()
    if storage == "int8":
        kept.bert = quantised(model.bert)
    return kept


@dataclass(frozen=True)
class Blend:
    """A cross-encoder's similarity and relevance, each with the cosine of a bi-encoder (0 where negative)."""

    encoder: SentenceBERT
    similarity: float  # of 0..1, the cosine's part of a weighted mean; that of the cross-encoder is the rest
    relevance: float  # how many times the cosine is added to the cross-encoder's output


class Blended(nn.Module):
    """Both encoders in one graph."""

    columns: ClassVar[Columns] = {"similarity": (0, 1), "relevance": (1, 2)}

    def __init__(self, model: CrossEncoder, blend: Blend) -> None:
        """The bi-encoder may share its words with the cross-encoder, which has heads for both tasks."""
        super().__init__()
        self.network, self.encoder = model, blend.encoder  # named as in `Heads`: weights have the same names
        self.similarity, self.relevance = blend.similarity, blend.relevance

    def forward(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """Ids and lengths of both sentences -> raw similarity, in 0..1, and raw relevance [B, 2]."""
        a_BD, b_BD = self.encoder(input_ids_a_BS, lengths_a_B), self.encoder(input_ids_b_BT, lengths_b_B)
        cosine_B1 = (a_BD * b_BD).sum(dim=1, keepdim=True).clamp(min=0.0)
        own = self.network(input_ids_a_BS, lengths_a_B, input_ids_b_BT, lengths_b_B)
        similarity_B1 = self.similarity * cosine_B1 + (1.0 - self.similarity) * torch.sigmoid(own["similarity"])
        return torch.cat([similarity_B1, own["relevance"] + self.relevance * cosine_B1], dim=1)


def write_encoder(
    model: SentenceBERT,
    tokenizer: Path,
    folder: Path,
    model_id: str,
    *,
    storage: Storage = "int8",
    max_tokens: int = MAX_TOKENS,
) -> dict[str, Any]:
    """Export a bi-encoder.

    Args:
        model: with the weights to publish.
        tokenizer: the `tokenizer.json` of its vocabulary.
        folder: of the model; its words and tokenizer go among the shared files beside it.
        model_id: what the graph says of itself.
        storage: of the weights.
        max_tokens: of a sentence; with 2 more, no more than the positions.

    Returns:
        The fields of the manifest that depend on the model; the similarity still lacks its calibration.

    Raises:
        TokenizerError: the tokenizer's size is not the model's.
        ParityError, GraphMismatchError: the graph does not compute what the model does.
    """
    wordpiece = _tokenizer(tokenizer, model.bert)
    kept = stored(model, storage)
    arrays = _words(kept.bert, "bert.words")
    export_encoder(kept, folder / ENCODER, model_id, list(arrays))
    difference = check_encoder(folder / ENCODER, kept, len(wordpiece), arrays, limit=max_tokens)
    logger.info("%s/%s equals its module to %.1e", model_id, ENCODER, difference)
    return {
        "family": "siamese",
        "dim": kept.output_dim,
        "encoder": ENCODER,
        "tokenizer": TOKENIZER,
        "limits": Limits(max_tokens=max_tokens),
        "similarity": SimilarityTask(comparison="cosine", raw_range=(-1.0, 1.0), label_scale=STS_SCALE, symmetric=True),
        **_write_shared(arrays, wordpiece, folder)._asdict(),
    }


def write_cross_encoder(
    model: CrossEncoder,
    tokenizer: Path,
    folder: Path,
    model_id: str,
    calibrations: HeadCalibrations,
    blend: Blend | None = None,
    *,
    storage: Storage = "int8",
    max_tokens: int = MAX_TOKENS,
) -> dict[str, Any]:
    """Export a cross-encoder: `pair.onnx` answers all of its tasks in one run, but for blended ones.

    Args:
        model: with the weights to publish; heads among entailment (3 outputs, in the order of
            `training.objectives.supervised.LABELS`), similarity, paraphrase and relevance (1 each). It has a similarity
            where it has one of the last two.
        tokenizer: the `tokenizer.json` of its vocabulary.
        folder: of the model; its words and tokenizer go among the shared files beside it.
        model_id: what the graphs say of themselves.
        calibrations: of its heads.
        blend: the bi-encoder for a graph of its own, `blend.onnx`, that answers similarity and relevance; None: the
            heads alone answer them.
        storage: of the weights.
        max_tokens: of each of the two; both, with 3 more, are no more than the positions.

    Returns:
        The fields of the manifest that depend on the model; `shared` are the entries of the shared files.

    Raises:
        ValueError: a head of another name.
        TokenizerError: the tokenizer's size is not the model's.
        ParityError, GraphMismatchError: a graph does not compute what the model does.
    """
    wordpiece = _tokenizer(tokenizer, model.bert)
    kept = stored(model, storage)
    arrays = _words(kept.bert, "network.bert.words")
    graphs: dict[str, Heads | Blended] = {}
    if blend is not None:
        graphs[BLEND] = Blended(kept, _with_words_of(blend, model, kept))
    graphs[PAIR] = Heads(kept, calibrations, elsewhere=() if blend is None else Blended.columns)
    for name, module in graphs.items():
        export_pair(module, folder / name, model_id, list(arrays))
        agreement = check_pair(folder / name, module, len(wordpiece), max_tokens, arrays)
        logger.info("%s/%s equals its module to %.1e", model_id, name, agreement.difference)
    return {
        "family": "interaction",
        "tokenizer": TOKENIZER,
        "limits": Limits(max_tokens=max_tokens),
        **task_fields({name: module.columns for name, module in graphs.items()}, calibrations),
        **_write_shared(arrays, wordpiece, folder)._asdict(),
    }


class _Borrowed:
    """Another model's words. No module, so that an export knows them by that model's names alone."""

    def __init__(self, words: nn.Module) -> None:
        self._words = words

    def __call__(self, ids: Tensor) -> Tensor:
        found: Tensor = self._words(ids)
        return found


def _with_words_of(blend: Blend, model: CrossEncoder, kept: CrossEncoder) -> Blend:
    """The blend's encoder with int8 weights, and the cross-encoder's words where they are the same."""
    encoder = copy.deepcopy(blend.encoder).eval()
    encoder.bert = quantised(blend.encoder.bert)
    if torch.equal(blend.encoder.bert.words.weight, model.bert.words.weight):
        del encoder.bert.words
        encoder.bert.words = _Borrowed(kept.bert.words)  # type: ignore[assignment]
    return replace(blend, encoder=encoder)


def _tokenizer(path: Path, bert: BERT) -> Subwords:
    wordpiece = Subwords.load(path)
    if len(wordpiece) != bert.config.vocabulary:
        raise TokenizerError(f"{path}: {len(wordpiece)} ids, the model has {bert.config.vocabulary} words")
    return wordpiece


def _words(bert: BERT, prefix: str) -> Arrays:
    return arrays_of(bert.words, prefix)


def _write_shared(arrays: Arrays, wordpiece: Subwords, folder: Path) -> OutsideWords:
    """Words and tokenizer among the shared files: every model of these words has the same."""
    wordpiece.save(folder / TOKENIZER)
    tensors = {name: f"words.{name.rpartition('.')[2]}.npy" for name in arrays}
    for name, file in tensors.items():
        np.save(folder / file, arrays[name], allow_pickle=False)
    shared: dict[str, FileEntry] = {
        file: share(folder / file, folder.parent) for file in (*tensors.values(), TOKENIZER)
    }
    return OutsideWords(tensors, shared)
