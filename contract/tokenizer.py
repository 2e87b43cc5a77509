"""Words -> token ids: whole words first, then word pieces, then hash buckets.

Ids are laid out as  0 padding | words | pieces | buckets.  A word outside the vocabulary is cut greedily into
the longest known pieces (`##` marks a piece that continues a word, as in WordPiece). A word that the pieces do
not cover (another script, an emoji) falls into one of the hash buckets, so that two unknown words are alike
only when they are the same word. A tokenizer without pieces and with one bucket is the classic unknown token.
"""

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from contract.errors import TokenizerError
from contract.padding import PADDING_ID
from contract.text import split_words

FORMAT = 1
CONTINUATION = "##"
_UNKNOWN = PADDING_ID  # which no word has
MAX_PIECED_CHARS = 64  # longer "words" are noise (keys, base64): one bucket, not sixty pieces


class Encoded(NamedTuple):
    """A sentence as a model reads it."""

    ids: tuple[int, ...]
    words: int  # words in the text, before truncation
    unknown: int  # of those, how many are outside the word vocabulary
    truncated: bool  # ids were cut at the model's limit

    @property
    def unknown_ratio(self) -> float:
        """Share of words outside the vocabulary, 0..1 (0 for no words at all)."""
        return self.unknown / self.words if self.words else 0.0


class Tokenizer:
    """Word-level tokenizer with a piece and bucket fallback."""

    def __init__(self, words: Sequence[str], pieces: Sequence[str] = (), buckets: int = 1) -> None:
        """Lay out the ids.

        Args:
            words: the vocabulary, in id order, as `contract.text.split_words` yields them.
            pieces: word pieces; those that continue a word begin with `##`.
            buckets: how many hash buckets take what neither words nor pieces cover, at least 1.

        Raises:
            TokenizerError: an empty or repeated entry, or no bucket.
        """
        if buckets < 1:
            raise TokenizerError(f"a tokenizer needs at least 1 bucket, got {buckets}")
        self.words = tuple(words)
        self.pieces = tuple(pieces)
        self.buckets = buckets
        self._word_ids = {word: i for i, word in enumerate(self.words, start=PADDING_ID + 1)}
        first_piece = PADDING_ID + 1 + len(self.words)
        self._piece_ids = {piece: i for i, piece in enumerate(self.pieces, start=first_piece)}
        self._first_bucket = first_piece + len(self.pieces)
        for what, entries, ids in (
            ("word", self.words, self._word_ids),
            ("piece", self.pieces, self._piece_ids),
        ):
            if "" in ids or CONTINUATION in ids:
                raise TokenizerError(f"an empty {what} in the vocabulary")
            if len(ids) != len(entries):
                repeated = Counter(entries).most_common(1)[0][0]
                raise TokenizerError(f"{what} {repeated!r} is in the vocabulary twice")
        self._first_pieces = {p: i for p, i in self._piece_ids.items() if not p.startswith(CONTINUATION)}
        cut = len(CONTINUATION)
        self._later_pieces = {p[cut:]: i for p, i in self._piece_ids.items() if p.startswith(CONTINUATION)}
        self._longest_first = _longest_by_first_character(self._first_pieces)
        self._longest_later = _longest_by_first_character(self._later_pieces)
        # Pieces of one character that begin no longer one: no choice is to be made where one of them fits.
        self._lone_first = {c: self._first_pieces[c] for c, n in self._longest_first.items() if n == 1}
        self._lone_later = {c: self._later_pieces[c] for c, n in self._longest_later.items() if n == 1}

    def __len__(self) -> int:
        """Number of ids, padding included: the rows of the embedding table."""
        return self._first_bucket + self.buckets

    def encode(self, text: str, max_tokens: int) -> Encoded:
        """Token ids of a sentence, cut at `max_tokens`; no ids at all when the text has no visible character."""
        words = split_words(text)
        found = list(map(self._word_ids.get, words, repeat(_UNKNOWN)))
        unknown = found.count(_UNKNOWN)
        ids = found
        if unknown:
            ids, start = [], 0
            for _ in range(unknown):
                end = found.index(_UNKNOWN, start)
                ids += found[start:end]
                ids += self.fallback(words[end])
                start = end + 1
            ids += found[start:]
        return Encoded(tuple(ids[:max_tokens]), len(words), unknown, len(ids) > max_tokens)

    def fallback(self, word: str) -> list[int]:
        """Ids that stand for a word outside the vocabulary: its pieces, or one bucket."""
        if len(word) <= MAX_PIECED_CHARS and (ids := self._cut(word)):
            return ids
        return [self._first_bucket + zlib.crc32(word.encode("utf-8", "replace")) % self.buckets]

    def _cut(self, word: str) -> list[int]:
        if word.isdigit() and word[0] in self._lone_first:  # most unknown words are numbers, and cut into digits
            digits = [self._lone_first[word[0]], *map(self._lone_later.get, word[1:], repeat(_UNKNOWN))]
            if _UNKNOWN not in digits:
                return digits
        ids: list[int] = []
        start = 0
        known, longest = self._first_pieces.get, self._longest_first.get
        while start < len(word):
            for end in range(min(len(word), start + longest(word[start], 0)), start, -1):
                piece_id = known(word[start:end])
                if piece_id is not None:
                    ids.append(piece_id)
                    start = end
                    break
            else:
                return []
            known, longest = self._later_pieces.get, self._longest_later.get
        return ids

    def token(self, token_id: int) -> str:
        """The word, piece or bucket an id stands for, for people to read."""
        if token_id == PADDING_ID:
            return "<pad>"
        if token_id <= len(self.words):
            return self.words[token_id - 1]
        if token_id < self._first_bucket:
            return self.pieces[token_id - 1 - len(self.words)]
        return f"<bucket {token_id - self._first_bucket}>"

    def save(self, path: Path) -> None:
        """Write the tokenizer file; the same tokenizer gives the same bytes."""
        content = {"format": FORMAT, "words": self.words, "pieces": self.pieces, "buckets": self.buckets}
        path.write_text(json.dumps(content, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read a tokenizer file.

        Raises:
            TokenizerError: not JSON, another format, a missing, unknown or mistyped field, an empty or repeated entry.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise TokenizerError(f"{path}: cannot be read as a tokenizer file: {error}") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            found = content.get("format") if isinstance(content, dict) else type(content).__name__
            raise TokenizerError(f"{path}: tokenizer format {found!r}, this version reads {FORMAT}")
        if set(content) != {"format", "words", "pieces", "buckets"}:
            raise TokenizerError(f"{path}: fields are format, words, pieces, buckets; found {sorted(content)}")
        words, pieces, buckets = content["words"], content["pieces"], content["buckets"]
        if not isinstance(buckets, int) or isinstance(buckets, bool):
            raise TokenizerError(f"{path}: buckets must be a whole number, found {buckets!r}")
        for name, entries in (("words", words), ("pieces", pieces)):
            if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
                raise TokenizerError(f"{path}: {name} must be a list of strings")
        try:
            return cls(words, pieces, buckets)
        except TokenizerError as error:
            raise TokenizerError(f"{path}: {error}") from error


def _longest_by_first_character(pieces: Iterable[str]) -> dict[str, int]:
    """Where to begin to look for the longest piece: a number has none of more than a digit."""
    longest: dict[str, int] = {}
    for piece in pieces:
        longest[piece[0]] = max(longest.get(piece[0], 0), len(piece))
    return longest
