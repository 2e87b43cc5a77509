"""CPU time of a request by two versions of the service, which take turns beside a bare echo.

    git worktree add --detach /tmp/before main
    python -m benchmarks.versions /tmp/before                 # against this checkout; needs wrk, and redis-server

All servers run all the time. Within each round each one is loaded in turn (wrk, closed loop), so that other load on the
machine affects all alike; ratios are taken within a round, and medians over the rounds are printed. The floor of 64 new
pairs (`benchmarks/floor.py`) runs in each round too.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks import closed_loop, workloads  # noqa: E402 - the repository is not installed as a package
from benchmarks.apps import LIMITS, UVICORN, alone  # noqa: E402
from benchmarks.report import table  # noqa: E402
from benchmarks.servers import SERVICE, RedisServer, Server, free_port  # noqa: E402
from benchmarks.targets import DEFAULT  # noqa: E402

ECHO, BEFORE, NOW = "echo", "before", "now"


@dataclass(frozen=True)
class Row:
    """One load; `echo` says whether the echo gets it too."""

    items: int
    connections: int
    warm: bool
    path: str = "/similarity"
    redis: bool = False
    echo: bool = False


ROWS = {
    "one cached pair": Row(1, 16, warm=True, echo=True),
    "one new pair": Row(1, 16, warm=False, echo=True),
    "64 cached pairs": Row(64, 2, warm=True),
    "64 new pairs": Row(64, 2, warm=False),
    "/rank of 1,000 new": Row(1000, 1, warm=False, path="/rank"),
    "/rank of 1,000 known": Row(1000, 1, warm=True, path="/rank"),
    "one pair in Redis": Row(1, 16, warm=True, redis=True),
}


def command_of(tree: Path) -> list[str]:
    """The service of a checkout."""
    return ["env", "-C", str(tree), f"PYTHONPATH={tree}", *SERVICE]


def microseconds(server: Server, row: Row, load: workloads.Load, seconds: float) -> float:
    """CPU of one request."""
    server.settled()
    began = server.cpu_seconds()
    found = closed_loop.load(server.port, row.path, load.path, load.position, row.connections, seconds)
    used = server.cpu_seconds() - began
    load.sent(found.requests + row.connections + 1)
    if found.refused or found.broken:
        raise SystemExit(f"{row}: {found.refused} requests refused, {found.broken} connections broken")
    return 1e6 * used / found.requests


def floor() -> float:
    """CPU microseconds of the floor of 64 new pairs."""
    ran = subprocess.run([sys.executable, "-m", "benchmarks.floor"], cwd=ROOT, capture_output=True, check=True)
    return float(ran.stdout) * 1e6


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout")
    parser.add_argument("now", type=Path, nargs="?", default=ROOT, help="another one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=ROWS, metavar="ROW")
    options = parser.parse_args()
    rows = {name: ROWS[name] for name in options.rows}
    taken: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        loads = {}
        for n, (name, row) in enumerate(rows.items()):
            shape = workloads.candidates if row.path == "/rank" else workloads.pairs
            where = (Path(temporary), f"load-{n}")
            loads[name] = workloads.write(*where, shape, row.items, warm=row.warm, seed=n + 1)
        environment = {"OMP_NUM_THREADS": "1", "SEMBLANCE_LOG_LEVEL": "warning", **LIMITS}
        environment["SEMBLANCE_CACHE_BYTES"] = str(workloads.CACHE_BYTES)
        environment["SEMBLANCE_MODELS_DIR"] = str(alone(DEFAULT, Path(temporary)))
        url = stack.enter_context(RedisServer()).url if any(row.redis for row in rows.values()) else ""
        with_redis = {"SEMBLANCE_REDIS_URL": url, "SEMBLANCE_CACHE": "redis", "SEMBLANCE_CACHE_BYTES": "0"}
        trees = {BEFORE: options.before.resolve(), NOW: options.now.resolve()}

        def started(command: list[str], port: int, more: dict[str, str]) -> Server:
            own = {**environment, "SEMBLANCE_PORT": str(port), **more}
            return stack.enter_context(Server(command, port, own))

        servers: dict[tuple[str, bool], Server] = {}
        for redis in sorted({row.redis for row in rows.values()}):
            for who, tree in trees.items():
                servers[who, redis] = started(command_of(tree), free_port(), with_redis if redis else {})
        port = free_port()
        echo = [sys.executable, "-m", "uvicorn", "benchmarks.echo_app:app", "--port", str(port), *UVICORN]
        servers[ECHO, False] = started(echo, port, {})
        for name, row in rows.items():
            if row.warm:
                for who in trees:
                    workloads.ask_once(servers[who, row.redis].port, row.path, loads[name].bodies)
        for round_ in range(options.rounds):
            for name, row in rows.items():
                turn = [*([ECHO] if row.echo else []), *trees]
                for each in turn if round_ % 2 else reversed(turn):
                    used = microseconds(servers[each, row.redis], row, loads[name], options.seconds)
                    taken.setdefault((name, each), []).append(used)
                if name == "64 new pairs":
                    taken.setdefault((name, "floor"), []).append(floor())
    head = ["load", "before, us", "now, us", "now : before", "before : reference", "now : reference"]
    lines = []
    for name in rows:
        before, now = taken[name, BEFORE], taken[name, NOW]
        reference = taken.get((name, ECHO)) or taken.get((name, "floor"))
        cells = [f"{statistics.median(before):,.0f}", f"{statistics.median(now):,.0f}", f"{_ratio(now, before):.2f}"]
        if reference is not None:
            # Requests in a second of CPU, of the echo's; or times the floor.
            of = _inverse if (name, ECHO) in taken else _ratio
            what = "of the echo" if (name, ECHO) in taken else "times the floor"
            cells += [f"{of(before, reference):.3f} {what}", f"{of(now, reference):.3f}"]
        lines.append([name, *cells, "", ""][:6])
    print("\n".join(table(head, lines)))


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def _inverse(ours: list[float], theirs: list[float]) -> float:
    return _ratio(theirs, ours)


if __name__ == "__main__":
    main()
