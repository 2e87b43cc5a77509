"""Definitions and example sentences of WordNet: unlabelled sentences like those of the OnWN and FNWN sets.

A line of its data files
ends with `| definition; "example"; "example"`.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path

from training.data.leakage import evaluation_sentences, normalise_for_overlap
from training.data.mixtures import MAX_WORDS, MIN_WORDS
from training.data.wordnet import check_wordnet

FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
_EXAMPLE = re.compile(r'"([^"]+)"')


def glosses(folder: Path, limit: int, seed: int) -> list[str]:
    """At most `limit` definitions and examples of 3..60 words, each once, none an evaluation sentence, shuffled.

    Raises:
        WordNetMissing: a file is not there; names the package.
    """
    check_wordnet(folder)
    unwanted = evaluation_sentences()
    found: dict[str, str] = {}
    for name in FILES:
        with (folder / name).open(encoding="utf-8") as lines:
            for text in _texts(lines):
                key = normalise_for_overlap(text)
                if key not in unwanted and MIN_WORDS <= len(text.split()) <= MAX_WORDS:
                    found.setdefault(key, text)
    texts = list(found.values())
    random.Random(f"{seed}/wordnet").shuffle(texts)
    return texts[:limit]


def _texts(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        _, bar, gloss = line.partition(" | ")
        if bar:  # the licence at the top has none
            definition = _EXAMPLE.sub("", gloss).strip(" ;\n")
            yield definition
            yield from (example.strip() for example in _EXAMPLE.findall(gloss))
