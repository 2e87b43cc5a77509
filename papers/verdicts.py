"""The papers' tables beside ours, and whether the papers' claims hold, from papers/tables/*.json."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot
from statistics import mean, stdev

from scipy import stats

import papers.recipes  # noqa: F401 (makes them known)
from papers.paper_table import Column, PaperTable, ResultRow
from training.markdown import number, table
from training.recipes import RECIPES

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
        ours = (measured_cell(row, column) for column in measured.columns)
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
            cells += [measured_cell(row, column), *([_paper(row, column)] if row.paper else [])]
        rows.append(cells)
    return table(head, rows)


def measured_cell(row: ResultRow, column: Column) -> str:
    """Our mean of a column, and its standard deviation over the seeds."""
    value, spread = row.mean.get(column.name), row.std.get(column.name)
    shown = number(value, column.digits)
    return shown if spread is None else f"{shown} ± {spread:.{column.digits}f}"


def _paper(row: ResultRow, column: Column) -> str:
    printed = row.paper.get(column.name)
    if printed is None:
        return ""
    return number(printed.value, column.digits) + (f" ({printed.note})" if printed.note else "")


SURE = 0.05  # of chance: below it two rows are told apart
SEEDS = 3  # of each side that a verdict needs
HOLDS, FAILS, ALIKE = "holds", "**does not hold**", "not told apart"
FEW, CLOSED = "too few seeds", "closed"
UNEQUAL, NOT_MEASURED, NO_CLAIM = "unequal epochs", "not measured", "printed alike"


@dataclass(frozen=True)
class OrderVerdict:
    """An order, the paper's gap and ours, and what follows from ours.

    Attributes:
        compared: recipe and column of both sides: an order that stands in two tables is one claim.
        claim: the order in words.
        column: its unit and direction.
        paper: the gap in the paper's figures; None: the claim is ours, no paper prints both.
        ours: the gap of our means.
        spread: how far our gap varies from seed to seed (standard deviation); None where a side has one.
        chance: the p-value of our gap; None where a side has too few seeds.
        verdict: what follows.
    """

    compared: tuple[str, ...]
    claim: str
    column: Column
    paper: float | None
    ours: float | None
    spread: float | None
    chance: float | None
    verdict: str


def judged(measured: PaperTable) -> list[OrderVerdict]:
    """Every order of a table with its verdict.

    An order is judged where each side has at least three seeds and both were trained for as many epochs: by Welch's
    t-test of our figures (B. Welch, Biometrika 1947), paired where both are columns of one row. It is closed where that
    is not so and the recipe of a side is gone.
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
        chance = _chance(better, worse)
        gone = better[0].retired or worse[0].retired
        names = (f"{row.label}, {name}" if claim.worse_column else row.label for row, name in (better, worse))
        if paper == 0:
            verdict = NO_CLAIM
        elif ours is None:
            verdict = NOT_MEASURED
        elif chance is None:
            verdict = f"{CLOSED}: {FEW}" if gone else FEW
        elif unequal := _unequal(better[0], worse[0]):
            verdict = f"{CLOSED}: {UNEQUAL}" if gone else f"{UNEQUAL}: {unequal}"
        elif chance >= SURE:
            verdict = ALIKE
        else:
            verdict = HOLDS if ours > 0 else FAILS
        compared = (better[0].recipe, better[1], worse[0].recipe, worse[1])
        found.append(
            OrderVerdict(compared, " over ".join(names), column, paper, ours, _spread(better, worse), chance, verdict)
        )
    return found


def orders(measured: PaperTable) -> str:
    """For each claim: the gap in the paper's figures, the gap in ours, how likely by chance, and a verdict."""
    rows = []
    for each in judged(measured):
        digits = each.column.digits
        paper = "ours" if each.paper is None else f"{each.paper:+.{digits}f}"
        ours = "" if each.ours is None else f"{each.ours:+.{digits}f}"
        chance = "" if each.chance is None else f"{each.chance:.3f}"
        rows.append((each.claim, each.column.name, paper, ours, chance, each.verdict))
    return table(("claim", "by", "paper's gap", "our gap", "p", ""), rows)


def _gap(column: Column, better: float | None, worse: float | None) -> float | None:
    """How much better: positive when the claim holds."""
    if better is None or worse is None:
        return None
    return worse - better if column.lower_is_better else better - worse


def _spread(better: tuple[ResultRow, str], worse: tuple[ResultRow, str]) -> float | None:
    """The standard deviation of the gap between one seed of each side, or of two columns of each seed."""
    (one, column), (other, beside) = better, worse
    if one is other:
        gaps = [
            seed.figures[column] - seed.figures[beside] for seed in one.seeds if {column, beside} <= {*seed.figures}
        ]
        return stdev(gaps) if len(gaps) > 1 else None
    spreads = one.std.get(column), other.std.get(beside)
    return None if None in spreads else hypot(*(each for each in spreads if each is not None))


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


def _chance(better: tuple[ResultRow, str], worse: tuple[ResultRow, str]) -> float | None:
    """How likely chance alone makes such a gap; None where a side has fewer than `SEEDS` seeds.

    A row that is not trained has one figure, whatever the seed: the other side's are tested against that.
    """
    (one, column), (other, beside) = better, worse
    if one is other:
        both = [seed.figures for seed in one.seeds if {column, beside} <= set(seed.figures)]
        gaps = [seed[column] - seed[beside] for seed in both]
        return None if len(gaps) < SEEDS else _one_sample(gaps, 0.0)
    a, b = ([seed.figures[name] for seed in row.seeds if name in seed.figures] for row, name in (better, worse))
    if a and b and (_untrained(one) or _untrained(other)):
        fixed, drawn = (a, b) if _untrained(one) else (b, a)
        return None if len(drawn) < SEEDS else _one_sample(drawn, fixed[0])
    if min(len(a), len(b)) < SEEDS:
        return None
    if max(a) == min(a) and max(b) == min(b):
        return float(a[0] == b[0])
    known = (mean(a), stdev(a), len(a), mean(b), stdev(b), len(b))
    return float(stats.ttest_ind_from_stats(*known, equal_var=False).pvalue)


def _one_sample(values: Sequence[float], expected: float) -> float:
    if max(values) == min(values):
        return float(values[0] == expected)
    t = (mean(values) - expected) / (stdev(values) / len(values) ** 0.5)
    return float(2 * stats.t.sf(abs(t), len(values) - 1))


def _untrained(row: ResultRow) -> bool:
    epochs = {run.training.epochs for seed in row.seeds for run in seed.runs if run.training}
    return epochs == {0} and all(len({seed.figures.get(name) for seed in row.seeds}) == 1 for name in row.mean)


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
    """How many claims hold over all tables, those of the papers and ours apart; a claim in two tables counts once."""
    found = {each.compared: each for measured in tables for each in judged(measured) if each.verdict != NO_CLAIM}
    lines = [
        f"An order holds, or does not, where each side has at least {SEEDS} seeds, both were trained for as many "
        "epochs (or stopped by the same patience, or one was not trained at all), and Welch's t-test gives chance less "
        f"than {SURE:.0%}."
    ]
    for whose, claims in (
        ("Claims of the papers, whose figures stand beside ours", [c for c in found.values() if c.paper is not None]),
        ("Claims of ours, without a paper's figures", [c for c in found.values() if c.paper is None]),
    ):
        count = {
            kind: sum(each.verdict.startswith(kind) for each in claims)
            for kind in (HOLDS, FAILS, ALIKE, UNEQUAL, FEW, CLOSED, NOT_MEASURED)
        }
        lines.append(
            f"{whose}: {count[HOLDS]} hold, {count[FAILS]} do not, {count[ALIKE]} are not told apart, "
            f"{count[UNEQUAL]} compare unequal epochs, {count[FEW]} have fewer than {SEEDS} seeds on a side, "
            f"{count[CLOSED]} are closed with fewer or with unequal epochs (the recipe of a side is gone), "
            f"{count[NOT_MEASURED]} were not measured."
        )
    return "\n\n".join([*lines, _together(list(found.values()))])


def _together(claims: Sequence[OrderVerdict]) -> str:
    """How many judged gaps stay below `SURE` taken together (S. Holm, 1979; Y. Benjamini, Y. Hochberg, 1995)."""
    chances = sorted(
        each.chance for each in claims if each.chance is not None and each.verdict in (HOLDS, FAILS, ALIKE)
    )
    if not chances:
        return "None is judged yet."
    number = len(chances)
    holm = 0  # the smallest chances that stay below, each times the number of those not below it
    while holm < number and chances[holm] * (number - holm) < SURE:
        holm += 1
    hochberg = int((stats.false_discovery_control(chances) < SURE).sum())
    alone = sum(each < SURE for each in chances)
    return (
        f"All {number} judged orders taken together: {alone} have a chance below {SURE:.0%} each alone, {hochberg} at "
        f"a false discovery rate of {SURE:.0%} (Benjamini and Hochberg), {holm} by Holm's rule, where chance makes "
        "a single one of them."
    )
