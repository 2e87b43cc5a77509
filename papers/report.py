"""papers/RESULTS.md from the measured figures and the tables: our figures beside the papers'.

Only the papers' numbers are entered by hand.
"""

import importlib.util
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from papers.apart import apart
from papers.every_table import every_table
from papers.paper_table import PaperTable, collect, read_tables
from papers.pictures.plots import GROUPS, claims
from papers.summary import summary
from papers.verdicts import OrderVerdict, all_orders, judged, reproduced
from training.publish.figures import RunFigures, read_figures

logger = logging.getLogger(__name__)

_PLOTS = """\
Each plot has the claims of a paper that one row of its tables is better than another. The diamond is how far ahead \
it is in the paper, the dot how far ahead it is here, with the standard deviation from seed to seed; left of 0 it is \
behind. A dot without a line has one seed on a side. A filled dot is a verdict (three seeds a side, equal epochs, \
Welch's t-test), an open one is none."""
_HEAD = """\
Written by `python -m papers results` from the files in `papers/figures/` and `papers/tables/`; each line of figures \
says the command, seed and date of its measurement. All figures go through the exported ONNX graphs and the \
contract, as the service answers, but those of SST in the papers' tables: they were measured as trained, before \
labels of sentences had a graph. STS 2013 SMT (licensed text) is not among the sets; PIT-2015 is reported apart. A \
paper's mean is recomputed over the sets at hand where the paper prints its figures per set, and marked where it \
does not.

**The teacher.** Words and ratings come from all-MiniLM-L6-v2, whose own training saw SNLI, MultiNLI, captions of \
Flickr30k and COCO, Quora's questions and others. No figure of ours is free of it, but those of rows with random or \
GloVe vectors and no teacher.

**What chose.** Epochs and settings were chosen on development sets: STS 2016 for transfer; the development parts of \
SICK, SST, the STS split, WikiQA and TrecQA; pairs held out of MSRvid and MSRP. Test figures had a say three times. \
`avg-near`, published as `avg-paraphrase`, was measured on the transfer sets with four settings; those that led on \
development sets were measured, were no better there, and were not published. `mgim-msrp-tuned-words` is better than \
`mgim-msrp` on held-out pairs and stayed unpublished because it is not on MSRP's test part; \
neither is published now. A run of \
`pwim-wikiqa` twice as long was better on development questions, worse on the test part, and not kept. docs/papers/ \
says how often each test set was measured; `training/data/leakage.py` says what a model may learn \
for what it is measured on."""


def measured_runs(figures: Path) -> list[RunFigures]:
    """The measured runs of a folder of figures.

    Raises:
        FileNotFoundError: no figures were measured yet.
    """
    found = read_figures(figures)
    if not found:
        raise FileNotFoundError(f"{figures}: no figures here; `python -m training evaluate` and `publish` write them")
    return found


def _groups(known: Mapping[str, PaperTable]) -> dict[str, list[OrderVerdict]]:
    """The measured claims of the papers by plot, each once."""
    found = {}
    for group, (_, names) in GROUPS.items():
        tables = [table for name, table in known.items() if name.startswith(names)]
        orders = {each.compared: each for table in tables for each in judged(table)}
        if chosen := [each for each in orders.values() if each.paper and each.ours is not None]:
            found[group] = chosen
    return found


def _plotted(groups: Mapping[str, Sequence[OrderVerdict]], folder: Path) -> str:
    """Draw the claims of each group into `plots/`; what shows them."""
    if groups and importlib.util.find_spec("matplotlib") is None:
        logger.warning("%s is left as it is: plots need the extra `papers` (matplotlib)", folder / "plots")
    elif groups:
        for group, orders in groups.items():
            claims(GROUPS[group][0], orders, folder / "plots" / f"{group}.svg")
    lines = [f"![Claims of {GROUPS[group][0]}: the paper's gaps and ours](plots/{group}.svg)" for group in groups]
    return "\n\n".join([_PLOTS, *lines]) if lines else ""


def write_report(figures: Path, out: Path, tables: Path) -> None:
    """Write the report from folders of figures and of tables, and its plots into `plots/` beside it.

    Raises:
        FileNotFoundError: no figures were measured yet.
    """
    runs = measured_runs(figures)
    by_name = {name: collect(table, runs) for name, table in read_tables(tables).items()}
    known = list(by_name.values())
    shown = [reproduced(each) for each in known] or ["None yet: `python -m papers tables` names them."]
    sections = [
        "# Results",
        _plotted(_groups(by_name), out.parent),
        every_table(),
        "## How it was measured",
        _HEAD,
        "## Every model",
        f"Pearson r and accuracies x 100, means over the seeds ± their standard deviation (n - 1).\n\n{summary(runs)}",
        "## The papers' tables, and ours beside them",
        *([all_orders(known)] if known else []),
        *shown,
        "## Reported apart: tweets and phrases",
        apart(out.parent / "apart.jsonl"),
        "## Where each column comes from",
        "\n".join(f"- {run.label}: `{run.command}`, {run.measured}" for run in runs),
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n\n".join(filter(None, sections)) + "\n", encoding="utf-8")
