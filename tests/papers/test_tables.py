"""The tables in papers/tables: every row can be trained, or says where its recipe is; the claims hold there."""

from pathlib import Path

import pytest

import papers.recipes  # noqa: F401 (makes them known)
from papers.paper_table import PaperTable, collect, find_table, read_tables
from papers.verdicts import judged
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
