"""papers/RESULTS.md from the measured figures and the tables: our figures beside the papers'.

Only the papers' numbers are entered by hand.
"""

from pathlib import Path

from papers.apart import apart
from papers.paper_table import collect, read_tables
from papers.summary import summary
from papers.verdicts import all_orders, reproduced
from training.publish.figures import RunFigures, read_figures

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


def write_report(figures: Path, out: Path, tables: Path) -> None:
    """Write the report from folders of figures and of tables.

    Raises:
        FileNotFoundError: no figures were measured yet.
    """
    runs = measured_runs(figures)
    known = [collect(table, runs) for table in read_tables(tables).values()]
    shown = [reproduced(each) for each in known] or ["None yet: `python -m papers tables` names them."]
    sections = [
        "# Results",
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
    out.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
