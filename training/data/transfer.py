"""The test sets of transfer models (Wieting et al. 2016, Table 2), under one naming scheme."""

from training.data.files import one_of
from training.data.pairs import Pair
from training.data.readers import labelled_pairs, sts

# 22 in the paper: less STS 2013 SMT (see `sts.TRANSFER_SETS`), and less PIT-2015, whose score is reported apart.
NAMES: tuple[str, ...] = (*(f"{year}/{name}" for year, name in sts.TRANSFER_SETS), "sick-test")


def read(name: str) -> list[Pair]:
    """Scored pairs of ``<year>/<set>`` (any STS set), ``sick-test`` or ``pit2015-test`` (without debatable pairs)."""
    if name == "sick-test":
        return labelled_pairs.read("sick-test")
    if name == "pit2015-test":
        return [pair for pair in labelled_pairs.read(name) if pair.label != "debatable"]
    known = [f"{year}/{part}" for year, parts in sts.SETS.items() for part in parts]
    year, part = one_of("set", name, [*known, "sick-test", "pit2015-test"]).split("/")
    return sts.read(year, part)
