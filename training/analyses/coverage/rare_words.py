"""Whether a set's score falls with its share of rare words (Wieting et al. 2016, section 5.1).

The paper: over its 22 sets, Spearman's rho of -45.1 between the share of words that occur fewer than 100 times in PPDB
XL and how far the score lies above the 75th percentile of the shared task's systems. Here words are counted in the
400,000 sentences that `avg-paraphrase` was trained on, over the 21 sets at hand, PIT-2015 among them.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from scipy.stats import spearmanr

from contract.text import split_words
from training.analyses.analysis import COLOURS, Analysis, Data, Options, drawing
from training.analyses.trained import published
from training.corpora import mixtures, transfer
from training.pairs import Pair
from training.results.report.markdown import number, table
from training.sources.figures import transfer_set_figures

COMMON = 100  # times a word must occur, in the paper
SENTENCES = 400_000  # of the mixture, the training data of `avg-paraphrase`
# The 75th percentile of the shared tasks' systems, from the paper's Table 2.
SYSTEMS: dict[str, float] = {
    **{f"2012-test/{name}": r for name, r in zip(
        ("MSRpar", "MSRvid", "SMTeuroparl", "OnWN", "SMTnews"), (57.6, 80.3, 48.1, 65.9, 45.4), strict=True)},
    **{f"2013-test/{name}": r for name, r in zip(("headlines", "OnWN", "FNWN"), (68.3, 64.8, 38.1), strict=True)},
    **{f"2014-test/{name}": r for name, r in zip(
        ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
        (46.8, 74.0, 75.4, 79.0, 81.1, 72.2), strict=True)},
    **{f"2015-test/{name}": r for name, r in zip(
        ("answers-forums", "answers-students", "belief", "headlines", "images"),
        (68.2, 73.6, 72.2, 80.8, 84.3), strict=True)},
    "sick-test": 79.9,
    "pit2015-test": 52.5,
}  # fmt: skip


def rare_share(pairs: Sequence[Pair], counts: Counter[str]) -> tuple[float, float]:
    """The share of rare words among all running words of a set, and among its distinct words."""
    words = Counter(word for pair in pairs for text in (pair.a, pair.b) for word in split_words(text))
    rare = {word for word in words if counts[word] < COMMON}
    return sum(words[word] for word in rare) / words.total(), len(rare) / len(words)


def compute(options: Options) -> Data:
    """Share and deviation of every set, and their correlation."""
    model = published(options.recipes[0])
    counts: Counter[str] = Counter()
    for _, sentence in mixtures.unlabelled_sentences(limit=SENTENCES, seed=0):
        counts.update(split_words(sentence))
    rows = []
    for name, percentile in SYSTEMS.items():
        r = next(f.value for f in transfer_set_figures(model, name) if f.metric == "pearson")
        running, distinct = rare_share(transfer.read(name), counts)
        rows.append({"set": name, "running": running, "distinct": distinct, "over": 100 * r - percentile})
    over = [row["over"] for row in rows]
    return {
        "sets": rows,
        "distinct_words": len(counts),
        "common_words": sum(count >= COMMON for count in counts.values()),
        **{kind: float(spearmanr([row[kind] for row in rows], over).statistic) for kind in ("running", "distinct")},
    }


def draw(data: Data, folder: Path) -> None:
    """A point a set."""
    with drawing(folder / "rare-words.png") as [axes]:
        x, y = [100 * row["running"] for row in data["sets"]], [row["over"] for row in data["sets"]]
        axes.plot(x, y, "o", color=COLOURS[0])
        for row, at in zip(data["sets"], zip(x, y, strict=True), strict=True):
            axes.annotate(row["set"], at, xytext=(4, 2), textcoords="offset points", fontsize=6)
        axes.set(xlabel="running words that are rare in training, %", ylabel="r x 100 over the 75th percentile")
        axes.grid(alpha=0.3)


def page(data: Data) -> str:
    """Every set, and the correlations."""
    rows = [
        (row["set"], f"{100 * row['running']:.1f}", f"{100 * row['distinct']:.1f}", f"{row['over']:+.1f}")
        for row in sorted(data["sets"], key=lambda row: row["running"])
    ]
    return (
        f"Of {data['distinct_words']:,} distinct words of the training sentences {data['common_words']:,} occur "
        f"{COMMON} times or more (the paper's 37,366 and 7,113). Spearman's rho x 100 between a set's share of rare "
        f"words and its score over the 75th percentile: {number(100 * data['running'], 1)} for running words, "
        f"{number(100 * data['distinct'], 1)} for distinct ones; the paper's -45.1, of 22 sets.\n\n"
        + table(("set", "rare, % of running words", "% of distinct words", "r x 100 over the 75th percentile"), rows)
    )


ANALYSIS = Analysis(
    name="rare-words",
    title="Scores and rare words",
    source="Wieting et al. 2016, section 5.1",
    recipes=("avg-paraphrase",),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"rare-words.png": "score of a set over the 75th percentile, by its share of rare words"},
    most=1,
)
