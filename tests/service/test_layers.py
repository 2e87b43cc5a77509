"""The folders of service/ stand in one order (docs/architecture.md): no import points up, and none makes a circle."""

import pytest

from tests.imports import circle_in, graph_of, upward_in

# From the bottom up. A module belongs to the longest name that it starts with.
ORDER = (
    "version",
    "names",
    "errors",  # raised by every folder
    "schemas",  # types of requests and answers; no code, so that scoring/ and models/ can fill an answer in directly
    "parsing",
    "redis_url",
    "folders",
    "settings",
    "machine",  # reads settings
    "observe",
    "compute",
    "scoring",
    "models",
    "service",  # opens what compute/, models/ and observe/ hold, for the routes; knows nothing of HTTP
    "columns",  # one model on columns of texts, beside the routes
    "api",
    "http",  # calls the routes of api/ itself
    "app",  # joins service, api/ and http/
    "process",  # runs the app in one process or several
    "__main__",
)

GRAPH = graph_of("service")


def test_the_graph_is_whole() -> None:
    """Guards the guard: imports that everybody knows are seen, those inside functions too."""
    assert "service.compute.pool" in GRAPH["service.compute.batcher"]
    assert "service.process.supervisor" in GRAPH["service.__main__"]
    assert len(GRAPH) > 60


@pytest.mark.parametrize("package", ["service", "contract"])
def test_no_import_circle(package: str) -> None:
    assert circle_in(graph_of(package)) == []


def test_no_import_points_up() -> None:
    assert upward_in(GRAPH, ORDER) == []


def test_a_bad_graph_is_noticed() -> None:
    """Guards the guard: a circle, and an import that points up."""
    graph = {"service.http.server": {"service.app"}, "service.app": {"service.http.server"}}
    assert sorted(set(circle_in(graph))) == ["service.app", "service.http.server"]
    assert upward_in(graph, ORDER) == ["service.http.server -> service.app"]
    with pytest.raises(LookupError, match=r"service\.new is in no layer"):
        upward_in({"service.new": {"service.app"}}, ORDER)
