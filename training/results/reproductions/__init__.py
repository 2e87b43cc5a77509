"""Tables of `python -m training reproduce`, by name."""

from training.names import by_name
from training.results.reproductions import gran, gran_supervised, malstm, mgim, ours, paragram_phrase, pwim
from training.results.reproductions.table import PaperTable

TABLES: dict[str, PaperTable] = {
    table.name: table
    for table in (
        paragram_phrase.TABLE_2,
        paragram_phrase.TABLE_5,
        paragram_phrase.TABLE_6,
        gran.TABLE_1,
        gran.TABLE_2,
        gran.TABLE_3,
        gran.TABLE_4,
        gran_supervised.TABLE_5,
        gran_supervised.TABLE_6,
        gran_supervised.TABLE_8,
        malstm.SICK,
        malstm.ABLATIONS,
        malstm.ADADELTA,
        pwim.SICK,
        pwim.ABLATIONS,
        pwim.STS,
        pwim.ANSWERS,
        pwim.ANSWERS_ABLATIONS,
        mgim.SICK,
        mgim.MSRP,
        ours.SHIPPED,
        ours.GALLERY,
    )
}


def find_table(name: str) -> PaperTable:
    """A table by name.

    Raises:
        KeyError: with the nearest names.
    """
    return by_name(TABLES, name, "table", "python -m training reproduce --list")
