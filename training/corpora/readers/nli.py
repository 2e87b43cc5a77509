"""Natural language inference: SNLI (Bowman et al. 2015) and MultiNLI (Williams et al. 2018).

Of SNLI the development and test parts are read, tokenised, as others redistribute them.
"""

from training.corpora.files import checked, one_of, read_rows
from training.pairs import Pair

SNLI_FILES = {"dev": "snli/snli-dev-tokenised.tsv", "test": "snli/snli-test-tokenised.tsv"}
MULTINLI_FILE = "multinli/multinli-dev.tsv.gz"
HEADER = ("label", "premise", "hypothesis")
LABELS = ("entailment", "neutral", "contradiction")


def snli(split: str) -> list[Pair]:
    """Pairs (a = premise, b = hypothesis) of one SNLI split, ``label`` the gold judgement."""
    return _read("SNLI", SNLI_FILES[one_of("split", split, SNLI_FILES)])


def multinli() -> list[Pair]:
    """The 19,647 MultiNLI dev pairs, matched and mismatched together."""
    return _read("MultiNLI", MULTINLI_FILE)


def _read(corpus: str, file: str) -> list[Pair]:
    return checked(
        file,
        [
            Pair(row.text("premise"), row.text("hypothesis"), label=row.choice("label", LABELS))
            for row in read_rows(corpus, file, HEADER)
        ],
    )
