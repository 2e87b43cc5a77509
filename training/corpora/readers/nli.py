"""Natural language inference: SNLI (Bowman et al. 2015) and MultiNLI (Williams et al. 2018).

SNLI comes in three forms: ``tokenised`` and ``raw`` (dev and test as others redistribute them; raw dev lacks 11 of the
9842 published rows) and ``official``, all three splits as ``python -m training data fetch snli-1.0`` converts them.
"""

from training.corpora.files import checked, one_of, read_rows
from training.pairs import Pair

SNLI_FILES = {
    "tokenised": {"dev": "snli/snli-dev-tokenised.tsv", "test": "snli/snli-test-tokenised.tsv"},
    "raw": {"dev": "snli/snli-dev-raw.tsv"},
    "official": {
        "train": "snli/snli_1.0_train.tsv.gz",
        "dev": "snli/snli_1.0_dev.tsv.gz",
        "test": "snli/snli_1.0_test.tsv.gz",
    },
}
MULTINLI_FILE = "multinli/multinli-dev.tsv.gz"
HEADER = ("label", "premise", "hypothesis")
LABELS = ("entailment", "neutral", "contradiction")


def snli(split: str, form: str = "tokenised") -> list[Pair]:
    """Pairs (a = premise, b = hypothesis) of one SNLI split, ``label`` the gold judgement."""
    files = SNLI_FILES[one_of("form", form, SNLI_FILES)]
    return _read("SNLI", files[one_of("split", split, files)])


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
