"""How a graph that reads token ids is fed, and what of its output is kept.

A word model reads ids and lengths. A transformer reads a sequence: the special tokens that its tokenizer's own
post-processor puts around one text or two, a mask, and perhaps segments and positions; padding is behind all of it.
What it gives of each token is pooled. Keys of caches, limits and explanations know nothing of special tokens: an id is
one of a text.

A transformer's row is the same to the last bit whatever stands beside it: a sequence is padded by its own length alone,
to the next multiple of `LENGTH_STEP`, and only sequences of one padded length share a run. Padding is what moves last
digits, and with integer products a last digit that moves can move the third one. A batch of texts of like length wastes
no time on padding either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from core.errors import GraphMismatchError
from core.graph import IDS, MASK, POSITIONS, SEGMENTS, GraphKind, GraphSignature
from core.scoring import Array, Run
from core.subwords import AnyTokenizer, SpecialTokens, Subwords
from core.tokenizer import PADDING_ID

PoolingMode = Literal["mean", "cls", "max", "lasttoken", "mean_sqrt_len_tokens", "weightedmean"]
Ids = tuple[int, ...]  # of a text's tokens
Pair = tuple[Ids, Ids]
Rows = npt.NDArray[np.float32]
Sides = Sequence[Sequence[Ids]]  # ids of n texts, or of both sides of n pairs
LENGTH_STEP = 4  # tokens; longer steps would pad more, shorter ones make more runs of fewer texts
_MIN_NORM = np.float32(1e-12)
_FEW = 8  # up to this number of texts lists are faster than numpy


def pad(ids: Sequence[Sequence[int]], least: int = 1) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pad on the right with `PADDING_ID` to the longest sentence of the batch.

    Args:
        ids: B sentences, each with at least one token id.
        least: pad further, to this length, if it is longer.

    Returns:
        `input_ids` int64 [B, T] and `lengths` int64 [B].

    Raises:
        ValueError: no sentence, or a sentence without tokens.
    """
    if not ids:
        raise ValueError("pad needs at least one sentence")
    lengths = list(map(len, ids))
    if not all(lengths):
        raise ValueError(f"sentence {lengths.index(0)} has no tokens")
    longest = max(least, *lengths)
    if len(ids) <= _FEW:
        rows = [[*sentence, *(PADDING_ID,) * (longest - n)] for sentence, n in zip(ids, lengths, strict=True)]
        return np.array(rows, dtype=np.int64), np.array(lengths, dtype=np.int64)
    counts = np.array(lengths, dtype=np.int64)
    input_ids = np.full((len(ids), longest), PADDING_ID, dtype=np.int64)
    real = np.arange(longest) < counts[:, None]
    input_ids[real] = np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=sum(lengths))
    return input_ids, counts


class Pooling(BaseModel):
    """From the states of a sequence's tokens, special ones among them, to one vector; names are those of the library
    sentence-transformers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: PoolingMode
    normalise: bool = Field(False, description="bring the vector to length 1")

    def apply(self, states: npt.NDArray[np.float32], lengths: Sequence[int]) -> Rows:
        """States [n, tokens, dim] of which the first `lengths` are real -> [n, dim].

        Each row by itself, so that neither padding nor its neighbours move a bit of it.
        """
        rows = np.stack([self._pooled(row[:length]) for row, length in zip(states, lengths, strict=True)])
        if self.normalise:
            rows /= np.maximum(np.sqrt(np.vecdot(rows, rows)), _MIN_NORM)[:, None]
        return rows

    def _pooled(self, states: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        match self.mode:
            case "cls":
                return np.asarray(states[0])
            case "lasttoken":
                return np.asarray(states[-1])
            case "max":
                return np.asarray(states.max(axis=0))
            case "weightedmean":
                weights = np.arange(1, len(states) + 1, dtype=np.float32)
                return np.asarray((states * weights[:, None]).sum(axis=0) / weights.sum())
            case "mean":
                return np.asarray(states.sum(axis=0) / np.float32(len(states)))
            case "mean_sqrt_len_tokens":
                return np.asarray(states.sum(axis=0) / np.sqrt(np.float32(len(states))))


class Feeds(Protocol):
    """What a kind of graph reads of the ids of n texts, or of n pairs."""

    @property
    def added(self) -> int:
        """The special tokens of one key."""

    def shapes(self, keys: Sequence[Any]) -> list[tuple[int, ...]]:
        """Of each key (the ids of a text, or of both texts of a pair) how many tokens its texts have, or the sequence
        that they make, with the padding of its own."""

    def rows(self, run: Run, sides: Sides, least: Sequence[int] = ()) -> Rows:
        """The graph's row of each key; word models pad texts to `least`, of each side, if that is longer."""


@dataclass(frozen=True)
class WordFeeds:
    """Ids and lengths: of one text, or of each text of a pair.

    Attributes:
        paired: whether of a pair.
        most: each text is padded by its own length alone, to so many tokens at most; None: as far as its batch.
    """

    paired: bool = False
    most: int | None = None
    added: ClassVar[int] = 0

    def shapes(self, keys: Sequence[Any]) -> list[tuple[int, ...]]:
        """The number of tokens of each text, of each key."""
        lengths: list[tuple[int, ...]] = [tuple(map(len, key if self.paired else (key,))) for key in keys]
        if self.most is None:
            return lengths
        return [tuple(_own_length(tokens, self.most) for tokens in each) for each in lengths]

    def rows(self, run: Run, sides: Sides, least: Sequence[int] = ()) -> Rows:
        """The rows of the graph's outputs, one for each text or pair; see `Feeds.rows`."""
        names = ("",) if len(sides) == 1 else ("_a", "_b")
        feeds: dict[str, Array] = {}
        for name, ids, length in zip(names, sides, least or (1,) * len(sides), strict=True):
            feeds[f"input_ids{name}"], feeds[f"lengths{name}"] = pad(ids, length)
        return run(feeds)


class Sequenced(NamedTuple):
    """The tensors of n sequences."""

    feeds: dict[str, Array]
    lengths: list[int]


@dataclass(frozen=True)
class SequenceFeeds:
    """Sequences of a transformer."""

    special: SpecialTokens
    inputs: tuple[str, ...]  # that the graph has
    pooling: Pooling | None  # None: the graph gives a row of each sequence
    max_tokens: int  # of a text, or of both of a pair, without special tokens: positions may end there

    @property
    def added(self) -> int:
        """The special tokens of a sequence."""
        return self.special.number

    def shapes(self, keys: Sequence[Any]) -> list[tuple[int, ...]]:
        """The number of tokens of each key's sequence with its padding."""
        added, most = self.added, self.added + self.max_tokens
        tokens = map(len, keys) if len(self.special.segments) == 1 else (sum(map(len, key)) for key in keys)
        return [(_own_length(added + number, most),) for number in tokens]

    def rows(self, run: Run, sides: Sides, least: Sequence[int] = ()) -> Rows:
        """As `Feeds.rows`; in several runs where padded lengths differ."""
        by_length: dict[int, list[int]] = {}
        for place, (length,) in enumerate(self.shapes(sides[0] if len(sides) == 1 else list(zip(*sides, strict=True)))):
            by_length.setdefault(length, []).append(place)
        parts = []
        for length, places in by_length.items():
            feeds, lengths = self.joined([[ids[place] for place in places] for ids in sides], length)
            found = run(feeds)
            parts.append(found if self.pooling is None else self.pooling.apply(found, lengths))
        if len(parts) == 1:
            return parts[0]
        order = np.argsort(np.concatenate(list(by_length.values())))
        return np.asarray(np.concatenate(parts)[order])

    def joined(self, sides: Sides, least: int = 0) -> Sequenced:
        """The sequences of n items, padded to `least` tokens or to the longest."""
        first, *after = ([token for token, _ in part] for part in self.special.parts)
        rows = [
            [*first, *(token for ids, part in zip(texts, after, strict=True) for each in (ids, part) for token in each)]
            for texts in zip(*sides, strict=True)
        ]
        lengths = list(map(len, rows))
        longest = max(least, *lengths)
        ids = np.zeros((len(rows), longest), np.int64)
        mask = np.zeros_like(ids)
        for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            ids[place, :length], mask[place, :length] = row, 1
        feeds: dict[str, Array] = {IDS: ids, MASK: mask}
        if SEGMENTS in self.inputs:
            feeds[SEGMENTS] = self._segments(sides, ids)
        if POSITIONS in self.inputs:
            feeds[POSITIONS] = np.broadcast_to(np.arange(longest), ids.shape)
        return Sequenced(feeds, lengths)

    def _segments(self, sides: Sides, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        segments = np.zeros_like(ids)
        if self.special.segmented:
            first, *after = ([segment for _, segment in part] for part in self.special.parts)
            for place, texts in enumerate(zip(*sides, strict=True)):
                row = [*first]
                for text, own, part in zip(texts, self.special.segments, after, strict=True):
                    row += [own] * len(text) + part
                segments[place, : len(row)] = row
        return segments


def _own_length(tokens: int, most: int) -> int:
    """The length to which so many tokens are padded, whatever stands beside them; a graph may end at `most`."""
    return max(tokens, min(most, -(-tokens // LENGTH_STEP) * LENGTH_STEP))


def feeds_of(
    signature: GraphSignature,
    kind: GraphKind,
    tokenizer: AnyTokenizer,
    pooling: Pooling | None,
    max_tokens: int,
    *,
    where: str,
) -> Feeds:
    """How a graph that reads token ids is fed.

    Args:
        signature: of the graph.
        kind: of the graph.
        tokenizer: of the model.
        pooling: what the manifest says of it.
        max_tokens: of a text, or of both texts of a pair.
        where: the file, for messages.

    Raises:
        GraphMismatchError: a transformer without its tokenizer, or whose states nothing says how to pool.
        TokenizerError: a tokenizer that cannot put two texts together.
    """
    if signature.gives_states != (pooling is not None):
        raise GraphMismatchError(
            f"{where}: it gives {signature.output}, and the manifest's pooling is "
            f"{'missing' if pooling is None else 'for states of tokens'}"
        )
    if not signature.is_transformer:
        return WordFeeds(paired=kind in ("pair", "explanation"))
    if not isinstance(tokenizer, Subwords):
        raise GraphMismatchError(f"{where}: a transformer reads the ids of a tokenizer.json of the library tokenizers")
    return SequenceFeeds(tokenizer.special_tokens(2 if kind == "pair" else 1), signature.inputs, pooling, max_tokens)
