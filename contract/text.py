"""Text -> words: Unicode normalisation and word boundaries, the one implementation both halves use.

In order: typographic quotes and dashes made plain, compatibility decomposition (NFKD), accents and invisible
characters dropped, recomposition, full case folding, then one regular expression. Contractions follow the Penn
Treebank ("don't" -> "do", "n't"), as the tokenised corpora and GloVe do. Case *folding* rather than lower-casing,
because it does not depend on context (Greek final sigma) and unfolds sharp s.
"""

import re
import unicodedata

_PLAIN = str.maketrans(
    {
        "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u2032": "'", "\u00b4": "'", "\u02bc": "'",
        "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"', "\u2033": '"', "\u00ab": '"', "\u00bb": '"',
        "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2015": "-", "\u2212": "-",
        "\u2044": "/",
    }
)  # fmt: skip

# Marks (accents, variation selectors) and invisible characters, surrogates included. Unassigned ones stay: to an
# older Python next year's emoji are unassigned, and both must read the same.
_DROPPED = frozenset({"Mn", "Me", "Cf", "Cs", "Co"})
# Marks that make another letter rather than an accented one: ka and ga are as different as k and g.
_VOICING = "\u3099\u309a"
_ASCII_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_NEGATION = re.compile(r"n't(?![^\W_])")
# Scripts written without spaces: every character is a word of its own, so that overlap can be seen.
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")

_WORD = re.compile(
    r"n't(?![^\W_])"  # the negation of "do n't"
    r"|'(?:s|re|ve|ll|d|m)(?![^\W_])"  # clitics
    r"|\d[\d.,]*\d(?![^\W_])"  # 1,000.50
    r"|[^\W_]+"  # letters and digits
    r"|[^\w\s]|_"  # any other visible character alone
)
# The same of text in ASCII, and faster: words, the commonest, first, as far as none of the others begins
# like them.
_ASCII_WORD = re.compile(
    r"[a-mo-z][a-z0-9]*"
    r"|\d[\d.,]*\d(?![a-z0-9])"
    r"|n't(?![a-z0-9])"
    r"|[a-z0-9]+"
    r"|'(?:s|re|ve|ll|d|m)(?![a-z0-9])"
    r"|[^\w\s\x1c-\x1f]|_",  # these four separate words too, but are no white space to an ASCII pattern
    re.ASCII,
)


def normalise(text: str) -> str:
    """Fold text to the form the vocabulary is written in; never raises, may return only white space.

    Folding twice changes nothing more.
    """
    if text.isascii():
        return (text if text.isprintable() else _ASCII_CONTROLS.sub(" ", text)).lower()
    # Quotes first: the decomposition would make a space and an accent of an acute accent typed as an apostrophe.
    decomposed = unicodedata.normalize("NFKD", text.translate(_PLAIN))
    kept = "".join(
        " " if category == "Cc" else character
        for character in decomposed
        if (category := unicodedata.category(character)) not in _DROPPED or character in _VOICING
    )
    folded = unicodedata.normalize("NFC", kept).casefold().translate(_PLAIN)
    # Marks that found nothing to combine with (a voicing mark after a Latin letter).
    return "".join(c for c in folded if unicodedata.category(c) != "Mn")


def split_words(text: str) -> list[str]:
    """Words, clitics, numbers and punctuation marks of a sentence, normalised, in order."""
    folded = normalise(text)
    ascii_only = folded.isascii()
    if not ascii_only:
        folded = _UNSPACED.sub(r" \1 ", folded)
    if "n't" in folded:
        folded = _NEGATION.sub(" n't", folded)
    return (_ASCII_WORD if ascii_only else _WORD).findall(folded)
