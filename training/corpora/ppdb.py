"""PPDB, the paraphrase database (Ganitkevitch et al. 2013; Pavlick et al. 2015): words and human-rated phrases."""

from training.corpora.files import CorpusError, one_of, read_lines, read_rows
from training.pairs import Pair

NEIGHBOURS_FILE = "ppdb-lexical/ppdb-1.0-xl-lexical-neighbours.txt.gz"
WORD_PAIR_FILES = {
    "1.0-xxxl": ("ppdb-lexical/ppdb-1.0-xxxl-lexical-synonym-pairs.tsv.gz", ("word_a", "word_b")),
    "2.0-xxl": ("ppdb-lexical/ppdb-2.0-xxl-lexical-equivalence.tsv", ("tag", "longer", "shorter")),
}
RATING_FILES = {"ppdb": "ppdb-human-ratings/ppdb-sample.tsv", "wiki": "ppdb-human-ratings/wiki-sample.tsv"}


def neighbours() -> dict[str, list[str]]:
    """PPDB 1.0 XL lexical: word -> its paraphrases, 374,553 word pairs."""
    found: dict[str, list[str]] = {}
    for number, line in read_lines("PPDB 1.0 XL", NEIGHBOURS_FILE):
        word, *others = line.split(" ")
        if not word or not others or "" in others:
            raise CorpusError(
                f"{NEIGHBOURS_FILE}, line {number}: expected a word and its paraphrases separated by one space each, "
                f"got {line[:80]!r}"
            )
        found.setdefault(word, []).extend(others)
    return found


def word_pairs(edition: str) -> list[tuple[str, str]]:
    """Paraphrase word pairs: ``1.0-xxxl`` (210,372 rows of synonyms) or ``2.0-xxl`` (50,154 of relation Equivalence).

    Rows with an empty word are left out; the published 1.0 file has two.
    """
    file, header = WORD_PAIR_FILES[one_of("edition", edition, WORD_PAIR_FILES)]
    rows = read_rows(f"PPDB {edition}", file, header)
    pairs = ((row.raw(header[-2]).strip(), row.raw(header[-1]).strip()) for row in rows)
    return [(a, b) for a, b in pairs if a and b]


def rated_phrases(sample: str = "ppdb") -> list[Pair]:
    """Human-rated phrase pairs (Pavlick et al. 2015): ``target`` 1..5, the mean vote; ``group`` the syntactic tag."""
    file = RATING_FILES[one_of("sample", sample, RATING_FILES)]
    header = ("mean_score", "syntactic_tag", "phrase_a", "phrase_b", "ratings")
    return [
        Pair(row.text("phrase_a"), row.text("phrase_b"), row.number("mean_score", 1, 5), group=row.raw("syntactic_tag"))
        for row in read_rows("PPDB human ratings", file, header)
    ]
