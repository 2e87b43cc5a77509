"""`python -m benchmarks.faults callers|overload|replace|redis|soak|reload`: fault trials of the service.

Each trial starts services of its own on free ports of loopback, prints its figures, writes them as a dated result, and
exits with 1 if a promise was broken.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from benchmarks.faults import callers, overload, redis_chaos, reload, replace, soak
from benchmarks.report import RESULTS


def main() -> int:
    """Run one trial; returns 1 if a promise was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--service-cpus", help="cores of the service, as taskset takes them; default: all")
    shared.add_argument("--seed", type=int, default=1)
    shared.add_argument("--out", type=Path, default=RESULTS)
    trials = parser.add_subparsers(dest="trial", required=True)

    trial = trials.add_parser("callers", parents=[shared], help="one hostile caller after another")
    trial.add_argument("--seconds", type=float, default=10, help="of each attack")
    trial.add_argument("--probe", default="pwim-sick", help="the model that somebody else asks")
    trial.add_argument("--only", action="append", help="attacks with this in their name")
    trial.set_defaults(run=callers.run)

    trial = trials.add_parser("overload", parents=[shared], help="more callers than are let in")
    trial.add_argument("--seconds", type=float, default=60)
    trial.add_argument("--saturation-seconds", type=float, default=10, help="for measuring what it can take")
    trial.add_argument("--client-cpus", help="cores of the load")
    trial.add_argument("--heavy", default="pwim-qa", help="an interaction model")
    trial.add_argument("--max-in-flight", type=int, default=1024, help="of the service")
    trial.add_argument("--max-queue-seconds", type=float, default=2.0, help="of the service")
    trial.add_argument("--only", action="append", choices=("cheap", "heavy", "large"))
    trial.set_defaults(run=overload.run)

    trial = trials.add_parser("replace", parents=[shared], help="processes that end under load")
    trial.add_argument("--times", type=int, default=10, help="that a worker ends")
    trial.add_argument("--pause", type=float, default=1.0, help="seconds between one replaced and the next")
    trial.add_argument("--rate", type=float, default=100, help="requests a second")
    trial.add_argument("--callers", type=int, default=16)
    trial.add_argument("--workers", type=int, default=2, help="processes of the fleet")
    trial.add_argument("--heavy", default="pwim-qa", help="the model of the request that takes long")
    trial.add_argument("--slow-candidates", type=int, default=200, help="of that request")
    trial.set_defaults(run=replace.run)

    trial = trials.add_parser("redis", parents=[shared], help="Redis faults under load")
    trial.add_argument("--seconds", type=float, default=10, help="of each fault")
    trial.add_argument("--rate", type=float, default=100, help="requests a second")
    trial.add_argument("--callers", type=int, default=8)
    trial.add_argument("--redis-timeout-ms", type=int, default=50, help="of the service")
    trial.add_argument("--distinct", type=int, default=200, help="requests")
    trial.set_defaults(run=redis_chaos.run)

    trial = trials.add_parser("reload", parents=[shared], help="models reloaded under load, valid and invalid ones")
    trial.add_argument("--times", type=int, default=12, help="that a valid and an invalid version are added")
    trial.add_argument("--rate", type=float, default=100, help="requests a second")
    trial.add_argument("--callers", type=int, default=8)
    trial.add_argument("--distinct", type=int, default=100, help="requests")
    trial.add_argument("--workers", type=int, nargs="*", default=[1, 2], help="processes of each service")
    trial.set_defaults(run=reload.run)

    trial = trials.add_parser("soak", parents=[shared], help="all routes for half an hour; memory stays flat")
    trial.add_argument("--minutes", type=float, default=30)
    trial.add_argument("--callers", type=int, default=4)
    trial.add_argument("--longest", type=int, default=400, help="words of a text")
    trial.add_argument("--cache-mib", type=int, default=8, help="budget of the caches")
    trial.add_argument("--workers", type=int, default=1, help="processes of the service")
    trial.add_argument("--flat", type=float, default=10, help="MB an hour that still count as flat")
    trial.set_defaults(run=soak.run)

    options = parser.parse_args()
    findings = asyncio.run(options.run(options))
    findings.write(options.out)
    return 0 if findings.kept else 1


if __name__ == "__main__":
    sys.exit(main())
