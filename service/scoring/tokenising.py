"""Tokenisation: texts -> token ids, kept in the cache."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from sys import getsizeof
from time import perf_counter
from typing import NamedTuple

from core.errors import TokenizerError
from core.manifest import Manifest, Role
from core.subwords import AnyTokenizer, has_text
from core.tokenizer import Encoded
from service.engine.admission import RequestContext, give_way
from service.engine.cache import ENTRY_BYTES, ID_BYTES, VectorCache, tuple_bytes
from service.engine.graph import Graph
from service.engine.queue import Queue
from service.errors import EmptyText, InferenceFailed, Overloaded, TooLarge, TooSlow
from service.observe.metrics import TOKENISE
from service.observe.telemetry import ModelTelemetry

# Of one text: models read 512 tokens of it at most. No setting: the time limit mostly refuses earlier.
MAX_TEXT_CHARS = 100_000
_TURN_SECONDS = 0.0008  # in the event loop for one request before others have a turn
# Expected cost of tokenising a text, in characters of ASCII:
_CHARS_OF_A_TOKEN = 8  # with white space; models read at most their limit of tokens
_BEYOND_THE_LIMIT = 0.25  # for characters after that limit, of which few are read where words are of usual length
_USUAL_WORD = 32  # characters, at most
_BEYOND_ASCII = 8  # of a character after that limit
_FEW_CHARS = 1000  # texts of this length together are tokenised at once; single ones are cached
_TOKENS_WEIGHT = 0.5  # weight of a request's texts in the number of tokens in a character
_VOWELS = frozenset("aeiouy")
_LONG_WORD = 6  # letters
_BEGINS = "\u0120\u2581"  # before the first piece of a word, of tokenizers that mark these
_SYLLABLE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff\ufffd]")
_SPECIAL = re.compile(r"[\[<].*[\]>]$")  # [UNK], <unk>, <bucket 3>
_EACH_TEXT_BYTES = ENTRY_BYTES + tuple_bytes(len(Encoded._fields)) + tuple_bytes(0)


def check_texts(texts: Sequence[str], field_of: Callable[[int], str]) -> None:
    """Check the length of each of at least one text of a request; `field_of` says where the i-th stands.

    Raises:
        TooLarge: one is longer than `MAX_TEXT_CHARS`; names the first such text.
    """
    if max(map(len, texts)) > MAX_TEXT_CHARS:
        for i, text in enumerate(texts):
            check_chars(field_of(i), len(text))


def check_chars(field: str, chars: int) -> None:
    """Check the length of one text, which need not be made yet; raises as `check_texts`."""
    if chars > MAX_TEXT_CHARS:
        message = f"a text of {chars} characters, the limit is {MAX_TEXT_CHARS}"
        raise TooLarge(message, field=field, limit=MAX_TEXT_CHARS)


def turns_of(chars: Sequence[float], seconds: float, turn: float = _TURN_SECONDS) -> Iterator[tuple[float, slice]]:
    """Work on texts, cut into turns.

    Args:
        chars: cost of each text, in characters of ASCII.
        seconds: of one character.
        turn: expected seconds from which a turn ends.

    Yields:
        Expected seconds of a turn, and the indices of its texts.
    """
    start, needs, limit = 0, 0.0, turn / seconds
    for i, each in enumerate(chars):
        if needs >= limit:
            yield needs * seconds, slice(start, i)
            start, needs = i, 0.0
        needs += each
    yield needs * seconds, slice(start, len(chars))


class _Cost:
    """What new text costs, by its characters; the defaults hold until `measure`."""

    tokenising = 2e-7  # expected seconds, of a character
    scoring = 0.0  # of a token
    tokens = 0.25  # in a character of the texts read lately

    def note(self, chars: float, tokens: int) -> None:
        """Texts of so many characters had so many tokens."""
        self.tokens += _TOKENS_WEIGHT * (tokens / chars - self.tokens)


class ScorerParts(NamedTuple):
    """What a scorer is made of."""

    manifest: Manifest
    tokenizer: AnyTokenizer
    graphs: Mapping[str, Graph]  # by file name
    telemetry: ModelTelemetry
    queue: Queue
    cache: VectorCache  # keeps the token ids of short texts too


class CachedTokenizer:
    """Texts of one model -> token ids, from the cache or its tokenizer."""

    def __init__(self, parts: ScorerParts) -> None:
        """Take the parts that this needs."""
        manifest = parts.manifest
        self.manifest = manifest
        self._token = parts.tokenizer.token
        self._non_ascii_cost = parts.tokenizer.non_ascii_cost
        self._most_chars = parts.tokenizer.most_chars(manifest.limits.max_tokens)
        self._max_chars = manifest.limits.max_tokens * _CHARS_OF_A_TOKEN  # of a text that a graph can get
        self.encode = partial(parts.tokenizer.encode_all, max_tokens=manifest.limits.max_tokens)
        self._memory = parts.cache.memory
        self._lru = parts.cache.memory.lru(_encoded_bytes)
        self._telemetry = parts.telemetry
        self._queue = parts.queue
        self._cost = _Cost()

    async def tokenise(
        self, context: RequestContext, texts: Sequence[str], field_of: Callable[[int], str], *, role: Role = "text"
    ) -> list[Encoded]:
        """Texts -> token ids.

        Args:
            context: of the request.
            texts: at least one.
            field_of: position in `texts` -> field of the request, for messages.
            role: what they are for; the model's prompt of that role is put before each.

        Raises:
            EmptyText: a text without a visible character.
            InferenceFailed: the tokenizer raised.
            Overloaded, TooSlow: it would not end in time, or what comes after it; says how many of the list of texts
                would. Of a part of the work (`RequestContext.part`) whoever parted it knows how many there are.
        """
        await give_way(len(texts))
        began = perf_counter()
        if prompt := self._prompt(role):
            if (empty := next((i for i, text in enumerate(texts) if not has_text(text)), None)) is not None:
                raise EmptyText(field_of(empty))
            texts = [prompt + text for text in texts]
        known = self._lru.get_many(texts)
        sentences = [sentence for sentence in known if sentence is not None]
        if len(sentences) < len(texts):
            try:
                sentences = await self._tokenise_new(context, texts, known)
            except (Overloaded, TooSlow) as error:
                if context.share < 1:
                    raise
                raise error.of(*_items(texts, field_of)) from None
        else:
            context.spent(TOKENISE, began, perf_counter())
        words = unknown = truncated = 0
        for _, sentence_words, sentence_unknown, cut in sentences:
            if not sentence_words:
                raise EmptyText(field_of(next(i for i, sentence in enumerate(sentences) if not sentence.words)))
            words += sentence_words
            unknown += sentence_unknown
            truncated += cut
        self._telemetry.tokenised(sentences=len(sentences), truncated=truncated, words=words, unknown=unknown)
        await give_way(len(sentences))
        return sentences

    async def _tokenise_new(
        self, context: RequestContext, texts: Sequence[str], known: Sequence[Encoded | None]
    ) -> list[Encoded]:
        """Texts -> token ids; known ones are given."""
        new = list(dict.fromkeys(text for text, sentence in zip(texts, known, strict=True) if sentence is None))
        chars, scored = self._costs(new)
        few = sum(chars) <= _FEW_CHARS
        if few:
            began = perf_counter()
            sentences = self.encode_or_fail(new)
            context.spent(TOKENISE, began, perf_counter())
        else:
            turns = [
                (seconds, partial(self.encode_or_fail, new[part]))
                for seconds, part in turns_of(chars, self._cost.tokenising)
            ]
            # Who is let in hangs on this guess. What is too slow is refused by its tokens: the number of items that is
            # named then does fit.
            scoring = scored * self._cost.tokens * self._cost.scoring
            with context.before(context.later + scoring / context.share):
                parts = await self._queue.run_all(context, turns, phase=TOKENISE)
            sentences = list(chain.from_iterable(parts))
            self._cost.note(scored, sum(len(sentence.ids) for sentence in sentences))
        self._lru.keep(entry for entry in zip(new, sentences, strict=True) if len(entry[0]) <= _FEW_CHARS)
        if len(new) == len(texts):  # all of them, each once
            return sentences
        found = dict(zip(new, sentences, strict=True))
        return [sentence or found[text] for text, sentence in zip(texts, known, strict=True)]

    def encode_or_fail(self, texts: Sequence[str]) -> list[Encoded]:
        """Texts of a request -> token ids; raises `InferenceFailed` where the tokenizer's own rules fail."""
        try:
            return self.encode(texts)
        except TokenizerError as error:
            self._telemetry.failed()
            raise InferenceFailed(self.manifest.id, "its tokenizer cannot read a text") from error

    def _prompt(self, role: Role) -> str:
        return "" if self.manifest.prompts is None else self.manifest.prompts.of(role)

    def prompt_tokens(self, role: Role) -> int:
        """How many tokens the model's prompt of that role has; they stand before those of each text."""
        prompt = self._prompt(role).rstrip()  # the space belongs to the first word
        return len(self.encode_or_fail([prompt])[0].ids) if prompt else 0

    def prompted(self, texts: Sequence[str]) -> list[Encoded]:
        """Texts -> token ids behind the prompt of a text, at once: as golden pairs were published."""
        return self.encode([self._prompt("text") + text for text in texts])

    def _costs(self, texts: Sequence[str]) -> tuple[Sequence[float], float]:
        """`_chars` of each text, and what the graph gets of all; at once where all are short and in ASCII, as most."""
        lengths = list(map(len, texts))
        if max(lengths) <= self._max_chars and "".join(texts).isascii():
            return lengths, sum(lengths)
        return list(map(self._chars, texts)), sum(min(self.weight_of(text), self._max_chars) for text in texts)

    def weight_of(self, text: str) -> int:
        """A text's cost, in characters of ASCII, if all of it is read."""
        return len(text) * (1 if text.isascii() else self._non_ascii_cost)

    def _chars(self, text: str) -> float:
        """Expected cost of tokenising, in characters of ASCII within the model's limit, as `_cost` is measured."""
        limit = self._max_chars
        if (weight := self.weight_of(text)) <= limit:
            return weight
        read = text[: self._most_chars]
        if read.isascii() and read.count(" ", 0, limit) * _USUAL_WORD > limit:
            return limit + (len(read) - limit) * _BEYOND_THE_LIMIT
        # A beginning is read again with more, or words of many characters each.
        return limit + len(read) * (1 if read.isascii() else _BEYOND_ASCII)

    def has_word(self, sentence: Encoded) -> bool:
        """Whether a text has a word that the model knows: two different letters, one of them a vowel, in one piece.

        A word of ASCII that is read in several pieces is long, and has two vowels at least ("nonrefundable", but not
        "asdf"); of other scripts pieces are enough.
        """
        if sentence.unknown >= sentence.words:
            return False
        once = [self._token(i) for i in dict.fromkeys(sentence.ids)]
        if not any(piece.startswith("##") for piece in once):  # each is a word, and a long text has few different ones
            return any(_is_word(piece.lstrip(_BEGINS), 1) for piece in once)
        word, pieces = "", 0
        for piece in chain(map(self._token, sentence.ids), [""]):
            if piece.startswith("##"):
                word, pieces = word + piece[2:], pieces + 1
                continue
            if _is_word(word, pieces):
                return True
            word, pieces = piece.lstrip(_BEGINS), 1
        return False

    def tokens(self, sentence: Encoded) -> list[str]:
        """The tokens of a sentence, for people: words, word pieces, buckets."""
        return [self._token(i) for i in sentence.ids]


def _items(texts: Sequence[str], field_of: Callable[[int], str]) -> tuple[str, int, str]:
    """What a request may have less of: the field of its longest list and the number of items; else of its longest text.

    Returns:
        Field, count, and what is counted where those are no items.
    """
    items: dict[str, set[str]] = {}
    for i in range(len(texts)):
        parts = field_of(i).split(".")
        place = next((n for n, part in enumerate(parts) if part.isdecimal()), None)
        if place is not None:
            items.setdefault(".".join(parts[:place]), set()).add(parts[place])
    if items:
        field = max(reversed(items), key=lambda name: len(items[name]))
        return field, len(items[field]), ""
    field = field_of(max(range(len(texts)), key=lambda i: len(texts[i])))
    return field, sum(len(text) for i, text in enumerate(texts) if field_of(i) == field), "characters"


def _is_word(word: str, pieces: int) -> bool:
    """Whether pieces are letters of a word; halves of a character beyond ASCII may be one."""
    if pieces > 1 and word.isascii():
        return len(word) >= _LONG_WORD and sum(map(word.lower().count, _VOWELS)) > 1
    letters = {letter for letter in word.casefold() if letter.isalpha()}
    spelt = len(letters) > 1 and any(letter in _VOWELS or not letter.isascii() for letter in letters)
    return (spelt and not _SPECIAL.match(word)) or _SYLLABLE.search(word) is not None


def _encoded_bytes(text: str, sentence: Encoded) -> int:
    return _EACH_TEXT_BYTES + getsizeof(text) + ID_BYTES * len(sentence.ids)
