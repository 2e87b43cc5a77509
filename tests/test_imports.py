"""No import circle in the packages that have no test of layers of their own."""

import pytest

from tests.imports import circle_in, graph_of


def test_imports_are_seen() -> None:
    graph = graph_of("semblance")
    assert "semblance.batch.parquet" in graph["semblance.batch.formats"]  # imported inside a function
    assert "semblance.client" in graph["semblance"]
    assert "benchmarks.servers" in graph_of("benchmarks")["benchmarks.beside"]


@pytest.mark.parametrize("package", ["benchmarks", "contract", "semblance"])
def test_no_import_circle(package: str) -> None:
    assert circle_in(graph_of(package)) == []
