"""Figures that stand in no mean: tweets of PIT-2015, and PPDB's rated phrases (Wieting et al. 2016, Table 3)."""

from pathlib import Path

from training.markdown import number, table
from training.publish.figures import APART, ApartFigures
from training.records import read_records

# Printed for Twitter (Pearson r x 100; Tables 2 and 4 of the 2016 paper, Table 4 of the 2017 paper) and for the phrases
# of Pavlick et al. (Spearman's rho x 100; the oracle column, because there the paper chose by them), by our model.
TWEETS: dict[str, tuple[float, str]] = {
    "avg-paraphrase": (52.9, "PP; XXL 52.4"),
    "projection": (52.8, "projection"),
    "dan": (53.7, "DAN"),
    "rnn": (45.1, "RNN"),
    "lstm-no-output-gate": (47.6, "LSTM, no output gate"),
    "lstm": (36.1, "LSTM, output gate"),
    "lstm-avg": (52.1, "LSTM-AVG, 2017"),
    "gran": (50.2, "GRAN, 2017"),
}
PHRASES: dict[str, float] = {
    "avg-paraphrase": 60.3,
    "projection": 61.0,
    "dan": 60.9,
    "rnn": 60.5,
    "lstm-no-output-gate": 61.6,
    "lstm": 61.5,
}
_INTRO = (
    "Published models, as they are served (`python -m training evaluate-model models/<id> --only pit2015,ppdb-phrases "
    f"--record {APART}`), in no mean above. **PIT-2015 test**: 838 pairs of tweets without the debatable ones, "
    "Pearson r x 100 of the raw score; no sentence of it is in a training part (`training/data/leakage.py`). **PPDB "
    "phrases**: the 26,456 pairs that people rated, Spearman's rho x 100, of models that embed each text alone. The "
    "paper's models were trained on PPDB and chosen by these phrases, whose scores are close together (60.3 to 61.6; "
    "PARAGRAM-SL999 55.3, GloVe 44.8); ours saw no phrase of it and were not chosen by it. Annotated-PPDB, the table's "
    "third column, is not to be had."
)


def apart(path: Path) -> str:
    """One line a model, best on tweets first."""
    models = read_records(path, ApartFigures)
    if not models:
        return "None measured yet."
    rows = []
    for file in sorted(models, key=lambda each: -(each.value("PIT2015", "test", "pearson") or 0.0)):
        tweets, phrases = file.value("PIT2015", "test", "pearson"), file.value("PPDB phrases", "rated", "spearman")
        papers, which = TWEETS.get(file.model, (None, ""))
        rows.append(
            (
                f"`{file.model}`",
                _hundred(tweets),
                "" if papers is None else f"{papers:.1f} ({which})",
                _hundred(phrases),
                number(PHRASES.get(file.model), 1),
                str(file.measured),
            )
        )
    head = ("model", "PIT-2015 r", "paper", "PPDB phrases rho", "paper", "on")
    return f"{_INTRO}\n\n{table(head, rows)}"


def _hundred(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"
