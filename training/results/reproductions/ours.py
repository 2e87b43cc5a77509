"""Tables that are in no paper: the published models."""

from training.recipes import RECIPES, gallery
from training.results.reproductions.papers import MEAN_COLUMN, SICK_COLUMNS, TRANSFER, YEAR_COLUMNS, printed_in
from training.results.reproductions.table import PaperTable, Row, published_row

SEEDS = (1, 2, 3)


def _shipped() -> tuple[Row, ...]:
    others = {recipe.name for recipe in gallery.RECIPES}  # have a table of their own, or no column of this one
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
    for recipe in gallery.SERVED:
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
