"""CPU time of a request by two versions of the service without sockets: `Connection` and all behind it, in one process.

    git worktree add --detach /tmp/before main
    python -m benchmarks.in_process /tmp/before                # against this checkout
    python -m benchmarks.in_process --profile "64 new pairs"   # this checkout under cProfile

Both versions, and the floor of 64 new pairs (`benchmarks/floor.py`), take turns of a fraction of a second, so that
other load on the machine affects all alike; ratios are taken within a turn. No body of a "new" row comes twice.
"""

import argparse
import asyncio
import cProfile
import gc
import json
import os
import pstats
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("IN_PROCESS_ROOT", Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(ROOT))
import uvloop  # noqa: E402 - the repository is not installed as a package

from benchmarks import floor  # noqa: E402
from benchmarks.report import table  # noqa: E402
from benchmarks.sentences import candidates, pairs, sentences  # noqa: E402
from contract.manifest import MANIFEST_NAME, Manifest  # noqa: E402
from service.app import create_app  # noqa: E402
from service.http.connection import Connection  # noqa: E402
from service.http.server import Server  # noqa: E402
from service.settings import Settings  # noqa: E402

FLOOR = "floor"
DEFAULT = "avg-paraphrase"
# Items of a body, whether bodies come again, and requests of a turn.
ROWS = {
    "one cached pair": (1, True, 1000),
    "one new pair": (1, False, 300),
    "64 cached pairs": (64, True, 100),
    "64 new pairs": (64, False, 30),
    "1,000 new candidates": (1000, False, 6),
    "1,000 known candidates": (1000, True, 6),
}
MODELS = Path(__file__).resolve().parent.parent / "models"
_SEEDS = count(1)


class Nobody(asyncio.Transport):
    """A client that takes every answer and forgets it."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = 0
        self.last = b""

    def write(self, data: Any) -> None:
        """Take an answer."""
        if data.startswith(b"HTTP/1.1 "):  # the body comes in the same turn
            self.answers += 1
            self.last = data

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Addresses."""
        return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}.get(name, default)

    def is_closing(self) -> bool:
        """Never."""
        return False

    def pause_reading(self) -> None:
        """Bodies arrive whole."""

    def resume_reading(self) -> None:
        """Likewise."""

    def close(self) -> None:
        """Stay open."""

    def get_write_buffer_size(self) -> int:
        """Nothing waits."""
        return 0


def requests(name: str, number: int) -> list[bytes]:
    """New requests of a row, as they come over a connection."""
    items = ROWS[name][0]
    path, shape, each = ("/rank", candidates, items + 1) if "candidates" in name else ("/similarity", pairs, 2 * items)
    texts = sentences(number * each, next(_SEEDS))
    bodies = (json.dumps(shape(texts[i : i + each])).encode() for i in range(0, len(texts), each))
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
    return [head % (path.encode(), len(body), body) for body in bodies]


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Connection, Nobody]]:
    """A connection to the service as the settings of the environment have it."""
    app = create_app(settings := Settings())
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20)  # as `service/process/worker.py`
    server = Server(app, settings)
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.lifespan.startup()
    connection, nobody = server._new_connection(), Nobody()
    connection.connection_made(nobody)
    yield connection, nobody
    await server.lifespan.shutdown()


async def ask(connection: Connection, nobody: Nobody, asked: list[bytes]) -> None:
    """Send these one after the other.

    Raises:
        RuntimeError: the last answer was not a 200.
    """
    for data in asked:
        answers = nobody.answers
        connection.data_received(data)
        while nobody.answers == answers:
            await asyncio.sleep(0)
    if not nobody.last.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(str(nobody.last[:300]))


async def child() -> None:
    """Answer names of rows on standard input with microseconds of CPU a request, on standard output."""
    known: dict[str, list[bytes]] = {}
    async with connected() as (connection, nobody):
        print("ready", flush=True)
        for line in sys.stdin:
            name = line.strip()
            _, comes_again, number = ROWS[name]
            if comes_again and name not in known:
                known[name] = requests(name, min(number, 20))
                for _ in range(2):
                    await ask(connection, nobody, known[name])
            made = known[name] * -(-number // len(known[name])) if comes_again else requests(name, number)
            await ask(connection, nobody, made[:2] if comes_again else requests(name, 2))  # after the others' turn
            began = time.process_time()
            await ask(connection, nobody, made)
            print(1e6 * (time.process_time() - began) / len(made), flush=True)


async def profile(name: str) -> None:
    """Print where the time of a row goes."""
    async with connected() as (connection, nobody):
        number = ROWS[name][2]
        await ask(connection, nobody, requests(name, number))
        made = requests(name, 5 * number)
        profiler = cProfile.Profile()
        profiler.runcall(lambda: None)
        profiler.enable()
        await ask(connection, nobody, made)
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


def started(root: Path, stack: ExitStack) -> Callable[[str], float]:
    """A version of the service as a process; a function that gives the microseconds of a row's next turn."""
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, __file__, "--child"],
            env={**os.environ, "IN_PROCESS_ROOT": str(root), "PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout
    assert stdout.readline() == "ready\n"

    def turn(name: str) -> float:
        stdin.write(f"{name}\n")
        stdin.flush()
        return float(stdout.readline())

    return turn


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, nargs="?", default=ROOT, help="a checkout")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=ROWS, metavar="ROW")
    parser.add_argument("--profile", choices=ROWS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        uvloop.run(child())
        return
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        os.environ |= {"SEMBLANCE_MODELS_DIR": str(alone(Path(temporary))), "SEMBLANCE_LOG_LEVEL": "warning"}
        os.environ["OMP_NUM_THREADS"] = "1"
        if options.profile:
            uvloop.run(profile(options.profile))
            return
        turns = {"before": started(options.before.resolve(), stack), "now": started(ROOT, stack)}
        floors = {"64 new pairs": floor.opened(DEFAULT)}
        print(table_of(options.rows, options.rounds, turns, floors))


def table_of(
    rows: list[str],
    rounds: int,
    turns: dict[str, Callable[[str], float]],
    floors: dict[str, Callable[[], float]],
) -> str:
    """Measure these rows."""
    lines = []
    for name in rows:
        taken: dict[str, list[float]] = {who: [] for who in (*turns, FLOOR)}
        for round_ in range(rounds):
            for who in turns if round_ % 2 else reversed(turns):
                taken[who].append(turns[who](name))
            if name in floors:
                taken[FLOOR].append(1e6 * floors[name]())
        before, now = taken["before"], taken["now"]
        cells = [f"{statistics.median(before):,.1f}", f"{statistics.median(now):,.1f}", f"{min(now):,.1f}"]
        cells += [f"{ratio(now, before):.3f}"]
        of_floor = [f"{ratio(each, taken[FLOOR]):.2f}" for each in (before, now)] if name in floors else ["", ""]
        lines.append([name, *cells, *of_floor])
    head = ["row", "before, us", "now, us", "now, least", "now : before", "before : floor", "now : floor"]
    return "\n".join(table(head, lines))


def alone(folder: Path) -> Path:
    """A models folder with the default model and the one for /entailment, which is opened at once too."""
    for name in (DEFAULT, "avg-sick"):
        manifest = Manifest.load(MODELS / name)
        for path in [
            MODELS / name / MANIFEST_NAME,
            *(manifest.path_of(MODELS / name, file) for file in manifest.files),
        ]:
            copy = folder / path.resolve().relative_to(MODELS.resolve())
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return folder


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the ratios within a turn."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


if __name__ == "__main__":
    main()
