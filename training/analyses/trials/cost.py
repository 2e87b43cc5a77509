"""What an epoch of PWIM costs beside a plain convolutional network (He & Lin 2016, Table 9).

The paper compares with the network of He et al. (2015), whose many kinds of filters and comparisons are not built here.
`PlainConvolution` keeps its base: filters of one, two and three words with three kinds of pooling, each with filters of
its own, the two sentences compared filter by filter. As in the paper both read one pair at a time, on one thread.
"""

import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor, nn

from training.analyses.analysis import COLOURS, Analysis, AnalysisError, Data, Options, drawing
from training.architectures import PWIM
from training.architectures.models import InteractionModel
from training.architectures.parts.layers import WordEmbedding, width
from training.objectives.pairwise import PairwiseConfig, PairwiseObjective, TargetPairs
from training.recipes import find
from training.results.report.markdown import number, table
from training.runs.build import started
from training.runs.optimisers import build_optimisers
from training.runs.tables import load_table

FILTERS, HIDDEN, WIDTHS = 525, 150, (1, 2, 3)  # as many filters and hidden units as He et al. (2015)
CHUNK, CHUNKS = 20, 12  # pairs of a timing, and timings; both networks take turns
PAPER = {"He et al. (2015)": (10.0, 2265), "PWIM": (1.7, 664)}  # million parameters, seconds an epoch


class PlainConvolution(nn.Module):
    """Both sentences convolved, pooled in three ways, and compared; log-probabilities of classes."""

    def __init__(self, embedding: nn.Module, outputs: int) -> None:
        """Wrap the embedding of words; `outputs` is the number of classes."""
        super().__init__()
        self.embedding = embedding
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width(embedding), 3 * FILTERS, size, padding=size - 1) for size in WIDTHS
        )
        self.hidden = nn.Linear(2 * 3 * FILTERS * len(WIDTHS), HIDDEN)
        self.output = nn.Linear(HIDDEN, outputs)

    def forward(self, ids_a_BS: Tensor, lengths_a_B: Tensor, ids_b_BT: Tensor, lengths_b_B: Tensor) -> Tensor:
        """Ids [B, S], [B, T] of sentences of one length each (their lengths are not read) -> [B, K]."""
        a, b = self._pooled(ids_a_BS), self._pooled(ids_b_BT)
        hidden = torch.tanh(self.hidden(torch.cat([(a - b).abs(), a * b], dim=1)))
        return torch.log_softmax(self.output(hidden), dim=-1)

    def _pooled(self, ids_BS: Tensor) -> Tensor:
        """A third of the filters by their largest value, a third by the smallest, a third by the mean [B, F]."""
        words_BDS = self.embedding(ids_BS).transpose(1, 2)
        pooled = []
        for convolution in self.convolutions:
            largest, smallest, rest = torch.tanh(convolution(words_BDS)).chunk(3, dim=1)
            pooled += [largest.amax(2), smallest.amin(2), rest.mean(2)]
        return torch.cat(pooled, dim=1)


def trained_weights(model: nn.Module) -> int:
    """Parameters beside the words."""
    words = {id(each.weight) for each in model.modules() if isinstance(each, WordEmbedding)}
    return sum(p.numel() for p in model.parameters() if id(p) not in words)


def compute(options: Options) -> Data:
    """Seconds of training steps of both networks, in turns on the same pairs."""
    recipe = find(options.recipes[0])
    if not isinstance(recipe.objective, PairwiseConfig):
        raise AnalysisError(f"recipe {recipe.name!r} reads no pairs")
    words = load_table(recipe.table, options.runs)
    pwim = started(recipe, words, options.runs, options.seed)
    assert isinstance(pwim, InteractionModel)
    if not isinstance(pwim.network, PWIM):
        raise AnalysisError(f"recipe {recipe.name!r} is no PWIM")
    plain = PlainConvolution(WordEmbedding(words.rows), len(recipe.objective.classes))
    models = {"PWIM": pwim, "plain": InteractionModel(plain, both_orders=False)}
    pairs = TargetPairs(recipe.data.train(None, Path()), words.tokenizer, recipe.max_tokens)
    objectives = {
        name: PairwiseObjective(model, pairs, pairs, recipe.objective, 1, options.seed)
        for name, model in models.items()
    }
    optimisers = {name: build_optimisers(model, recipe.optimiser) for name, model in models.items()}
    chosen = np.random.default_rng(options.seed).permutation(len(pairs))[: CHUNK * (CHUNKS + 1)]
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for chunk in chosen.reshape(CHUNKS + 1, CHUNK):
        for name in models:
            began = time.perf_counter()
            for index in chunk:
                for each in optimisers[name]:
                    each.zero_grad(set_to_none=True)
                objectives[name].loss(np.array([index]))[0].backward()
                for each in optimisers[name]:
                    each.step()
            seconds[name].append((time.perf_counter() - began) / CHUNK)
    return {
        "pairs": len(pairs),
        "timed": CHUNK * CHUNKS,
        "rows": {  # the first chunk warms up
            name: {"parameters": trained_weights(model), "seconds": median(seconds[name][1:])}
            for name, model in models.items()
        },
    }


def draw(data: Data, folder: Path) -> None:
    """Seconds of an epoch, as bars."""
    with drawing(folder / "epoch.png", height=2.2) as [axes]:
        values = [row["seconds"] * data["pairs"] for row in data["rows"].values()]
        axes.barh(list(data["rows"]), values, color=COLOURS[0])
        axes.set(xlabel="seconds an epoch of SICK, one pair at a time, one thread")


def page(data: Data) -> str:
    """Ours beside the paper's; what counts is the ratio, measured in one run."""
    ours = data["rows"]
    names = {"PWIM": "PWIM as released", "plain": "plain convolutional network (ours)"}
    rows = [
        (
            names[name],
            f"{row['parameters'] / 1e6:.2f}",
            number(1000 * row["seconds"], 1),
            f"{row['seconds'] * data['pairs']:.0f}",
        )
        for name, row in ours.items()
    ]
    rows += [(f"{name} (paper)", f"{million:.1f}", "", str(seconds)) for name, (million, seconds) in PAPER.items()]
    ratio = ours["plain"]["seconds"] / ours["PWIM"]["seconds"]
    fewer = 1 - ours["PWIM"]["parameters"] / ours["plain"]["parameters"]
    return (
        f"Forward, backward and update of one pair, median of {CHUNKS} timings of {CHUNK} pairs in turns with the "
        f"other network; an epoch is {data['pairs']:,} pairs. PWIM takes {1 / ratio:.1f} times as long as the plain "
        f"network and has {100 * fewer:.0f} % fewer parameters. In the paper it is 3.4 times as fast as the network of "
        "He et al. (2015) and has 83 % fewer; that network also convolves every dimension of the words by itself and "
        "compares every two widths of filters, which the plain one does not, so the ratio says nothing about it.\n\n"
        + table(("network", "million parameters", "ms a pair", "s an epoch"), rows)
    )


ANALYSIS = Analysis(
    name="pwim-cost",
    title="What an epoch of PWIM costs",
    source="He & Lin 2016, Table 9",
    recipes=("pwim-sick-paper",),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"epoch.png": "seconds an epoch of both networks"},
    most=1,
)
