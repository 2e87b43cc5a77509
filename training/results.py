"""analyses/RESULTS.md from the files of figures and tables: ours beside the papers' and what we set out to reach.

A figure that misses its target is marked as missed; nothing here is typed by hand but the papers' numbers.
"""

from pathlib import Path

from training.figures import FigureFile
from training.report import models
from training.report.reproduced import all_orders, reproduced
from training.report.searches import searches
from training.report.targets import name, targets
from training.reproductions import TABLES
from training.reproductions.measured import MeasuredTable

_HEAD = """\
Written by `python -m training results` from the files in `analyses/figures/` and `analyses/tables/`; each says the \
command, seed and date of its measurement. All figures go through the exported ONNX graphs and the contract, as the \
service answers. Choices were made on STS 2016 and SICK trial; docs/papers/ says how often test sets were measured. \
STS 2013 SMT (licensed text) and PIT-2015 are not among the sets. A paper's mean is recomputed over the sets at hand \
where the paper prints its figures per set, and marked where it does not."""


def write_report(figures: Path, out: Path, tables: Path, records: Path) -> None:
    """Write the report from folders of figures, of reproduced tables and of records of searches.

    Raises:
        FileNotFoundError: no figures were measured yet.
    """
    files = [FigureFile.model_validate_json(p.read_text(encoding="utf-8")) for p in sorted(figures.glob("*.json"))]
    if not files:
        raise FileNotFoundError(f"{figures}: no figures here; `python -m training evaluate` and `publish` write them")
    known = [MeasuredTable.load(path) for each in TABLES if (path := tables / f"{each}.json").is_file()]
    shown = [reproduced(each) for each in known] or ["None yet: `python -m training reproduce --list` names them."]
    sections = [
        "# Results",
        _HEAD,
        "## Against the targets",
        targets(files),
        "## The papers' tables, and ours beside them",
        *([all_orders(known)] if known else []),
        *shown,
        "## Searches",
        searches(records),
        "## Transfer: Pearson r of the cosine on every set",
        models.transfer(files),
        "## SICK, supervised",
        models.supervised(files),
        "## Where each column comes from",
        "\n".join(f"- {name(f)}: `{f.command}`, {f.measured}" for f in files),
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
