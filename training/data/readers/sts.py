"""Semantic Textual Similarity, SemEval 2012-2016 (Agirre et al.): scores 0..5 by year and set, gold rows only."""

from training.data.files import one_of, read_rows
from training.data.pairs import Pair

HEADER = ("score", "sentence_a", "sentence_b")

SETS: dict[str, tuple[str, ...]] = {
    "2012-train": ("MSRpar", "MSRvid", "SMTeuroparl"),
    "2012-test": ("MSRpar", "MSRvid", "SMTeuroparl", "OnWN", "SMTnews"),
    "2013-test": ("headlines", "OnWN", "FNWN"),
    "2014-test": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "2015-test": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "2016-test": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}

# The STS part of the 22 transfer sets of Wieting et al. 2016, Table 2 (SICK and PIT-2015 have readers of their own),
# without 2013 SMT, whose text may not be redistributed (LDC): it is left out of every mean, the papers' included.
TRANSFER_SETS: tuple[tuple[str, str], ...] = tuple(
    (year, name) for year in ("2012-test", "2013-test", "2014-test", "2015-test") for name in SETS[year]
)


def path_of(year: str, name: str) -> str:
    """Path of a set in the data folder; raises ValueError naming the known years or sets."""
    return f"sts/{one_of('year', year, SETS)}/{one_of('set', name, SETS[year])}.tsv"


def read(year: str, name: str) -> list[Pair]:
    """Pairs of one set, e.g. ``read("2012-test", "MSRvid")``; ``target`` in 0..5, ``group`` is ``year/name``.

    Raises ValueError for an unknown year or set, `CorpusError` for a bad file.
    """
    group = f"{year}/{name}"
    return [
        Pair(row.text("sentence_a"), row.text("sentence_b"), row.number("score", 0, 5), group=group)
        for row in read_rows(f"STS {group}", path_of(year, name), HEADER)
    ]


def read_year(year: str) -> dict[str, list[Pair]]:
    """Every set of one year, by name, in the published order."""
    return {name: read(year, name) for name in SETS[one_of("year", year, SETS)]}
