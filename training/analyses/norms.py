"""Norms of word vectors as weights of words (Wieting et al. 2016, section 6).

Measures the share of the gain from training that comes from the norms alone. As in the paper, each untrained vector is
multiplied by the L1 norm of the trained one. Unlike the paper's, our untrained vectors are already weighted by SIF
(a / (a + p), training/teacher/distill.py), so the same is also done with untrained vectors scaled to length 1.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from training.analyses.analysis import COLOURS, Analysis, Data, Options, drawing
from training.analyses.trained import Floats, Trained, averaging, load, pearson, training_pairs, unit
from training.corpora import transfer
from training.corpora.readers import sts
from training.results.report.markdown import number, table
from training.words.tables import Matrix

SIF = 1e-3  # a of a / (a + p), as in the word table
SEEN = 100  # least occurrences of a listed word
LISTED, PLOTTED = 15, 4_000
Weights = npt.NDArray[np.float64]


def weighted(rows: Matrix, weights: Weights) -> Matrix:
    """Rows [V, D], each times its weight [V]."""
    return np.asarray(rows * weights[:, None], dtype=np.float32)


def variants(before: Matrix, after: Matrix, counts: npt.NDArray[np.int64]) -> dict[str, Matrix]:
    """The vectors to compare, by what they are.

    Args:
        before: untrained rows [V, D].
        after: trained rows [V, D].
        counts: occurrences of each id in the training data [V]; those that never occur count as once.
    """
    norms = np.abs(after).sum(axis=1).astype(np.float64)
    directions = unit(before).astype(np.float32)
    frequency = np.maximum(counts, 1) / counts.sum()
    return {
        "untrained": before,
        "untrained x trained norm": weighted(before, norms),
        "untrained / frequency": weighted(before, 1 / frequency),
        "untrained at length 1": directions,
        "length 1 x trained norm": weighted(directions, norms),
        "length 1 x SIF": weighted(directions, SIF / (SIF + frequency)),
        "length 1 / frequency": weighted(directions, 1 / frequency),
        "trained at length 1": unit(after).astype(np.float32),
        "trained": after,
    }


def explained(start: float, scaled: float, trained: float) -> float:
    """Share of the improvement from start to trained that scaling alone gives (64.76 % in the paper)."""
    return (scaled - start) / (trained - start)


def counted(trained: Trained) -> npt.NDArray[np.int64]:
    """Occurrences of each id in the pairs a run was trained on [V]."""
    return np.asarray(sum(np.bincount(side.flat, minlength=len(trained.tokenizer)) for side in training_pairs(trained)))


def extremes(words: Sequence[str], norms: Floats, counts: npt.NDArray[np.int64]) -> tuple[list[str], list[str]]:
    """(words of largest norm, of smallest), among those seen often enough and written in letters."""
    listed = [i for i in np.argsort(-norms, kind="stable") if counts[i] >= SEEN and words[i].isalpha()]
    return [words[i] for i in listed[:LISTED]], [words[i] for i in listed[::-1][:LISTED]]


def compute(options: Options) -> Data:
    """Scores of every variant on STS 2016 and on the test sets; norms beside frequencies."""
    trained = load(options.recipes[0], options.seed, options.runs)
    counts = counted(trained)
    development = list(sts.read_year("2016-test").values())
    tests = [transfer.read(name) for name in transfer.NAMES]

    def mean(rows: Matrix, sets: Sequence[list]) -> float:
        model = averaging(trained, rows)
        return fmean(pearson(model, pairs) for pairs in sets)

    scores = {
        name: {"development": mean(rows, development), "test": mean(rows, tests)}
        for name, rows in variants(trained.table_rows, trained.rows, counts).items()
    }
    words = trained.tokenizer.words
    own = slice(1, 1 + len(words))
    norms = np.abs(trained.rows[own]).sum(axis=1).astype(np.float64)
    first = np.abs(trained.table_rows[own]).sum(axis=1).astype(np.float64)
    seen = np.flatnonzero(counts[own] >= SEEN)
    frequency = counts[own][seen] / counts.sum()
    large, small = extremes(words, norms, counts[own])
    shown = seen[np.linspace(0, len(seen) - 1, min(PLOTTED, len(seen))).astype(int)]
    return {
        "scores": scores,
        "test_sets": len(tests),
        "explained": explained_of(scores, "development"),
        "explained_test": explained_of(scores, "test"),
        "rho_frequency": {
            "before": float(spearmanr(first[seen], frequency).statistic),
            "after": float(spearmanr(norms[seen], frequency).statistic),
        },
        "rho_before_after": float(spearmanr(first[seen], norms[seen]).statistic),
        "largest": large,
        "smallest": small,
        "plotted": {
            "count": counts[own][shown].tolist(),
            "norm": np.round(norms[shown] / norms[seen].mean(), 3).tolist(),
            "sif": np.round(SIF / (SIF + counts[own][shown] / counts.sum()), 4).tolist(),
        },
    }


def explained_of(scores: dict[str, dict[str, float]], what: str) -> dict[str, float]:
    """The share that scaling by the trained norms explains, from the table's vectors and from vectors of length 1."""
    get: Callable[[str], float] = lambda name: scores[name][what]  # noqa: E731 - shorter than a function here
    return {
        "untrained": explained(get("untrained"), get("untrained x trained norm"), get("trained")),
        "length 1": explained(get("untrained at length 1"), get("length 1 x trained norm"), get("trained")),
    }


def draw(data: Data, folder: Path) -> None:
    """Scores as bars; norms over frequency with the SIF weight."""
    with drawing(folder / "scaling.png", width=8, height=4.4) as [axes]:
        names = list(data["scores"])
        for offset, (what, label) in enumerate((("development", "STS 2016"), ("test", f"{data['test_sets']} sets"))):
            values = [100 * data["scores"][name][what] for name in names]
            places = [y + 0.4 * offset - 0.2 for y in range(len(names))]
            axes.barh(places, values, height=0.38, color=COLOURS[offset], label=label)
            for y, value in zip(places, values, strict=True):
                axes.text(value + 0.5, y, f"{value:.1f}", va="center", fontsize=8)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.set(xlabel="mean Pearson r x 100")
        axes.set_title(f"Averaging word vectors, weighted ({data['recipes'][0]})")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    with drawing(folder / "norm-by-frequency.png") as [axes]:
        plotted = data["plotted"]
        axes.scatter(plotted["count"], plotted["norm"], s=4, alpha=0.35, color=COLOURS[0], label="trained norm")
        counts, weights = np.array(plotted["count"]), np.array(plotted["sif"])
        order = np.argsort(counts)
        axes.plot(counts[order], weights[order], color=COLOURS[1], label="SIF weight")
        axes.set_xscale("log")
        axes.set(xlabel="occurrences in the training pairs (logarithmic)", ylabel="L1 norm / mean norm; SIF weight")
        axes.set_title(f"Norms of trained word vectors over frequency ({data['recipes'][0]})")
        axes.legend(loc="upper right")


def page(data: Data) -> str:
    """Scores, shares explained, the words."""
    rows = [
        (name, number(100 * each["development"], 1), number(100 * each["test"], 1))
        for name, each in data["scores"].items()
    ]
    shares = [
        (start, *(f"{100 * data[part][start]:.0f} %" for part in ("explained", "explained_test")))
        for start in data["explained"]
    ]
    rho = data["rho_frequency"]
    return "\n\n".join(
        [
            f"Mean Pearson r x 100 of plain averaging; the second column over the {data['test_sets']} sets at hand.",
            table(("vectors", "STS 2016", "test sets"), rows),
            "Share of the way to the trained vectors that scaling by their norms goes (paper, from PARAGRAM-SL999: "
            "64.76 %):",
            table(("from", "STS 2016", "test sets"), shares),
            f"Spearman rho of a word's norm with its frequency: {rho['before']:.2f} before training, "
            f"{rho['after']:.2f} after; of norms before and after: {data['rho_before_after']:.2f} "
            f"(words seen {SEEN} times or more).",
            f"Largest norms: {', '.join(data['largest'])}. Smallest: {', '.join(data['smallest'])}. In the paper "
            "poverty, kidding, humanitarian, 18, july are among the largest and of, it, to, hereby, the the smallest.",
        ]
    )


ANALYSIS = Analysis(
    name="norms",
    title="Norms of word vectors as weights of words",
    source="Wieting et al. 2016, section 6",
    recipes=("gran-avg",),
    compute=compute,
    draw=draw,
    page=page,
    pictures={
        "scaling.png": "mean Pearson r of averaging vectors under several weights",
        "norm-by-frequency.png": "norm of trained vectors and SIF weight over the frequency of words",
    },
    most=1,
)
