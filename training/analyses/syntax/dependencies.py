"""Dependency labels of sentences, from Link Grammar's parses.

Link Grammar (D. Sleator, D. Temperley, "Parsing English with a Link Grammar", 1993) is a kept parser, and its English
dictionary a Debian package, so no model is downloaded: `apt-get install link-grammar`. It joins pairs of words by typed
links, which are no tree and have no heads. `stanford_labels` reads from them, by rules of ours, the names that the
Stanford dependencies give the relation of a word to its head (M.-C. de Marneffe, C. Manning, "Stanford typed
dependencies manual"). Words that no rule covers have no label.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from training.analyses.analysis import AnalysisError

PROGRAM, WALL = "link-parser", "LEFT-WALL"  # the wall is printed where the parse links it
OPTIONS = ("en", "-graphics=0", "-postscript=1", "-limit=100", "-timeout=2", "-verbosity=1")
# Forms that link-parser prints around a word: its sense (king.n), a guess ([?].n, [!<YEAR-DATE>]).
_MARKS = re.compile(r"\[[?!~&][^]]*\]|\.[a-z,=-]{1,6}$")
_BE = {"am", "is", "are", "was", "were", "be", "been", "being", "'s", "'re", "'m"}
_POSSESSIVE = {"my", "your", "his", "her", "its", "our", "their"}


class Link(NamedTuple):
    """Between two words, by position; the capitals of `kind` are its type, the rest its subtype."""

    left: int
    right: int
    kind: str


class Parse(NamedTuple):
    """A sentence as link-parser cuts it; position 0 is the wall before it. Words keep their case and senses."""

    words: Sequence[str]
    links: Sequence[Link]

    def plain(self) -> list[str]:
        """The words without their senses, and without the wall."""
        return [_MARKS.sub("", _MARKS.sub("", word)) if len(word) > 1 else word for word in self.words[1:]]


def parses(sentences: Sequence[str]) -> list[Parse | None]:
    """The best parse of each sentence, words separated by spaces; None where a word, or the wall, has no link.

    Raises:
        AnalysisError: link-parser is not installed, or it answers another number of sentences.
    """
    if shutil.which(PROGRAM) is None:
        raise AnalysisError(f"{PROGRAM} is not installed: it comes with the Debian package link-grammar")
    # A line that begins with one of these would be a command or a comment.
    lines = "".join(("." if each[:1] in "!*%" else each) + "\n" for each in sentences)
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [PROGRAM, *OPTIONS], input=lines, capture_output=True, text=True, encoding="utf-8", env=environment, check=True
    )
    found = list(read_postscript(done.stdout))
    if len(found) != len(sentences):
        raise AnalysisError(f"{PROGRAM} answered {len(found)} of {len(sentences)} sentences")
    return found


def read_postscript(text: str) -> Iterator[Parse | None]:
    """Parses in what link-parser prints with `-postscript=1`: for each a list of words and a list of links.

    The third number of a link, its height in a drawing, may be any number, negative ones too.
    """
    for words, links in re.findall(r"^\[(\(.*?\))\]\n\[(.*?)\]\n\[0\]$", text, re.MULTILINE | re.DOTALL):
        parse = Parse(
            re.findall(r"\((.*?)\)(?=\(|$)", words.replace("\n", "")),
            [Link(int(a), int(b), kind) for a, b, kind in re.findall(r"\[(\d+) (\d+) -?\d+ \(([^)]*)\)\]", links)],
        )
        whole = parse.words[0] == WALL and not any(word.startswith("[") for word in parse.words)
        yield parse if whole else None


class _Rule(NamedTuple):
    """Links of a type give one of their two words a label."""

    kind: str  # a regular expression of the whole kind
    word: Literal["left", "right"]
    label: str
    where: Callable[[str, str], bool] = lambda left, right: True  # of both words as printed, in lower case


def _be(left: str, right: str) -> bool:
    return left.split(".")[0] in _BE


def _not_be(left: str, right: str) -> bool:
    return not _be(left, right)


# The first rule that gives a word a label counts. Link types: the documentation of Link Grammar's English dictionary.
_RULES = (
    _Rule(r"SF.*", "left", "expl"),
    _Rule(r"Y[SP].*", "right", "possessive"),
    _Rule(r"Y[SP].*", "left", "poss"),
    _Rule(r"D.*", "left", "poss", lambda left, right: left.split(".")[0] in _POSSESSIVE),
    _Rule(r"Pv.*", "left", "auxpass"),
    _Rule(r"PP.*|I(?!V|N|D).*", "left", "aux"),
    _Rule(r"Pg.*", "left", "aux", _be),
    _Rule(r"TO.*", "right", "aux"),
    _Rule(r"Pa\*\*j.*", "right", "xcomp"),
    _Rule(r"Pa.*", "right", "acomp", _not_be),
    _Rule(r"IV.*|Pg.*", "right", "xcomp", _not_be),
    _Rule(r"S(?!F|I|J).*", "left", "nsubj"),
    _Rule(r"SI.*", "right", "nsubj"),
    _Rule(r"O(?!F|J).*", "right", "dobj", _not_be),
    _Rule(r"J.*", "right", "pobj"),
    _Rule(r"Mgp.*", "right", "pcomp"),
    _Rule(r"M[vg].*", "right", "vmod"),
    _Rule(r"MVp.*|M[pfj].*|Pp.*|OF.*", "right", "prep"),
    _Rule(r"NN.*", "left", "number"),
    _Rule(r"D.*", "left", "num", lambda left, right: bool(re.match(r"\d", left))),
    _Rule(r"Dmcn.*|Dmcy.*", "left", "num"),
    _Rule(r"D.*", "left", "det"),
    _Rule(r"Ma.*", "right", "amod"),
    _Rule(r"A", "left", "amod"),
    _Rule(r"AN.*", "left", "amod", lambda left, right: re.search(r"\.(a|v|g|v-d)$", left) is not None),
    _Rule(r"AN.*|GN.*|G(?!J).*", "left", "nn"),
    _Rule(r"MX[sp]?", "right", "appos"),
    _Rule(r"E(?!J|C|I).*", "left", "advmod"),
    _Rule(r"EB.*|MV[ab].*", "right", "advmod"),
    _Rule(r"MVs.*|TH.*", "right", "mark"),
    _Rule(r"Cs.*", "left", "mark"),
)
_RULES_OF_KIND = tuple((re.compile(rule.kind), rule) for rule in _RULES)
_COORDINATED = re.compile(r"[SVAEMO]J([lr]).*")
_HELPING = re.compile(r"(P[gvP]|I(?!V|N|D)).*")  # from a helping verb to the next verb
_PREDICATE = re.compile(r"(Pa(?!\*\*j)|O(?!F|J)).*")


def _helps(link: Link, words: Sequence[str]) -> bool:
    """Not where the first of the two is a verb of its own: began working."""
    return not link.kind.startswith("Pg") or _be(words[link.left], words[link.right])


def stanford_labels(parse: Parse) -> list[str | None]:
    """For each word without the wall, its relation to its head by the rules; None for a word that none covers.

    As in the Stanford dependencies, the first of coordinated words has the relation of all of them, the others are
    `conj` and the conjunction `cc`; a predicate after a form of `be` has the relation of its clause, the form is `cop`.
    """
    words = [word.lower() for word in parse.words]
    labels = {at: "neg" for at, word in enumerate(words) if word.split(".")[0] in ("not", "n't")}
    helped = {link.left: link.right for link in parse.links if _HELPING.fullmatch(link.kind) and _helps(link, words)}
    for link in parse.links:
        if link.kind.startswith("WV"):
            main = link.right
            while main in helped:
                main = helped[main]
            labels[main] = "root"
    for kind, rule in _RULES_OF_KIND:
        for link in parse.links:
            word = link.left if rule.word == "left" else link.right
            if word not in labels and kind.fullmatch(link.kind) and rule.where(words[link.left], words[link.right]):
                labels[word] = rule.label
    for link in parse.links:  # and -> its conjuncts
        if side := _COORDINATED.fullmatch(link.kind):
            coordinator, conjunct = (link.right, link.left) if side[1] == "l" else (link.left, link.right)
            if side[1] == "r":
                labels[conjunct] = "conj"
            elif coordinator in labels:
                labels[conjunct] = labels[coordinator]
    for link in parse.links:
        if side := _COORDINATED.fullmatch(link.kind):
            labels[link.right if side[1] == "l" else link.left] = "cc"
    expletive = {link.right for link in parse.links if link.kind.startswith("SF")}
    for link in parse.links:
        if _PREDICATE.fullmatch(link.kind) and words[link.left].split(".")[0] in _BE:
            if link.left in expletive and link.kind.startswith("O"):
                labels[link.right] = "nsubj"  # there is a king
            elif link.left in labels:
                labels[link.right], labels[link.left] = labels[link.left], "cop"
    return [labels.get(at) for at in range(1, len(words))]
