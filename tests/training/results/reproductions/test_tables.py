"""The declared tables: every row can be trained, and the papers' figures were copied without a slip."""

from pathlib import Path

import pytest

from training.recipes import RECIPES
from training.results.report.reproduced import judged
from training.results.reproductions import TABLES, find_table
from training.results.reproductions.measured import collect
from training.results.reproductions.papers import PRINTED, SETS, YEARS, printed
from training.results.reproductions.table import Column, Order, PaperFigure, PaperTable, Row

# The yearly averages the papers print, for the years of which all sets are at hand, and their 2013 average with SMT.
AVERAGES = {
    "GloVe": (52.5, 54.2, 52.7, 42.3, 22.3),
    "skip-thought": (30.8, 31.4, 31.0, 24.8, 24.3),
    "median of the systems": (54.5, 64.7, 70.2, 45.3, 31.8),
    "their 75th percentile": (59.5, 71.4, 75.8, 51.4, 34.6),
    "the best of them": (70.3, 76.7, 80.2, 65.3, 40.4),
    "PARAGRAM-SL999": (52.8, 59.5, 60.0, 46.4, 31.0),
    "PP": (58.7, 70.9, 75.8, 55.8, 39.2),
    "projection": (60.0, 71.3, 74.8, 56.8, 39.8),
    "DAN": (56.0, 69.5, 72.7, 54.2, 38.3),
    "RNN": (48.1, 57.7, 57.2, 44.7, 33.8),
    "iRNN": (58.4, 70.9, 75.6, 56.7, 39.4),
    "LSTM without output gate": (51.0, 59.8, 63.9, 45.2, 30.1),
    "LSTM": (46.4, 51.5, 56.0, 41.5, 28.8),
    "PP-XXL": (61.5, 73.1, 77.0, 58.9, 40.4),
    "GRAN paper LSTM-AVG": (64.8, 75.8, 76.7, 63.1, 40.7),
    "GRAN paper AVG": (61.6, 75.8, 77.9, 59.4, 38.0),
    "GRAN paper GRAN": (62.5, 75.9, 77.7, 63.4, 40.3),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_row_is_a_recipe_and_a_table_is_found_by_its_name(name: str) -> None:
    table = find_table(name)
    assert table.name == name
    for row in table.rows:
        assert set(row.recipes) <= set(RECIPES)


@pytest.mark.parametrize("model", PRINTED)
def test_figures_per_set_average_to_what_the_paper_prints(model: str) -> None:
    assert len(PRINTED[model]) == len(SETS) == 20
    of_2012, of_2014, of_2015, of_2013, smt = AVERAGES[model]
    for year, average in zip(("STS 2012", "STS 2014", "STS 2015"), (of_2012, of_2014, of_2015), strict=True):
        assert printed(model, year, "mean of sets") == pytest.approx(average, abs=0.08)
    of_three = printed(model, "STS 2013", "mean of sets")
    assert of_three is not None
    assert (3 * of_three + smt) / 4 == pytest.approx(of_2013, abs=0.08)


def test_the_mean_of_all_sets_is_over_sets_not_over_years() -> None:
    assert printed("PP", "transfer", "mean of sets") == pytest.approx(sum(PRINTED["PP"]) / 20)
    assert {corpus for corpus, _ in SETS} == {*YEARS, "SICK"}


@pytest.mark.parametrize("name", [n for n in TABLES if n.startswith(("gran-", "wieting", "malstm"))])
def test_every_claim_that_the_paper_has_figures_for_holds_in_them(name: str, tmp_path: Path) -> None:
    found = judged(collect(find_table(name), tmp_path, tmp_path, tmp_path))
    assert all(each.paper > -1e-9 for each in found if each.paper is not None)
    assert all(each.verdict == "not measured" for each in found)


COLUMN = Column("r", "SICK", "test", "pearson")


@pytest.mark.parametrize(
    ("rows", "orders", "message"),
    [
        ((Row("a", "A", {"rho": PaperFigure(1.0)}),), (), "table t, row a: no column rho"),
        ((Row("a", "A"), Row("a", "B")), (), "a recipe stands in two rows"),
        ((Row("a", "A"),), (Order("a", "b", "r"),), "is of no row or column here"),
        ((Row("a", "A"), Row("b", "B")), (Order("a", "b", "r", printed="rho"),), "is of no row or column here"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(
    rows: tuple[Row, ...], orders: tuple[Order, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        PaperTable("t", "T", (COLUMN,), rows, orders=orders)
