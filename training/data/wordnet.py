"""WordNet (G. A. Miller 1995): where it lies, how it is opened, and pairs of its definitions.

It is the Debian package `wordnet-base`, read with nltk; its licence allows any use.
"""

import io
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from training.data.pairs import Pair
from training.errors import UserError

FILES = tuple(f"{kind}.{part}" for part in ("adj", "adv", "noun", "verb") for kind in ("index", "data"))
_LEXICOGRAPHER_FILES = 45  # of WordNet 3.0; nltk asks for them, the Debian package lacks them, and they are not used
_QUOTED_FROM = re.compile(r"[;\s]*;\s*-.*$|[;\s]+$")  # an example's author after the definition, or its empty place


class WordNetMissing(UserError):
    """A WordNet file is not in the expected folder."""


def wordnet_folder() -> Path:
    """Folder of WordNet's dictionary: SEMBLANCE_WORDNET, or Debian's. Read at every call."""
    return Path(os.environ.get("SEMBLANCE_WORDNET") or "/usr/share/wordnet")


def check_wordnet(folder: Path) -> None:
    """Raise WordNetMissing, which names the package, where a file of the dictionary is not there."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise WordNetMissing(
            f"{folder}: no WordNet here ({missing[0]} is missing): install the package wordnet-base, "
            "or set SEMBLANCE_WORDNET to the folder of its dict files"
        )


def open_wordnet(folder: Path) -> Any:
    """nltk's reader of the dictionary, English only.

    Raises:
        WordNetMissing: a file of the dictionary is not there; names the package.
    """
    check_wordnet(folder)
    import nltk.data
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class EnglishWordNet(WordNetCorpusReader):
        """English synonyms only, without the files that nltk adds to WordNet's own."""

        def open(self, file: str) -> io.StringIO:
            """Read the whole file, because nltk would leave it open."""
            if file == "lexnames" and not (folder / file).is_file():
                return io.StringIO("".join(f"{i:02d}\tunnamed\t0\n" for i in range(_LEXICOGRAPHER_FILES)))
            return io.StringIO((folder / file).read_text(encoding="ascii"))

        def map_wn(self, version: str = "wordnet") -> None:
            """No mapping between versions of WordNet."""

    if str(folder) not in nltk.data.path:
        nltk.data.path.append(str(folder))  # nltk opens files only in these folders
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing other languages
        return EnglishWordNet(str(folder), None)


def definition_pairs(wordnet: Any) -> Iterator[Pair]:
    """Definitions of nearly one meaning in two wordings, label 1; an unordered pair of meanings once.

    They are those of words derived from one another ("announce", "announcement"), of an adjective and of those listed
    as similar to it, and the two halves of a definition of a verb, adjective or adverb that says its meaning twice
    ("reach the highest point; attain maximum intensity").

    Args:
        wordnet: the reader of `open_wordnet`.
    """
    seen: set[tuple[str, str]] = set()
    for sense in wordnet.all_synsets():
        definition = _QUOTED_FROM.sub("", sense.definition())
        first, semicolon, second = definition.partition(";")
        if semicolon and sense.pos() != "n":  # a noun's second half tells more of the thing
            yield Pair(first.strip(), second.strip(), label="1")
        derived = (form.synset() for lemma in sense.lemmas() for form in lemma.derivationally_related_forms())
        for other in (*derived, *sense.similar_tos()):
            key = min(sense.name(), other.name()), max(sense.name(), other.name())
            if other != sense and key not in seen:
                seen.add(key)
                yield Pair(definition, _QUOTED_FROM.sub("", other.definition()), label="1")
