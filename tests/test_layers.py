"""Folders import in one direction: within each folder no circle, and across folders only the arrows of one table."""

from typing import NamedTuple

import pytest

from tests.harness.imports import Graph, child_graphs, circle_in, graph_of, layer_of


class Package(NamedTuple):
    """What a package may import.

    Attributes:
        packages: of the other packages; a folder or module that may import fewer or more stands in `OTHERS`.
        layers: its folders and modules from the bottom up. Each imports those before it alone: those in one line are
            independent of each other. A module belongs to the longest name that it starts with; () stands for a package
            whose modules may import each other, but for circles.
    """

    packages: tuple[str, ...]
    layers: tuple[str, ...] = ()


TABLE = {
    "core": Package(()),  # one folder, whose modules may import each other where that makes no circle
    "service": Package(
        ("core",),
        (
            "version",
            "errors",  # raised by every folder
            "schemas parsing folders",  # types of requests and answers, so that scoring/ and models/ can fill them in
            "settings",
            "settings_help machine observe",
            "engine",
            "scoring",
            "models",
            "service",  # opens what engine/, models/ and observe/ hold, for the routes; knows nothing of HTTP
            "routes",
            "http",  # calls the routes of routes/ itself
            "app",  # joins service, routes/ and http/
            "process",  # runs the app in one process or several
            "__main__",
        ),
    ),
    "semblance": Package(
        ("core",),
        (
            "errors types",
            "extras",
            "tables",
            "client",  # writes an FAQ as tables are written
            "jobs.batch",
            "jobs.claims jobs.columns jobs.dedupe jobs.threshold",
            "jobs.faq",
            "cli",
            "__main__",
        ),
    ),
    "training": Package(
        ("core",),
        (
            "errors names records progress markdown",
            "data",  # corpora and word tables
            "models",
            "objectives",
            "teacher",  # reads corpora with a larger model; recipes learn from its answers
            "recipes",
            "train",
            "publish",
            "families",  # each says how its models are trained and how they are published
            "console",
            "__main__",
        ),
    ),
    "workbench": Package(
        ("core", "training", "semblance"),
        ("imports confidence", "tuning", "integers minilm large", "__main__"),
    ),
    "papers": Package(("core", "training")),  # likewise, over recipes/, which imports none of them
    "benchmarks": Package(("core", "service", "semblance", "training")),
    "scripts": Package(("core", "service", "semblance", "training", "workbench", "papers", "benchmarks")),
}
# Of single folders and modules, in place of their package's.
OTHERS = {
    "semblance.client.local": ("core", "service"),  # runs the service in this process
    "semblance.cli": ("core", "service"),  # `semblance serve`
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Who imports whom, of all packages."""
    return graph_of(*TABLE)


def test_the_graph_is_whole(graph: Graph) -> None:
    """Guards the guard: imports that everybody knows are seen, those inside functions and across packages too."""
    assert "service.engine.queue" in graph["service.engine.batcher"]
    assert "service.app" in graph["semblance.client.local"]  # inside a function
    assert "semblance.tables.parquet" in graph["semblance.tables.formats"]
    assert "training.train.loop" in graph["training.train.run"]
    assert "core.manifest" in graph["workbench.confidence"]
    assert "benchmarks.servers" in graph["benchmarks.beside"]
    assert "service.errors" in graph["scripts.figures"]
    assert len(graph) > 200


def test_no_circle_in_any_folder(graph: Graph) -> None:
    """The files and folders in one folder, a folder with all that is below it, import each other in one direction."""
    assert {folder: circle for folder, each in child_graphs(graph).items() if (circle := circle_in(each))} == {}


def test_no_other_arrow_than_those_of_the_table(graph: Graph) -> None:
    assert forbidden(graph) == []


def test_a_bad_graph_is_noticed() -> None:
    """Guards the guard: a circle of folders that is none of modules, and arrows that are up, aside or to a package."""
    bad = {
        "training.data.a": {"training.train.b"},
        "training.train.c": {"training.data.d"},
        "semblance.tables.rows": {"semblance.client.requests"},
        "semblance.client.requests": {"service.app"},
        "semblance.client.local": {"service.app"},
    }
    assert sorted(set(circle_in(child_graphs(bad)["training"]))) == ["training.data", "training.train"]
    assert forbidden(bad) == [
        "semblance.client.requests -> service.app",
        "semblance.tables.rows -> semblance.client.requests",
        "training.data.a -> training.train.b",
    ]
    with pytest.raises(LookupError, match=r"service\.new is in no layer"):
        forbidden({"service.new": {"service.app"}})


def forbidden(graph: Graph) -> list[str]:
    """The imports that the table does not allow."""
    return [f"{one} -> {other}" for one in sorted(graph) for other in sorted(graph[one]) if not _allowed(one, other)]


def _allowed(one: str, other: str) -> bool:
    package, of_other = one.partition(".")[0], other.partition(".")[0]
    if package != of_other:
        fitting = [name for name in OTHERS if one == name or one.startswith(f"{name}.")]
        return of_other in (OTHERS[max(fitting, key=len)] if fitting else TABLE[package].packages)
    layers = TABLE[package].layers
    if not layers or package in (one, other):  # the package's own `__init__` offers what is inside
        return True
    at, of = layer_of(one, layers), layer_of(other, layers)
    return at[0] > of[0] or at == of
