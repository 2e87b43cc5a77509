"""Which language a text seems to be in, by its commonest words: a cheap guess, for a hint in an answer.

Words of a text are looked up in one table of articles, pronouns, prepositions and the like (`common_words`), each of
which counts for the languages that have it. Letters of other scripts, and accented ones, count where a text has some.
Libraries that tell languages apart take ten to thirty times as long, and call a quarter or more of short English titles
and names another language: they always decide, and this does not (`python -m benchmarks.language_hints`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from contract.tokenizer import Encoded
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
# Letters as small ones, the apostrophe as it is, all else as white space.
_KEPT = b"abcdefghijklmnopqrstuvwxyz'"
_LOWER_LETTERS = bytes(code if code in _KEPT else 32 for code in bytes(range(256)).lower())
_NOTHING = repeat(0)


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
