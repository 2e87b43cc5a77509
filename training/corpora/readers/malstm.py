"""The released pre-training pairs of MaLSTM (Mueller & Thyagarajan 2016), without pairs of SICK."""

from training.corpora.files import read_rows
from training.pairs import Pair

PAIRS_FILE = "malstm-extras/sts-pretraining-pairs.tsv"


def pretraining_pairs() -> list[Pair]:
    """STS 2012-2015 pairs, ``target`` in 1..5. The 741 rows that are SICK pairs (622 in its test set) are dropped.

    Most STS evaluation sets are in here: fit nothing on them that is then tested on STS.
    """
    rows = read_rows("MaLSTM extras", PAIRS_FILE, ("score", "sentence_a", "sentence_b", "also_in"))
    return [
        Pair(row.text("sentence_a"), row.text("sentence_b"), row.number("score", 1, 5))
        for row in rows
        if row.text("also_in") == "-"
    ]
