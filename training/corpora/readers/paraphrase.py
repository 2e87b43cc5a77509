"""Paraphrases: Quora, Twitter-URL (automatic and labelled), simplification, Bible versions, phrases of PPDB.

Only the train parts are read: the published test parts overlap them (Quora by 13,798 pairs).
"""

from training.corpora.files import checked, read_rows
from training.pairs import Pair

QUORA_FILE = "quora-paraphrase/train.tsv.gz"
TWITTER_URL_FILE = "twitter-url-paraphrase/train.tsv.gz"
TWITTER_LABELLED_FILE = "twitter-url-labelled/train.tsv.gz"
SIMPLIFICATION_FILE = "simplification/complex-simple-pairs.tsv.gz"
SIMPLIFICATION_EXTRA_FILE = "simplification-extra/simplification-extra.tsv.gz"
BIBLE_FILE = "bible-versions/bible-pairs.tsv.gz"
PHRASES_FILE = "ppdb-human-ratings/ppdb-sample.tsv"

SIMPLIFICATION_SOURCES = ("turkcorpus", "turkcorpus-simplewiki", "asset", "wikisplit", "wikilarge", "wikismall")


def quora() -> list[Pair]:
    """Quora questions marked duplicate (positives only), lower-cased and tokenised; ``label`` 1."""
    return _positives("Quora", QUORA_FILE)


def twitter_url() -> list[Pair]:
    """Tweets sharing a URL (Lan et al. 2017): automatic positives, noisy, lower-cased; ``label`` 1."""
    return _positives("Twitter-URL", TWITTER_URL_FILE)


def twitter_labelled() -> list[Pair]:
    """The human-labelled Twitter-URL pairs (Lan et al. 2017), 42,200 with 11,167 of ``label`` 1."""
    return checked(
        TWITTER_LABELLED_FILE,
        [
            Pair(row.text("sentence_a"), row.text("sentence_b"), label=row.choice("label", ("0", "1")))
            for row in read_rows("Twitter-URL labelled", TWITTER_LABELLED_FILE, ("label", "sentence_a", "sentence_b"))
        ],
    )


def simplification() -> list[Pair]:
    """(complex, simple) sentences, ``label`` 1, ``group`` the source.

    One complex sentence has up to ten simple sides; the simple side of ``wikisplit`` is two sentences.
    """
    rows = read_rows("simplification", SIMPLIFICATION_FILE, ("source", "split", "complex", "simple"))
    return [
        Pair(row.text("complex"), row.text("simple"), label="1", group=row.choice("source", SIMPLIFICATION_SOURCES))
        for row in rows
    ]


def simplification_extra() -> list[Pair]:
    """(complex, simple) sentences of BiSECT and OneStopEnglish, ``label`` 1; none of `simplification`."""
    rows = read_rows("simplification-extra", SIMPLIFICATION_EXTRA_FILE, ("source", "complex", "simple"))
    return [Pair(row.text("complex"), row.text("simple"), label="1") for row in rows]


def bible() -> list[Pair]:
    """The same verse in two of the versions ASV, BBE, KJV and YLT, ``label`` 1, ``group`` both names (``KJV-ASV``)."""
    rows = read_rows("Bible versions", BIBLE_FILE, ("version_a", "version_b", "split", "sentence_a", "sentence_b"))
    return [
        Pair(
            row.text("sentence_a"),
            row.text("sentence_b"),
            label="1",
            group=f"{row.raw('version_a')}-{row.raw('version_b')}",
        )
        for row in rows
        if row.choice("split", ("train", "dev", "test")) == "train"
    ]


def rated_phrases() -> list[Pair]:
    """The 26,456 pairs of Pavlick et al. (2015), on which Wieting et al. (2016) tuned: ``target`` 1..5.

    ``group`` is the phrases' part of speech in the database, such as ``[NP]``.
    """
    rows = read_rows("PPDB ratings", PHRASES_FILE, ("mean_score", "syntactic_tag", "phrase_a", "phrase_b", "ratings"))
    return [
        Pair(
            row.text("phrase_a"), row.text("phrase_b"), row.number("mean_score", 1, 5), group=row.text("syntactic_tag")
        )
        for row in rows
    ]


def _positives(corpus: str, file: str) -> list[Pair]:
    return [
        Pair(row.text("sentence_a"), row.text("sentence_b"), label="1")
        for row in read_rows(corpus, file, ("sentence_a", "sentence_b"))
    ]
