"""Nearest neighbours of words before and after training (Wieting et al. 2016, section 6, Table 8)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from training.analyses.analysis import COLOURS, Analysis, AnalysisError, Data, Options, drawing
from training.analyses.trained import load, unit
from training.results.report.markdown import table
from training.words.tables import Matrix

COMMON = 10_000  # only the most frequent words are neighbours, as in the paper
COUNT = 7
WORDS = ("unlike", "2", "ladies", "lookin", "disagree", "not", "guitar", "happy")
PAPER = {  # word: after and before training, the paper's Table 8
    "unlike": ("contrary, contrast, opposite, versa, conversely, opposed", "than, although, whilst, though, albeit"),
    "2": ("2.0, two, both, ii, 2nd, couple, 02", "2.0, 3, 1, b, ii, two, 2nd"),
    "ladies": ("girls, daughters, honorable, females, girl", "gentlemen, colleague, fellow, girls, mr"),
    "lookin": ("staring, looking, watching, look, searching", "doin, goin, talkin, sayin, comin"),
    "disagree": ("agree, concur, agreeing, differ, accept", "disagreement, differ, dispute, difference"),
}


def nearest(word: str, words: Sequence[str], rows: Matrix, count: int = COUNT, among: int = COMMON) -> list[str]:
    """The words nearest by cosine, best first, among the first `among`, the word itself left out.

    Args:
        word: one of `words`.
        words: the vocabulary, most frequent first.
        rows: [len(words), D], their vectors.

    Raises:
        AnalysisError: the word is not in the vocabulary.
    """
    if word not in words:
        raise AnalysisError(f"{word!r} is not in the vocabulary")
    directions = unit(rows)
    own = words.index(word)
    similar = directions[:among] @ directions[own]
    if own < among:
        similar[own] = -np.inf
    return [words[i] for i in np.argsort(-similar, kind="stable")[:count]]


def compute(options: Options) -> Data:
    """Neighbours in the word table and after training, and the share that is kept, by frequency."""
    trained = load(options.recipes[0], options.seed, options.runs)
    words = trained.tokenizer.words
    before, after = (rows[1 : 1 + len(words)] for rows in (trained.table_rows, trained.rows))
    lists = {
        word: {"before": nearest(word, words, before), "after": nearest(word, words, after)}
        for word in WORDS
        if word in words
    }
    return {"words": lists, "stayed": stayed(before, after)}


def stayed(before: Matrix, after: Matrix, step: int = 250) -> list[dict[str, float]]:
    """Mean share of the seven nearest neighbours that stayed, by band of frequency rank among the common words."""
    old, new = unit(before[:COMMON]), unit(after[:COMMON])
    shares = []
    for start in range(0, len(old), step):
        rows = np.arange(start, min(start + step, len(old)))
        tops = []
        for directions in (old, new):
            similar = directions[rows] @ directions.T
            similar[np.arange(len(rows)), rows] = -np.inf
            tops.append(np.argpartition(-similar, COUNT, axis=1)[:, :COUNT])
        same = [len(np.intersect1d(a, b)) / COUNT for a, b in zip(*tops, strict=True)]
        shares.append({"rank": float(rows.mean() + 1), "share": float(np.mean(same))})
    return shares


def draw(data: Data, folder: Path) -> None:
    """Share of neighbours that are kept, over frequency."""
    with drawing(folder / "neighbours-that-stayed.png") as [axes]:
        x, y = ([each[key] for each in data["stayed"]] for key in ("rank", "share"))
        axes.plot(x, [100 * value for value in y], "o-", markersize=4, color=COLOURS[0])
        axes.set(xlabel="rank of the word by frequency (bands of 250)", ylabel=f"of the {COUNT} nearest that stayed, %")
        axes.set_title(f"Nearest neighbours kept by training, {data['recipes'][0]}")
        axes.set_ylim(0, 100)
        axes.grid(alpha=0.3)


def page(data: Data) -> str:
    """Ours beside the paper's."""
    rows = [
        (word, ", ".join(lists["after"]), ", ".join(lists["before"]), *PAPER.get(word, ("", "")))
        for word, lists in data["words"].items()
    ]
    head = ("word", "after training", "before", "paper: after", "paper: before")
    return f"By cosine among the {COMMON:,} most frequent words, nearest first.\n\n" + table(head, rows)


ANALYSIS = Analysis(
    name="neighbours",
    title="Nearest neighbours before and after training",
    source="Wieting et al. 2016, section 6, Table 8",
    recipes=("gran-avg",),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"neighbours-that-stayed.png": "share of nearest neighbours that stayed over frequency rank"},
    most=1,
)
