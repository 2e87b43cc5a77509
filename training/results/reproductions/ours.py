"""Tables that are in no paper: the teacher's loss beside the margin loss, and the published models by seed."""

from training.recipes import RECIPES, gallery
from training.results.reproductions.papers import (
    ALL,
    MEAN_COLUMN,
    SICK_COLUMNS,
    STS_SPLIT_COLUMN,
    TRANSFER,
    YEAR_COLUMNS,
    R,
    printed_in,
)
from training.results.reproductions.table import Order, PaperFigure, PaperTable, Row, published_row

SEEDS = (1, 2, 3)

TEACHER = PaperTable(
    name="transfer-teacher",
    title="The papers' margin loss beside regression to a teacher's cosines",
    columns=TRANSFER,
    rows=(
        Row("avg-margin-random", "AVG, margin, random vectors", note="no teacher anywhere"),
        Row("avg-raw", "distilled vectors averaged", note="no training"),
        Row("gran-avg", "AVG, margin", printed_in("GRAN paper AVG", TRANSFER), "settings of Wieting & Gimpel (2017)"),
        Row("avg-margin", "AVG, margin", note="settings chosen on STS 2016"),
        Row("avg-paraphrase", "AVG, teacher"),
        Row("avg-wide", "AVG, teacher, 384 dimensions", note="and WordNet's definitions"),
        Row("avg-near", "AVG, teacher, near neighbours", note="from avg-paraphrase, and published under its name"),
        Row("avg-wide-near", "AVG, teacher, near neighbours, 384 dimensions", note="from avg-wide"),
        Row("avg-joint", "AVG, teacher and margin", note="the same data and the pairs, from avg-wide"),
        Row("gran-lstm-avg-regularised", "LSTM-AVG, margin", printed_in("GRAN paper LSTM-AVG", TRANSFER)),
        Row("lstm-avg-paraphrase", "LSTM-AVG, teacher"),
        Row("gran-1", "GRAN, margin", printed_in("GRAN paper GRAN", TRANSFER)),
        Row("gran-paraphrase", "GRAN, teacher"),
        Row("gran-glosses", "GRAN, teacher, word dropout", note="and WordNet's definitions"),
        Row("gran-near", "GRAN, teacher, word dropout, near neighbours", note="the same, over the words of avg-near"),
    ),
    note="The same encoders under both. Rows without a paper's figures are ours alone.",
    orders=(
        Order("avg-paraphrase", "avg-margin", ALL),
        Order("avg-near", "avg-paraphrase", ALL),
        Order("avg-wide-near", "avg-near", ALL),
        Order("avg-joint", "avg-wide", ALL),
        Order("lstm-avg-paraphrase", "gran-lstm-avg-regularised", ALL),
        Order("gran-paraphrase", "gran-1", ALL),
        Order("gran-paraphrase", "avg-paraphrase", ALL),
        Order("gran-near", "avg-near", ALL),
    ),
)


SICK_TEACHER = PaperTable(
    name="sick-teacher",
    title="SICK, with and without pre-training on a tuned teacher's ratings",
    columns=SICK_COLUMNS,
    rows=(
        Row("avg-sick", "AVG, from the transfer model", note="no ratings of a teacher"),
        Row("avg-sick-tuned", "AVG, pre-trained on ratings"),
        Row("lstm-avg-sick-tuned", "LSTM-AVG, pre-trained on ratings"),
        Row("gran-sick-tuned", "GRAN, pre-trained on ratings"),
        Row("malstm-sick", "MaLSTM, pre-trained on ratings"),
    ),
    note="One encoder for relatedness and entailment. The rated pairs are of sentences of SICK train and of captions.",
    orders=(
        Order("avg-sick-tuned", "avg-sick", R),
        Order("lstm-avg-sick-tuned", "avg-sick-tuned", R),
        Order("gran-sick-tuned", "avg-sick-tuned", R),
    ),
)


STS_TEACHER = PaperTable(
    name="sts-teacher",
    title="The STS split, from the words of the teacher's transfer run",
    columns=(STS_SPLIT_COLUMN,),
    rows=(
        Row("sts-avg-universal", "AVG, dropout, universal", {STS_SPLIT_COLUMN.name: PaperFigure(82.9)}),
        Row("avg-sts", "AVG, from avg-paraphrase"),
        Row("sts-gran-scrambling", "GRAN, scrambling", {STS_SPLIT_COLUMN.name: PaperFigure(81.4)}),
        Row("gran-sts", "GRAN, dropout, from the words of avg-paraphrase"),
    ),
    note="Pearson r x 100 on the test part. The paper's runs beside ours, which its regularisers and starts lack.",
    orders=(
        Order("avg-sts", "sts-avg-universal", STS_SPLIT_COLUMN.name),
        Order("gran-sts", "sts-gran-scrambling", STS_SPLIT_COLUMN.name),
        Order("gran-sts", "avg-sts", STS_SPLIT_COLUMN.name),
    ),
)


def _shipped() -> tuple[Row, ...]:
    others = {recipe.name for recipe in gallery.RECIPES}  # have a table of their own
    return tuple(
        Row(each.name, each.publication.title, seeds=SEEDS, storage=each.publication.storage)
        for each in RECIPES.values()
        if each.publication is not None and each.name not in others
    )


SHIPPED = PaperTable(
    name="shipped",
    title="Published models, three seeds each",
    columns=(*YEAR_COLUMNS, MEAN_COLUMN, *SICK_COLUMNS),
    rows=_shipped(),
    note="As published, the word table quantised. Seed 1 is the one in models/, of malstm-sick seed 2.",
)

# The paper's rows of the same encoders, where it prints figures per set.
_PAPERS = {
    "projection": "projection",
    "dan": "DAN",
    "rnn": "RNN",
    "lstm": "LSTM",
    "lstm-no-output-gate": "LSTM without output gate",
    "lstm-avg": "GRAN paper LSTM-AVG",
    "gran": "GRAN paper GRAN",
}


def _served() -> tuple[Row, ...]:
    rows = []
    for recipe in gallery.RECIPES:
        assert recipe.publication is not None
        paper = printed_in(_PAPERS[name], TRANSFER) if (name := recipe.publication.model_id) in _PAPERS else {}
        rows.append(published_row(recipe.name, recipe.publication.title, paper))
    return tuple(rows)


GALLERY = PaperTable(
    name="gallery",
    title="Encoders of both papers of Wieting, as they are served",
    columns=TRANSFER,
    rows=_served(),
    note="As published, over the frozen words of `avg-paraphrase`; regressed to a teacher's cosines.",
)
