"""The papers' tables beside ours, and whether the papers' claims hold, from analyses/tables/*.json."""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev

from training.results.report.markdown import number, table
from training.results.reproductions.measured import MeasuredRow, MeasuredTable
from training.results.reproductions.table import Column

WIDE = 10  # columns; a table with more is transposed


Spreads = Mapping[str, float]  # by the name of a column


def typical_spreads(tables: Sequence[MeasuredTable]) -> dict[str, float]:
    """Typical standard deviation over seeds of each column: the root mean square over rows with several seeds; used for
    rows of one seed."""
    found: dict[str, dict[str, float]] = {}
    for row in (row for each in tables for row in each.rows):
        for name, std in row.std.items():
            found.setdefault(name, {})[row.recipe] = std
    return {name: sqrt(fmean(std**2 for std in rows.values())) for name, rows in found.items()}


def reproduced(measured: MeasuredTable, spreads: Spreads) -> str:
    """One table: our figures (mean, standard deviation), the paper's, and the runs."""
    parts = [f"### {measured.title}", f"`{measured.command}`. {measured.note}".strip()]
    parts.append(_tall(measured) if len(measured.columns) > WIDE else _broad(measured))
    if measured.orders:
        parts += ["Orders:", orders(measured, spreads)]
    parts.append(_runs(measured))
    return "\n\n".join(parts)


def _broad(measured: MeasuredTable) -> str:
    head = ["", *(each.name for each in measured.columns), "seeds", "note"]
    rows = []
    for row in measured.rows:
        ours = (_ours(row, column) for column in measured.columns)
        rows.append(
            [f"{row.label} (`{row.recipe}`)", *ours, str(len(row.seeds)) if row.seeds else "none yet", row.note]
        )
        if row.paper:
            rows.append(["paper", *(_paper(row, column) for column in measured.columns), "", ""])
    return table(head, rows)


def _tall(measured: MeasuredTable) -> str:
    head = [""]
    for row in measured.rows:
        head += [f"{row.label} (`{row.recipe}`)", *(["paper"] if row.paper else [])]
    rows = []
    for column in measured.columns:
        cells = [column.name]
        for row in measured.rows:
            cells += [_ours(row, column), *([_paper(row, column)] if row.paper else [])]
        rows.append(cells)
    return table(head, rows)


def _ours(row: MeasuredRow, column: Column) -> str:
    value, spread = row.mean.get(column.name), row.std.get(column.name)
    shown = number(value, column.digits)
    return shown if spread is None else f"{shown} ± {spread:.{column.digits}f}"


def _paper(row: MeasuredRow, column: Column) -> str:
    printed = row.paper.get(column.name)
    if printed is None:
        return ""
    return number(printed.value, column.digits) + (f" ({printed.note})" if printed.note else "")


def orders(measured: MeasuredTable, spreads: Spreads) -> str:
    """For each claim: the gap in the paper's figures, the gap in ours with its spread, and a verdict.

    A gap is significant if larger than the standard deviation of the difference of two seeds.
    """
    columns = {each.name: each for each in measured.columns}
    rows = []
    for claim in measured.orders:
        column = columns[claim.column]
        better = measured.row(claim.better), claim.column
        worse = measured.row(claim.worse), claim.worse_column or claim.column
        papers = [row.paper.get(claim.printed or name) for row, name in (better, worse)]
        paper = _gap(column, *(None if each is None else each.value for each in papers))
        ours = _gap(column, *(row.mean.get(name) for row, name in (better, worse)))
        if better[0] is worse[0]:
            spread = _paired_spread(better[0], (better[1], worse[1]), measured.rows)
        else:
            spread = _spread(better, worse, spreads)
        names = (f"{row.label}, {name}" if claim.worse_column else row.label for row, name in (better, worse))
        rows.append(
            (
                " over ".join(names),
                column.name,
                "" if paper is None else f"{paper:+.{column.digits}f}",
                ""
                if ours is None
                else f"{ours:+.{column.digits}f}{'' if spread is None else f' ± {spread:.{column.digits}f}'}",
                _verdict(ours, spread) + _lengths(better[0], worse[0]),
            )
        )
    return table(("claim", "by", "paper's gap", "our gap", ""), rows)


def _gap(column: Column, better: float | None, worse: float | None) -> float | None:
    """How much better: positive when the claim holds."""
    if better is None or worse is None:
        return None
    return worse - better if column.lower_is_better else better - worse


def _lengths(better: MeasuredRow, worse: MeasuredRow) -> str:
    """A remark if the rows were trained for different numbers of epochs."""
    lengths = [sorted({r.training.epochs for s in row.seeds for r in s.runs if r.training}) for row in (better, worse)]
    if not all(lengths) or lengths[0] == lengths[1]:
        return ""
    return " (epochs: " + " against ".join("/".join(map(str, each)) for each in lengths) + ")"


def _spread(better: tuple[MeasuredRow, str], worse: tuple[MeasuredRow, str], spreads: Spreads) -> float | None:
    """The standard deviation of the difference of two seeds; of a row of one seed, what is typical of the column."""
    stds = [row.std.get(name, spreads.get(name)) for row, name in (better, worse)]
    if stds[0] is None or stds[1] is None:
        return None
    return float((stds[0] ** 2 + stds[1] ** 2) ** 0.5)


def _paired_spread(row: MeasuredRow, columns: tuple[str, str], rows: Sequence[MeasuredRow]) -> float | None:
    """The standard deviation, over seeds, of the difference of two columns of one row; of a row of one seed, the root
    mean square of that of the table's rows with several."""

    def of(each: MeasuredRow) -> float | None:
        both = [seed.figures for seed in each.seeds if set(columns) <= set(seed.figures)]
        return stdev(seed[columns[0]] - seed[columns[1]] for seed in both) if len(both) > 1 else None

    own = of(row)
    others = [std for each in rows if (std := of(each)) is not None]
    if own is not None or not others:
        return own
    return sqrt(fmean(std**2 for std in others))


def _verdict(gap: float | None, spread: float | None) -> str:
    if gap is None:
        return "not measured"
    if spread is None:
        return f"{'for' if gap > 0 else 'against'}, of unknown spread"
    if abs(gap) <= spread:
        return "within the seeds' spread"
    return "holds" if gap > 0 else "**does not hold**"


def _runs(measured: MeasuredTable) -> str:
    rows = []
    for seed, run in ((each.seed, run) for row in measured.rows for each in row.seeds for run in each.runs):
        spent = ("", "", "")
        if (how := run.training) is not None:
            spent = (f"{how.dev:.4f}", f"{how.best_epoch} of {how.epochs}", f"{how.seconds:.0f}")
        rows.append((run.recipe, str(seed), *spent, f"`{run.command}`", str(run.measured)))
    if not rows:
        return "None of its rows was measured yet."
    return table(("run", "seed", "development", "epoch kept", "seconds", "measured by", "on"), rows)


def all_orders(tables: Sequence[MeasuredTable]) -> str:
    """How many claims hold, over all tables."""
    spreads = typical_spreads(tables)
    verdicts = [line.split(" | ")[-1] for each in tables for line in orders(each, spreads).splitlines()[2:]]
    count = {
        kind: sum(text in verdict for verdict in verdicts)
        for kind, text in (("for", "holds"), ("against", "does not hold"), ("within", "within"), ("unknown", "unknown"))
    }
    return (
        "An order counts where our gap is larger than the standard deviation of the difference of two seeds; a row of "
        "one seed is taken to have the spread of the rows with several in that column. Over all tables: "
        f"{count['for']} hold, {count['against']} do not, {count['within']} are within the seeds' spread, of "
        f"{count['unknown']} no spread is known, the others were not measured."
    )
