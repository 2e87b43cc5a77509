"""Phrase pairs of the paraphrase database PPDB: those that people rated, and pairs of single words in its order."""

from training.corpora.files import read_rows
from training.pairs import Pair

RATED_FILE = "ppdb-human-ratings/ppdb-sample.tsv"
LEXICAL_FILE = "ppdb-lexical/ppdb-2.0-xxl-lexical-equivalence.tsv"


def rated() -> list[Pair]:
    """The 26,456 pairs of Pavlick et al. (2015), on which Wieting et al. (2016) tuned: ``target`` 1..5.

    ``group`` is the phrases' part of speech in the database, such as ``[NP]``.
    """
    rows = read_rows("PPDB ratings", RATED_FILE, ("mean_score", "syntactic_tag", "phrase_a", "phrase_b", "ratings"))
    return [
        Pair(
            row.text("phrase_a"),
            row.text("phrase_b"),
            row.number("mean_score", 1, 5),
            group=row.text("syntactic_tag"),
        )
        for row in rows
    ]


def lexical() -> list[Pair]:
    """Pairs of words that PPDB 2.0 XXL calls equivalent, the surest first; ``label`` 1.

    50,154 rows; those of which a side is empty are left out.
    """
    rows = read_rows("PPDB", LEXICAL_FILE, ("tag", "longer", "shorter"))
    return [
        Pair(row.text("longer"), row.text("shorter"), label="1", group=row.text("tag"))
        for row in rows
        if row.raw("longer").strip() and row.raw("shorter").strip()
    ]
