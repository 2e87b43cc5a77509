"""Pearson r by the length of a pair (Wieting et al. 2016, section 5, Table 7).

As in the paper, all pairs of the STS sets 2012-2015 are pooled and binned by the number of tokens of the longer side.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from contract.text import split_words
from training.analyses.analysis import COLOURS, MARKERS, Analysis, Data, Options, drawing
from training.analyses.trained import Floats, cosines, load
from training.corpora.readers import sts
from training.objectives.metrics import graded
from training.pairs import Pair
from training.results.report.markdown import number, table

SHORTEST, LONGEST = 4, 10  # the first bin takes all that is shorter, the last all that is longer
LABELS = (f"<= {SHORTEST}", *map(str, range(SHORTEST + 1, LONGEST)), f">= {LONGEST}")
# Maximum length, PARAGRAM-PHRASE, LSTM without and with output gate, PARAGRAM-SL999: the paper's Table 7.
PAPER = {
    "PARAGRAM-PHRASE": (72.7, 74.0, 70.5, 73.7, 75.5, 73.0, 72.6),
    "LSTM without output gate": (63.4, 54.5, 52.6, 56.9, 60.2, 58.0, 55.6),
    "LSTM": (58.8, 48.4, 48.2, 50.6, 52.4, 48.8, 53.8),
    "PARAGRAM-SL999": (66.3, 65.0, 50.1, 56.4, 60.1, 58.8, 58.4),
}


def bins(pairs: Sequence[Pair]) -> npt.NDArray[np.int64]:
    """The bin of each pair [n], an index into `LABELS`, by the number of tokens of the longer side."""
    longest = np.array([max(len(split_words(p.a)), len(split_words(p.b))) for p in pairs], dtype=np.int64)
    return np.clip(longest, SHORTEST, LONGEST) - SHORTEST


def by_bin(scores: Floats, ratings: Floats, where: npt.NDArray[np.int64]) -> list[float | None]:
    """Pearson r within each bin; none where there are fewer than three pairs."""
    found: list[float | None] = []
    for each in range(len(LABELS)):
        here = where == each
        found.append(graded(scores[here], ratings[here])["pearson"] if here.sum() >= 3 else None)
    return found


def compute(options: Options) -> Data:
    """Every recipe on all pairs."""
    pairs = [pair for year, name in sts.TRANSFER_SETS for pair in sts.read(year, name)]
    where, ratings = bins(pairs), np.array([pair.target for pair in pairs], dtype=np.float64)
    rows = {
        name: by_bin(cosines(load(name, options.seed, options.runs), pairs), ratings, where) for name in options.recipes
    }
    return {"lengths": list(LABELS), "pairs": np.bincount(where, minlength=len(LABELS)).tolist(), "pearson": rows}


def draw(data: Data, folder: Path) -> None:
    """One line a recipe."""
    with drawing(folder / "pearson-by-length.png", width=8) as [axes]:
        x = range(len(data["lengths"]))
        for i, (name, values) in enumerate(data["pearson"].items()):
            y = [np.nan if value is None else 100 * value for value in values]
            axes.plot(x, y, color=COLOURS[i % 8], marker=MARKERS[i % 8], label=name)
        ticks = [f"{label}\n({n:,})" for label, n in zip(data["lengths"], data["pairs"], strict=True)]
        axes.set_xticks(list(x), ticks)
        axes.set(xlabel="tokens of the longer side (pairs)", ylabel="Pearson r x 100")
        axes.set_title("Pearson r by length, STS 2012-2015 pooled")
        axes.grid(axis="y", alpha=0.3)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def page(data: Data) -> str:
    """Ours above the paper's."""
    ours = [
        (name, *(number(None if v is None else 100 * v, 1) for v in values)) for name, values in data["pearson"].items()
    ]
    papers = [(f"{name} (paper)", *(number(v, 1) for v in values)) for name, values in PAPER.items()]
    counts = [("pairs", *(f"{n:,}" for n in data["pairs"]))]
    return (
        f"Pearson r x 100 over {sum(data['pairs']):,} pairs of the {len(sts.TRANSFER_SETS)} STS sets at hand (20 in "
        "the paper: the text of 2013 SMT may not be passed on), cut into words as our models read them.\n\n"
        + table(("model", *data["lengths"]), [*ours, *papers, *counts])
    )


ANALYSIS = Analysis(
    name="length",
    title="Pearson r by length",
    source="Wieting et al. 2016, section 5, Table 7",
    recipes=("gran-avg", "gran-lstm", "gran-lstm-regularised", "gran-lstm-avg-regularised", "gran-1"),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"pearson-by-length.png": "Pearson r of each recipe over the length of the longer side"},
)
