"""Tokenizers of transformers: any `tokenizer.json` of the library `tokenizers` (WordPiece, BPE, Unigram).

Ids come without special tokens, so that limits, truncation, caches and explanations count the words of a text only. A
text that spells a special token ("[SEP]") is read as words. `special_tokens` says what the tokenizer's own
post-processor puts around them, for the graph (`core.sequences`).

The library is no part of the base install; the extras `service` and `training` bring it.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from core.errors import TokenizerError
from core.tokenizer import Encoded, Tokenizer, parsed, read_bounded

# Of a long text a beginning is read, and one eight times as long where that has no more tokens than the limit. What is
# beyond is cut off: a text with so few tokens is white space, or words that no vocabulary has.
_FEWEST_CHARS, _CHARS_OF_A_TOKEN, _LONGER = 1000, 8, 8
_SEEN_BLANKS = 64  # at the beginning of a long text: what is white space may be a token, or join the first word
_LONG = 2000  # characters from which on other threads go on while the library reads: `encode` stops them
_UNSURE = 128  # last tokens of a beginning that does not end at white space: the word it cuts may be read otherwise
_INVISIBLE = re.compile("[\\s\x00-\x1f\x7f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Keys of the file: in a string their quotes would be escaped. No second parsing, in which no other thread runs.
_MODEL, _UNKNOWN_ID = re.compile(rb'(?<!\\)"model"\s*:'), re.compile(rb'(?<!\\)"unk_id"\s*:\s*(\d{1,9})')


class SpecialTokens(NamedTuple):
    """What stands around one text or two, each with its segment: (id, segment)."""

    parts: tuple[tuple[tuple[int, int], ...], ...]  # before the first text, and after each
    segments: tuple[int, ...]  # of each text

    @property
    def number(self) -> int:
        """How many there are."""
        return sum(map(len, self.parts))

    @property
    def segmented(self) -> bool:
        """Whether any segment is not the first."""
        return any(self.segments) or any(segment for part in self.parts for _, segment in part)


class Subwords:
    """The interface of `Tokenizer`; words are what the tokenizer's own rules separate."""

    non_ascii_cost = 8

    def __init__(self, content: str | bytes) -> None:
        """Read the content of a `tokenizer.json`; its truncation and padding are dropped.

        Raises:
            TokenizerError: not a file of that library, or the library is not installed.
        """
        # One text at a time needs no threads of the library's own, which a process that forks would warn of.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            import tokenizers
        except ModuleNotFoundError as error:
            raise TokenizerError("a transformer's tokenizer needs the extra: pip install -e '.[service]'") from error
        raw = content.encode() if isinstance(content, str) else content
        self._path: Path | None = None
        with self._library("cannot be read as a tokenizer.json"):
            tokenizer = tokenizers.Tokenizer.from_buffer(raw)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True  # "[SEP]" in a text is no separator
        if not tokenizer.get_vocab_size(with_added_tokens=True):
            raise TokenizerError("there is no entry in its vocabulary")
        self._tokenizer = tokenizer
        self.unknown = _unknown(tokenizer, raw)
        # One object for each id: a cache of many texts then holds references only.
        self._ids: dict[int, int] = {}
        self._readable = "ByteLevel" in str(tokenizer.decoder)

    def __len__(self) -> int:
        """Number of ids, special tokens included: the least number of rows of the embedding table."""
        return int(max(self._tokenizer.get_vocab(with_added_tokens=True).values())) + 1

    @staticmethod
    def most_chars(max_tokens: int) -> int:
        """How much of a text `encode` reads at most."""
        return _LONGER * max(_FEWEST_CHARS, max_tokens * _CHARS_OF_A_TOKEN)

    def normalised(self, text: str) -> str:
        """A text as the file's normalizer makes it.

        Raises:
            TokenizerError: it cannot.
        """
        own = self._tokenizer.normalizer
        with self._library("its normalizer cannot read a text"):
            return text if own is None else str(own.normalize_str(text))

    def encode(self, text: str, max_tokens: int) -> Encoded:
        """Token ids of a text, cut at `max_tokens`; no ids at all when it has no visible character.

        Unknown are the pieces that the vocabulary has no entry for. Of a long text no more than 64 characters for each
        token of the limit are read.

        Raises:
            TokenizerError: the file's rules are such that the library cannot read this text.
        """
        if _INVISIBLE.fullmatch(text):
            return Encoded((), 0, 0, False)
        most = self.most_chars(max_tokens)
        few = most // _LONGER
        if len(text) > few and (unseen := _INVISIBLE.match(text)):
            text = text[max(0, unseen.end() - _SEEN_BLANKS) :]
        for chars in (few, most):
            part, unsure = _beginning(text, chars)
            with self._library("cannot read a text"):
                plain = _plain(part)
                if len(plain) < _LONG:
                    encoding = self._tokenizer.encode(plain, add_special_tokens=False)
                else:
                    (encoding,) = self._tokenizer.encode_batch([plain], add_special_tokens=False)
            found = encoding.ids
            if len(part) == len(text) or len(found) > max_tokens + unsure:
                break
        read = tuple(map(self._ids.setdefault, found, found))
        unknown = 0 if self.unknown is None else found.count(self.unknown)
        words = max((i for i in encoding.word_ids if i is not None), default=-1) + 1
        return Encoded(read[:max_tokens], max(words, unknown), unknown, len(read) > max_tokens or len(part) < len(text))

    def encode_all(self, texts: Sequence[str], max_tokens: int) -> list[Encoded]:
        """`encode` of every text."""
        return [self.encode(text, max_tokens) for text in texts]

    def token(self, token_id: int) -> str:
        """The piece an id stands for, for people to read; marks such as `##` say how it joins its neighbours."""
        if self._readable:
            return str(self._tokenizer.decode([token_id], skip_special_tokens=False))
        return str(self._tokenizer.id_to_token(token_id) or "")

    def special_tokens(self, sides: int) -> SpecialTokens:
        """The special tokens around one text or two, as the post-processor of the file puts them.

        Raises:
            TokenizerError: it does not keep the texts, once each and in order.
        """
        with self._library("its post_processor cannot be used"):
            read = self._tokenizer.encode("a", "a") if sides == 2 else self._tokenizer.encode("a")
        places = read.sequence_ids
        texts = [place for n, place in enumerate(places) if place is not None and place not in places[n + 1 :]]
        if texts != list(range(sides)):
            raise TokenizerError(f"its post_processor reads {sides} texts as {places}")
        parts: list[list[tuple[int, int]]] = [[] for _ in range(sides + 1)]
        segments = [0] * sides
        seen = 0
        for place, token, segment in zip(places, read.ids, read.type_ids, strict=True):
            if place is None:
                parts[seen].append((token, segment))
            else:
                seen, segments[place] = place + 1, segment
        return SpecialTokens(tuple(map(tuple, parts)), tuple(segments))

    def save(self, path: Path) -> None:
        """Write the file; the same tokenizer gives the same bytes."""
        path.write_text(self._tokenizer.to_str() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Subwords":
        """Read the tokenizer in a `tokenizer.json`.

        Raises:
            TokenizerError: unreadable, or not a file of that library, or the library is not installed.
        """
        return cls._of(path, read_bounded(path))

    @classmethod
    def _of(cls, path: Path, content: bytes) -> "Subwords":
        try:
            found = cls(content)
        except TokenizerError as error:
            raise TokenizerError(f"{path}: {error}") from error
        found._path = path
        return found

    @contextmanager
    def _library(self, failed: str) -> Iterator[None]:
        """Whatever the library raises as a TokenizerError: plain exceptions, and panics of its own code."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            where = "" if self._path is None else f"{self._path}: "
            raise TokenizerError(f"{where}{failed}: {error!r}") from error


AnyTokenizer = Tokenizer | Subwords


def load_tokenizer(path: Path) -> AnyTokenizer:
    """Read a tokenizer file of either kind: what has a `model` is one of the library `tokenizers`.

    Raises:
        TokenizerError: of neither kind, or malformed.
    """
    content = read_bounded(path)
    return Subwords._of(path, content) if _MODEL.search(content) else Tokenizer.of(parsed(content, path), path)


def has_text(text: str) -> bool:
    """Whether a text has a visible character."""
    return _INVISIBLE.fullmatch(text) is None


def fit_together(a: int, b: int, max_tokens: int) -> tuple[int, int]:
    """How many tokens of two texts of `a` and `b` tokens are read where both may have `max_tokens` together: the
    longer one is cut first, as the library's truncation `longest_first` does."""
    if a + b <= max_tokens:
        return a, b
    less, more = min(a, b), max(a, b)
    more = less if less > max_tokens else max(less, max_tokens - less)
    if less + more > max_tokens:
        less = max_tokens // 2
        more = less + max_tokens % 2
    return (less, more) if a <= b else (more, less)


def _unknown(tokenizer: Any, content: bytes) -> int | None:
    """The id that stands for what has none."""
    name = getattr(tokenizer.model, "unk_token", None)
    if name is not None:
        found: int | None = tokenizer.token_to_id(name)
        return found
    of_unigram = _UNKNOWN_ID.search(content)  # the library does not tell
    return int(of_unigram[1]) if of_unigram else None


def _beginning(text: str, chars: int) -> tuple[str, int]:
    """About the first `chars` characters of a text, up to white space where there is some, and how many of its last
    tokens the rest may change."""
    if len(text) <= chars:
        return text, 0
    end = max(text.rfind(" ", 0, chars), text.rfind("\n", 0, chars))
    return (text[:end], 0) if end > chars // 2 else (text[:chars], _UNSURE)


def _plain(text: str) -> str:
    """Without halves of surrogate pairs, which JSON can carry and no tokenizer reads."""
    return text if text.isascii() else _SURROGATE.sub("", text)
