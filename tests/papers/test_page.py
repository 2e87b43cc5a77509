"""The report is generated from measured figures: tables with verdicts on every order, marks where a set was learnt."""

from datetime import date
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from pydantic import JsonValue

from core.manifest import Figure
from papers.paper_table import Column, MeasuredRun, Measurement, Order, PaperFigure, PaperTable, ResultRow
from papers.report import write_report
from papers.summary import fitted_on, summary
from papers.verdicts import all_orders, judged, orders, reproduced
from training.publish.figures import ApartFigures, RunFigures, TrainingSummary, record_run
from training.records import write_records

TASK: dict[str, Any] = {"accuracy": "entailment"}
FIGURES = RunFigures(
    **{"recipe": "avg-sick", "seed": 1, "storage": "int8", "measured": date(2026, 1, 2)},
    command="python -m training publish avg-sick --seed 1",
    figures=(),
)


def sick_figures(pearson: float, **more: Any) -> RunFigures:
    """Figures of a supervised run."""
    values = {"pearson": pearson, "spearman": 0.8, "mse": 0.25, "accuracy": 0.85}
    figures = tuple(
        Figure(task=TASK.get(metric, "similarity"), corpus="SICK", split="test", metric=metric, value=value, rows=4927)
        for metric, value in values.items()
    )
    return FIGURES.model_copy(update={"figures": figures, **more})


def test_the_report_opens_with_every_model_once_mean_and_spread_over_its_seeds(tmp_path: Path) -> None:
    for seed, pearson in ((1, 0.86), (2, 0.88)):
        record_run(tmp_path / "figures", sick_figures(pearson, seed=seed))
        record_run(tmp_path / "figures", sick_figures(0.5, seed=seed, storage="float32"))
    record_run(tmp_path / "figures", sick_figures(0.7, recipe="other"))
    write_report(tmp_path / "figures", tmp_path / "RESULTS.md", tmp_path / "tables")
    text = (tmp_path / "RESULTS.md").read_text()
    assert "- avg-sick seed 1 int8: `python -m training publish avg-sick --seed 1`, 2026-01-02" in text.splitlines()
    assert [line for line in text.splitlines() if line.startswith(("| recipe |", "| `"))][:3] == [
        "| recipe | words | seeds | SICK r | SICK entailment |",
        "| `avg-sick` | int8 | 1, 2 | 87.0 ± 1.4 | 85.0 ± 0.0 |",
        "| `other` | int8 | 1 | 70.0 | 85.0 |",
    ]


def test_tweets_and_phrases_stand_apart_with_the_papers_figures(tmp_path: Path) -> None:
    record_run(tmp_path / "figures", sick_figures(0.8))
    apart = []
    for model, r in (("dan", 0.4), ("minilm", 0.5)):
        figures = [Figure(task="similarity", corpus="PIT2015", split="test", metric="pearson", value=r, rows=838)]
        if model == "dan":
            phrases = {"corpus": "PPDB phrases", "split": "rated", "metric": "spearman"}
            figures.append(Figure(task="similarity", value=0.55, rows=26_456, **phrases))
        made = {"model": model, "fingerprint": "0" * 64, "command": "c", "measured": date(2026, 1, 2)}
        apart.append(ApartFigures(**made, figures=tuple(figures)))
    write_records(tmp_path / "apart.jsonl", apart)
    write_report(tmp_path / "figures", tmp_path / "RESULTS.md", tmp_path / "tables")
    text = (tmp_path / "RESULTS.md").read_text()
    first, second = (line for line in text.splitlines() if line.startswith(("| `dan`", "| `minilm`")))
    assert first == "| `minilm` | 50.0 |  |  |  | 2026-01-02 |"
    assert second == "| `dan` | 40.0 | 53.7 (DAN) | 55.0 | 60.9 | 2026-01-02 |"


def measured(recipe: str, value: float, settings: dict[str, JsonValue] | None) -> RunFigures:
    figure = Figure(task="similarity", corpus="transfer", split="mean of sets", metric="pearson", value=value, rows=20)
    return FIGURES.model_copy(update={"recipe": recipe, "figures": (figure,), "settings": settings})


FREE = measured("free", 0.76, {"data": {"kind": "X"}, "publication": None})


@pytest.mark.parametrize(
    ("settings", "sets"),
    [
        (None, ()),
        ({"data": {"corpora": ["msrp", "snli-train"]}, "publication": {"blend": False}}, ()),
        ({"data": {"corpora": ["sick"]}, "publication": None}, ("SICK",)),
        ({"data": {"corpora": ["msrp-whole"]}, "publication": {"blend": True}}, ("STS 2012 MSRpar", "STS 2012-2017")),
    ],
)
def test_what_a_model_learnt_is_read_from_its_settings(
    settings: dict[str, JsonValue] | None, sets: tuple[str, ...]
) -> None:
    file = measured("taught", 0.8, settings)
    assert tuple(name.partition(" (")[0] for name in fitted_on(file)) == sets
    free, taught = summary([FREE, file]).splitlines()[2:4]
    assert free.endswith("| 76.0 |")
    assert taught.endswith("| 80.0 \\* |" if sets else "| 80.0 |")
    assert ("`taught` was fitted on" in summary([FREE, file])) == bool(sets)
    assert "`free` was" not in summary([FREE, file])


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
    note="A note.",
    command="python -m papers reproduce t",
    columns=(column("r"), column("mse", lower=True)),
    rows=(
        row("gran", [{"r": 71.8, "mse": 0.3}, {"r": 72.0, "mse": 0.3}, {"r": 72.2, "mse": 0.3}], 68.9, 2),
        row("avg", [{"r": 70.9, "mse": 0.2}, {"r": 71.0, "mse": 0.15}, {"r": 71.1, "mse": 0.1}], 68.4, 2),
        row("longer", [{"r": 72.9}, {"r": 73.0}, {"r": 73.1}], 68.6, 7),
        row("raw", [{"r": 60.0}], None, 0),
        row("bigran", [{"r": 75.0}, {"r": 75.5}], 68.6, 2),
        row("near", [{"r": 70.0}, {"r": 71.0}, {"r": 72.1}], 68.5, 2),
        row("alike", [{"r": 60.0}, {"r": 61.0}, {"r": 62.1}], 68.4, 2),
        row("lstm", [], None, 0),
        row("gone", [{"r": 70.0}], 68.3, 2).model_copy(update={"retired": "0123abcd"}),
        row("left", [{"r": 69.9}, {"r": 70.0}, {"r": 70.1}], 68.3, 2).model_copy(update={"retired": "0123abcd"}),
    ),
    orders=tuple(
        Order(better=better, worse=worse, column=name, printed="", worse_column=other)
        for better, worse, name, other in (
            *(("gran", "avg", "r", ""), ("gran", "avg", "mse", ""), ("near", "avg", "r", "")),
            *(("longer", "gran", "r", ""), ("gran", "raw", "r", ""), ("bigran", "avg", "r", "")),
            *(("avg", "lstm", "r", ""), ("avg", "avg", "r", "mse"), ("avg", "alike", "r", "")),
            *(("avg", "gone", "r", ""), ("longer", "left", "r", "")),
        )
    ),
)


def test_an_order_holds_with_three_seeds_equal_epochs_and_a_gap_beyond_chance() -> None:
    """By Welch's test, by one sample against a row that is not trained, and by the gaps of two columns of a row."""
    assert orders(TABLE).splitlines()[2:] == [
        "| GRAN over AVG | r | +0.50 | +1.00 | 0.005 | holds |",
        "| GRAN over AVG | mse | ours | -0.15 | 0.035 | **does not hold** |",
        "| NEAR over AVG | r | +0.10 | +0.03 | 0.961 | not told apart |",
        "| LONGER over GRAN | r | -0.30 | +1.00 | 0.005 | unequal epochs: 7 against 2 |",
        "| GRAN over RAW | r | ours | +12.00 | 0.000 | holds |",  # untrained: that is what is compared
        "| BIGRAN over AVG | r | +0.20 | +4.25 |  | too few seeds |",
        "| AVG over LSTM | r | ours |  |  | not measured |",
        "| AVG, r over AVG, mse | r | ours | +70.85 | 0.000 | holds |",  # the seeds of two columns one by one
        "| AVG over ALIKE | r | +0.00 | +9.97 | 0.003 | printed alike |",  # no claim of the paper
        "| AVG over GONE | r | +0.10 | +1.00 |  | closed: too few seeds |",
        "| LONGER over LEFT | r | +0.30 | +3.00 | 0.000 | closed: unequal epochs |",
    ]


def test_rows_that_the_same_patience_stopped_count_as_trained_alike() -> None:
    rows = tuple(
        row(name, [{"r": r}, {"r": r + 0.1}, {"r": r + 0.2}], None, epochs)
        for name, r, epochs in (("mgim-sick-alone", 73.0, 25), ("mgim-sick-printed", 63.0, 29))
    )
    claim = (Order(better="mgim-sick-alone", worse="mgim-sick-printed", column="r"),)
    assert judged(TABLE.model_copy(update={"rows": rows, "orders": claim}))[0].verdict == "holds"


def test_orders_of_all_tables_are_counted_once_by_verdict_the_papers_claims_apart_from_ours() -> None:
    _, papers, ours, together = all_orders([TABLE, TABLE]).split("\n\n")
    assert papers.endswith(
        ": 1 hold, 0 do not, 1 are not told apart, 1 compare unequal epochs, 1 have fewer than 3 seeds on a side, "
        "2 are closed with fewer or with unequal epochs (the recipe of a side is gone), 0 were not measured."
    )
    assert ours.endswith(
        ": 2 hold, 1 do not, 0 are not told apart, 0 compare unequal epochs, 0 have fewer than 3 seeds on a side, "
        "0 are closed with fewer or with unequal epochs (the recipe of a side is gone), 1 were not measured."
    )
    assert together.startswith("All 5 judged orders taken together: 4 have a chance below 5% each alone, 4 at a false ")
    assert ", 3 by Holm's rule" in together  # .035 of two that are left is not below


def test_the_papers_line_stands_below_ours() -> None:
    lines = reproduced(TABLE).splitlines()
    ours = lines.index("| GRAN (`gran`) | 72.00 ± 0.20 | 0.30 ± 0.00 | 3 |  |")
    assert lines[ours + 1] == "| paper | 68.90 (over 22) |  |  |  |"
    assert "| LSTM (`lstm`) |  |  | none yet |  |" in lines
    assert "| gran | 1 | 0.7000 | 1 of 2 | 61 | `measure it` | 2026-01-02 |" in lines
