"""Difference between positive pairs and their negatives on the training data (Wieting et al. 2016, section 5).

The mean of 2 cos(g1, g2) - cos(n1, g1) - cos(n2, g2) over pairs (g1, g2) and the MAX negative n of each side: if a
recurrent encoder overfitted, its mean would be larger than that of word averaging.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from training.analyses.analysis import COLOURS, Analysis, Data, Options, drawing
from training.analyses.trained import Trained, load, training_pairs
from training.objectives.parts.losses import hardest_negatives
from training.results.report.markdown import number, table

BATCH, PAIRS = 100, 10_000  # of the runs; how many pairs are looked at
PAPER = {"PARAGRAM-PHRASE": 0.7535, "projection": 0.7572, "LSTM": 0.7565, "LSTM without output gate": 0.7463}


def differences(a_BD: Tensor, b_BD: Tensor) -> Tensor:
    """2 cos(g1, g2) - cos(n1, g1) - cos(n2, g2) of each pair of a batch [B]; negatives are MAX, from the batch."""
    a, b = normalize(a_BD, dim=1), normalize(b_BD, dim=1)
    first, second = hardest_negatives(a, b, "max", torch.Generator())
    everyone = torch.cat([a, b])
    return 2 * (a * b).sum(1) - (a * everyone[first]).sum(1) - (b * everyone[second]).sum(1)


def measure(trained: Trained) -> np.ndarray:
    """The difference of each of the first pairs it was trained on [n]."""
    a, b = training_pairs(trained)
    found = []
    with torch.inference_mode():
        for start in range(0, min(len(a), PAIRS) - BATCH + 1, BATCH):
            indices = np.arange(start, start + BATCH)
            found.append(differences(*trained.model.encode_pair(a.batch(indices), b.batch(indices))))
    return torch.cat(found).numpy()


def compute(options: Options) -> Data:
    """Mean, deviation and quartiles of every recipe."""
    rows = {}
    for name in options.recipes:
        values = measure(load(name, options.seed, options.runs))
        quartiles = np.percentile(values, (25, 50, 75)).tolist()
        rows[name] = {"mean": float(values.mean()), "deviation": float(values.std()), "quartiles": quartiles}
    return {"pairs": len(values), "differences": rows}


def draw(data: Data, folder: Path) -> None:
    """Mean and the middle half of the pairs."""
    with drawing(folder / "difference.png", height=1.4 + 0.5 * len(data["differences"])) as [axes]:
        names = list(data["differences"])
        for y, row in enumerate(data["differences"].values()):
            low, _, high = row["quartiles"]
            axes.plot([low, high], [y, y], color=COLOURS[0], linewidth=6, alpha=0.4, solid_capstyle="butt")
            axes.plot([row["mean"]], [y], "o", color=COLOURS[1])
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)  # the first at the top
        axes.set(xlabel="2 cos(g1, g2) - cos(n1, g1) - cos(n2, g2)  (dot: mean, bar: middle half)")
        axes.set_title(f"Positive pairs against MAX negatives, {data['pairs']:,} training pairs")
        axes.grid(axis="x", alpha=0.3)


def page(data: Data) -> str:
    """Ours beside the paper's."""
    rows = [
        (name, number(row["mean"], 4), number(row["deviation"], 4), number(row["quartiles"][1], 4))
        for name, row in data["differences"].items()
    ]
    papers = [(f"{name} (paper, PPDB)", number(value, 4), "", "") for name, value in PAPER.items()]
    return (
        f"On the first {data['pairs']:,} training pairs, in batches of {BATCH}; without dropout or scrambling.\n\n"
        + table(("model", "mean", "standard deviation", "median"), rows + papers)
    )


ANALYSIS = Analysis(
    name="negatives",
    title="Positive pairs against negatives on the training data",
    source="Wieting et al. 2016, section 5",
    recipes=("gran-avg", "gran-lstm", "gran-lstm-regularised", "gran-lstm-avg-regularised"),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"difference.png": "mean and middle half of the difference for each recipe"},
)
