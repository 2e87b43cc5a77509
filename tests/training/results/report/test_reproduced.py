"""A reproduced table as Markdown: means with spreads, the paper's line below, and a verdict on every order."""

from datetime import date

import pytest

from training.results.report.reproduced import all_orders, orders, reproduced, typical_spreads
from training.results.reproductions.measured import MeasuredRow, MeasuredRun, MeasuredTable, Measurement, Training
from training.results.reproductions.table import Column, Order, PaperFigure


def column(name: str, *, lower: bool = False) -> Column:
    return Column(name=name, corpus="SICK", split="test", metric=name, scale=1, digits=2, lower_is_better=lower)


def row(recipe: str, means: dict[str, float], stds: dict[str, float], paper: float | None, epochs: int) -> MeasuredRow:
    training = Training(dev=0.7, best_epoch=1, epochs=epochs, seconds=61.4)
    run = MeasuredRun(recipe=recipe, command="measure it", measured=date(2026, 1, 2), training=training)
    seed = Measurement(seed=1, figures=means, runs=(run,))
    return MeasuredRow(
        recipe=recipe,
        label=recipe.upper(),
        note="",
        storage="float32",
        seeds=(seed,) if means else (),
        mean=means,
        std=stds,
        paper={} if paper is None else {"r": PaperFigure(value=paper, note="over 22")},
    )


TABLE = MeasuredTable(
    table="t",
    title="A table",
    note="A note.",
    command="python -m training reproduce t",
    columns=(column("r"), column("mse", lower=True)),
    rows=(
        row("gran", {"r": 72.0, "mse": 0.3}, {"r": 0.3}, 68.9, 2),
        row("avg", {"r": 71.0, "mse": 0.2}, {"r": 0.4}, 68.4, 1),
        row("lstm", {}, {}, None, 0),
    ),
    orders=tuple(
        Order(better=better, worse=worse, column=name, printed="", worse_column=other)
        for better, worse, name, other in (
            ("gran", "avg", "r", ""),
            ("gran", "avg", "mse", ""),
            ("avg", "lstm", "r", ""),
            ("avg", "avg", "r", "mse"),
        )
    ),
)


def test_an_order_counts_where_its_gap_exceeds_the_seeds_spread() -> None:
    assert orders(TABLE, {"r": 0.6}).splitlines()[2:] == [
        "| GRAN over AVG | r | +0.50 | +1.00 ± 0.50 | holds (epochs: 2 against 1) |",
        "| GRAN over AVG | mse |  | -0.10 | against, of unknown spread (epochs: 2 against 1) |",
        "| AVG over LSTM | r |  |  | not measured |",
        "| AVG, r over AVG, mse | r |  | +70.80 | for, of unknown spread |",
    ]
    typical = {"r": 0.6, "mse": 0.08}
    assert "| GRAN over AVG | mse |  | -0.10 ± 0.11 | within the seeds' spread (epochs" in orders(TABLE, typical)
    assert "| GRAN over AVG | mse |  | -0.10 ± 0.01 | **does not hold** (epochs" in orders(TABLE, {"mse": 0.01})


def test_two_columns_of_one_row_are_compared_seed_by_seed() -> None:
    seeds = tuple(
        Measurement(seed=i, figures={"r": 71.0 + i, "mse": 70.0 + i + gap}, runs=()) for i, gap in enumerate((0.0, 0.2))
    )
    several = TABLE.rows[0].model_copy(update={"seeds": seeds})
    table = TABLE.model_copy(update={"rows": (several, *TABLE.rows[1:])})
    # The rows' own seeds differ by a point, the two columns of a seed by the same to within .14.
    assert orders(table, {"r": 9.0}).splitlines()[-1] == "| AVG, r over AVG, mse | r |  | +70.80 ± 0.14 | holds |"


def test_orders_of_all_tables_are_counted_by_verdict() -> None:
    assert all_orders([TABLE, TABLE]).endswith(
        "Over all tables: 2 hold, 0 do not, 0 are within the seeds' spread, of 4 no spread is known, the others "
        "were not measured."
    )


def test_the_typical_spread_of_a_column_is_that_of_the_rows_with_seeds_each_counted_once() -> None:
    assert typical_spreads([TABLE, TABLE]) == {"r": pytest.approx(((0.3**2 + 0.4**2) / 2) ** 0.5)}


def test_the_papers_line_stands_below_ours() -> None:
    lines = reproduced(TABLE, {}).splitlines()
    ours = lines.index("| GRAN (`gran`) | 72.00 ± 0.30 | 0.30 | 1 |  |")
    assert lines[ours + 1] == "| paper | 68.90 (over 22) |  |  |  |"
    assert "| LSTM (`lstm`) |  |  | none yet |  |" in lines
    assert "| gran | 1 | 0.7000 | 1 of 2 | 61 | `measure it` | 2026-01-02 |" in lines


def test_a_table_of_many_columns_is_printed_on_its_side() -> None:
    wide = TABLE.model_copy(update={"columns": (column("r"), *(column(f"c{i}") for i in range(12))), "orders": ()})
    lines = reproduced(wide, {}).splitlines()
    assert "|  | GRAN (`gran`) | paper | AVG (`avg`) | paper | LSTM (`lstm`) |" in lines
    assert "| r | 72.00 ± 0.30 | 68.90 (over 22) | 71.00 ± 0.40 | 68.40 (over 22) |  |" in lines
