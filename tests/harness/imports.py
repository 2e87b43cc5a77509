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


def graph_of(*packages: str) -> dict[str, set[str]]:
    """Who imports whom, within and across these packages."""
    modules = {name: path for package in packages for name, path in modules_of(package).items()}
    return {module: set(imported(path, modules)) - {module} for module, path in modules.items()}


def child_graphs(graph: Graph) -> dict[str, dict[str, set[str]]]:
    """For each folder which of the files and folders in it import which others, a folder for all that is below it."""
    found: dict[str, dict[str, set[str]]] = {}
    for module, others in graph.items():
        for other in others:
            one, two = module.split("."), other.split(".")
            same = next((i for i, parts in enumerate(zip(one, two, strict=False)) if parts[0] != parts[1]), None)
            depth = min(len(one), len(two)) if same is None else same
            child, of_other = (
                ".".join(parts[: depth + 1]) if len(parts) > depth else f"{'.'.join(parts)}.__init__"
                for parts in (one, two)
            )
            found.setdefault(".".join(one[:depth]), {}).setdefault(child, set()).add(of_other)
    return found


def circle_in(graph: Graph) -> list[str]:
    """One import circle, its first module repeated at the end; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def layer_of(module: str, layers: Sequence[str]) -> tuple[int, str]:
    """The layer of a module and the name that it has there, the longest with which the module begins.

    Args:
        module: its dotted name.
        layers: of its package, the lowest first, each the names of folders and modules with spaces between.

    Raises:
        LookupError: no name of the layers fits.
    """
    inner = module.partition(".")[2]
    fitting = [
        (len(name), at, name)
        for at, layer in enumerate(layers)
        for name in layer.split()
        if inner == name or inner.startswith(f"{name}.")
    ]
    if not fitting:
        raise LookupError(f"{module} is in no layer: add its folder")
    return max(fitting)[1:]


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
