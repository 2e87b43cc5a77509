"""What pages say of the tables: the figures that each page of docs/papers begins with, how long a table takes,
and how runs came out once more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from papers.paper_table import FOLDER, Column, ResultRow, collect, read_tables
from papers.reproduce import Comparison, compare
from papers.verdicts import measured_cell
from training.markdown import number, table
from training.publish.figures import FIGURES, REPEATS, RunFigures, read_figures
from training.records import read_records


@dataclass(frozen=True)
class Headline:
    """A figure of a page.

    Attributes:
        what: in words.
        table: its table in papers/tables.
        row: the recipe of our side.
        column: of the table.
        paper: the recipe whose row has the paper's figure, where it is another one.
    """

    what: str
    table: str
    row: str
    column: str
    paper: str = ""


HEADLINES: Mapping[str, tuple[Headline, ...]] = {
    "malstm": (
        Headline("SICK relatedness, r", "malstm-sick", "malstm-sick", "SICK r"),
        Headline("SICK relatedness, rho", "malstm-sick", "malstm-sick", "SICK rho"),
        Headline("SICK relatedness, squared error", "malstm-sick", "malstm-sick", "SICK MSE"),
        Headline("SICK entailment, accuracy", "malstm-sick", "malstm-sick", "SICK accuracy"),
        Headline("without the teacher: SICK r", "malstm-ablations", "malstm-adam", "SICK r", "malstm-adam-synonyms"),
    ),
    "pwim": (
        Headline("SICK relatedness, r", "pwim-sick", "pwim-sick", "SICK r"),
        Headline("without the teacher: SICK r", "pwim-sick", "pwim-sick-alone", "SICK r"),
        Headline("MSRvid, r", "pwim-sts", "pwim-msrvid", "MSRvid"),
        Headline("STS 2014, r", "pwim-sts", "pwim-sts2014", "STS 2014"),
        Headline("WikiQA, MAP", "pwim-answers", "pwim-wikiqa", "WikiQA MAP"),
        Headline("TrecQA, MAP", "pwim-answers", "pwim-qa", "TrecQA raw MAP"),
    ),
    "mgim": (
        Headline("SICK relatedness, r", "mgim-sick", "mgim-sick", "SICK r"),
        Headline("without the teacher: SICK r", "mgim-sick", "mgim-sick-alone", "SICK r"),
        Headline("as printed: SICK r", "mgim-sick", "mgim-sick-as-printed", "SICK r"),
        Headline("MSRP, accuracy", "mgim-msrp", "mgim-msrp-overlaps", "accuracy"),
        Headline("MSRP, F1", "mgim-msrp", "mgim-msrp-overlaps", "F1"),
    ),
    "paragram_phrase": (
        Headline("averaging, margin loss: mean r of 20 sets", "wieting2016-table2", "pp-avg", "mean of 20"),
        Headline("LSTM, margin loss: mean r of 20 sets", "wieting2016-table2", "pp-lstm", "mean of 20"),
        Headline("averaging, supervised: SICK r", "wieting2016-table5", "pp-sick-avg-similarity", "SICK"),
        Headline(
            "averaging, supervised: SICK entailment",
            "wieting2016-table5",
            "pp-sick-avg-similarity",
            "SICK entailment",
        ),
        Headline("LSTM, supervised: SST", "wieting2016-table5", "pp-sst-lstm-phrases", "SST"),
    ),
    "gran": (
        Headline("GRAN: mean r of 20 sets", "gran-table3", "gran-1", "mean of 20"),
        Headline("averaging: mean r of 20 sets", "gran-table1", "gran-avg", "mean of 20"),
        Headline("LSTM-AVG: mean r of 20 sets", "gran-table2", "gran-lstm-avg-regularised", "mean of 20"),
        Headline("GRAN, supervised: STS split r", "gran-table6", "sts-gran-dropout-scrambling", "STS split"),
        Headline("GRAN, supervised: SICK r", "gran-table5", "sts-gran-dropout-scrambling", "SICK"),
    ),
}


def page_table(page: str, tables: Path = FOLDER, figures: Path = FIGURES) -> str:
    """The rows of a page.

    Raises:
        KeyError: no such page, or one of its figures is not there.
    """
    measured = read_figures(figures)
    known = {name: collect(each, measured) for name, each in read_tables(tables).items()}
    rows = []
    for each in HEADLINES[page]:
        found = known[each.table]
        column = next(column for column in found.columns if column.name == each.column)
        row = found.row(each.row)
        paper = found.row(each.paper or each.row).paper[each.column].value
        rows.append([each.what, number(paper, column.digits), measured_cell(row, column), verdict(row, column, paper)])
        of_column = (run for run in measured if run.recipe in row.recipes and run.storage == row.storage)
        recipe = next(run.recipe for run in of_column if column.of(run.figures) is not None)
        rows[-1] += [f"`{recipe}`", str(sum(column.name in seed.figures for seed in row.seeds))]
    return table(("figure", "paper", "ours", "", "recipe", "seeds"), rows)


def verdict(row: ResultRow, column: Column, paper: float) -> str:
    """Whether our mean is as good as the paper's figure, both as they are printed."""
    gap = round(row.mean[column.name], column.digits) - round(paper, column.digits)
    gap = -gap if column.lower_is_better else gap
    return "reached" if gap > -(0.1**column.digits) / 2 else f"missed by {-gap:.{column.digits}f}"


def minutes_table(tables: Path = FOLDER, figures: Path = FIGURES) -> str:
    """Of every table the runs that its commands would train anew, their recorded minutes, and the quickest of them."""
    measured = read_figures(figures)
    rows = []
    for name, each in read_tables(tables).items():
        rows_here = [row for row in collect(each, measured).rows if not row.retired]
        spent = {
            (run.recipe, seed.seed): run.training.seconds
            for row in rows_here
            for seed in row.seeds
            for run in seed.runs
            if run.training is not None and run.training.seconds
        }
        if spent:
            (recipe, seed), least = min(spent.items(), key=lambda item: item[1])
            rows.append((sum(spent.values()), name, len(spent), f"`{recipe}` seed {seed}, {least:.0f} s"))
    shown = [(f"`{name}`", str(runs), f"{seconds / 60:.0f}", least) for seconds, name, runs, least in sorted(rows)]
    return table(("table", "runs", "minutes", "its quickest run"), shown)


def repeats_table(tables: Path = FOLDER, figures: Path = FIGURES, repeats: Path = REPEATS) -> str:
    """Of every run that was trained once more: what was recorded, what came out, and whether that is within spread.

    The first row of a run is its development score, the others are its test figures; none where its graph was refused.
    """
    measured = read_figures(figures)
    known = [collect(each, measured) for each in read_tables(tables).values()]
    spent = {(run.recipe, run.seed): run.training.seconds for run in measured if run.training}
    rows = []
    for run in read_records(repeats, RunFigures):
        table_of = next(each for each in known if any(run.recipe in row.recipes for row in each.rows))
        digits = {column.name: column.digits + 1 for column in table_of.columns}
        seconds = (run.training.seconds if run.training else None, spent.get((run.recipe, run.seed)))
        minutes = " for ".join("?" if each is None else f"{each / 60:.1f}" for each in seconds)
        for each in (*_development(run, measured), *compare(table_of, collect(table_of, [run]))):
            places = digits.get(each.column, 4)
            spread = "" if each.spread is None else f" ± {each.spread:.{places}f}"
            verdict = {None: "one seed recorded", True: "agrees", False: "**does not agree**"}[each.agrees]
            rows.append([f"`{table_of.table}`", f"`{run.recipe}` seed {run.seed}", each.column])
            rows[-1] += [f"{each.mean:.{places}f}{spread}", f"{each.new:.{places}f}", verdict, minutes]
    return table(("table", "run", "figure", "recorded", "repeated", "", "minutes"), rows)


def _development(run: RunFigures, measured: Sequence[RunFigures]) -> list[Comparison]:
    """The development score of a run beside those of the recipe's recorded seeds."""
    found = {each.seed: each.training.dev for each in measured if each.recipe == run.recipe and each.training}
    if run.training is None or not found:
        return []
    spread = stdev(found.values()) if len(found) > 1 else None
    known = (run.recipe, "development", run.seed, found.get(run.seed), mean(found.values()), spread)
    return [Comparison(*known, new=run.training.dev)]
