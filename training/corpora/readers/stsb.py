"""STS Benchmark (Cer et al. 2017): a selection of STS 2012-2017, so never train on it and test on those."""

from training.corpora.files import one_of, read_rows
from training.pairs import Pair

FILES = {"train": "stsb/sts-train.tsv", "dev": "stsb/sts-dev.tsv"}
HEADER = ("score", "sentence_a", "sentence_b", "genre", "source", "year", "id")


def read(split: str) -> list[Pair]:
    """Pairs of ``train`` (5749) or ``dev`` (1500); ``target`` in 0..5, ``group`` is ``genre/source/year``."""
    file = FILES[one_of("split", split, FILES)]
    return [
        Pair(
            row.text("sentence_a"),
            row.text("sentence_b"),
            row.number("score", 0, 5),
            group=f"{row.raw('genre')}/{row.raw('source')}/{row.raw('year')}",
        )
        for row in read_rows("STS Benchmark", file, HEADER)
    ]
