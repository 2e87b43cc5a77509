"""The papers' tables beside ours, and whether the papers' claims hold, from analyses/tables/*.json."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev

from training.recipes import RECIPES
from training.results.report.markdown import number, table
from training.results.tables import Column, PaperTable, ResultRow

WIDE = 10  # columns; a table with more is transposed


def reproduced(measured: PaperTable) -> str:
    """One table: our figures (mean, standard deviation), the paper's, and the runs."""
    parts = [f"### {measured.title}", f"`{measured.command}`. {measured.note}".strip()]
    parts.append(_tall(measured) if len(measured.columns) > WIDE else _broad(measured))
    if measured.orders:
        parts += ["Orders:", orders(measured)]
    parts.append(_runs(measured))
    return "\n\n".join(parts)


def _broad(measured: PaperTable) -> str:
    head = ["", *(each.name for each in measured.columns), "seeds", "note"]
    rows = []
    for row in measured.rows:
        ours = (_ours(row, column) for column in measured.columns)
        notes = [row.note, f"its recipe: commit {row.retired}" if row.retired else ""]
        seeds = str(len(row.seeds)) if row.seeds else "none yet"
        rows.append([f"{row.label} (`{row.recipe}`)", *ours, seeds, "; ".join(filter(None, notes))])
        if row.paper:
            rows.append(["paper", *(_paper(row, column) for column in measured.columns), "", ""])
    return table(head, rows)


def _tall(measured: PaperTable) -> str:
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


def _ours(row: ResultRow, column: Column) -> str:
    value, spread = row.mean.get(column.name), row.std.get(column.name)
    shown = number(value, column.digits)
    return shown if spread is None else f"{shown} ± {spread:.{column.digits}f}"


def _paper(row: ResultRow, column: Column) -> str:
    printed = row.paper.get(column.name)
    if printed is None:
        return ""
    return number(printed.value, column.digits) + (f" ({printed.note})" if printed.note else "")


@dataclass(frozen=True)
class OrderVerdict:
    """An order, the paper's gap and ours, and what follows from ours."""

    claim: str
    column: Column
    paper: float | None  # None: the claim is ours, no paper prints both figures
    ours: float | None
    spread: float | None
    verdict: str


HOLDS, FAILS, WITHIN = "holds", "**does not hold**", "within the seeds' spread"
ONE_SEED, UNEQUAL, NOT_MEASURED = "one seed", "unequal epochs", "not measured"


def judged(measured: PaperTable) -> list[OrderVerdict]:
    """Every order of a table with its verdict.

    An order is judged where each side has at least two seeds and both were trained for as many epochs; then the gap of
    the means must be larger than the standard deviation of the difference of two seeds.
    """
    columns = {each.name: each for each in measured.columns}
    found = []
    for claim in measured.orders:
        column = columns[claim.column]
        better = measured.row(claim.better), claim.column
        worse = measured.row(claim.worse), claim.worse_column or claim.column
        papers = [row.paper.get(claim.printed or name) for row, name in (better, worse)]
        paper = _gap(column, *(None if each is None else each.value for each in papers))
        ours = _gap(column, *(row.mean.get(name) for row, name in (better, worse)))
        one_row = better[0] is worse[0]
        spread = _paired_spread(better[0], better[1], worse[1]) if one_row else _spread(better, worse)
        names = (f"{row.label}, {name}" if claim.worse_column else row.label for row, name in (better, worse))
        if ours is None:
            verdict = NOT_MEASURED
        elif spread is None:
            verdict = ONE_SEED
        elif unequal := _unequal(better[0], worse[0]):
            verdict = f"{UNEQUAL}: {unequal}"
        elif abs(ours) <= spread:
            verdict = WITHIN
        else:
            verdict = HOLDS if ours > 0 else FAILS
        found.append(OrderVerdict(" over ".join(names), column, paper, ours, spread, verdict))
    return found


def orders(measured: PaperTable) -> str:
    """For each claim: the gap in the paper's figures, the gap in ours with its spread, and a verdict."""
    rows = []
    for each in judged(measured):
        digits = each.column.digits
        spread = "" if each.spread is None else f" ± {each.spread:.{digits}f}"
        paper = "ours" if each.paper is None else f"{each.paper:+.{digits}f}"
        ours = "" if each.ours is None else f"{each.ours:+.{digits}f}{spread}"
        rows.append((each.claim, each.column.name, paper, ours, each.verdict))
    return table(("claim", "by", "paper's gap", "our gap", ""), rows)


def _gap(column: Column, better: float | None, worse: float | None) -> float | None:
    """How much better: positive when the claim holds."""
    if better is None or worse is None:
        return None
    return worse - better if column.lower_is_better else better - worse


def _unequal(better: ResultRow, worse: ResultRow) -> str:
    """The epochs of two rows, where they differ.

    Not where one is untrained, which is then what is compared, nor where both stopped by the same patience.
    """
    lengths = [sorted({r.training.epochs for s in row.seeds for r in s.runs if r.training}) for row in (better, worse)]
    if not all(lengths) or lengths[0] == lengths[1] or [0] in lengths:
        return ""
    one, other = (RECIPES[row.recipe].schedule if row.recipe in RECIPES else None for row in (better, worse))
    if one and other and one.patience and (one.epochs, one.patience) == (other.epochs, other.patience):
        return ""
    return " against ".join("/".join(map(str, each)) for each in lengths)


def _spread(better: tuple[ResultRow, str], worse: tuple[ResultRow, str]) -> float | None:
    """The standard deviation of the difference of two seeds; None where a row has one seed."""
    stds = [row.std.get(name) for row, name in (better, worse)]
    return None if stds[0] is None or stds[1] is None else float((stds[0] ** 2 + stds[1] ** 2) ** 0.5)


def _paired_spread(row: ResultRow, one: str, other: str) -> float | None:
    """The standard deviation, over seeds, of the difference of two columns of one row; None where it has one seed."""
    both = [seed.figures for seed in row.seeds if {one, other} <= set(seed.figures)]
    return stdev(seed[one] - seed[other] for seed in both) if len(both) > 1 else None


def _runs(measured: PaperTable) -> str:
    rows = []
    for seed, run in ((each.seed, run) for row in measured.rows for each in row.seeds for run in each.runs):
        spent = ("", "", "")
        if (how := run.training) is not None:
            spent = (f"{how.dev:.4f}", f"{how.best_epoch} of {how.epochs}", f"{how.seconds:.0f}")
        rows.append((run.recipe, str(seed), *spent, f"`{run.command}`", str(run.measured)))
    if not rows:
        return "None of its rows was measured yet."
    return table(("run", "seed", "development", "epoch kept", "seconds", "measured by", "on"), rows)


def all_orders(tables: Sequence[PaperTable]) -> str:
    """How many claims hold over all tables, those of the papers and ours apart."""
    found = [each for measured in tables for each in judged(measured)]
    lines = [
        "An order holds where each side has at least two seeds, both were trained for as many epochs (or stopped by "
        "the same patience, or one was not trained at all), and our gap is larger than the standard deviation of the "
        "difference of two seeds."
    ]
    for whose, claims in (
        ("Claims of the papers, whose figures stand beside ours", [each for each in found if each.paper is not None]),
        ("Claims of ours, without a paper's figures", [each for each in found if each.paper is None]),
    ):
        count = {
            kind: sum(each.verdict.startswith(kind) for each in claims)
            for kind in (HOLDS, FAILS, WITHIN, UNEQUAL, ONE_SEED, NOT_MEASURED)
        }
        lines.append(
            f"{whose}: {count[HOLDS]} hold, {count[FAILS]} do not, {count[WITHIN]} are within the seeds' spread, "
            f"{count[UNEQUAL]} compare unequal epochs, {count[ONE_SEED]} rest on one seed, "
            f"{count[NOT_MEASURED]} were not measured."
        )
    return "\n\n".join(lines)
