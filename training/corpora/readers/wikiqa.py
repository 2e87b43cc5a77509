"""WikiQA (Yang, Yih & Meek 2015). ``filtered`` keeps the questions that have a correct answer, as papers report."""

from training.corpora.files import one_of
from training.corpora.readers.trecqa import answers
from training.pairs import Pair

FILES = {
    "train": "wikiqa/WikiQA-train.tsv.gz",
    "train-filtered": "wikiqa/WikiQA-train-filtered.tsv",
    "dev": "wikiqa/WikiQA-dev.tsv",
    "dev-filtered": "wikiqa/WikiQA-dev-filtered.tsv",
    "test": "wikiqa/WikiQA-test.tsv",
    "test-filtered": "wikiqa/WikiQA-test-filtered.tsv",
}


def read(split: str) -> list[Pair]:
    """(question, candidate) pairs of one file, tokenised and not cut; ``label`` 1 = correct, ``group`` the question."""
    return answers("WikiQA", FILES[one_of("split", split, FILES)])
