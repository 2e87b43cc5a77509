"""The tables in analyses/tables: every row can be trained, or says where its recipe is; the claims hold there."""

from pathlib import Path

import pytest

from training.publishing.figures import FigureFile
from training.recipes import RECIPES
from training.recipes.recipe import differences
from training.results.report.reproduced import judged
from training.results.tables import PaperTable, find_table, known_tables, read_tables

FOLDER = Path(__file__).parents[3] / "analyses/tables"
TABLES = read_tables(FOLDER)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_row_is_a_recipe_or_says_where_it_is(table: PaperTable) -> None:
    assert find_table(table.table, FOLDER) == table
    for row in table.rows:
        assert row.retired or set(row.recipes) <= set(RECIPES)


def test_every_published_recipe_is_a_row_and_another_folder_begins_with_nothing_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {name for table in TABLES.values() for row in table.rows for name in row.recipes}
    assert {each.name for each in RECIPES.values() if each.publication is not None} - rows == {"sentiment"}  # labels
    monkeypatch.chdir(FOLDER.parents[1])  # where the tables are looked for
    found = known_tables(tmp_path)
    assert list(found) == list(TABLES)
    assert not any(row.seeds or row.mean or row.std for table in found.values() for row in table.rows)
    assert [row.paper for row in found["pwim-sts"].rows] == [row.paper for row in TABLES["pwim-sts"].rows]


def test_every_figure_was_measured_with_the_settings_that_its_recipe_has() -> None:
    """Else the seeds of a row would be runs of different recipes."""
    changed = {}
    for path in sorted((FOLDER.parent / "figures").glob("*.json")):
        measured = FigureFile.load(path)
        if measured.recipe in RECIPES and measured.settings is not None:
            changed[path.name] = differences(measured.settings, RECIPES[measured.recipe])
    assert len(changed) > 100
    assert {name: settings for name, settings in changed.items() if settings} == {}


@pytest.mark.parametrize("name", [n for n in TABLES if n.startswith(("gran-", "wieting", "malstm"))])
def test_every_claim_that_the_paper_has_figures_for_holds_in_them(name: str) -> None:
    assert all(each.paper > -1e-9 for each in judged(TABLES[name]) if each.paper is not None)
