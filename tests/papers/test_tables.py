"""The tables in papers/tables: every row can be trained, or says where its recipe is; the claims hold there."""

import html
import re
import shutil
from pathlib import Path

import pytest

import papers.recipes  # noqa: F401 (makes them known)
from papers import report
from papers.every_table import entries
from papers.headlines import verdict
from papers.paper_table import Column, PaperTable, ResultRow, collect, find_table, read_tables
from papers.verdicts import OrderVerdict, judged
from training.publish.figures import read_figures
from training.recipes import RECIPES
from training.recipes.recipe import differences

PAPERS = Path(__file__).parents[2] / "papers"
FOLDER = PAPERS / "tables"
TABLES = read_tables(FOLDER)
FIGURES = read_figures(PAPERS / "figures")


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_row_is_a_recipe_or_says_where_it_is(table: PaperTable) -> None:
    assert find_table(table.table, FOLDER) == table
    for row in table.rows:
        assert row.retired or set(row.recipes) <= set(RECIPES)


def test_every_published_recipe_is_a_row() -> None:
    rows = {name for table in TABLES.values() for row in table.rows for name in row.recipes}
    assert {each.name for each in RECIPES.values() if each.publication is not None} - rows == {"sentiment"}  # labels


def test_every_measured_figure_records_the_settings_that_its_recipe_has() -> None:
    """Else the seeds of a row would be runs of different recipes."""
    assert len(FIGURES) > 180
    changed = {
        run.label: run.settings and differences(run.settings, RECIPES[run.recipe])
        for run in FIGURES
        if run.recipe in RECIPES
    }
    assert {label: settings for label, settings in changed.items() if settings != []} == {}


@pytest.mark.parametrize("name", [n for n in TABLES if n.startswith(("gran-", "wieting", "malstm"))])
def test_every_claim_that_the_paper_has_figures_for_holds_in_them(name: str) -> None:
    assert all(each.paper > -1e-9 for each in judged(collect(TABLES[name], FIGURES)) if each.paper is not None)


def test_every_table_of_the_papers_is_in_the_list_and_is_made_by_a_command_that_is_there() -> None:
    found = entries()
    numbers = {
        paper: {n for each in found if each.paper == paper for n in _numbers("Table", each.item)}
        for paper in ("MaLSTM", "PWIM", "MGIM", "PARAGRAM-PHRASE", "GRAN")
    }
    last = {"MaLSTM": 4, "PWIM": 10, "MGIM": 2, "PARAGRAM-PHRASE": 8, "GRAN": 11}
    assert numbers == {paper: set(range(1, number + 1)) for paper, number in last.items()}
    made = {words[4] for each in found if (words := each.command.split())[1:4] == ["-m", "papers", "reproduce"]}
    ours = {"gallery", "shipped", "gran-definitions", "gran-simple"}  # of no paper
    assert made == set(TABLES) - ours


def _numbers(kind: str, item: str) -> list[int]:
    """Those of `Table 3` or `Tables 9 to 11`."""
    found = re.search(rf"{kind}s? (\d+)(?: to (\d+))?", item)
    return [] if found is None else list(range(int(found[1]), int(found[2] or found[1]) + 1))


def test_the_report_and_its_plots_are_of_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, list[OrderVerdict]] = {}
    monkeypatch.setattr(report, "claims", lambda title, orders, path: drawn.update({path.name: orders}))
    shutil.copy(PAPERS / "apart.jsonl", tmp_path)
    report.write_report(PAPERS / "figures", tmp_path / "RESULTS.md", FOLDER)
    written = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert written == (PAPERS / "RESULTS.md").read_text(encoding="utf-8"), "python -m papers results"
    assert len(drawn) == 7
    for name, orders in drawn.items():
        said = "".join(re.findall(r"<text[^>]*>(.*?)</text>", (PAPERS / "plots" / name).read_text(encoding="utf-8")))
        for each in orders:
            assert html.escape(each.claim, quote=False).replace(" ", "") in said.replace(" ", ""), name


def test_a_figure_is_reached_where_it_is_as_good_as_the_papers_in_print() -> None:
    up, down = (
        Column(name="r", corpus="", split="", metric="", digits=1, lower_is_better=low) for low in (False, True)
    )
    row = ResultRow(recipe="a", label="a", mean={"r": 74.96})
    assert [verdict(row, up, paper) for paper in (75.0, 75.04, 75.1)] == ["reached", "reached", "missed by 0.1"]
    assert [verdict(row, down, paper) for paper in (74.9, 75.0)] == ["missed by 0.1", "reached"]
