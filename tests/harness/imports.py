"""The import graph of a package, read from its sources: for tests that hold its folders to an order."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]

Graph = Mapping[str, set[str]]  # module -> the modules of the package that it imports


def module_of(path: Path) -> str:
    """The dotted name of a source file; `__init__.py` is its package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules_of(package: str) -> dict[str, Path]:
    """Every module of a package, by its name."""
    return {module_of(path): path for path in (ROOT / package).rglob("*.py")}


def imported(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """Those of `modules` that a file imports, inside functions and under TYPE_CHECKING too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name in modules:
                yield name
            elif name.rpartition(".")[0] in modules:
                yield name.rpartition(".")[0]


def graph_of(package: str) -> dict[str, set[str]]:
    """Who imports whom within a package."""
    modules = modules_of(package)
    return {module: set(imported(path, modules)) - {module} for module, path in modules.items()}


def circle_in(graph: Graph) -> list[str]:
    """One import circle, its first module repeated at the end; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def layer_of(module: str, order: Sequence[str]) -> int:
    """Where a module stands in an order of folders and modules: at the longest name that it starts with.

    Raises:
        LookupError: no name of the order fits.
    """
    inner = module.partition(".")[2]
    fitting = [name for name in order if inner == name or inner.startswith(f"{name}.")]
    if not fitting:
        raise LookupError(f"{module} is in no layer: add its folder to the order")
    return order.index(max(fitting, key=len))


def upward_in(graph: Graph, order: Sequence[str]) -> list[str]:
    """The imports that point from a lower layer to a higher one; `order` lists the lowest first."""
    return [
        f"{module} -> {other}"
        for module, others in sorted(graph.items())
        for other in sorted(others)
        if "." in module and "." in other and layer_of(other, order) > layer_of(module, order)
    ]


def imports(package: str) -> Iterator[tuple[str, str]]:
    """Every module that a package's sources import, at the top or inside a function, with the place that does."""
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "."]
            else:
                continue
            yield from ((name.split(".")[0], f"{path.relative_to(ROOT)}:{node.lineno}") for name in names)
