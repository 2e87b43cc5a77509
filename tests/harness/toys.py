"""Toy word tables, pairs and models for the tests of the training half: twenty words, eight dimensions."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from core.sequences import pad
from core.tokenizer import Tokenizer
from training.data.pairs import Pair
from training.data.words.tables import WordTable
from training.models import (
    ArchitectureConfig,
    InteractionConfig,
    WordAveragingConfig,
    build_encoder,
    build_interaction,
)
from training.models.heads import PairHead
from training.models.kinds import SiameseModel, output_dim
from training.models.layers import WordEmbedding
from training.recipes.sources.tables import TableRecipe

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


Ids = tuple[int, ...]
Inputs = tuple[Tensor, Tensor, Tensor, Tensor]  # ids and lengths of both sides
CLASSES = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])


def id_pairs() -> list[tuple[Ids, Ids]]:
    """The rated pairs as ids, then pairs of one word, of a word that is repeated, and of the longest sentences."""
    read = [tuple(tokenizer().encode(text, MAX_TOKENS).ids for text in (pair.a, pair.b)) for pair in RATED]
    more = [((3,), (5,)), ((3,), (1, 5, 9)), ((4, 4, 6, 4), (4, 1, 4)), (tuple(range(1, 13)), tuple(range(12, 3, -1)))]
    return [(a, b) for a, b in [*read, *more]]


def pair_tensors(pairs: list[tuple[Ids, Ids]], padding_a: int = 0, padding_b: int = 0, filling: int = 0) -> Inputs:
    """Pairs of ids in one batch, with more padding than it needs, and any id in the padding."""
    (a, lengths_a), (b, lengths_b) = (pad([pair[side] for pair in pairs]) for side in (0, 1))
    a, b = np.pad(a, ((0, 0), (0, padding_a))), np.pad(b, ((0, 0), (0, padding_b)))
    a, b = np.where(a == 0, filling, a), np.where(b == 0, filling, b)
    return tuple(torch.from_numpy(value) for value in (a, lengths_a, b, lengths_b))  # type: ignore[return-value]


def network(config: InteractionConfig, seed: int = 0) -> nn.Module:
    """A seeded network of five classes, its weights away from where they start, so that each of them is seen."""
    torch.manual_seed(seed)
    net = build_interaction(config, words(), len(CLASSES))
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if not name.startswith(("embedding", "lstm")):
                parameter.add_(torch.randn_like(parameter) * 0.25)
    return net.eval()


def changed(config: object, base: object) -> str:
    """Whatever is not as in the base, so that a failure says which variant it was."""
    return "-".join(f"{k}={v}" for k, v in vars(config).items() if v != getattr(base, k)) or "base"
