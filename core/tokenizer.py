"""Words -> token ids: whole words first, then word pieces, then hash buckets.

Ids are laid out as  0 padding | words | pieces | buckets.  A word outside the vocabulary is split greedily into
the longest known pieces (`##` marks a piece that continues a word, as in WordPiece). A word that the pieces do
not cover (another script, an emoji) gets the id of a hash bucket, so that different unknown words mostly differ.
Without pieces and with one bucket this is the usual unknown token, with which two sentences in another script would
score 1.

Training and service must agree on every string. The library `tokenizers` is some three times slower on short text and
differs on some Unicode cases; words keep explanations readable. Case and accents are lost, and languages without spaces
are read character by character.
"""

import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from core.errors import TokenizerError
from core.files import read_regular
from core.text import END, chunks_and_ends, words_in_parts, words_of_chunk

PADDING_ID = 0
FORMAT = 1
# Of a file: each takes memory, and time in which no other thread runs.
MAX_BYTES = 24 << 20  # published ones have 0.6 MB, multilingual ones 17
MAX_COMMAS = 1_500_000  # an entry has one to three
MAX_BUCKETS = 200_000
CONTINUATION = "##"
_UNKNOWN = PADDING_ID  # not the id of a word
_END = -1  # stands for the end of a text where several are read in one go
MAX_PIECED_CHARS = 64  # longer "words" (keys, base64) get one bucket


class Encoded(NamedTuple):
    """A sentence as a model reads it."""

    ids: tuple[int, ...]
    words: int  # number read: all, or of a truncated text as many as give more ids than the limit
    unknown: int  # number of these outside the word vocabulary
    truncated: bool  # whether ids were cut at the model's limit

    def cut(self, tokens: int) -> "Encoded":
        """Its first so many tokens, all of it where it has no more."""
        return self if len(self.ids) <= tokens else self._replace(ids=self.ids[:tokens], truncated=True)


class Tokenizer:
    """Word-level tokenizer with a piece and bucket fallback.

    Attributes:
        non_ascii_cost: of a character beyond ASCII, in those of ASCII: most are words of their own, in pieces.
    """

    non_ascii_cost = 40

    def __init__(self, words: Sequence[str], pieces: Sequence[str] = (), buckets: int = 1) -> None:
        """Lay out the ids.

        Args:
            words: the vocabulary, in id order, as `core.text.split_words` yields them.
            pieces: word pieces; those that continue a word begin with `##`.
            buckets: number of hash buckets, at least 1.

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
        # One object for each id, so that caches of many sentences hold references only.
        self._bucket_ids = tuple(range(self._first_bucket, self._first_bucket + buckets))
        for what, entries, ids in (
            ("word", self.words, self._word_ids),
            ("piece", self.pieces, self._piece_ids),
        ):
            if "" in ids or CONTINUATION in ids:
                raise TokenizerError(f"an empty {what} in the vocabulary")
            if len(ids) != len(entries):
                repeated = Counter(entries).most_common(1)[0][0]
                raise TokenizerError(f"{what} {repeated!r} is in the vocabulary twice")
        # Whether every word of the vocabulary is a word by itself: then a chunk that is in it is that word.
        self._whole = END not in self._word_ids and all(
            word.isalnum() or not word.isascii() or words_of_chunk(word) == [word] for word in self.words
        )
        if self._whole:
            self._word_ids[END] = _END
        self._first_pieces = {p: i for p, i in self._piece_ids.items() if not p.startswith(CONTINUATION)}
        cut = len(CONTINUATION)
        self._later_pieces = {p[cut:]: i for p, i in self._piece_ids.items() if p.startswith(CONTINUATION)}
        self._longest_first = _longest_by_first_character(self._first_pieces)
        self._longest_later = _longest_by_first_character(self._later_pieces)
        # Pieces of one character that no longer piece begins with: they fit without a search.
        self._lone_first = {c: self._first_pieces[c] for c, n in self._longest_first.items() if n == 1}
        self._lone_later = {c: self._later_pieces[c] for c, n in self._longest_later.items() if n == 1}

    def __len__(self) -> int:
        """Number of ids, padding included: the rows of the embedding table."""
        return self._first_bucket + self.buckets

    @staticmethod
    def most_chars(max_tokens: int) -> int:
        """How much of a text `encode` reads at most."""
        return sys.maxsize

    def encode(self, text: str, max_tokens: int) -> Encoded:
        """Token ids of a sentence, cut at `max_tokens`; none if the text has no visible character.

        A long text is read only as far as needed.
        """
        ids: list[int] = []
        read = unknown = 0
        for words in words_in_parts(text):
            found = list(map(self._word_ids.get, words, repeat(_UNKNOWN)))
            read += len(found)
            of_these = found.count(_UNKNOWN)
            unknown += of_these
            ids += self._with_fallbacks(words, found, of_these) if of_these else found
            if len(ids) > max_tokens:
                break
        return Encoded(tuple(ids[:max_tokens]), read, unknown, len(ids) > max_tokens)

    def encode_all(self, texts: Sequence[str], max_tokens: int) -> list[Encoded]:
        """`encode` of every text; short ones in ASCII are read in one go, in half the time."""
        chunks = chunks_and_ends(texts) if self._whole and len(texts) > 1 else None
        if chunks is None:
            return [self.encode(text, max_tokens) for text in texts]
        found = list(map(self._word_ids.get, chunks, repeat(_UNKNOWN)))
        sentences: list[Encoded] = []
        start = 0
        for _ in texts:
            end = found.index(_END, start)
            ids, words, unknown = found[start:end], end - start, 0
            if missing := ids.count(_UNKNOWN):
                words, unknown = self._fill(ids, missing, chunks, start)
            cut = len(ids) > max_tokens
            # As `Encoded(...)`, whose own function costs as much as the rest of this turn.
            sentences.append(tuple.__new__(Encoded, (tuple(ids[:max_tokens] if cut else ids), words, unknown, cut)))
            start = end + 1
        return sentences

    def _fill(self, ids: list[int], missing: int, chunks: Sequence[str], start: int) -> tuple[int, int]:
        """Put the ids of `missing` chunks that were not found into those of a sentence, whose chunks begin at `start`.

        Returns:
            The number of words, and of unknown ones.
        """
        words, unknown, more, place = len(ids), 0, 0, -1
        for _ in range(missing):
            place = ids.index(_UNKNOWN, place + 1)
            chunk = chunks[start + place - more]
            if chunk.isalnum():
                unknown += 1
                of_chunk = self.fallback(chunk)
            else:
                parts = words_of_chunk(chunk)
                of_parts = list(map(self._word_ids.get, parts, repeat(_UNKNOWN)))
                of_these = of_parts.count(_UNKNOWN)
                of_chunk = self._with_fallbacks(parts, of_parts, of_these) if of_these else of_parts
                words += len(parts) - 1
                unknown += of_these
            ids[place : place + 1] = of_chunk
            more += len(of_chunk) - 1
            place += len(of_chunk) - 1
        return words, unknown

    def _with_fallbacks(self, words: Sequence[str], found: list[int], unknown: int) -> list[int]:
        """The ids found of these words, with fallbacks where `unknown` of them have none."""
        ids: list[int] = []
        start = 0
        for _ in range(unknown):
            end = found.index(_UNKNOWN, start)
            ids += found[start:end]
            ids += self.fallback(words[end])
            start = end + 1
        ids += found[start:]
        return ids

    def fallback(self, word: str) -> list[int]:
        """Ids of a word outside the vocabulary: its pieces, or one bucket."""
        if len(word) <= MAX_PIECED_CHARS and (ids := self._cut(word)):
            return ids
        return [self._bucket_ids[zlib.crc32(word.encode("utf-8", "replace")) % self.buckets]]

    def _cut(self, word: str) -> list[int]:
        if word.isdigit() and word[0] in self._lone_first:  # most unknown words are numbers, split into digits
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
        """The word, piece or bucket of an id, for people."""
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
        return cls.of(parsed(read_bounded(path), path), path)

    @classmethod
    def of(cls, content: object, path: Path) -> "Tokenizer":
        """What a tokenizer file holds -> the tokenizer; raises as `load`, `path` is for messages."""
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            found = content.get("format") if isinstance(content, dict) else type(content).__name__
            raise TokenizerError(f"{path}: tokenizer format {found!r}, this version reads {FORMAT}")
        if set(content) != {"format", "words", "pieces", "buckets"}:
            raise TokenizerError(f"{path}: fields are format, words, pieces, buckets; found {sorted(content)}")
        words, pieces, buckets = content["words"], content["pieces"], content["buckets"]
        if not isinstance(buckets, int) or isinstance(buckets, bool):
            raise TokenizerError(f"{path}: buckets must be a whole number, found {buckets!r}")
        if buckets > MAX_BUCKETS:
            raise TokenizerError(f"{path}: {buckets:,} buckets, expected {MAX_BUCKETS:,} at most")
        for name, entries in (("words", words), ("pieces", pieces)):
            if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
                raise TokenizerError(f"{path}: {name} must be a list of strings")
        try:
            return cls(words, pieces, buckets)
        except TokenizerError as error:
            raise TokenizerError(f"{path}: {error}") from error


def read_bounded(path: Path) -> bytes:
    """The content of a tokenizer file.

    Raises:
        TokenizerError: unreadable, too large, or with more entries than are parsed in reasonable time.
    """
    try:
        content = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise TokenizerError(f"{path}: cannot be read as a tokenizer file: {error}") from error
    if (commas := content.count(b",")) > MAX_COMMAS:
        raise TokenizerError(f"{path}: {commas:,} commas, expected {MAX_COMMAS:,} at most")
    return content


def parsed(content: bytes, path: Path) -> object:
    """The JSON of a tokenizer file.

    Raises:
        TokenizerError: it is none.
    """
    try:
        return json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise TokenizerError(f"{path}: cannot be read as a tokenizer file: {error}") from error


def _longest_by_first_character(pieces: Iterable[str]) -> dict[str, int]:
    """The length of the longest piece for each first character."""
    longest: dict[str, int] = {}
    for piece in pieces:
        longest[piece[0]] = max(longest.get(piece[0], 0), len(piece))
    return longest
