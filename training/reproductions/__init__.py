"""Tables by name: what `python -m training reproduce` knows."""

from training.reproductions import gran, malstm, mgim, ours, pwim, supervised, wieting2016
from training.reproductions.table import PaperTable

TABLES: dict[str, PaperTable] = {
    table.name: table
    for table in (
        wieting2016.TABLE_2,
        supervised.WIETING_TABLE_5,
        supervised.WIETING_TABLE_6,
        gran.TABLE_1,
        gran.TABLE_2,
        gran.TABLE_3,
        gran.TABLE_4,
        supervised.GRAN_TABLE_5,
        supervised.GRAN_TABLE_6,
        supervised.GRAN_TABLE_8,
        malstm.SICK,
        malstm.ABLATIONS,
        pwim.SICK,
        pwim.ABLATIONS,
        pwim.STS,
        pwim.ANSWERS,
        mgim.SICK,
        mgim.MSRP,
        ours.TEACHER,
        ours.SICK_TEACHER,
        ours.STS_TEACHER,
        ours.SHIPPED,
    )
}


def find_table(name: str) -> PaperTable:
    """A table by name.

    Raises:
        KeyError: with the names there are.
    """
    if name not in TABLES:
        raise KeyError(f"no table {name!r}; there are {', '.join(TABLES)}")
    return TABLES[name]
