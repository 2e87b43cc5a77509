"""Throughput, latency and memory of the service, of a bare ASGI echo (lower bound) and of a MiniLM server (peer).

    python benchmarks/throughput.py --quick                                            # three minutes
    python benchmarks/throughput.py --peer infinity --peer-python VENV/bin/python      # twenty; both need `wrk`

Saturation is measured in a closed loop (wrk), latency also at shares of it in an open loop (`open_loop.py`). Within a
round all servers are measured in turn; ratios are taken within a round, and medians over the rounds are reported, so
that other load on the machine affects all servers alike. A server has one core and the load another; for targets on two
cores, server and load share both. The run writes dated files into `benchmarks/results`, with a verdict on each target
and a plot of quality against throughput.

The peer is infinity-emb, installed for `--peer-python`, or sentence-transformers behind FastAPI:

    python -m venv VENV && VENV/bin/pip install 'infinity-emb[server,torch]'

A pair is two sentences of one request to infinity's `/embeddings`; computing their cosine is left to the client.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks import closed_loop, open_loop, pareto, workloads  # noqa: E402 - the repository is not installed
from benchmarks.apps import FULL, MODELS, QUICK, App, Cell, Grid, line_up, peer  # noqa: E402
from benchmarks.measurements import CLOSED, Key, Measurements  # noqa: E402
from benchmarks.report import RESULTS, machine, table, write  # noqa: E402
from benchmarks.servers import RedisServer, Server, free_port, pinned, shares  # noqa: E402
from benchmarks.targets import DEFAULT, ECHO, FLOOR, PEER, best_of, verdicts  # noqa: E402
from contract.manifest import Manifest  # noqa: E402

NAME = "service-throughput"
PACKAGES = ("fastapi", "uvicorn", "pydantic", "onnxruntime", "numpy")


@dataclass(frozen=True)
class Placement:
    """The cores of the server and of the load, as taskset takes them."""

    server: str
    load: str

    @classmethod
    def of(cls, cores: Sequence[int], both: bool) -> "Placement":
        """The first core for the server and the rest for the load; or all cores for both."""
        shared = both or len(cores) == 1
        server, load = (cores, cores) if shared else (cores[:1], cores[1:])
        return cls(",".join(map(str, server)), ",".join(map(str, load)))


class Loads:
    """Request bodies, written once for all servers with the same body shape."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, int, bool], workloads.Load] = {}

    def of(self, cell: Cell, shape: workloads.Shape) -> workloads.Load:
        """The bodies of a cell."""
        shape, warm = workloads.candidates if cell.rank else shape, cell.cache != "cold"
        key = (shape.__name__, cell.items, warm)
        if key not in self._made:
            name = f"{shape.__name__}-{cell.items}-{'warm' if warm else 'cold'}"
            seed = len(self._made) + 1
            self._made[key] = workloads.write(self._folder, name, shape, cell.items, warm=warm, seed=seed)
        return self._made[key]


@dataclass(frozen=True)
class Turn:
    """The measurement of one server in one round."""

    app: App
    server: Server
    placement: Placement
    loads: Loads
    seconds: float

    def run(self) -> Iterator[tuple[Key, dict[str, Any]]]:
        """For each cell the closed loop, then the open loop at shares of the saturation."""
        begun: set[tuple[int, bool]] = set()
        for cell in self.app.cells:
            load = self.loads.of(cell, self.app.shape)
            if cell.cache in ("warm", "redis"):
                workloads.ask_once(self.server.port, self.path_of(cell), load.bodies)
            elif (cell.items, cell.rank) not in begun:  # the first run is not measured
                self.wrk(cell, load, 1)
            begun.add((cell.items, cell.rank))
            saturation = self.closed(cell, load)
            yield cell.key(self.app.name), saturation
            for share in cell.shares if saturation["rate"] else ():
                yield cell.key(self.app.name, share), self.open(cell, load, saturation["rate"] * share)

    def path_of(self, cell: Cell) -> str:
        """The path of its requests."""
        return "/rank" if cell.rank else self.app.path

    def seconds_of(self, cell: Cell) -> float:
        """The duration of its loads."""
        return max(cell.least_seconds, self.seconds)

    def wrk(self, cell: Cell, load: workloads.Load, seconds: float) -> closed_loop.Measured:
        """A closed loop that begins where the last load stopped."""
        where = (self.server.port, self.path_of(cell), load.path, load.position)
        found = closed_loop.load(*where, cell.connections, seconds, self.placement.load)
        # Plus those in flight at its end, and one that wrk formats at the start.
        load.sent(found.requests + cell.connections + 1)
        return found

    def closed(self, cell: Cell, load: workloads.Load) -> dict[str, Any]:
        """Saturation: the closed loop."""
        with self.watched() as seen:
            found = self.wrk(cell, load, self.seconds_of(cell))
        return {
            "rate": found.rate,
            "p50": found.p50_ms,
            "p95": found.p95_ms,
            "p99": found.p99_ms,
            "max": found.max_ms,
            "not_answered": found.refused + found.broken,
            **seen,
        }

    def open(self, cell: Cell, load: workloads.Load, rate: float) -> dict[str, Any]:
        """Latency at a rate: the open loop."""
        plan = open_loop.Plan(
            port=self.server.port,
            path=self.path_of(cell),
            bodies=load.upcoming(),
            rate=rate,
            seconds=self.seconds_of(cell),
            connections=cell.connections,
            spin=self.placement.load != self.placement.server,
        )
        with self.watched() as seen:
            found = open_loop.start(plan, pinned(self.placement.load)).result()
        load.sent(found["requests"])
        return {
            "offered": rate,
            "rate": found["answered_per_second"],
            **(found["latency_ms"] or {}),
            "not_answered": found["requests"] - found["statuses"].get("200", 0),
            "waited": found["waited"] / max(1, found["requests"]),
            "lag_p99": found["lag_ms"]["p99"] if found["lag_ms"] else None,
            **seen,
        }

    @contextmanager
    def watched(self) -> Iterator[dict[str, Any]]:
        """CPU use and cache hit rates of the server within the block; filled in at its end."""
        seen: dict[str, Any] = {}
        if not self.server.settled():
            print(f"{self.app.name} is still busy with an earlier load", file=sys.stderr)
        before = self.server.metrics() if self.app.ours else None
        spent, began = self.server.cpu_seconds(), time.perf_counter()
        yield seen
        took = time.perf_counter() - began
        seen["busy_cores"] = (self.server.cpu_seconds() - spent) / took
        seen["found"] = shares(before, self.server.metrics()) if before is not None else {}


@dataclass
class Memory:
    """Start-up time and memory of one server, in each round."""

    ready_seconds: list[float]
    resident_mb: list[float]
    peak_mb: list[float]


def floor(core: int) -> dict[str, Any]:
    """The floor of 64 new pairs, on the core of the servers, as if it were a server that is always busy."""
    command = [*pinned(str(core)), sys.executable, "-m", "benchmarks.floor", DEFAULT]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {"rate": 1 / float(ran.stdout), "busy_cores": 1.0}


def measure(
    grid: Grid, every: Sequence[App], cores: Sequence[int], folder: Path
) -> tuple[Measurements, dict[str, Memory]]:
    """Run all rounds."""
    loads, found, memory = Loads(folder), Measurements(), {app.name: Memory([], [], []) for app in every}
    for round_ in range(grid.rounds):
        if any(app.name == DEFAULT for app in every):
            found.add(round_, Key(FLOOR, "similarity", 64, "", 1), floor(cores[0]))
        for app in every:
            port, placement = free_port(), Placement.of(cores, app.both_cores)
            environment = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **app.environment}
            if app.ours:
                environment |= {"SEMBLANCE_PORT": str(port), "SEMBLANCE_LOG_LEVEL": "warning"}
            with ExitStack() as stack:
                if app.redis:
                    environment["SEMBLANCE_REDIS_URL"] = stack.enter_context(RedisServer(placement.load)).url
                began = time.perf_counter()
                server = stack.enter_context(Server(app.command(port), port, environment, placement.server))
                memory[app.name].ready_seconds.append(time.perf_counter() - began)
                for key, values in Turn(app, server, placement, loads, grid.seconds).run():
                    found.add(round_, key, values)
                    print(f"round {round_ + 1}, {key.words}: {values}", file=sys.stderr, flush=True)
                used = server.resources()
                memory[app.name].resident_mb.append(used.resident_mb)
                memory[app.name].peak_mb.append(used.peak_mb)
    return found, memory


def points(found: Measurements, models: Sequence[str], peer_figures: Path | None) -> list[pareto.Point]:
    """The models with known quality, with their throughput for cold requests of 64 pairs."""
    points = []
    for name in models:
        manifest = Manifest.load(MODELS / name)
        key = Key(name, "similarity", 64, "cold", 2)
        if (rate := found.median(key, "rate")) is not None:
            trained = any(data.name == "sick" for data in manifest.training_data)
            quality = pareto.quality([figure.model_dump() for figure in manifest.figures])
            points.append(pareto.Point(name, pareto.OURS, trained, rate * 64, quality))
    best = best_of(found, PEER, 64, "")
    if best is not None and peer_figures is not None and (rate := found.median(best, "rate")):
        quality = pareto.quality(json.loads(peer_figures.read_text(encoding="utf-8"))["figures"])
        points.append(pareto.Point("MiniLM (peer, on all cores)", pareto.PEER, False, rate * 64, quality))
    return points


def _number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _milliseconds(found: Measurements, key: Key, names: Sequence[str]) -> list[str]:
    return [_number(found.median(key, name), 2) for name in names]


def _shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:.0%}" for name, share in shares.items())


def saturation_table(found: Measurements) -> list[str]:
    """The results of the closed loop."""
    rows = []
    for key in (key for key in found if key.load == CLOSED):
        rate, echo = found.median(key, "rate"), Key(ECHO, "similarity", key.items, "", key.connections)
        each = found.quotient(key, "busy_cores", "rate")
        microseconds = each * 1e6 if each is not None else None
        to_echo = found.ratio_for_cpu(key, echo) if key.app != ECHO and key.route == "similarity" else None
        rows.append(
            [
                *(key.app, f"{key.route} {key.items:,}", key.cache, str(key.connections)),
                *(_number(rate, 0 if rate is None or rate >= 100 else 1), _number((rate or 0) * key.items)),
                *_milliseconds(found, key, ("p50", "p95", "p99")),
                *(_number(found.quotient(key, "p99", "p50"), 1), _number(microseconds, 0)),
                *(_number(found.median(key, "busy_cores"), 2), _number(to_echo, 2)),
                *(_shares(found.shares(key)), _number(found.median(key, "not_answered"))),
            ]
        )
    head = ["server", "request of", "cache", "connections", "requests/s", "pairs/s", "p50 ms", "p95 ms", "p99 ms"]
    return table(
        [
            *head,
            "p99 : p50",
            "CPU us a request",
            "cores busy",
            ": echo, by CPU",
            "found in caches, computed",
            "not answered",
        ],
        rows,
    )


def open_table(found: Measurements) -> list[str]:
    """The results of the open loop."""
    rows = [
        [
            *(key.app, f"{key.route} {key.items:,}", key.cache, key.load.removeprefix("open, ")),
            *(_number(found.median(key, name)) for name in ("offered", "rate")),
            *_milliseconds(found, key, ("p50", "p95", "p99", "max")),
            *(_number(found.quotient(key, "p99", "p50"), 1), f"{found.median(key, 'waited') or 0:.1%}"),
            *(_number(found.median(key, "lag_p99"), 3), _number(found.median(key, "not_answered"))),
        ]
        for key in found
        if key.load != CLOSED
    ]
    head = ["server", "request of", "cache", "of saturation", "asked/s", "answered/s", "p50 ms", "p95 ms", "p99 ms"]
    return table([*head, "max ms", "p99 : p50", "found no connection free", "lag p99 ms", "not answered"], rows)


def memory_table(memory: Mapping[str, Memory]) -> list[str]:
    """Resident and peak memory of each server."""
    rows = [
        [name, _number(median(of.ready_seconds), 1), _number(median(of.resident_mb)), _number(median(of.peak_mb))]
        for name, of in memory.items()
    ]
    return table(["server", "ready after s", "resident MB", "peak MB"], rows)


def placed(cores: Sequence[int]) -> str:
    """The pinning to cores, as text."""
    if len(cores) == 1:
        return f"server and load share core {cores[0]}, so rates are below what each could do alone"
    load = ", ".join(map(str, cores[1:]))
    every = ", ".join(map(str, cores))
    return (
        f"a server on core {cores[0]}, the load (and Redis) on {load}; `both cores`, `{PEER}` and the load on them: "
        f"{every}"
    )


def write_result(
    options: argparse.Namespace, peer_words: str, found: Measurements, memory: Mapping[str, Memory], began: float
) -> None:
    """Write tables, verdicts, the plot, and the JSON with every round."""
    grid: Grid = options.grid
    figures = max(options.figures.glob("*-peer-quality.json"), default=None)
    shown = points(found, options.models, figures)
    plot = f"{datetime.now(UTC).date()}-{NAME}.png"
    title = (
        f"Quality against throughput, {datetime.now(UTC).date()}: ours on one core, the peer on {len(options.cores)}"
    )
    options.out.mkdir(parents=True, exist_ok=True)
    if shown:
        pareto.draw(shown, options.out / plot, title)
    told = verdicts(found)
    about = (
        f"`{options.command}`: {grid.rounds} round{'s' if grid.rounds > 1 else ''}, {grid.seconds:g} s a load "
        f"(slow servers up to 10), medians over the rounds, ratios within a round; loopback; "
        f"{placed(options.cores)}. One worker process of ours. Peer: {peer_words}. Warm: every request has been asked "
        f"before; cold: {workloads.COLD_ITEMS:,} pairs in turn, caches of {workloads.CACHE_BYTES >> 20} MiB; redis: "
        f"nothing in memory. Beside each model its folder also holds avg-sick, without which the service does not "
        f"start. Load "
        f"average at the start: {began:.1f}. {machine(*PACKAGES)}."
    )
    lines = [
        *table(["target", "measured", ""], [[v.target, v.measured, v.words] for v in told]),
        *("", "## Saturation: closed loop", "", *saturation_table(found)),
        *("", "## At shares of that: open loop, Poisson arrivals, latency from when a request was due", ""),
        *open_table(found),
        *("", "## Memory", "", *memory_table(memory)),
        *(("", "## Quality against throughput", "", f"![{title}]({plot})") if shown else ()),
    ]
    result: dict[str, object] = {
        "command": options.command,
        "plot": title,
        "verdicts": [asdict(verdict) for verdict in told],
        "points": [asdict(point) for point in shown],
        "memory": {name: asdict(of) for name, of in memory.items()},
        "loads": [{**key._asdict(), "rounds": list(found.rounds(key).values())} for key in found],
    }
    write(options.out, NAME, "Throughput, latency and memory", about, lines, result)


def arguments() -> argparse.Namespace:
    """The options, completed by what follows from them."""
    models = sorted(path.parent.name for path in MODELS.glob("*/manifest.json"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of what the targets and the plot need")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, help="of each load, whole ones")
    parser.add_argument("--models", nargs="+", default=models, choices=models, metavar="ID", help="instead of all")
    parser.add_argument("--servers", nargs="+", metavar="NAME", help="only these, by their names in the tables")
    parser.add_argument("--peer", choices=("infinity", "fastapi", "none"), default="fastapi")
    parser.add_argument(
        "--peer-python", type=Path, default=Path(sys.executable), help="the interpreter with its packages"
    )
    parser.add_argument("--cores", type=lambda text: [int(core) for core in text.split(",")], help="such as 0,1")
    parser.add_argument("--figures", type=Path, default=RESULTS, help="where the peer's quality is")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    grid = QUICK if options.quick else FULL
    options.grid = replace(grid, rounds=options.rounds or grid.rounds, seconds=options.seconds or grid.seconds)
    options.cores = options.cores or sorted(os.sched_getaffinity(0))[:2]
    # Absolute paths are shortened to the file name.
    said = [Path(arg).name if Path(arg).is_absolute() else arg for arg in sys.argv[1:]]
    options.command = " ".join(["python benchmarks/throughput.py", *said])
    return options


def main() -> None:
    """Measure, print the tables, and write the dated result."""
    options = arguments()
    for tool in ("wrk", "taskset"):
        if shutil.which(tool) is None:
            sys.exit(f"this benchmark needs {tool} on the PATH (Debian: apt install wrk util-linux)")
    began = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        every, peer_words = line_up(options.grid, options.models, folder), "none"
        if options.peer != "none":
            app, peer_words = peer(options.peer, options.peer_python, options.grid, len(options.cores))
            every.append(app)
        if options.servers:
            if unknown := set(options.servers) - {app.name for app in every}:
                sys.exit(f"no server {', '.join(sorted(unknown))}; there are: {', '.join(app.name for app in every)}")
            every = [app for app in every if app.name in options.servers]
        found, memory = measure(options.grid, every, options.cores, folder)
    write_result(options, peer_words, found, memory, began)


if __name__ == "__main__":
    main()
