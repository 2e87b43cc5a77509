"""Data augmentation: random words replaced by a WordNet synonym, the label kept.

MaLSTM's augmentation (Mueller & Thyagarajan 2016, 10,022 pairs), after X. Zhang, J. Zhao, Y. LeCun, "Character-level
Convolutional Networks for Text Classification", NIPS 2015, section 2.4: how many words are replaced, and by which of
their synonyms, ranked from the most frequent meaning on, are geometric draws.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from core.text import split_words
from training.data.pairs import Pair
from training.data.wordnet import open_wordnet

Thesaurus = Callable[[str], Sequence[str]]  # a word -> its synonyms, the best first


def open_thesaurus(folder: Path) -> Thesaurus:
    """A thesaurus of single words from a WordNet dictionary.

    Words are looked up in their exact form, not by base form: synonyms of "play" do not fit the ending of "plays".
    Function words have none ("a" is an ampere in WordNet). Synonyms come sense by sense, the
    most frequent sense first; phrases are left out.

    Raises:
        WordNetMissing: a file of the dictionary is not there; names the package.
    """
    wordnet = open_wordnet(folder)

    @cache
    def synonyms(word: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        if word in ENGLISH_STOP_WORDS:
            return ()
        for synset in wordnet.synsets(word):
            names = [name.lower() for name in synset.lemma_names()]
            if word in names:
                found.update(dict.fromkeys(n for n in names if n != word and n.isalpha()))
        return tuple(found)

    return synonyms


def augment(pairs: Sequence[Pair], size: int, seed: int, thesaurus: Thesaurus) -> list[Pair]:
    """`size` more pairs: copies of random pairs with at least one word replaced, label and rating kept.

    Sentences are normalised and split as by the tokenizer. All copies are distinct.

    Raises:
        ValueError: the pairs do not have so many different variants.
    """
    rng = np.random.default_rng(seed)
    split = [(split_words(pair.a), split_words(pair.b)) for pair in pairs]
    made: dict[tuple[str, str], Pair] = {}
    for _ in range(50 * size):
        if len(made) == size:
            break
        at = int(rng.integers(len(pairs)))
        a, b = (_replaced(words, rng, thesaurus) for words in split[at])
        if a != split[at][0] or b != split[at][1]:
            texts = (" ".join(a), " ".join(b))
            made.setdefault(texts, replace(pairs[at], a=texts[0], b=texts[1]))
    if len(made) < size:
        raise ValueError(f"{len(pairs)} pairs gave {len(made)} variants with synonyms, {size} were asked for")
    return list(made.values())


def _replaced(words: list[str], rng: np.random.Generator, thesaurus: Thesaurus) -> list[str]:
    replaceable = [i for i, word in enumerate(words) if thesaurus(word)]
    count = min(int(rng.geometric(0.5)) - 1, len(replaceable))  # none in half of the sentences
    changed = list(words)
    for i in rng.choice(replaceable, count, replace=False) if count else ():
        choices = thesaurus(words[i])
        changed[i] = choices[min(int(rng.geometric(0.5)), len(choices)) - 1]
    return changed
