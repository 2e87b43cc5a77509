"""Verdicts that no order of the papers' tables has; all others: `test_tables.py`, by RESULTS.md."""

from datetime import date
from statistics import mean, stdev

from papers.paper_table import Column, MeasuredRun, Measurement, Order, PaperFigure, PaperTable, ResultRow
from papers.verdicts import orders
from training.publish.figures import TrainingSummary


def column(name: str, *, lower: bool = False) -> Column:
    return Column(name=name, corpus="SICK", split="test", metric=name, scale=1, digits=2, lower_is_better=lower)


def row(recipe: str, seeds: list[dict[str, float]], paper: float | None, epochs: int) -> ResultRow:
    training = TrainingSummary(dev=0.7, best_epoch=min(1, epochs), epochs=epochs, seconds=61.4)
    run = MeasuredRun(recipe=recipe, command="measure it", measured=date(2026, 1, 2), training=training)
    values = {name: [figures[name] for figures in seeds] for figures in seeds[:1] for name in figures}
    return ResultRow(
        recipe=recipe,
        label=recipe.upper(),
        note="",
        storage="float32",
        seeds=tuple(Measurement(seed=1 + i, figures=each, runs=(run,)) for i, each in enumerate(seeds)),
        mean={name: mean(each) for name, each in values.items()},
        std={name: stdev(each) for name, each in values.items() if len(each) > 1},
        paper={} if paper is None else {"r": PaperFigure(value=paper, note="over 22")},
    )


TABLE = PaperTable(
    table="t",
    title="A table",
    command="python -m papers reproduce t",
    columns=(column("r"), column("mse", lower=True)),
    rows=(
        row("gran", [{"r": 71.8, "mse": 0.3}, {"r": 72.0, "mse": 0.3}, {"r": 72.2, "mse": 0.3}], 68.9, 2),
        row("avg", [{"r": 70.9, "mse": 0.2}, {"r": 71.0, "mse": 0.15}, {"r": 71.1, "mse": 0.1}], 68.4, 2),
        row("raw", [{"r": 60.0}], None, 0),
        row("lstm", [], None, 0),
    ),
    orders=tuple(
        Order(better=better, worse=worse, column=name, printed="")
        for better, worse, name in (("gran", "avg", "mse"), ("gran", "raw", "r"), ("avg", "lstm", "r"))
    ),
)


def test_an_order_is_judged_where_less_is_better_against_an_untrained_row_and_not_unmeasured() -> None:
    assert orders(TABLE).splitlines()[2:] == [
        "| GRAN over AVG | mse | ours | -0.15 | 0.035 | **does not hold** |",
        "| GRAN over RAW | r | ours | +12.00 | 0.000 | holds |",  # untrained: that is what is compared
        "| AVG over LSTM | r | ours |  |  | not measured |",
    ]
