"""Every measured model on every set, from analyses/figures/*.json."""

from collections.abc import Sequence

from training.publishing.figures import FigureFile
from training.results.report.markdown import number, table
from training.results.report.targets import supervised_on_sick
from training.results.reproductions.papers import printed

SUPERVISED = ("pearson", "spearman", "mse", "accuracy", "macro_f1")


def transfer(files: Sequence[FigureFile]) -> str:
    """Pearson r x 100 on every transfer set and its means, one line a model."""
    files = [file for file in files if file.value("transfer", "mean of sets", "pearson") is not None]
    if not files:
        return "None measured yet."
    names = [(f.corpus, f.split) for f in files[0].figures if f.metric == "pearson"]
    rows = [("paper: PP-XXL", *(number(printed("PP-XXL", corpus, split), 1) for corpus, split in names))]
    for file in files:
        values = [file.value(corpus, split, "pearson") for corpus, split in names]
        rows.append((file.label, *(number(None if value is None else 100 * value, 1) for value in values)))
    head = [f"**{corpus} mean**" if split == "mean of sets" else f"{corpus} {split}" for corpus, split in names]
    return table(("model", *head), rows)


def supervised(files: Sequence[FigureFile]) -> str:
    """The SemEval-2014 measures of the models that rate SICK on its own scale."""
    files = [file for file in files if supervised_on_sick(file)]
    if not files:
        return "None measured yet."
    rows = [(f.label, *(number(f.value("SICK", "test", metric), 4) for metric in SUPERVISED)) for f in files]
    return table(("model", *SUPERVISED), rows)
