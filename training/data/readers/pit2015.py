"""Paraphrase and similarity in Twitter, SemEval-2015 task 1 (Xu, Callison-Burch & Dolan 2015)."""

import re

from training.data.files import checked, one_of, read_rows
from training.data.pairs import Pair

FILES = {"dev": "twitter-pit2015/dev.tsv", "test": "twitter-pit2015/test.tsv"}
_SCORE_COLUMN = {"dev": "votes", "test": "score_0_5"}
_VOTES = re.compile(r"\(([0-5]),([0-5])\)")


def read(split: str, *, debatable: bool = True) -> list[Pair]:
    """Pairs of ``dev`` (4727) or ``test`` (972); ``debatable=False`` leaves those out, as the task's scorer does.

    ``target`` in 0..5 (dev: how many of five people said paraphrase; test: the expert's score), ``label`` 1, 0 or
    ``debatable`` by the organisers' rule, ``group`` the topic's id.
    """
    file = FILES[one_of("split", split, FILES)]
    column = _SCORE_COLUMN[split]
    pairs = []
    for row in read_rows("PIT-2015", file, ("topic_id", "topic", column, "label", "sentence_a", "sentence_b")):
        if split == "dev":
            votes = _VOTES.fullmatch(row.raw("votes"))
            if votes is None or int(votes[1]) + int(votes[2]) != 5:
                raise row.error("five votes as (yes,no) in column votes", row.raw("votes"))
            target = float(votes[1])
        else:
            target = row.number(column, 0, 5)
        label = row.choice("label", ("0", "1", "debatable"))
        pairs.append(Pair(row.text("sentence_a"), row.text("sentence_b"), target, label, row.raw("topic_id")))
    return [pair for pair in checked(file, pairs) if debatable or pair.label != "debatable"]
