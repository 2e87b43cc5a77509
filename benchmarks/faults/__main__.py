"""`python -m benchmarks.faults callers|promised|soak`: fault trials of the service.

Each trial starts services of its own on free ports of loopback, prints its figures, writes them as a dated result, and
exits with 1 if a promise was broken.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from benchmarks.faults import callers, promised, soak
from benchmarks.faults.trial import Trial
from benchmarks.report import RESULTS

TRIALS = {"callers": callers.KIND, "promised": promised.KIND, "soak": soak.KIND}
HELP = {
    "seconds": "of each attack or load",
    "only": "those with this in their name",
    "workers": "processes of the service",
    "neighbours": "processes that use a CPU each",
}


def main() -> int:
    """Run one trial; returns 1 if a promise was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    trials = parser.add_subparsers(dest="trial", required=True)
    for name, kind in TRIALS.items():
        own = trials.add_parser(name, help=kind.title, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        own.add_argument("--out", type=Path, default=RESULTS, help="folder of the dated result")
        for option, default in kind.options.items():
            shown = HELP.get(option, option.replace("_", " "))
            own.add_argument(f"--{option.replace('_', '-')}", type=type(default), default=default, help=shown)
    options = parser.parse_args()
    trial = Trial(TRIALS[options.trial], options)
    asyncio.run(trial.kind.run(trial))
    trial.write(options.out)
    return 0 if trial.kept else 1


if __name__ == "__main__":
    sys.exit(main())
