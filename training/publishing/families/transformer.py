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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from contract.errors import TokenizerError
from contract.manifest import BiEncoder, FileEntry, Limits, SimilarityTask
from contract.subwords import Subwords
from training.architectures.transformer import BERT, CrossEncoder, SentenceBERT
from training.publishing.export import export_encoder, export_pair
from training.publishing.families.heads import Blends, HeadCalibrations, Heads, task_fields
from training.publishing.families.siamese import ENCODER, STS_SCALE
from training.publishing.families.words import TOKENIZER, Arrays, OutsideWords, arrays_of
from training.publishing.parity import check_encoder, check_pair
from training.publishing.shared_files import share
from training.words.storage import Int8Embedding, Storage

logger = logging.getLogger(__name__)

PAIR = "pair.onnx"
STARTED_FROM = "minilm"  # what the cross-encoder starts from
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


@dataclass(frozen=True)
class Blend:
    """A cross-encoder's similarity and relevance, each with the cosine of a bi-encoder (0 where negative)."""

    encoder: SentenceBERT
    similarity: float  # of 0..1, the cosine's part of a weighted mean; that of the cross-encoder is the rest
    relevance: float  # how many times the cosine is added to the cross-encoder's output
    model_id: str = STARTED_FROM  # the published model of the same weights: the file is the same, and stored once

    @property
    def of_tasks(self) -> Blends:
        """How much of each blended task is the cross-encoder's own, and how much the cosine."""
        return {"similarity": (1.0 - self.similarity, self.similarity), "relevance": (1.0, self.relevance)}


def write_encoder(
    model: SentenceBERT,
    tokenizer: Path,
    folder: Path,
    model_id: str,
    *,
    storage: Storage = "int8",
    max_tokens: int = MAX_TOKENS,
) -> dict[str, Any]:
    """Export a bi-encoder into a folder.

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
    kept = copy.deepcopy(model).eval()
    if storage == "int8":
        kept.bert = quantised(model.bert)
    arrays = arrays_of(kept.bert.words, "bert.words")
    export_encoder(kept, folder / ENCODER, model_id, list(arrays))
    difference = check_encoder(folder / ENCODER, kept, len(wordpiece), arrays, limit=max_tokens)
    logger.info("%s/%s equals its module to %.1e", model_id, ENCODER, difference)
    tensors, shared = _write_shared(arrays, wordpiece, folder)
    return {
        "family": "siamese",
        "dim": kept.output_dim,
        "encoder": ENCODER,
        "tokenizer": TOKENIZER,
        "limits": Limits(max_tokens=max_tokens),
        "similarity": SimilarityTask(comparison="cosine", raw_range=(-1.0, 1.0), label_scale=STS_SCALE, symmetric=True),
        "tensors": tensors,
        "shared": shared | {ENCODER: share(folder / ENCODER, folder.parent)},  # a cross-encoder's blend may have it too
    }


def write_cross_encoder(
    model: CrossEncoder,
    tokenizer: Path,
    folder: Path,
    model_id: str,
    calibrations: HeadCalibrations,
    blend: Blend | None = None,
    *,
    max_tokens: int = MAX_TOKENS,
) -> dict[str, Any]:
    """Export a cross-encoder: `pair.onnx` answers all of its tasks in one run.

    Args:
        model: with the weights to publish; heads among entailment (3 outputs, in the order of
            `training.objectives.supervised.LABELS`), similarity, paraphrase and relevance (1 each). It has a similarity
            where it has one of the last two.
        tokenizer: the `tokenizer.json` of its vocabulary.
        folder: of the model; its words and tokenizer go among the shared files beside it.
        model_id: what the graphs say of themselves.
        calibrations: of its heads.
        blend: the bi-encoder whose cosine counts in similarity and relevance; None: the heads alone answer them.
        max_tokens: of each of the two; both, with 3 more, are no more than the positions.

    Returns:
        The fields of the manifest that depend on the model; `shared` are the entries of the shared files.

    Raises:
        ValueError: a head of another name, or other words in the blend's encoder.
        TokenizerError: the tokenizer's size is not the model's.
        ParityError, GraphMismatchError: a graph does not compute what the model does.
    """
    wordpiece = _tokenizer(tokenizer, model.bert)
    if blend is not None and not torch.equal(blend.encoder.bert.words.weight, model.bert.words.weight):
        raise ValueError("a blend wants a bi-encoder with the words of the cross-encoder")
    kept = copy.deepcopy(model).eval()
    kept.bert = quantised(model.bert)
    arrays = arrays_of(kept.bert.words, "network.bert.words")
    heads = Heads(kept, calibrations)
    export_pair(heads, folder / PAIR, model_id, list(arrays))
    agreement = check_pair(folder / PAIR, heads, len(wordpiece), max_tokens, arrays)
    logger.info("%s/%s equals its module to %.1e", model_id, PAIR, agreement.difference)
    fields: dict[str, Any] = {
        "family": "interaction",
        "tokenizer": TOKENIZER,
        "limits": Limits(max_tokens=max_tokens),
        **task_fields(PAIR, heads.columns, calibrations, {} if blend is None else blend.of_tasks),
    }
    tensors, shared = _write_shared(arrays, wordpiece, folder)
    if blend is not None:
        of_encoder = write_encoder(blend.encoder, tokenizer, folder, blend.model_id, max_tokens=max_tokens)
        tensors, shared = tensors | of_encoder["tensors"], of_encoder["shared"]
        fields |= {"contract_version": 2, "bi_encoder": BiEncoder(graph=ENCODER, dim=of_encoder["dim"])}
    return {**fields, "tensors": tensors, "shared": shared}


def _tokenizer(path: Path, bert: BERT) -> Subwords:
    wordpiece = Subwords.load(path)
    if len(wordpiece) != bert.config.vocabulary:
        raise TokenizerError(f"{path}: {len(wordpiece)} ids, the model has {bert.config.vocabulary} words")
    return wordpiece


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
