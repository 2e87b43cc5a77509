"""Undo Penn-style tokenisation, so that tokenised corpora look like user input."""

import itertools
import re

_BRACKETS = re.compile(r"-(lrb|rrb|lsb|rsb|lcb|rcb)-", re.IGNORECASE)
_BRACKET = {"lrb": "(", "rrb": ")", "lsb": "[", "rsb": "]", "lcb": "{", "rcb": "}"}
_QUOTES = re.compile(r"\s*(?:``|'')\s*")
_RULES = (
    (re.compile(r"\s+(n't|'(?:s|re|ve|ll|d|m))(?!\w)", re.IGNORECASE), r"\1"),  # do n't -> don't, it 's -> it's
    (re.compile(r"\s+([,.;:!?%)\]}])"), r"\1"),
    (re.compile(r"([(\[{$#])\s+"), r"\1"),
    (re.compile(r"\s+"), " "),
)


def detokenise(text: str) -> str:
    """``the film -lrb- `` it 's on '' -rrb- , he said .`` -> ``the film ("it's on"), he said.``

    Double quotes open and close alternately, because TrecQA writes both as two apostrophes. Plain text is left almost
    unchanged (runs of white space become one space).
    """
    text = _BRACKETS.sub(lambda bracket: _BRACKET[bracket[1].lower()], text)
    sides = itertools.cycle((' "', '" '))
    text = _QUOTES.sub(lambda _: next(sides), text)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.strip()
