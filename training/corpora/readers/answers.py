"""Answer-sentence selection: WikiQA (Yang, Yih & Meek 2015) and TrecQA (Wang, Smith & Mitamura 2007).

WikiQA's ``filtered`` parts keep the questions that have a correct answer, as papers report.
TrecQA's ``clean`` parts are those of Rao, He & Lin (2016).
"""

from training.corpora.files import checked, one_of, read_rows
from training.pairs import Pair

WIKIQA = {
    "train": "wikiqa/WikiQA-train.tsv.gz",
    "train-filtered": "wikiqa/WikiQA-train-filtered.tsv",
    "dev": "wikiqa/WikiQA-dev.tsv",
    "dev-filtered": "wikiqa/WikiQA-dev-filtered.tsv",
    "test": "wikiqa/WikiQA-test.tsv",
    "test-filtered": "wikiqa/WikiQA-test-filtered.tsv",
}
TRECQA = {
    "train-all": "trecqa/train-all.tsv.gz",
    "train": "trecqa/train.tsv",
    "dev-raw": "trecqa/dev-raw.tsv",
    "dev-clean": "trecqa/dev-clean.tsv",
    "test-raw": "trecqa/test-raw.tsv",
    "test-clean": "trecqa/test-clean.tsv",
}
HEADER = ("qid", "label", "question", "answer")


def wikiqa(split: str) -> list[Pair]:
    """(question, candidate) pairs of one file, tokenised and not cut; ``label`` 1 = correct, ``group`` the question."""
    return _read("WikiQA", WIKIQA[one_of("split", split, WIKIQA)])


def trecqa(split: str) -> list[Pair]:
    """(question, candidate) pairs of one file, Penn-tokenised; ``label`` 1 = correct answer, ``group`` the question."""
    return _read("TrecQA", TRECQA[one_of("split", split, TRECQA)])


def _read(corpus: str, file: str) -> list[Pair]:
    return checked(
        file,
        [
            Pair(row.text("question"), row.text("answer"), label=row.choice("label", ("0", "1")), group=row.text("qid"))
            for row in read_rows(corpus, file, HEADER)
        ],
    )
