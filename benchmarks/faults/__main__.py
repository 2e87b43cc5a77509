"""`python -m benchmarks.faults callers|overload|replace|redis|soak|reload`: fault trials of the service.

Each trial starts services of its own on free ports of loopback, prints its figures, writes them as a dated result, and
exits with 1 if a promise was broken.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from benchmarks.faults import callers, overload, redis_chaos, reload, replace, soak
from benchmarks.faults.trial import Trial
from benchmarks.report import RESULTS

Options = Mapping[str, float | str]
LOAD: Options = {"rate": 100.0, "callers": 8}
# Name -> what runs it, what it is, its options.
TRIALS: Mapping[str, tuple[Callable[[argparse.Namespace], Coroutine[Any, Any, Trial]], str, Options]] = {
    "callers": (callers.run, "one hostile caller after another", {"seconds": 10.0, "only": ""}),
    "overload": (overload.run, "more callers than are let in", {"seconds": 60.0, "only": "", "client_cpus": ""}),
    "replace": (replace.run, "processes that end under load", {**LOAD, "times": 10, "workers": 2, "callers": 16}),
    "redis": (redis_chaos.run, "Redis faults under load", {**LOAD, "seconds": 10.0, "redis_timeout_ms": 50}),
    "reload": (reload.run, "models reloaded under load, valid and invalid ones", {**LOAD, "times": 12}),
    "soak": (soak.run, "all routes; memory stays flat", {"minutes": 30.0, "callers": 4, "workers": 1}),
}
HELP = {
    "seconds": "of each fault, attack or flood",
    "only": "those with this in their name",
    "times": "that a worker ends, or that a valid and an invalid version are added",
    "rate": "requests a second of all callers together",
    "workers": "processes of the service",
}


def main() -> int:
    """Run one trial; returns 1 if a promise was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    trials = parser.add_subparsers(dest="trial", required=True)
    for name, (run, what, own) in TRIALS.items():
        trial = trials.add_parser(name, help=what, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        trial.add_argument("--service-cpus", help="cores of the service, as taskset takes them")
        trial.add_argument("--seed", type=int, default=1, help="of all choices")
        trial.add_argument("--out", type=Path, default=RESULTS, help="folder of the dated result")
        for option, default in own.items():
            shown = HELP.get(option, option.replace("_", " "))
            trial.add_argument(f"--{option.replace('_', '-')}", type=type(default), default=default, help=shown)
        trial.set_defaults(run=run)
    options = parser.parse_args()
    findings = asyncio.run(options.run(options))
    findings.write(options.out)
    return 0 if findings.kept else 1


if __name__ == "__main__":
    sys.exit(main())
