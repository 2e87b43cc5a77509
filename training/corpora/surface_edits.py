"""The same words written differently, and the same words about another number, made of sentences by rules.

A text says the same as itself (label 1): as it is, with other capitals or punctuation, contracted ("is not", "isn't")
or with a typing error. It says something else with another number (label 0).
"""

import random
import re
from collections.abc import Iterable, Iterator

from training.pairs import Pair

_SHORT = {
    "is not": "isn't",
    "are not": "aren't",
    "was not": "wasn't",
    "were not": "weren't",
    "do not": "don't",
    "does not": "doesn't",
    "did not": "didn't",
    "has not": "hasn't",
    "have not": "haven't",
    "can not": "can't",
    "cannot": "can't",
    "could not": "couldn't",
    "will not": "won't",
    "would not": "wouldn't",
    "should not": "shouldn't",
    "i am": "i'm",
    "i have": "i've",
    "it is": "it's",
    "they are": "they're",
    "we are": "we're",
    "you are": "you're",
    "what is": "what's",
    "there is": "there's",
}
_LONG = {short: long for long, short in _SHORT.items() if long != "can not"}
_WRITTEN = {**_SHORT, **_LONG}
_CONTRACTED = re.compile(rf"\b(?:{'|'.join(sorted(_WRITTEN, key=len, reverse=True))})\b(?!')", re.IGNORECASE)
_WORD = re.compile(r"\b[a-z]{5,}\b")
_NUMBER = re.compile(r"\b\d{1,4}\b")


def surface_edits(sentences: Iterable[str]) -> Iterator[Pair]:
    """One pair of each sentence, and one more of each with a number; label 1 where both say the same.

    Args:
        sentences: any text.
    """
    draw = random.Random(0)
    for sentence in sentences:
        for text, label in _changed(sentence.strip(), draw):
            texts = [sentence.strip(), text]
            draw.shuffle(texts)
            yield Pair(texts[0], texts[1], label=label)


def _changed(sentence: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    edits = (
        _mistyped,
        _mistyped,
        _bare,
        lambda text, _: text,
        lambda text, _: text.lower(),
        lambda text, _: _rewritten(text),
    )
    yield draw.choice(edits)(sentence, draw), "1"
    if found := list(_NUMBER.finditer(sentence)):
        place = draw.choice(found)
        other = int(place[0]) + draw.choice((1, 2, 3, 5, 10, 20))
        yield f"{sentence[: place.start()]}{other}{sentence[place.end() :]}", "0"


def _bare(sentence: str, draw: random.Random) -> str:
    """Without the marks at its end, or without those between words too; itself where nothing would be left."""
    bare = sentence.rstrip(" .!?")
    return (bare if draw.random() < 0.5 else re.sub(r"[,;:!?\"]", "", bare)) or sentence


def _rewritten(sentence: str) -> str:
    """Contractions written out, and the other way round."""

    def other(found: re.Match[str]) -> str:
        text = _WRITTEN[found[0].lower()]
        return text[0].upper() + text[1:] if found[0][0].isupper() else text

    return _CONTRACTED.sub(other, sentence)


def _mistyped(sentence: str, draw: random.Random) -> str:
    """One word of five or more letters with two letters swapped, one left out, or one typed twice."""
    found = list(_WORD.finditer(sentence))
    if not found:
        return sentence
    word = draw.choice(found)
    i = draw.randrange(word.start() + 1, word.end() - 1)
    typed = draw.choice((sentence[i + 1] + sentence[i], sentence[i + 1], sentence[i] * 2 + sentence[i + 1]))
    return sentence[:i] + typed + sentence[i + 2 :]
