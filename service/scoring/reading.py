"""Reading: texts -> token ids, with a hint on texts that seem to be in another language than the model's.

The language is a cheap guess by a text's commonest words. Words are looked up in one table of articles, pronouns,
prepositions and the like (`common_words`), each of which counts for the languages that have it. Letters of other
scripts, and accented ones, count where a text has some. Libraries that tell languages apart take ten to thirty times as
long, and call a quarter or more of short English titles and names another language: they always decide, and this does
not (benchmarks/results/2026-11-26-language-hints.md).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, compress, repeat
from sys import getsizeof
from time import perf_counter
from typing import NamedTuple

from core.manifest import Manifest, Role
from core.subwords import AnyTokenizer, has_text
from core.tokenizer import Encoded
from service.engine.cache import ENTRY_BYTES, ID_BYTES, VectorCache, tuple_bytes
from service.engine.context import RequestContext
from service.engine.graph import Graph
from service.engine.queue import Queue
from service.errors import EmptyText
from service.observe.metrics import TOKENISE
from service.observe.telemetry import ModelTelemetry
from service.schemas import Answer
from service.scoring.common_words import ENGLISH, OFTEN_IN_ENGLISH, OTHERS

KNOWN = ("en", *OTHERS)  # ISO 639-1
_READ = 300  # characters of a text
_FEWEST_WORDS = 3  # shorter texts are names and titles too often
_STRONG, _WEAK = 3, 1  # what a word counts for
_WORDS_OF_ONE = 15  # of a text, for each of which there must be a word of the language
_WORD = re.compile(r"[^\W\d_]+'?")
# Counts of all languages in one number, a field of bits for each: so that one sum counts them all.
_BITS = 12
_MASK = (1 << _BITS) - 1
_ONE = {language: 1 << _BITS * place for place, language in enumerate(KNOWN)}
# Letters and marks, and the languages that have them.
_SPELT = {
    "¿¡": (_STRONG, ("es",)),
    "äöüß": (_WEAK, ("de",)),
    "ç": (_WEAK, ("fr", "pt")),
    "éàâêèîôûùëïœ": (_WEAK, ("fr",)),
    "áéíóúñ": (_WEAK, ("es",)),
    "áàâãçéêíóõôú": (_WEAK, ("pt",)),
    "àèéìòù": (_WEAK, ("it",)),
    "ëï": (_WEAK, ("nl",)),
}
# The likeliest language of a script, by the ranges of its letters.
_SCRIPTS = (
    (0x370, 0x3FF, "el"),
    (0x400, 0x52F, "ru"),
    (0x530, 0x58F, "hy"),
    (0x590, 0x5FF, "he"),
    (0x600, 0x77F, "ar"),
    (0x900, 0x97F, "hi"),
    (0x980, 0x9FF, "bn"),
    (0xB80, 0xBFF, "ta"),
    (0xE00, 0xE7F, "th"),
    (0x10A0, 0x10FF, "ka"),
    (0x1100, 0x11FF, "ko"),
    (0x1F00, 0x1FFF, "el"),
    (0x3040, 0x30FF, "ja"),
    (0x3400, 0x9FFF, "zh"),
    (0xAC00, 0xD7AF, "ko"),
)
# Letters as small ones, the apostrophe as it is, all else as white space.
_KEPT = b"abcdefghijklmnopqrstuvwxyz'"
_LOWER_LETTERS = bytes(code if code in _KEPT else 32 for code in bytes(range(256)).lower())
_NOTHING = repeat(0)
_TIMES_BEYOND_ASCII = 8  # for other characters, each of which is looked up
_TURN_SECONDS = 0.0008  # of reading in the event loop for one request before other requests have a turn
# Expected cost of reading a text, in characters of ASCII:
_CHARS_OF_A_TOKEN = 8  # with white space; models read at most their limit of tokens
_BEYOND_THE_LIMIT = 0.25  # for characters after that limit, most of which are not read
_FEW_CHARS = 1000  # texts of this length together are read at once; single ones are cached
_NEWS = 0.5  # weight of a request's texts in the number of tokens in a character
_EACH_TEXT_BYTES = ENTRY_BYTES + tuple_bytes(len(Encoded._fields)) + tuple_bytes(0)


def _table() -> dict[str, int]:
    """Word -> what it counts for, in each language's field."""
    often = frozenset(OFTEN_IN_ENGLISH.split())
    counts = dict.fromkeys(ENGLISH.split(), _STRONG)
    for language, words in OTHERS.items():
        for word in words.split():
            counts[word] = counts.get(word, 0) + (_WEAK if word in often else _STRONG) * _ONE[language]
    return counts


def _letters() -> dict[str, int]:
    counts: dict[str, int] = {}
    for letters, (weight, languages) in _SPELT.items():
        for letter in letters:
            counts[letter] = counts.get(letter, 0) + sum(weight * _ONE[language] for language in languages)
    return counts


_TABLE, _LETTERS = _table(), _letters()
_ASCII_TABLE = {word.encode(): counts for word, counts in _TABLE.items() if word.isascii()}


def language_of(text: str, start: int = 0) -> str | None:
    """The language that a text seems to be in, by what follows `start`; None where that cannot be told.

    One of `KNOWN` needs three words, of which one in fifteen is among the commonest of that language, and more than
    among those of English. A text in the letters of another script has the likeliest language of that script.
    """
    beginning = text[start : start + _READ]
    if beginning.isascii():  # in a third of the time
        in_ascii = beginning.encode().translate(_LOWER_LETTERS).replace(b"'", b"' ").split()
        read = len(in_ascii) - in_ascii.count(b"'")
        if read < _FEWEST_WORDS:
            return None
        found_ascii = set(in_ascii)
        differing = len(found_ascii)
        count = sum(map(_ASCII_TABLE.get, found_ascii, _NOTHING))
    else:
        lowered = beginning.lower().replace("\u2019", "'")
        if (script := _script_of(lowered)) is not None:
            return script
        words = _WORD.findall(lowered)
        different = set(words)
        read, differing = len(words), len(different)
        count = sum(map(_TABLE.get, different, _NOTHING)) + _spelling(lowered, different)
        if read < _FEWEST_WORDS:
            return None
    english = most = count & _MASK
    found = "en"
    if count != english:
        for language, one in _ONE.items():
            if (of_this := count // one & _MASK) > most:
                found, most = language, of_this
    needed = _STRONG
    if most == 2 * _WEAK and not english and read > _FEWEST_WORDS and not _has_names(beginning):
        needed = most
    return found if most >= needed and most * _WORDS_OF_ONE >= differing * _STRONG else None


def _has_names(text: str) -> bool:
    """Whether a word after the first has a capital: in names the rarer words of other languages say nothing."""
    return any(word[:1].isupper() for word in text.split()[1:])


class LanguageHints:
    """Which texts seem to be in another language than a model's own."""

    def __init__(self, own: Iterable[str]) -> None:
        """Take the model's languages, all of `KNOWN`."""
        self._own = frozenset(own)

    @classmethod
    def of(cls, languages: Sequence[str] | None) -> "LanguageHints | None":
        """Those for a model of these languages; None where they are not known, or one cannot be told from others."""
        return cls(languages) if languages is not None and set(languages) <= set(KNOWN) else None

    def on(self, texts: Sequence[str], start: int = 0) -> Iterator[tuple[int, str]]:
        """The place of each text in another language, and that language, which is a guess: `de?`.

        Args:
            texts: any number.
            start: where each begins, after a prompt.
        """
        for i, text in enumerate(texts):
            if (found := language_of(text, start)) is not None and found not in self._own:
                yield i, f"{found}?"


def add_hints(results: Sequence[Answer], a: Sequence[Encoded], b: Sequence[Encoded]) -> None:
    """Add what is known of the languages of n pairs to their results."""
    for result, x, y in zip(results, a, b, strict=True):
        if x.language is not None or y.language is not None:
            result["language"] = (x.language, y.language)


def _spelling(text: str, words: Iterable[str]) -> int:
    """What accented words count for, each once, and the marks that begin Spanish questions."""
    count = sum(_LETTERS[mark] for mark in "¿¡" if mark in text)
    for word in words:
        if not word.isascii() and word not in _TABLE:
            count += _LETTERS.get(next(letter for letter in word if not letter.isascii()), 0)
    return count


def _script_of(text: str) -> str | None:
    """The likeliest language of the script that most letters are of; None of Latin."""
    letters = [ord(letter) for letter in text if letter.isalpha()]
    beyond = [code for code in letters if code >= _SCRIPTS[0][0] and not 0x1E00 <= code < 0x1F00]
    if len(beyond) < 2 or 2 * len(beyond) <= len(letters):
        return None
    found = [language for low, high, language in _SCRIPTS for code in beyond if low <= code <= high]
    if "ja" in found:  # whose texts have more Chinese characters than kana
        return "ja"
    return max(set(found), key=found.count) if found else None


def weight_of(text: str) -> int:
    """Its cost, in characters of ASCII."""
    return len(text) * (1 if text.isascii() else _TIMES_BEYOND_ASCII)


def turns_of(chars: Sequence[float], seconds: float) -> Iterator[tuple[float, slice]]:
    """Reading cut into turns.

    Args:
        chars: cost of each text, in characters of ASCII.
        seconds: of one character.

    Yields:
        Expected seconds of a turn, and the places of its texts.
    """
    start, needs, most = 0, 0.0, _TURN_SECONDS / seconds
    for i, each in enumerate(chars):
        if needs >= most:
            yield needs * seconds, slice(start, i)
            start, needs = i, 0.0
        needs += each
    yield needs * seconds, slice(start, len(chars))


class _Cost:
    """What new text costs, by its characters; the defaults hold until `measure`."""

    reading = 2e-7  # expected seconds, of a character
    scoring = 0.0  # of a token
    tokens = 0.25  # in a character of the texts read lately

    def read(self, chars: float, tokens: int) -> None:
        """Texts of so many characters had so many tokens."""
        self.tokens += _NEWS * (tokens / chars - self.tokens)


class ScorerParts(NamedTuple):
    """What a scorer is made of."""

    manifest: Manifest
    tokenizer: AnyTokenizer
    graphs: Mapping[str, Graph]  # by file name
    telemetry: ModelTelemetry
    queue: Queue
    cache: VectorCache  # keeps the token ids of short texts too
    hints: LanguageHints | None = None  # on texts in another language than the model's; None: there are none


class Reader:
    """Texts of one model -> token ids, from the cache or its tokenizer."""

    def __init__(self, parts: ScorerParts) -> None:
        """Take the parts that reading needs."""
        manifest = parts.manifest
        self.manifest = manifest
        self._token = parts.tokenizer.token
        self._most_chars = manifest.limits.max_tokens * _CHARS_OF_A_TOKEN  # of a text that a graph can get
        self._hints = parts.hints
        self._tokenise = partial(parts.tokenizer.encode_all, max_tokens=manifest.limits.max_tokens)
        self._memory = parts.cache.memory
        self._lru = parts.cache.memory.lru(_encoded_bytes)
        self._telemetry = parts.telemetry
        self._queue = parts.queue
        self._cost = _Cost()

    async def read(
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
        """
        began = perf_counter()
        prompt = "" if self.manifest.prompts is None else self.manifest.prompts.of(role)
        if prompt:
            if (empty := next((i for i, text in enumerate(texts) if not has_text(text)), None)) is not None:
                raise EmptyText(field_of(empty))
            texts = [prompt + text for text in texts]
        known = self._lru.get_many(texts)
        sentences = [sentence for sentence in known if sentence is not None]
        if len(sentences) < len(texts):
            sentences = await self._read_new(context, texts, known, len(prompt))
        else:
            context.timings.spent(TOKENISE, began, perf_counter())
        words = unknown = truncated = foreign = 0
        for _, of_sentence, of_them_unknown, cut, language in sentences:
            if not of_sentence:
                raise EmptyText(field_of(next(i for i, sentence in enumerate(sentences) if not sentence.words)))
            words += of_sentence
            unknown += of_them_unknown
            truncated += cut
            if language is not None:
                foreign += 1
                context.timings.languages[language] = None
        self._telemetry.read(
            sentences=len(sentences), truncated=truncated, words=words, unknown=unknown, foreign=foreign
        )
        return sentences

    async def _read_new(
        self, context: RequestContext, texts: Sequence[str], known: Sequence[Encoded | None], prompt: int
    ) -> list[Encoded]:
        """Texts that begin with a prompt of this many characters -> token ids; known ones are given."""
        new = list(dict.fromkeys(text for text, sentence in zip(texts, known, strict=True) if sentence is None))
        chars, scored = self._costs(new)
        if sum(chars) <= _FEW_CHARS:
            began = perf_counter()
            sentences = self.tokenise(new, prompt)
            context.timings.spent(TOKENISE, began, perf_counter())
        else:
            turns = [
                (seconds, partial(self.tokenise, new[part], prompt))
                for seconds, part in turns_of(chars, self._cost.reading)
            ]
            in_all = sum(chars) * self._cost.reading + scored * self._cost.tokens * self._cost.scoring
            read = await self._queue.run_all(context, turns, phase=TOKENISE, in_all=in_all)
            sentences = list(chain.from_iterable(read))
            self._cost.read(scored, sum(len(sentence.ids) for sentence in sentences))
        again = compress(zip(new, sentences, strict=True), self._memory.seen.again(new))
        self._lru.keep(each for each in again if len(each[0]) <= _FEW_CHARS)
        if len(new) == len(texts):  # all of them, each once
            return sentences
        found = dict(zip(new, sentences, strict=True))
        return [sentence or found[text] for text, sentence in zip(texts, known, strict=True)]

    def tokenise(self, texts: Sequence[str], prompt: int = 0) -> list[Encoded]:
        """Texts, which begin with a prompt of this many characters, -> token ids with hints, at once."""
        sentences = self._tokenise(texts)
        if self._hints is not None:
            for i, language in self._hints.on(texts, prompt):
                sentences[i] = sentences[i]._replace(language=language)
        return sentences

    def prompted(self, texts: Sequence[str]) -> list[Encoded]:
        """Texts -> token ids behind the prompt of a text, at once: as golden pairs were published."""
        prompt = "" if self.manifest.prompts is None else self.manifest.prompts.text
        return self.tokenise([prompt + text for text in texts], len(prompt))

    def _costs(self, texts: Sequence[str]) -> tuple[Sequence[float], float]:
        """`_chars` of each text, and what the graph gets of all; at once where all are short and in ASCII, as most."""
        lengths = list(map(len, texts))
        if max(lengths) <= self._most_chars and "".join(texts).isascii():
            return lengths, sum(lengths)
        return list(map(self._chars, texts)), sum(min(weight_of(text), self._most_chars) for text in texts)

    def _chars(self, text: str) -> float:
        """Expected cost of reading, in characters of ASCII within the model's limit, as `_cost` is measured."""
        weight = weight_of(text)
        return min(weight, self._most_chars) + max(weight - self._most_chars, 0) * _BEYOND_THE_LIMIT

    def tokens(self, sentence: Encoded) -> list[str]:
        """The tokens of a sentence, for people: words, word pieces, buckets."""
        return [self._token(i) for i in sentence.ids]


def _encoded_bytes(text: str, sentence: Encoded) -> int:
    return _EACH_TEXT_BYTES + getsizeof(text) + ID_BYTES * len(sentence.ids)
