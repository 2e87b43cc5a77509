"""TrecQA answer-sentence selection (Wang, Smith & Mitamura 2007); ``clean`` parts as in Rao, He & Lin 2016."""

from training.corpora.files import checked, one_of, read_rows
from training.pairs import Pair

FILES = {
    "train-all": "trecqa/train-all.tsv.gz",
    "train": "trecqa/train.tsv",
    "dev-raw": "trecqa/dev-raw.tsv",
    "dev-clean": "trecqa/dev-clean.tsv",
    "test-raw": "trecqa/test-raw.tsv",
    "test-clean": "trecqa/test-clean.tsv",
}
HEADER = ("qid", "label", "question", "answer")


def read(split: str) -> list[Pair]:
    """(question, candidate) pairs of one file, Penn-tokenised; ``label`` 1 = correct answer, ``group`` the question."""
    return answers("TrecQA", FILES[one_of("split", split, FILES)])


def answers(corpus: str, file: str) -> list[Pair]:
    """(question, candidate) pairs of a ``qid label question answer`` file, the layout WikiQA shares."""
    return checked(
        file,
        [
            Pair(row.text("question"), row.text("answer"), label=row.choice("label", ("0", "1")), group=row.text("qid"))
            for row in read_rows(corpus, file, HEADER)
        ],
    )
