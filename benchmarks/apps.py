"""The servers of a throughput run, and the loads of each."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import workloads
from benchmarks.measurements import CLOSED, Key
from benchmarks.minilm_folder import folder as minilm_folder
from benchmarks.servers import SERVICE
from benchmarks.targets import BOTH_CORES, DEFAULT, ECHO, MINILM, MINILM_BOTH_CORES, PEER, REDIS
from contract.manifest import MANIFEST_NAME, Manifest

MODELS = Path(__file__).resolve().parent.parent / "models"
ENTAILMENT = "avg-sick"  # the service needs a model for /entailment to start
ALL = "all models"
UVICORN = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
SHARES = (0.5, 0.8)  # of its saturation, at which a server is loaded in the open loop
# Requests of 1,000 pairs exceed the default limit, and on 64 connections they wait longer than the default time.
LIMITS = {
    "SEMBLANCE_MAX_PAIRS": "1000",
    "SEMBLANCE_MAX_WAITING": "1024",
    "SEMBLANCE_MAX_QUEUE_SECONDS": "60",
    "SEMBLANCE_REQUEST_TIMEOUT": "60",
}


@dataclass(frozen=True)
class Cell:
    """One load."""

    items: int  # pairs, or candidates, a request
    connections: int
    cache: str = ""  # warm, cold or redis; empty: no cache
    shares: tuple[float, ...] = ()
    rank: bool = False
    least_seconds: float = 0.0  # at least, for servers that answer few requests a second

    def key(self, app: str, share: float | None = None) -> Key:
        """The key of its measurements."""
        load = CLOSED if share is None else f"open, {share:.0%}"
        return Key(app, "rank" if self.rank else "similarity", self.items, self.cache, self.connections, load)


@dataclass(frozen=True)
class App:
    """A server and its loads."""

    name: str
    command: Callable[[int], list[str]]  # port -> command
    cells: Sequence[Cell] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    path: str = "/similarity"
    shape: workloads.Shape = workloads.pairs
    ours: bool = True
    both_cores: bool = False
    redis: bool = False


@dataclass(frozen=True)
class Grid:
    """The extent of a run."""

    connections: tuple[int, ...]
    items: tuple[int, ...]
    rounds: int
    seconds: float
    small: bool = False  # only what the targets and the plot need


FULL = Grid((1, 16, 64), (1, 64, 1000), rounds=3, seconds=3)
QUICK = Grid((16, 64), (1, 64), rounds=1, seconds=2, small=True)


def _service(port: int) -> list[str]:
    return SERVICE


def _uvicorn(target: str, python: str, port: int) -> list[str]:
    return [python, "-m", "uvicorn", target, "--port", str(port), *UVICORN]


def line_up(grid: Grid, models: Sequence[str], folder: Path) -> list[App]:
    """The echo and our servers, in the order in which they are measured.

    Args:
        grid: the extent of the run.
        models: ids of published models.
        folder: for a models folder of each model, so that its memory can be measured.
    """
    found = [App(ECHO, partial(_uvicorn, "benchmarks.echo_app:app", sys.executable), _cells(grid, ""), ours=False)]
    for model in models:
        family = Manifest.load(MODELS / model).family
        cells = _of_every_model(grid, 5.0 if family == "interaction" else 0.0)
        if model == DEFAULT:
            rank = Cell(1000, 1, "cold", rank=True)
            own = dict.fromkeys([*_cells(grid, "warm"), *cells[:2], *_cells(grid, "cold"), *cells[2:], rank])
            found += [_of(model, folder, list(own)), *_of_default(grid, folder)]
        else:
            found.append(_of(model, folder, cells))
        if model == MINILM:  # as the peer is loaded
            both = [Cell(1, c, "cold", least_seconds=4.0) for c in (1, 16)]
            both += [Cell(64, c, "cold", least_seconds=10.0) for c in (1, 2)]
            found.append(_of(model, folder, both, MINILM_BOTH_CORES, both_cores=True))
    return [*found, App(ALL, _service)]


def _cells(grid: Grid, cache: str) -> list[Cell]:
    """The loads of the default model and of the echo."""
    shared = (1, 64) if cache and not grid.small else (1,)
    return [
        Cell(
            items,
            connections,
            cache,
            shares=SHARES if connections == 64 and items in shared else (),
            least_seconds=5.0 if items * connections > 10_000 else 0.0,  # until every connection has been answered
        )
        for items in grid.items
        for connections in grid.connections
    ]


def _of_every_model(grid: Grid, least_seconds: float) -> list[Cell]:
    """The loads of every model. Few connections for large requests: more would only queue."""
    warm = [Cell(1, 16, "warm"), *([] if grid.small else [Cell(64, 2, "warm")])]
    cold = [*([] if grid.small else [Cell(1, 16, "cold")]), Cell(64, 2, "cold", least_seconds=least_seconds)]
    return [*warm, *cold]


def _of(model: str, folder: Path, cells: Sequence[Cell], name: str | None = None, **more: Any) -> App:
    environment = {
        **LIMITS,
        "SEMBLANCE_MODELS_DIR": str(alone(model, folder)),
        "SEMBLANCE_DEFAULT_SIMILARITY": model,
        "SEMBLANCE_DEFAULT_RANK": model,
        "SEMBLANCE_CACHE_BYTES": str(workloads.CACHE_BYTES),
        **more.pop("environment", {}),
    }
    return App(name or model, _service, cells, environment, **more)


def _of_default(grid: Grid, folder: Path) -> list[App]:
    """The default model with Redis as its only cache, and on as many cores as the peer."""
    nothing = {"SEMBLANCE_CACHE_BYTES": "0", "SEMBLANCE_CACHE": "redis"}
    redis = [Cell(items, 16, "redis") for items in grid.items]
    both = [Cell(64, connections, cache) for cache in ("warm", "cold") for connections in (2, 4)]
    return [
        _of(DEFAULT, folder, redis, REDIS, environment=nothing, redis=True),
        _of(DEFAULT, folder, both, BOTH_CORES, both_cores=True),
    ]


def alone(model: str, folder: Path) -> Path:
    """A models folder with this model and the model for /entailment."""
    target = folder / f"only-{model}"
    for name in (model, ENTAILMENT):
        manifest = Manifest.load(MODELS / name)
        files = [manifest.path_of(MODELS / name, file) for file in manifest.files]
        for path in [MODELS / name / MANIFEST_NAME, *files]:
            copy = target / path.resolve().relative_to(MODELS.resolve())
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    return target


def peer(kind: str, python: Path, grid: Grid, threads: int) -> tuple[App, str]:
    """A server of MiniLM on all cores, and its description.

    Args:
        kind: infinity, or fastapi for sentence-transformers behind it.
        python: the interpreter with its packages.
        grid: the extent of the run.
        threads: of its matrix products.

    Raises:
        SystemExit: the interpreter lacks a package.
    """
    small, large = ((16,), (2,)) if grid.small else ((1, 16, 64), (1, 2))
    cells = [Cell(1, c, shares=SHARES if c == 64 else (), least_seconds=4.0) for c in small]
    cells += [Cell(64, c, least_seconds=10.0) for c in large]  # about four requests a second
    environment = {"OMP_NUM_THREADS": str(threads), "DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
    more: dict[str, Any] = {"environment": environment, "ours": False, "both_cores": True}
    if kind == "fastapi":
        what = (
            f"sentence-transformers behind FastAPI ({_versions(python, 'sentence-transformers', 'torch', 'fastapi')})"
        )
        app = App(PEER, partial(_uvicorn, "benchmarks.minilm_app:app", str(python)), cells, **more)
    else:
        what = f"infinity-emb ({_versions(python, 'infinity-emb', 'sentence-transformers', 'torch')})"
        begin = [str(python.with_name("infinity_emb")), "v2", "--model-id", str(minilm_folder())]
        begin += ["--served-model-name", "minilm", "--engine", "torch", "--device", "cpu", "--no-bettertransformer"]
        begin += ["--no-model-warmup"]  # slow; our first load, which is not measured, warms it up
        begin += ["--log-level", "warning", "--host", "127.0.0.1", "--port"]
        app = App(PEER, lambda port: [*begin, str(port)], cells, path="/embeddings", shape=workloads.embeddings, **more)
    return app, f"all-MiniLM-L6-v2 by {what}, {threads} threads"


def _versions(python: Path, *names: str) -> str:
    code = f"from importlib.metadata import version\nprint(*(f'{{n}} {{version(n)}}' for n in {names}), sep=', ')"
    ran = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"the peer needs {', '.join(names)} in {python}: {ran.stderr.strip().splitlines()[-1]}")
    return ran.stdout.strip()
