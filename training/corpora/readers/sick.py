"""SICK, SemEval-2014 task 1 (Marelli et al. 2014): relatedness 1..5 and entailment for the same pairs."""

from training.corpora.files import checked, one_of, read_rows
from training.pairs import Pair

FILES = {"train": "sick/SICK_train.txt", "dev": "sick/SICK_trial.txt", "test": "sick/SICK_test_annotated.txt"}
HEADER = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")
LABELS = ("ENTAILMENT", "NEUTRAL", "CONTRADICTION")


def read(split: str) -> list[Pair]:
    """Pairs of one split (``train`` 4500, ``dev`` = the published trial set 500, ``test`` 4927).

    ``target`` is relatedness in 1..5, ``label`` the entailment judgement of (a = premise, b = hypothesis), ``group``
    the pair's id. Raises `CorpusError`.
    """
    file = FILES[one_of("split", split, FILES)]
    return checked(
        file,
        [
            Pair(
                row.text("sentence_A"),
                row.text("sentence_B"),
                row.number("relatedness_score", 1, 5),
                row.choice("entailment_judgment", LABELS).lower(),
                row.raw("pair_ID"),
            )
            for row in read_rows("SICK", file, HEADER)
        ],
    )
