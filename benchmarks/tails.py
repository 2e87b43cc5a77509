"""p99 over p50 at half of saturation in an open loop: one cached pair, beside a bare echo in the same rounds.

    python -m benchmarks.tails          # half a minute; needs `wrk`

The server has the first core and the load the rest. A round is of no use where the load itself was late: the lag of the
generator is printed beside its latencies.
"""

import argparse
import os
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks import closed_loop, open_loop, workloads  # noqa: E402 - the repository is not installed as a package
from benchmarks.apps import LIMITS, UVICORN, alone  # noqa: E402
from benchmarks.report import table  # noqa: E402
from benchmarks.servers import SERVICE, Server, free_port, pinned  # noqa: E402
from benchmarks.targets import DEFAULT, ECHO  # noqa: E402

CONNECTIONS, SHARE = 64, 0.5


def main() -> None:
    """Measure, and print a table of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    first, *rest = map(str, sorted(os.sched_getaffinity(0)))
    of_load = ",".join(rest) or first
    lines: list[list[str]] = []
    tails: dict[str, list[float]] = {ECHO: [], DEFAULT: []}
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        load = workloads.write(Path(temporary), "warm", workloads.pairs, 1, warm=True, seed=1)
        own = {"OMP_NUM_THREADS": "1", "SEMBLANCE_LOG_LEVEL": "warning", **LIMITS, "SEMBLANCE_PORT": str(free_port())}
        own["SEMBLANCE_MODELS_DIR"] = str(alone(DEFAULT, Path(temporary)))
        port = free_port()
        echo = [sys.executable, "-m", "uvicorn", "benchmarks.echo_app:app", "--port", str(port), *UVICORN]
        servers = {
            ECHO: stack.enter_context(Server(echo, port, {}, first)),
            DEFAULT: stack.enter_context(Server(SERVICE, int(own["SEMBLANCE_PORT"]), own, first)),
        }
        for _ in range(3):  # found, and kept whole
            workloads.ask_once(servers[DEFAULT].port, "/similarity", load.bodies)
        for _ in range(options.rounds):
            for name, server in servers.items():
                where = (server.port, "/similarity", load.path, 0, CONNECTIONS, options.seconds)
                rate = SHARE * closed_loop.load(*where, of_load).rate
                server.settled()
                plan = open_loop.Plan(
                    port=server.port,
                    bodies=load.bodies,
                    rate=rate,
                    seconds=options.seconds,
                    connections=CONNECTIONS,
                    spin=of_load != first,
                )
                found = open_loop.start(plan, pinned(of_load)).result()
                latency = found["latency_ms"]
                tails[name].append(latency["p99"] / latency["p50"])
                figures = (latency["p50"], latency["p99"], latency["p99"] / latency["p50"], found["lag_ms"]["p99"])
                lines.append([name, f"{rate:,.0f}", *(f"{value:.2f}" for value in figures)])
    print("\n".join(table(["server", "asked/s", "p50 ms", "p99 ms", "p99 : p50", "lag p99 ms"], lines)))
    print({name: round(statistics.median(values), 1) for name, values in tails.items()})


if __name__ == "__main__":
    main()
