"""The folders of packages stand in one order (docs/architecture.md): no import points up, and none makes a circle."""

import pytest

from tests.harness.imports import circle_in, graph_of, imported, modules_of, upward_in

# From the bottom up. A module belongs to the longest name that it starts with.
SERVICE = (
    "version",
    "names",
    "errors",  # raised by every folder
    "schemas",  # types of requests and answers, so that scoring/ and models/ can fill an answer in directly
    "parsing",
    "folders",
    "settings",
    "settings_help",
    "machine",  # reads settings
    "observe",
    "engine",
    "scoring",
    "models",
    "service",  # opens what engine/, models/ and observe/ hold, for the routes; knows nothing of HTTP
    "routes",
    "http",  # calls the routes of routes/ itself
    "app",  # joins service, routes/ and http/
    "process",  # runs the app in one process or several
    "__main__",
)
TRAINING = (
    "errors",
    "names",
    "records",
    "progress",
    "pairs",
    "corpora.catalogue",
    "corpora.files",
    "corpora.readers",
    "corpora",
    "words",
    "architectures",
    "objectives",
    "teacher",
    "sources",
    "recipes",
    "runs",
    "publishing",
    "families",
    "results",
    "console",
    "__main__",
)
PACKAGES = ("benchmarks", "core", "semblance", "service", "training", "workbench")
GRAPHS = {package: graph_of(package) for package in PACKAGES}


def test_the_graphs_are_whole() -> None:
    """Guards the guard: imports that everybody knows are seen, those inside functions too."""
    service, training, semblance = (GRAPHS[package] for package in ("service", "training", "semblance"))
    assert "service.engine.queue" in service["service.engine.batcher"]
    assert "service.process.workers" in service["service.__main__"]
    assert "training.runs.loop" in training["training.runs.run"]
    assert "training.publishing.publish" in training["training.__main__"]
    assert "training.families.siamese" in training["training.families"]
    assert "semblance.tables.parquet" in semblance["semblance.tables.formats"]  # imported inside a function
    assert "semblance.client.clients" in semblance["semblance"]
    assert "benchmarks.servers" in GRAPHS["benchmarks"]["benchmarks.beside"]
    assert len(service) > 60
    assert len(training) > 100


@pytest.mark.parametrize("package", PACKAGES)
def test_no_import_circle(package: str) -> None:
    assert circle_in(GRAPHS[package]) == []


@pytest.mark.parametrize(
    ("package", "order"), [("service", SERVICE), ("training", TRAINING)], ids=["service", "training"]
)
def test_no_import_points_up(package: str, order: tuple[str, ...]) -> None:
    assert upward_in(GRAPHS[package], order) == []


def test_a_bad_graph_is_noticed() -> None:
    """Guards the guard: a circle, and an import that points up."""
    graph = {"service.http.server": {"service.app"}, "service.app": {"service.http.server"}}
    assert sorted(set(circle_in(graph))) == ["service.app", "service.http.server"]
    assert upward_in(graph, SERVICE) == ["service.http.server -> service.app"]
    with pytest.raises(LookupError, match=r"service\.new is in no layer"):
        upward_in({"service.new": {"service.app"}}, SERVICE)


def test_training_imports_neither_the_workbench_nor_what_answers_requests() -> None:
    packages = {name: modules_of(name) for name in ("workbench", "semblance", "service")}
    for path in modules_of("training").values():
        for name, modules in packages.items():
            assert not set(imported(path, modules)), f"{path} imports {name}"
