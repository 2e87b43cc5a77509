"""Toy word tables, pairs and models for the tests of the training half: twenty words, eight dimensions."""

from dataclasses import replace

import numpy as np
import torch

from contract.tokenizer import Tokenizer
from training.architectures import ArchitectureConfig, WordAveragingConfig, build_encoder
from training.architectures.models import SiameseModel, output_dim
from training.architectures.parts.heads import PairHead
from training.architectures.parts.layers import WordEmbedding
from training.pairs import Pair
from training.sources.tables import TableRecipe
from training.words.tables import WordTable

WORDS = "the a man woman dog cat is plays sleeps runs guitar flute park sofa in on not big small .".split()  # noqa: SIM905
PIECES = ("m", "##o", "##w", "##s", "run", "##ning")
BUCKETS = 3
DIM = 8
MAX_TOKENS = 12
TABLE = TableRecipe("toy", words=len(WORDS), dim=DIM, buckets=BUCKETS)  # as a recipe names `table()`

RATED = (
    Pair("the man plays guitar", "a man plays the guitar .", 5.0, "entailment"),
    Pair("the man plays guitar", "the woman plays the flute", 3.0, "neutral"),
    Pair("a dog sleeps on the sofa", "a small dog sleeps", 4.0, "entailment"),
    Pair("a dog sleeps on the sofa", "a cat runs in the park", 1.5, "neutral"),
    Pair("the cat is big", "the cat is not big", 3.5, "contradiction"),
    Pair("the dog runs", "the dog is not running", 2.5, "contradiction"),
    Pair("a woman runs in the park", "a woman is in the park", 4.5, "entailment"),
    Pair("the big man sleeps", "mow the sofa .", 1.0, "neutral"),
)


def tokenizer() -> Tokenizer:
    return Tokenizer(WORDS, PIECES, BUCKETS)


def table(seed: int = 0, dim: int = DIM) -> WordTable:
    """Random rows; padding is zero."""
    rows = np.random.default_rng(seed).normal(size=(len(tokenizer()), dim)).astype(np.float32)
    rows[0] = 0.0
    return WordTable(tokenizer(), rows)


def words() -> torch.nn.Embedding:
    """The toy table with dense gradients."""
    return torch.nn.Embedding.from_pretrained(torch.from_numpy(table().rows), freeze=False)


def model(config: ArchitectureConfig | None = None, *, heads: bool = False, seed: int = 0) -> SiameseModel:
    """A seeded model around the toy table, with a rating and a label head on request."""
    torch.manual_seed(seed)
    encoder = build_encoder(config or WordAveragingConfig(), WordEmbedding(table(seed).rows))
    dim = output_dim(encoder)
    outputs = {"similarity": 5, "entailment": 3} if heads else {}
    return SiameseModel(encoder, {name: PairHead(dim, n, hidden=6) for name, n in outputs.items()})


def pairs(n: int) -> list[Pair]:
    """The rated pairs over and over, each time with other words at the end."""
    return [replace(p, b=f"{p.b} {WORDS[i % len(WORDS)]}") for i, p in zip(range(n), RATED * n, strict=False)]
