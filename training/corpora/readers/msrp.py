"""Microsoft Research Paraphrase Corpus (Dolan, Quirk & Brockett 2004). Its train part contains STS 2012 MSRpar test."""

from training.corpora.files import checked, one_of, read_rows
from training.pairs import Pair

FILES = {"train": "msrp/msr_paraphrase_train.txt", "test": "msrp/msr_paraphrase_test.txt"}
HEADER = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")


def read(split: str) -> list[Pair]:
    """Pairs of ``train`` (4076) or ``test`` (1725); ``label`` 1 = paraphrase, ``group`` the two sentence ids."""
    file = FILES[one_of("split", split, FILES)]
    return checked(
        file,
        [
            Pair(
                row.text("#1 String"),
                row.text("#2 String"),
                label=row.choice("Quality", ("0", "1")),
                group=f"{row.raw('#1 ID')}-{row.raw('#2 ID')}",
            )
            for row in read_rows("MSRP", file, HEADER)
        ],
    )
