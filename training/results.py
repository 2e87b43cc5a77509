"""analyses/RESULTS.md from the files of figures: ours beside the papers' and beside what we set out to reach.

A figure that misses its target is marked as missed; nothing here is typed by hand but the papers' numbers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from training.figures import FigureFile


@dataclass(frozen=True)
class Target:
    """A number to reach and where it comes from; corpus, split, metric as the figures name them."""

    corpus: str
    split: str
    metric: str
    reach: float | None
    paper: float | None
    paper_name: str


_XXL = "PARAGRAM-PHRASE-XXL (Wieting et al. 2016, Table 4)"
_UNIVERSAL = "word averaging, universal (Wieting et al. 2016, Table 5)"
# Pearson r x 100 of PARAGRAM-PHRASE-XXL, Table 4, in the order of the sets at hand.
_XXL_SETS: dict[str, dict[str, float]] = {
    "STS 2012": {"MSRpar": 44.8, "MSRvid": 79.6, "SMTeuroparl": 49.5, "OnWN": 70.4, "SMTnews": 63.3},
    "STS 2013": {"headlines": 73.9, "OnWN": 73.8, "FNWN": 47.7},
    "STS 2014": {
        "deft-forum": 53.4, "deft-news": 74.4, "headlines": 71.5, "images": 80.4, "OnWN": 81.5, "tweet-news": 77.4,
    },
    "STS 2015": {
        "answers-forums": 69.1, "answers-students": 78.0, "belief": 78.2, "headlines": 76.4, "images": 83.4,
    },
    "SICK": {"test": 72.7},
}  # fmt: skip


def _paper_xxl(corpus: str, split: str) -> float | None:
    """The paper's figure, its means taken over the sets at hand as ours are."""
    if corpus == "transfer":
        values = [value for sets in _XXL_SETS.values() for value in sets.values()]
        return sum(values) / len(values) / 100
    sets = _XXL_SETS[corpus]
    if split == "mean of sets":
        return sum(sets.values()) / len(sets) / 100
    return sets[split] / 100 if split in sets else None


TARGETS: dict[str, tuple[Target, ...]] = {
    "avg-paraphrase": (
        Target("STS 2012", "mean of sets", "pearson", 0.650, _paper_xxl("STS 2012", "mean of sets"), _XXL),
        Target("STS 2013", "mean of sets", "pearson", 0.690, _paper_xxl("STS 2013", "mean of sets"), _XXL),
        Target("STS 2014", "mean of sets", "pearson", 0.765, _paper_xxl("STS 2014", "mean of sets"), _XXL),
        Target("STS 2015", "mean of sets", "pearson", 0.795, _paper_xxl("STS 2015", "mean of sets"), _XXL),
        Target("SICK", "test", "pearson", 0.795, _paper_xxl("SICK", "test"), _XXL),
    ),
    "avg-sick": (
        Target("SICK", "test", "pearson", 0.870, 0.8684, _UNIVERSAL),
        Target("SICK", "test", "accuracy", 0.846, 0.853, _UNIVERSAL),
    ),
}


def write_report(figures: Path, out: Path) -> None:
    """Write the report.

    Raises:
        FileNotFoundError: no figures were measured yet.
    """
    files = [FigureFile.model_validate_json(p.read_text(encoding="utf-8")) for p in sorted(figures.glob("*.json"))]
    if not files:
        raise FileNotFoundError(f"{figures}: no figures here; `python -m training evaluate` and `publish` write them")
    sections = [
        "# Results",
        "Written by `python -m training results` from the files in `analyses/figures/`; each says the command, seed "
        "and date of its measurement. All figures go through the exported ONNX graphs and the contract, as the service "
        "answers. Choices were made on STS 2016 and SICK trial; docs/papers/ says how often "
        "test sets were measured. STS 2013 SMT "
        "(licensed text) and PIT-2015 are not among the sets, and in no mean, ours or the papers': the paper's means "
        "are taken over the sets at hand.",
        "## Against the targets",
        _targets(files),
        "## Transfer: Pearson r of the cosine on every set",
        _transfer([f for f in files if any(x.corpus == "transfer" for x in f.figures)]),
        "## SICK, supervised",
        _supervised([f for f in files if any(x.metric == "mse" for x in f.figures)]),
        "## Where each column comes from",
        "\n".join(f"- {_column(f)}: `{f.command}`, {f.measured}" for f in files),
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n\n".join(sections) + "\n", encoding="utf-8")


def _column(file: FigureFile) -> str:
    return f"{file.recipe} seed {file.seed} {file.storage}"


def _targets(files: Sequence[FigureFile]) -> str:
    rows = []
    for file in files:
        for target in TARGETS.get(file.recipe, ()):
            value = _find(file, target.corpus, target.split, target.metric)
            if value is None:
                continue
            verdict = "" if target.reach is None else ("reached" if value >= target.reach else "**missed**")
            reach = "" if target.reach is None else f"{target.reach:.4f}"
            paper = "" if target.paper is None else f"{target.paper:.4f}"
            rows.append(
                (
                    _column(file),
                    target.corpus,
                    target.split,
                    target.metric,
                    f"{value:.4f}",
                    reach,
                    verdict,
                    paper,
                    target.paper_name,
                )
            )
    head = ("model", "corpus", "split", "metric", "ours", "to reach", "", "paper", "paper's model")
    return _table(head, rows)


def _transfer(files: Sequence[FigureFile]) -> str:
    if not files:
        return "None measured yet."
    names = [(f.corpus, f.split) for f in files[0].figures if f.metric == "pearson"]
    rows = []
    for corpus, split in names:
        values = [_find(file, corpus, split, "pearson") for file in files]
        bold = "**" if split == "mean of sets" else ""
        rows.append((f"{bold}{corpus} {split}{bold}", *map(_percent, values), _percent(_paper_xxl(corpus, split))))
    return _table(("set", *map(_column, files), "paper: PP-XXL"), rows)


def _supervised(files: Sequence[FigureFile]) -> str:
    if not files:
        return "None measured yet."
    metrics = ("pearson", "spearman", "mse", "accuracy", "macro_f1")
    rows = []
    for file in files:
        values = [_find(file, "SICK", "test", metric) for metric in metrics]
        rows.append((_column(file), *("" if v is None else f"{v:.4f}" for v in values)))
    return _table(("model", *metrics), rows)


def _find(file: FigureFile, corpus: str, split: str, metric: str) -> float | None:
    for figure in file.figures:
        if (figure.corpus, figure.split, figure.metric) == (corpus, split, metric):
            return figure.value
    return None


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
