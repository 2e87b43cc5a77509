"""Attributes of which a thing has one, and negations: "navy, L" is not "charcoal, L", "dimmable" not "not dimmable".

The table is of everyday English and small on purpose: a word that is absent from it decides nothing.
"""

import re
from collections.abc import Iterable
from itertools import pairwise

from core.units import EITHER, FRACTIONS, LARGE, NUMBERED, SMALL, UNITS, word_set

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]*)?")
_WORD_OR_MARK = re.compile(r"[^\W_]+(?:'[^\W_]*)?|[^\w\s]")
_BY_THEIR_NAME: dict[str, tuple[str, ...]] = {  # attribute -> words each of which is a value
    "colour": (
        *("black", "white", "red", "green", "yellow", "orange", "purple", "pink", "brown", "beige", "silver"),
        *("violet", "grey", "blue"),
    ),
    "material": (
        *("oak", "beech", "pine", "walnut", "steel", "zinc", "brass", "copper", "aluminium", "plastic", "leather"),
        *("cotton", "wool", "linen", "silk", "polyester", "glass"),
    ),
    "weekday": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    "point of the compass": ("north", "south", "east", "west"),
    "side": ("left", "right", "front", "rear"),
    "height": ("upper", "lower"),
    "order": ("before", "after"),
    "condition": ("new", "used", "refurbished"),
    "number of beds": ("single", "double", "twin"),
}
_ATTRIBUTES: dict[str, dict[str, str]] = {  # attribute -> a word and the value that it stands for
    **{attribute: dict(zip(words, words, strict=True)) for attribute, words in _BY_THEIR_NAME.items()},
    "shade": {"gray": "grey", "charcoal": "grey", "anthracite": "grey", "navy": "blue"},
    "for whom": {
        **dict.fromkeys(("men", "men's", "mens"), "men"),
        **dict.fromkeys(("women", "women's", "womens", "ladies", "ladies'"), "women"),
        **dict.fromkeys(("children", "children's", "kids", "kids'"), "children"),
    },
    "weekday of each week": {f"{day}s": day for day in _BY_THEIR_NAME["weekday"]},
    "quarter": {"northern": "north", "southern": "south", "eastern": "east", "western": "west"},
    "temperature": {"warm": "warm", "hot": "warm", "cool": "cool", "cold": "cool"},
    "duty": {"must": "must", "shall": "must", "can": "may", "may": "may", "might": "may", "could": "may"},
    "maker": {"original": "original", "genuine": "original", "compatible": "compatible", "generic": "compatible"},
}
_SAME_KIND = {"shade": "colour", "weekday of each week": "weekday", "quarter": "point of the compass"}
_VALUES = {
    word: (_SAME_KIND.get(attribute, attribute), value)
    for attribute, words in _ATTRIBUTES.items()
    for word, value in words.items()
}
_SUBJECTS = word_set(
    "i you he she we they it who was were be been being have has had having get got never i've you've we've they've"
)
# Words that are no value behind some words or before others: was left, left me, right now, the voucher that I used.
_NO_VALUES = {
    "left": (
        _SUBJECTS | {"is", "are"},
        word_set("me us him her them you it my our his their the a an over out behind unable without"),
    ),
    "right": (word_set("all is are was were be it's that's you're"), word_set("now away here there")),
    "used": (_SUBJECTS, word_set("to it the my our your this that for by as")),
}
_LETTER_SIZE = re.compile(r"(?<![\w.&'-])(?<!\d )(?:XXS|XS|S|M|L|XL|XXL|XXXL)(?![\w&'-]|\.(?!\s*$))")
_BLOOD = re.compile(r"(?<!\w)(?:AB|A|B|O)(?:[+-](?![\w+-])|[ -](?:positive|negative)\b)")
# I alone is a numeral only behind these.
_ROMAN = re.compile(r"(?<![\w.'-])(?:II|III|IV|VI{1,3}|IX|XI{1,3}|XIV|XV|XVI)(?![\w'-])")
_FIRST = re.compile(
    r"\b(?:[Ww]ar|[Tt]ype|[Pp]hase|[Pp]art|[Ss]tage|[Cc]lass|[Tt]itle|[Vv]olume|[Gg]rade|[Ll]evel) (I)(?!\w)(?!')"
)
# What may have a letter for its name: user A.
BEFORE_A_LETTER = frozenset(
    (
        *("appendix", "block", "building", "bus", "category", "channel", "class", "clause", "client", "company", "cup"),
        *("customer", "exit", "flat", "gate", "grade", "group", "hall", "hepatitis", "influenza", "level", "line"),
        *("model", "option", "part", "party", "person", "phase", "plan", "platform", "port", "room", "section"),
        *("series", "team", "terminal", "tier", "track", "type", "unit", "user", "version", "vitamin", "wing"),
        "zone",
    )
)
_TICKS = dict.fromkeys("\u2705\u2713\u2714\u2611", "done") | dict.fromkeys("\u274c\u2717\u2718\u2612", "not done")
_TICKS |= {"=": "equal", "\u2260": "unequal"}
_DAYS = _BY_THEIR_NAME["weekday"]
_SHORT = [day[:3] for day in _DAYS]
_DAY = "((?a:" + "|".join(f"{day[:3]}(?:{day[3:]}s?|{day[3:4]}|{day[3:5]})?" for day in _DAYS) + "))"
_FROM_DAY_TO_DAY = re.compile(
    rf"\b{_DAY}\.?[ ]{{0,2}}(?:to|through|thru|till|until|-)[ ]{{0,2}}{_DAY}\b", re.IGNORECASE
)
# Behind these words or beside another day "Tue" is one; else it may be a person, as "Sun" may be what shines.
_SHORT_DAY = re.compile(r"\b(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\b(?!['-])")
_ANY_DAY = rf"(?:{_SHORT_DAY.pattern}|(?:{'|'.join(_DAYS).title()})\b)"
_SHORT_DAYS = re.compile(
    rf"\b(?:[Oo]n|[Ee]very|[Ee]ach|[Tt]his|[Nn]ext|[Ll]ast|[Uu]ntil|[Tt]ill) {_SHORT_DAY.pattern}(?! [A-Z])"
    rf"|{_ANY_DAY}(?:(?:, ?| ?[/&+] ?|,? (?:and|or) ){_ANY_DAY})+"
)
_PARTS_OF_A_WEEK = {"weekday": (0, 4), "weekend": (5, 6)}
_POWER = {each: each for each in ("on", "off", "up", "down")}
_ENTER = {"in": "in", "on": "in", "out": "out", "off": "out", "up": "up"}
# Stem of a verb -> a word of direction, and which it stands for.
_SWITCHED = {
    **{"turn": _POWER, "switch": _POWER, "power": _POWER},
    **{"log": _ENTER, "logg": _ENTER, "sign": _ENTER},
}
_CHANGED = (
    *("rose", "rise", "rising", "fell", "fall", "increas", "decreas", "grew", "grow", "drop", "declin", "climb"),
    *("reduc", "rais", "lower"),
)
_NOT = ("do", "does", "did", "is", "are", "was", "were", "has", "have", "had", "ca", "wo", "could", "should", "would")
NEGATIONS = frozenset(
    (
        *("not", "no", "never", "without", "cannot", "neither", "nor", "none", "nobody", "nothing", "nowhere"),
        *(f"{word}n{mark}t" for word in (*_NOT, "must", "need", "ai") for mark in ("'", "")),
    )
)
# Between a negation and its word.
_PASSED_OVER = frozenset(
    (
        *("a", "an", "the", "be", "been", "being", "any", "it", "to", "do", "longer", "more", "very"),
        *("of", "one", "able", "these", "those", "is", "are", "was", "were", "has", "have", "had"),
    )
)
_HOW_MANY = {
    **dict.fromkeys(("all", "every", "each", "both"), "all"),
    **dict.fromkeys(("some", "several", "few", "certain"), "some"),
    **dict.fromkeys(("no", "none", "neither"), "none"),
    "most": "most",
}
_PEOPLE = {
    **dict.fromkeys(("everyone", "everybody"), "all"),
    **dict.fromkeys(("someone", "somebody"), "some"),
    "nobody": "none",
}
# Behind these a number is another one, or a limit: at least one, one or two, this one, version one.
_NOT_SO_MANY = NUMBERED | word_set(
    "least most than to or under over within about up not no the this that another every each any which version phase"
)
_NOT_COUNTED = word_set(
    """
    a am an and another are as at be because been before but by can cannot could did do does else for from had has have
    he i if in into is it may me might more must my needs not of off on or our out over per please she should so than
    that the their then they this to until up was we were what when where which while who will with would you your
    """
)
_NOT_COUNTED |= UNITS.keys() | EITHER.keys() | FRACTIONS.keys() | SMALL.keys() | LARGE.keys()
_MAX_COUNTED = 2  # words behind a number that may be what it counts
_GREETING = re.compile(r"\s*(?:dear|hi|hello|hey)\b[^\d.,!:;?\n]{0,40}[,!:\n]", re.IGNORECASE)
_OF_NOUN = frozenset(("of", "the", "these", "those", "my", "our", "your", "their", "its"))
# Nouns that these words make other phrases of: "all day" is no number of days.
_NO_NOUN = frozenset(("day", "time", "way", "kind", "one", "thing", "reason", "more", "in", "at", "it", "is", "are"))


def attributes(text: str) -> dict[tuple[str, str], str]:
    """The attributes that a text names, each with its value, and how it is written there."""
    found: dict[tuple[str, str], str] = {}
    for match in _LETTER_SIZE.finditer(text):
        found["size", match[0]] = match[0]
    for match in _BLOOD.finditer(text):
        name = match[0].replace("positive", "+").replace("negative", "-").replace(" ", "")
        found["blood group", name.replace("--", "-").replace("-+", "+")] = match[0]
    for match in [*_ROMAN.finditer(text), *_FIRST.finditer(text)]:
        numeral = match[match.re.groups]
        found["numeral", numeral] = numeral
    for mark in _TICKS.keys() & set(text.replace("!=", "\u2260")):
        found["mark", _TICKS[mark]] = mark
    short = {each[0]: _in_full(each) for days in _SHORT_DAYS.finditer(text) for each in _SHORT_DAY.finditer(days[0])}
    in_full = _SHORT_DAYS.sub(lambda days: _SHORT_DAY.sub(_in_full, days[0]), text)
    words = _WORD.findall(in_full.casefold())
    for i, word in enumerate(words):
        if word in _VALUES and not _is_no_value(*words[max(0, i - 1) : i] or [""], *words[i : i + 2], ""):
            found[_VALUES[word]] = word
        if directions := _SWITCHED.get(stem(word)):
            switched = next((each for each in words[i + 1 : i + 5] if each in directions), None)
            if switched is not None:
                found["switched", directions[switched]] = switched
        if word.startswith(_CHANGED):
            for direction, amount in pairwise(words[i + 1 : i + 7]):
                if direction in ("by", "to") and (amount[0].isdigit() or amount in SMALL):
                    found["change of an amount", direction] = direction
        if (part := word.removesuffix("s")) in _PARTS_OF_A_WEEK:
            found |= _weekdays(*_PARTS_OF_A_WEEK[part], word)
    found |= {("weekday", day): written for written, day in short.items()}
    spans = [*_FROM_DAY_TO_DAY.finditer(text)]
    if not spans and len(days := sorted({word for word in words if word in _DAYS}, key=_DAYS.index)) > 1:
        first, last = _DAYS.index(days[0]), _DAYS.index(days[-1])
        in_a_row = last - first == len(days) - 1
        found["part of the week", f"{days[0]} to {days[-1]}" if in_a_row else ", ".join(days)] = ", ".join(days)
    for match in spans:
        first, last = (_SHORT.index(each[:3].lower()) for each in match.groups())
        found |= _weekdays(first, last, match[0])
    return found | _quantifiers(words) | _one_or_more(words) | _named_by_letter(text)


def _is_no_value(before: str, word: str, after: str, *_: str) -> bool:
    """Whether a word of the table is another one there: right now, I used it; left of the door is a side."""
    befores, afters = _NO_VALUES.get(word, ((), ()))
    return after in afters or (before in befores and after != "of")


def _in_full(day: re.Match[str]) -> str:
    return _DAYS[_SHORT.index(day[0][:3].lower())]


def _named_by_letter(text: str) -> dict[tuple[str, str], str]:
    """Which user, room or the like, by its letter: user A is neither user B nor just a user.

    A capital is a name behind any word. "A" where it may be an article is read as both.
    """
    found: dict[tuple[str, str], str] = {}
    article = ("a", "A") if text.isupper() else ("a",)
    greeting = _GREETING.match(text)
    greeted = len(_WORD_OR_MARK.findall(greeting[0])) if greeting else 0  # "dear team" names none
    for i, (word, after) in enumerate(pairwise([*_WORD_OR_MARK.findall(text), ""])):
        noun = word.casefold()
        lettered = len(after) == 1 and after.isalpha() and after not in "Ii"  # a numeral, who writes
        listed = noun in BEFORE_A_LETTER
        if listed and i >= greeted and (not lettered or after in article):
            found.setdefault((f"which {noun}", ""), word)
        if lettered and (listed or (word.isalpha() and after.isupper())):
            found[f"which {noun}", after.upper()] = f"{word} {after}"
    return found


def _weekdays(first: int, last: int, written: str) -> dict[tuple[str, str], str]:
    """All days from one to another, and that they are those: Monday to Friday is not Monday to Saturday."""
    days = [_DAYS[(first + i) % 7] for i in range((last - first) % 7 + 1)]
    return {**{("weekday", day): written for day in days}, ("part of the week", f"{days[0]} to {days[-1]}"): written}


def _quantifiers(words: list[str]) -> dict[tuple[str, str], str]:
    """How many of what: all, some, most or none of the rooms, each an attribute of its own; or of people."""
    found: dict[tuple[str, str], str] = {}
    for i, word in enumerate(words):
        if word in _PEOPLE:
            found["how many people", _PEOPLE[word]] = word
        if word not in _HOW_MANY:
            continue
        noun = next((each for each in words[i + 1 : i + 4] if each not in _OF_NOUN), "")
        if noun.isalpha() and stem(noun) not in _NO_NOUN:
            many = "some" if i and words[i - 1] == "not" else _HOW_MANY[word]
            found[f"how many {stem(noun)}", many] = f"{word} {noun}"
    return found


def _one_or_more(words: list[str]) -> dict[tuple[str, str], str]:
    """Whether a text counts one or more of something: one lift, two lifts."""
    found: dict[tuple[str, str], str] = {}
    for i, word in enumerate(words):
        before = words[i - 1] if i else ""
        if not (word in SMALL or word in LARGE or (word.isdecimal() and len(word) < 4)):  # no year
            continue
        if before in _NOT_SO_MANY or before.isdecimal():
            continue
        one = word in ("one", "1") and before not in SMALL
        for noun in words[i + 1 : i + 1 + _MAX_COUNTED]:
            if noun in _NOT_COUNTED or stem(noun) in _NO_NOUN or not noun.isalpha():
                break
            if one or noun.endswith("s"):
                single = f"{noun[:-3]}y" if noun.endswith("ies") else noun
                found[f"number of {stem(single)}", "one" if one else "more"] = f"{word} {noun}"
    return found


MIN_STEM = 3  # letters


def stem(word: str) -> str:
    """A word without the ending of a verb or of a plural: `charge`, `charges`, `charged` and `charging` have one."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM:
            return word.removesuffix(ending)
    return word


def negated(words: Iterable[str | None]) -> frozenset[str]:
    """Of the words of a text those that are negated: of "does not leak" `leak`, of undamaged `damaged`.

    None ends a phrase.
    """
    found: set[str] = set()
    after = False
    for word in words:
        if word in NEGATIONS or word == "unable":
            after = True
        elif word is None:
            after = False
        elif after and word not in _PASSED_OVER:
            found.add(word)
            after = False
        elif word.startswith("un") and len(word) > len("until") and word != "unless":
            found.add(word[2:])
    return frozenset(found)
