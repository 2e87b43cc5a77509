"""The words of a text in one spelling, so that texts which differ in nothing else are known to be one.

What differs only in case, punctuation, spaces, accents, an apostrophe, `ss` and sharp s, `ae` and a-umlaut, number
words, the spelling of an amount (`core.alignment`), articles, a contraction, a greeting or thanks says the same; no
model needs to be asked. Marks that mean something stay: a sign or a point of a number, a fraction, `%`, `#`, `+`,
currencies, emoji.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from core.alignment import in_one_spelling
from core.attributes import BEFORE_A_LETTER
from core.numerals import APOSTROPHES, GROUPED, Tokens
from core.text import normalise_within, seen
from core.units import LARGE, RANGES, SMALL, SPANS, word_set

_UMLAUTS = {
    0xE4: "ae", 0xF6: "oe", 0xFC: "ue", 0xC4: "Ae", 0xD6: "Oe", 0xDC: "Ue", 0xE6: "ae", 0xC6: "Ae", 0xF8: "oe",
    0xD8: "Oe", 0x153: "oe", 0x152: "Oe",
}  # fmt: skip
_APART = re.compile("(?<=[aouAOU])\u0308")  # an umlaut whose dots are a character of their own
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])['`](?=[^\W\d_])|(?<=s)'(?= )|(?<=\be)[- ](?=mail)")
# Exponents, and fractions after a whole number: NFKC would make 106 of ten to the sixth, 11/2 of one and a half.
_EXPONENT = re.compile("(?<=\\d)[\u207a\u207b]?[\u00b2\u00b3\u00b9\u2070\u2074-\u2079]+")
_FRACTION = re.compile("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215f\u2189])")
_FEET, _MINUS_AFTER = (
    re.compile(r"(?<=\d)'(?![^\W_])"),
    re.compile(r"(?<![^\W_])(ab|[^\W\d_])-(?![\w-])", re.IGNORECASE),
)
# Of "is - 5"; "Total - 50 euros" has no sign.
_SIGN_APART = re.compile(r"\b(is|was|are|were|of|at|to|by|from) [-\u2212\u2013] (?=[\d$\u20ac\u00a3])", re.IGNORECASE)
# A capital behind a word is a name, no article, and so is one before or behind a mark: server A; options A, B; USB-A;
# until articles are gone it is written as a letter like it.
_NAMED_A = re.compile(
    r"(?<=[^\W\d_] )A(?= [^\W\dA-Z_]|[.,;:!?]|\s*$|\s(?! ?[A-Z]))|(?<![^\W_])A(?=[/-]\w)|(?<=\w-)A(?![^\W_])"
)
_NAME_A = "\u1d00"
_UNEQUAL = {
    0x2260: "!=",
    0x226E: "!<",
    0x226F: "!>",
    0x2209: "!\u2208",
    0x2204: "!\u2203",
}  # NFKD would drop the stroke
_TOKEN = re.compile(
    r"(?:(?<![^\s(\[=:])[-+](?=\.?\d))?(?:(?<![^\W_])\.)?\d+(?:[.,/:*]\d+)*(?![^\W_])"  # 1,000.50; -5, but of 3-5 a 5
    r"|(?<![^\s(\[=:])-[$\u20ac\u00a3\u00a5](?=\d)"
    r"|[^\W_]+"
    r"|(?<=\d)\"(?![^\W_])"  # inches
    r"|![=<>\u2208\u2203]+"
    r"|(?<![^\s(])![^\W_]+"  # !enabled
    r"|[^\w\s]"
)
_MEANT = frozenset("+#%@=<>$~^|\u2030\u2032\u2212")  # other symbols by their category
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?$")
_ENDS = frozenset(",.!:;?-")
_LETTERED = re.compile(r"(\d+)([a-z])$")  # 12b is 12 b
EXPANDED, _EXPANDED_FEW = 2, 100  # times as long, and a few characters, a text may become; one character may give 18
# Before these "a" is a name, no article: between A and B; and a few are not few.
_AFTER_A_NAME = word_set(
    """
    am and are as at but can cannot cant could did didnt do does doesnt dont for from had has hasnt have if in is isnt
    few little number
    may might must nor of on or shall should than that to was wasnt were when will with wont would
    """
)
_DAYS = word_set(
    """
    di dienstag do donnerstag fr freitag fri friday mi mittwoch mo mon monday montag sa samstag sat saturday so
    sonnabend sonntag sun sunday thu thur thurs thursday tue tues tuesday wed wednesday
    """
)
_ARTICLES = frozenset(("the", "a", "an"))
_GREETINGS = (
    *(("good", part) for part in ("morning", "afternoon", "evening", "day")),
    *((word,) for word in ("hi", "hello", "hey", "greetings")),
)
_GREETED = word_set("all everybody everyone folks guys madam or sir support team there")
_NO_NAMES = frozenset(("not", "no", "now", "never", "yes", "order"))
# What begins a sentence after a greeting without a comma: "hello I have", but not "Hello Kitty".
_BEGIN = word_set(
    """
    are can could did do does how i im is it ive just my our please sorry the there this we what when where who why
    will would your
    """
)
# Without their apostrophe, which is often left out; not those that are other words then (were, well, ill).
_CONTRACTED = {
    f"{word}{short}": f"{word} {long}"
    for short, long, words in (
        ("nt", "not", "are could did do does had has have is must need should was were would"),
        ("s", "is", "here how it that there what where who"),
        ("ve", "have", "i they we you"),
        ("ll", "will", "it that they you"),
        ("re", "are", "they you"),
        ("m", "am", "i"),
    )
    for word in word_set(words)
} | {"cant": "can not", "cannot": "can not", "wont": "will not"}
_NUMBERED = re.compile(r"\b(?:no\.|nos\.|nr\.?|number)\s*#?(?=\d)", re.IGNORECASE)
_SAYING = frozenset(("say", "says", "said", "saying", "read", "reads", "write", "writes", "wrote"))  # thank you
_THANKS = tuple(
    sorted(
        (
            *(("thanks",), ("thank", "you"), ("many", "thanks"), ("thx",), ("cheers",), ("thanks", "in", "advance")),
            *(("thank", "you", "in", "advance"), ("thanks", "a", "lot"), ("thank", "you", "very", "much")),
            *(("thanks", "so", "much"), ("thank", "you", "so", "much"), ("thanks", "again")),
            *(("thanks", "for", "your", "help"), ("thank", "you", "for", "your", "help"), ("regards",)),
            *((kind, "regards") for kind in ("kind", "best", "warm")),
            *(("best", "wishes"), ("yours", "sincerely"), ("sincerely",), ("yours", "faithfully")),
        ),
        key=len,
        reverse=True,
    )
)


def text_order(text: str) -> tuple[int, str]:
    """By what texts are sorted before they are compared; of those with the same words the first is read for all."""
    return len(text), text


def same_words(text: str) -> str:
    """The words of a text in one spelling, a space between each two; what has no words keeps its marks."""
    text = " ".join(seen(text).split())
    if not text.isupper():
        text = _NAMED_A.sub(_NAME_A, text)
    text = GROUPED.sub(lambda groups: re.sub("[ ()-]", "", groups[0]), text)
    text = in_one_spelling(_SIGN_APART.sub(r"\1 -", text))
    written = _FRACTION.sub(" ", _EXPONENT.sub(r"^\g<0>", _APART.sub("e", text.translate(_UMLAUTS | _UNEQUAL))))
    normalised, rest = normalise_within(written, EXPANDED * len(written) + _EXPANDED_FEW)
    plain = _MINUS_AFTER.sub("\\1 \u2212", normalised.replace("\u2044", "/").replace("\u2215", "/"))
    plain = _with_digits(_NUMBERED.sub("#", APOSTROPHES.sub(",", plain)))
    if plain.count("'") % 2:
        plain = _FEET.sub("\u2032", plain)
    # One by one: to find all those of a long text at once would keep other threads waiting.
    tokens = [each[0] for each in _TOKEN.finditer(_APOSTROPHE.sub("", plain))]
    if tokens.count('"') % 2 == 0:  # quotes, not inches
        tokens = [token for token in tokens if token != '"']
    body = _with_ranges(_without_greeting(_without_thanks(tokens)))
    said = [_spelt(token) for token in body if _is_meant(token)]
    words = [_CONTRACTED.get(word, word) for word in _without_articles(said)]
    return " ".join((words or tokens) + ([rest] if rest else []))


def _with_digits(text: str) -> str:
    """With digits for number words: two thousand five hundred and two is 2502, 2 million 2000000, but two three 2 3."""
    tokens = Tokens(text)
    parts, after, i = [], 0, 0
    while i < len(tokens.words):
        word, large = tokens.words[i], tokens.word(i + 1) in LARGE
        in_words = word in SMALL or (large and (word == "a" or (word.isdecimal() and word[0] != "0")))
        values, end = (tokens.number(i) if in_words else None) or ([Fraction(1)] if word == "one" else [], i + 1)
        if end - i > 3 and tokens.are(end - 3, "and", "a"):  # two and a half: what 2 and a half has
            values, end = [Fraction(values[0] // 1)], end - 3
        if len(values) == 1 and values[0].denominator == 1:
            parts += [text[after : tokens.starts[i]], str(values[0])]
            after = tokens.ends[end - 1]
        i = end
    return "".join((*parts, text[after:]))


def _with_ranges(tokens: Sequence[str]) -> Sequence[str]:
    """With a word for the dash between two numbers or two days: 3-5 is 3 to 5, not 3 and 5; 030-123-456 is neither."""
    found = list(tokens)
    for i in range(1, len(tokens) - 1):
        ends = tokens[i - 1], tokens[i + 1]
        is_range = all(map(str.isdecimal, ends)) or _DAYS.issuperset(ends)
        if tokens[i] in RANGES and is_range and "-" not in (*tokens[max(0, i - 2) : i], *tokens[i + 1 : i + 3]):
            found[i] = "to"
    return found


def _is_meant(token: str) -> bool:
    mark = token[-1]
    return mark.isalnum() or mark in '&"' or mark in _MEANT or unicodedata.category(mark) in ("So", "Sc", "Sm")


def _spelt(token: str) -> str:
    if token == "&":
        return "and"
    if token[0] == ".":
        return f"0{token}" if token[1:].isdigit() else token
    if (lettered := _LETTERED.match(token)) is not None:
        return f"{lettered[1]} {lettered[2]}"
    plain = token.replace(",", "") if _THOUSANDS.match(token.lstrip("-+")) else token
    return f"minus {plain[1:]}" if plain[0] == "-" else plain


def _without_greeting(tokens: Sequence[str]) -> Sequence[str]:
    for greeting in _GREETINGS:
        if tuple(tokens[: len(greeting)]) == greeting:
            end = len(greeting)
            while end < len(tokens) and tokens[end] in _GREETED:
                end += 1
            return _after_marks(tokens, end) if end == len(tokens) or tokens[end] in _ENDS | _BEGIN else tokens
    if tokens[:1] == ["dear"]:
        end = next((i for i, token in enumerate(tokens[:6]) if token in (",", "!", ":")), 0)
        return _after_marks(tokens, end) if _is_name(tokens[:end]) else tokens
    return tokens


def _after_marks(tokens: Sequence[str], start: int) -> Sequence[str]:
    while start < len(tokens) and tokens[start] in _ENDS:
        start += 1
    return tokens[start:] or tokens


def _without_thanks(tokens: Sequence[str]) -> Sequence[str]:
    """Thanks and regards at the end go, once each; after regards a name of at most two words goes too."""
    for _ in range(2):
        end = len(tokens)
        while end and tokens[end - 1] in _ENDS:
            end -= 1
        for name in (0, 1, 2):
            last = end - name
            while name and last > 0 and tokens[last - 1] in _ENDS:
                last -= 1
            thanks = next((each for each in _THANKS if tuple(tokens[max(0, last - len(each)) : last]) == each), None)
            signed = thanks and thanks[-1] in ("regards", "sincerely") and last < end and _is_name(tokens[last:end])
            said = thanks and not _SAYING.isdisjoint(tokens[max(0, last - len(thanks) - 1) : last - len(thanks)])
            if thanks and last > len(thanks) and (not name or signed) and not said:
                tokens = tokens[: last - len(thanks)]
                break
        else:
            return tokens
    return tokens


def _is_name(tokens: Sequence[str]) -> bool:
    """Whether all are letters or marks: no order's number, nor a negation or a time."""
    return not any(token in _NO_NAMES or any(map(str.isdigit, token)) for token in tokens)


def _without_articles(words: Sequence[str]) -> Iterator[str]:
    before = ""
    for word, after in pairwise([*words, ""]):
        named = word == "a" and (before in BEFORE_A_LETTER or before[-1:].isdecimal() or after in _AFTER_A_NAME)
        kept = word not in _ARTICLES or not after or named
        if kept and word != "please" and not (word == "per" and after in SPANS):
            yield "a" if word == _NAME_A else word
        before = word
