"""Tables of Wieting et al. (2016), Towards universal paraphrastic sentence embeddings."""

from training.reproductions.papers import ALL, MEAN_COLUMN, SICK_COLUMN, YEAR_COLUMNS, printed_in
from training.reproductions.table import Order, PaperTable, Row

_TRANSFER = (*YEAR_COLUMNS, SICK_COLUMN, MEAN_COLUMN)


def _row(recipe: str, label: str, model: str) -> Row:
    return Row(recipe, label, printed_in(model, _TRANSFER))


TABLE_2 = PaperTable(
    name="wieting2016-table2",
    title="Wieting et al. (2016), Table 2: transfer of every encoder",
    columns=_TRANSFER,
    rows=(
        Row("avg-raw", "raw vectors averaged", printed_in("PARAGRAM-SL999", _TRANSFER), "the paper's: PARAGRAM-SL999"),
        _row("pp-avg", "PARAGRAM-PHRASE (averaging)", "PP"),
        _row("pp-projection", "projection", "projection"),
        _row("pp-dan", "DAN", "DAN"),
        _row("pp-rnn", "RNN", "RNN"),
        _row("pp-irnn", "iRNN", "iRNN"),
        _row("pp-lstm-no-gate", "LSTM, no output gate", "LSTM without output gate"),
        _row("pp-lstm", "LSTM, output gate", "LSTM"),
    ),
    note="The paper trains on PPDB phrase pairs from PARAGRAM-SL999 vectors, we on 160,000 sentence pairs from "
    "distilled vectors. Its means are recomputed from its figures per set, over the sets at hand.",
    orders=(
        Order("pp-avg", "avg-raw", ALL),
        Order("pp-avg", "pp-rnn", ALL),
        Order("pp-avg", "pp-lstm", ALL),
        Order("pp-avg", "pp-dan", ALL),
        Order("pp-irnn", "pp-rnn", ALL),
        Order("pp-lstm-no-gate", "pp-lstm", ALL),
    ),
)
