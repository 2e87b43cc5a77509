"""A table carried out on toy corpora: trained, measured, written; what is there is not done again."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pytest
from typer.testing import CliRunner

from papers.__main__ import app
from papers.headlines import repeats_table
from papers.paper_table import Column, Order, PaperFigure, PaperTable, ResultRow, collect
from papers.reproduce import ReproductionFolders, SeedOutcome, again, plan, reproduce
from tests.harness import toy_runs, toys
from training.models import ProjectionConfig
from training.objectives.transfer import MarginConfig
from training.publish.figures import RunFigures, read_figures
from training.publish.graphs import ParityError
from training.recipes import RECIPES
from training.recipes.recipe import OptimiserConfig, Schedule
from training.recipes.sources.transfer import ParaphrasePairs
from training.records import read_records, write_records

AVG = replace(
    toy_runs.RECIPE,
    name="toy-avg",
    data=ParaphrasePairs(limit=24),
    objective=MarginConfig(),
    optimiser=OptimiserConfig(learning_rate=0.01, embedding_learning_rate=0.01),
    schedule=Schedule(epochs=2, batch_size=8),
    publication=None,
)
PROJECTION = replace(AVG, name="toy-projection", architecture=ProjectionConfig(), start="toy-avg")
EXPLODING = replace(AVG, name="toy-exploding", objective=MarginConfig(margin=float("inf")))
TABLE = PaperTable(
    table="toy-table",
    title="A toy table",
    command="python -m papers reproduce toy-table",
    columns=(
        Column(name="mean", corpus="transfer", split="mean of sets", metric="pearson"),
        Column(name="SICK", corpus="SICK", split="test", metric="pearson"),
    ),
    rows=(
        ResultRow(recipe="toy-projection", label="projection", paper={"mean": PaperFigure(value=66.0)}, wanted=(1, 2)),
        ResultRow(recipe="toy-avg", label="AVG", paper={"mean": PaperFigure(value=65.7)}),
    ),
    orders=(Order(better="toy-projection", worse="toy-avg", column="mean"),),
)


def save(table: PaperTable, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{table.table}.json").write_text(table.model_dump_json(), encoding="utf-8")


def measured(table: PaperTable, places: ReproductionFolders) -> PaperTable:
    return collect(table, read_figures(places.figures))


def of_rows(*rows: ResultRow, name: str = "toy-table") -> PaperTable:
    return TABLE.model_copy(update={"table": name, "rows": rows, "orders": ()})


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReproductionFolders:
    """Toy recipes, and corpora of a few pairs."""
    runs = toy_runs.runs_in(
        *(tmp_path, monkeypatch, AVG, PROJECTION, EXPLODING),
        paraphrases=lambda limit, seed, sources: toys.pairs(limit),
        year=lambda year: {"toy": toys.RATED},
        transfer=lambda name: toys.RATED,
    )
    found = ReproductionFolders(runs, *(tmp_path / name for name in ("figures", "tables", "RESULTS.md")))
    save(TABLE, found.tables)
    return found


def names(jobs: Sequence) -> list[tuple[str, list[str]]]:
    return [(job.name, job.steps) for job in jobs]


def test_what_a_run_starts_from_comes_first_and_is_trained_once(places: ReproductionFolders) -> None:
    both = ["train", "measure (float32)"]
    assert names(plan(TABLE, places)) == [
        ("toy-avg seed 1", both),
        ("toy-projection seed 1", both),
        ("toy-avg seed 2", ["train"]),
        ("toy-projection seed 2", both),
    ]
    assert names(plan(TABLE, places, rows=["toy-avg"], seeds=[3])) == [("toy-avg seed 3", both)]
    with pytest.raises(KeyError, match="table toy-table has no row toy-lstm; it has toy-projection, toy-avg"):
        plan(TABLE, places, rows=["toy-lstm"])


def test_a_row_whose_recipe_has_gone_is_left_as_it_is(places: ReproductionFolders) -> None:
    table = of_rows(ResultRow(recipe="toy-gone", label="gone", retired="abc1234"), TABLE.rows[1])
    assert [job.name for job in plan(table, places)] == ["toy-avg seed 1"]
    with pytest.raises(KeyError, match="the recipe toy-gone is no longer here: commit abc1234 has it"):
        plan(table, places, rows=["toy-gone"])


def test_a_table_is_carried_out_once(places: ReproductionFolders) -> None:
    assert reproduce(TABLE, places, teacher=None) == SeedOutcome(4, [])
    row = measured(TABLE, places).row("toy-projection")
    assert [each.seed for each in row.seeds] == [1, 2]
    (of_all,) = [
        figure.value
        for run in read_figures(places.figures)
        if (run.recipe, run.seed) == ("toy-projection", 2)
        for figure in run.figures
        if figure.corpus == "transfer"
    ]
    assert row.seeds[1].figures["mean"] == pytest.approx(100 * of_all)
    values = [each.figures["mean"] for each in row.seeds]
    assert (row.mean["mean"], row.std["mean"]) == pytest.approx((mean(values), stdev(values)))
    result = json.loads((places.runs / "toy-projection" / "seed-2" / "result.json").read_text())
    training = row.seeds[1].runs[0].training
    assert training is not None
    assert (training.dev, training.epochs) == (result["best"]["selection"], 2)
    report = places.report.read_text()
    assert f"| projection (`toy-projection`) | {mean(values):.1f} ± {stdev(values):.1f} |" in report
    assert "| projection over AVG | mean | +0.3 |" in report
    assert plan(TABLE, places) == []


def test_a_run_that_ended_otherwise_is_measured_again_and_an_unfinished_one_trained(
    places: ReproductionFolders,
) -> None:
    reproduce(TABLE, places, teacher=None, rows=["toy-avg"])
    path = places.runs / "toy-avg" / "seed-1" / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": 1e6}))
    assert names(plan(TABLE, places, rows=["toy-avg"])) == [("toy-avg seed 1", ["measure (float32)"])]
    path.unlink()
    assert names(plan(TABLE, places, rows=["toy-avg"])) == [("toy-avg seed 1", ["train", "measure (float32)"])]


def test_what_is_recorded_is_trained_again_beside_it_and_compared(places: ReproductionFolders) -> None:
    only = {"rows": ["toy-avg"], "seeds": [1, 2]}
    reproduce(TABLE, places, teacher=None, **only)
    (path,) = places.figures.glob("*.jsonl")
    recorded, runs = path.read_bytes(), read_records(path, RunFigures)
    arguments = ["reproduce", "toy-table", "--again", "--rows", "toy-avg", "--seeds", "1,2", "--runs", places.runs]
    arguments += ["--figures", places.figures, "--tables", places.tables, "--report", places.report]
    repeats = places.runs.parent / "repeats.jsonl"
    ended = CliRunner().invoke(app, list(map(str, [*arguments, "--keep", "--repeats", repeats])))
    assert ended.exit_code == 0, ended.output
    assert "toy-table: 2 of 2 done" in " ".join(ended.output.split())
    kept = read_records(repeats, RunFigures)
    assert [(run.recipe, run.seed) for run in kept] == [("toy-avg", 1), ("toy-avg", 2)]
    for run in kept:
        assert run.training is not None
        assert len(run.curve) == 1 + run.training.epochs
        assert run.curve[run.training.best_epoch] == pytest.approx(run.training.dev, abs=1e-6)
    shown = repeats_table(places.tables, places.figures, repeats)
    assert shown.count("| development |") == 2
    assert shown.count("| agrees |") == len(shown.splitlines()) - 2  # all rows below the head
    outcome, compared = again(TABLE, places, teacher=None, **only)
    assert outcome == SeedOutcome(0, [])  # its runs resume too
    assert {(each.row, each.seed) for each in compared} == {("toy-avg", 1), ("toy-avg", 2)}
    assert all(each.new == pytest.approx(each.recorded, abs=0.1) for each in compared)  # a run repeats with its seed
    assert {each.agrees for each in compared} == {True}
    assert path.read_bytes() == recorded
    low = [
        run.model_copy(update={"figures": tuple(f.model_copy(update={"value": 0.1}) for f in run.figures)})
        for run in runs
    ]
    write_records(path, low)
    _, compared = again(TABLE, places, teacher=None, **only)
    assert {each.agrees for each in compared} == {False}


def test_a_repeated_run_whose_graph_is_refused_is_kept_without_figures(
    places: ReproductionFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise ParityError("encoder.onnx: differs by 2e-05")

    monkeypatch.setattr("papers.reproduce.evaluate_run", refused)
    places = replace(places, repeats=places.runs.parent / "repeats.jsonl")
    outcome, compared = again(TABLE, places, teacher=None, rows=["toy-avg"], keep=True)
    assert (outcome.jobs, len(outcome.failures), compared) == (1, 1, [])
    (kept,) = read_records(places.repeats, RunFigures)
    assert (kept.recipe, kept.seed, kept.figures, len(kept.curve)) == ("toy-avg", 1, (), 3)


def test_a_recipe_that_changed_is_told_and_the_old_run_is_left_alone(
    places: ReproductionFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce(TABLE, places, teacher=None, rows=["toy-avg"])
    monkeypatch.setitem(RECIPES, "toy-avg", replace(AVG, row_scale=2.0))
    (failure,) = reproduce(TABLE, places, teacher=None, rows=["toy-avg"]).failures
    assert "was begun with another row_scale: move it away to start afresh" in failure[1]


def test_a_failing_row_does_not_stop_the_others(places: ReproductionFolders) -> None:
    rows = (ResultRow(recipe="toy-exploding", label="endless margin"), ResultRow(recipe="toy-avg", label="AVG"))
    save(of_rows(*rows), places.tables)
    save(of_rows(rows[1], name="toy-second"), places.tables)
    arguments = ["reproduce", "toy-table", "toy-second", "--runs", places.runs, "--figures", places.figures]
    arguments += ["--tables", places.tables, "--report", places.report]
    ended = CliRunner().invoke(app, list(map(str, arguments)))
    assert ended.exit_code == 1
    shown = " ".join(ended.output.split())
    assert "failed: toy-exploding seed 1: FloatingPointError" in shown
    assert "toy-table: 1 of 2 done" in shown
    assert "toy-second: 0 of 0 done" in shown  # the first table has all of it
    written = measured(of_rows(*rows), places)
    assert [len(written.row(name).seeds) for name in ("toy-exploding", "toy-avg")] == [0, 1]


def test_what_is_known_of_runs_that_are_gone_stays(places: ReproductionFolders) -> None:
    reproduce(TABLE, places, teacher=None, rows=["toy-avg"])
    before = measured(TABLE, places).row("toy-avg")
    elsewhere = replace(places, runs=places.runs.parent / "elsewhere")
    toys.table().save(elsewhere.runs / "tables" / "toy")
    reproduce(of_rows(before), elsewhere, teacher=None, seeds=[2])
    after = measured(TABLE, places).row("toy-avg")
    assert [each.seed for each in after.seeds] == [1, 2]
    assert after.seeds[0].runs == before.seeds[0].runs
    assert after.seeds[0].runs[0].training is not None


def test_figures_of_another_recipe_are_measured_again_where_they_tell_of_it(
    places: ReproductionFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce(TABLE, places, None, rows=["toy-avg"])
    shutil.rmtree(places.runs / "toy-avg")
    monkeypatch.setitem(RECIPES, "toy-avg", replace(AVG, row_scale=2.0, reaches="less"))
    again = [("toy-avg seed 1", ["train", "measure (float32)"])]
    assert names(plan(TABLE, places, rows=["toy-avg"])) == again
    (path,) = places.figures.glob("*.jsonl")
    older = json.loads(path.read_text(encoding="utf-8"))
    del older["settings"]["row_scale"]  # recorded before there was one: it was at its default
    path.write_text(json.dumps(older) + "\n", encoding="utf-8")
    assert names(plan(TABLE, places, rows=["toy-avg"])) == again
    monkeypatch.setitem(RECIPES, "toy-avg", replace(AVG, reaches="less"))
    assert plan(TABLE, places, rows=["toy-avg"]) == []
