"""The folders of training/ are a tower: no import circle, and no import that points up the order given here."""

from tests.imports import circle_in, graph_of, imported, modules_of, upward_in

# From the bottom up, as docs/architecture.md draws it. A module belongs to the longest name that it starts with.
ORDER = (
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
    "results",
    "console",
    "__main__",
)
GRAPH = graph_of("training")


def test_the_graph_is_whole() -> None:
    """Imports that everybody knows are seen."""
    assert "training.runs.loop" in GRAPH["training.runs.run"]
    assert "training.publishing.publish" in GRAPH["training.__main__"]
    assert len(GRAPH) > 100


def test_no_import_circle() -> None:
    assert circle_in(GRAPH) == []


def test_no_import_points_up() -> None:
    assert upward_in(GRAPH, ORDER) == []


def test_training_imports_neither_the_workbench_nor_what_answers_requests() -> None:
    packages = {name: modules_of(name) for name in ("workbench", "semblance", "service")}
    for path in modules_of("training").values():
        for name, modules in packages.items():
            assert not set(imported(path, modules)), f"{path} imports {name}"


def test_the_workbench_has_no_circle() -> None:
    assert circle_in(graph_of("workbench")) == []
