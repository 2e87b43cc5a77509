"""Memory of the service by models and workers: what is resident, and what each further worker takes of its own.

    python -m benchmarks.memory          # about two minutes on an idle machine

Every set of models is served by one, two and three workers, and by one after a hundred requests to each model. Resident
counts what processes share in each of them; the proportional set size shares it out; private is a process' own
(`/proc/PID/smaps_rollup`). The run writes a dated table into `benchmarks/results`.
"""

import re
import sys
import time
from collections import Counter
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import ROOT, arguments, machine, table, write
from benchmarks.sentences import pairs, sentences
from benchmarks.servers import Service
from contract.manifest import Manifest

# Those of the round that set the target, by their dates of publication.
EIGHT = (
    "avg-paraphrase", "avg-sick", "avg-sick-tuned", "malstm-sick", "pwim-sick", "pwim-qa", "mgim-sick", "mgim-msrp",
)  # fmt: skip
WORKERS = (1, 2, 3)
_LINE = re.compile(r"^(\w+): +(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Memory:
    """Of all processes of a service, in MB."""

    models: str
    workers: int
    after: str
    resident: float
    proportional: float
    private: float
    private_of_a_worker: float  # of the largest process


def measure(service: Service, models: str, workers: int, after: str) -> Memory:
    """Memory of the processes that run now."""
    rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in service.pids()]  # sums of all mappings
    found = [Counter[str]({name: int(kb) for name, kb in _LINE.findall(rollup)}) for rollup in rollups]
    private = [each["Private_Clean"] + each["Private_Dirty"] for each in found]
    sums = [sum(each[name] for each in found) for name in ("Rss", "Pss")]
    return Memory(models, workers, after, *(kb / 1024 for kb in (*sums, sum(private), max(private))))


def all_serve(service: Service, workers: int) -> None:
    """Wait until all of them have opened their models."""
    while service.metrics().total("semblance_worker_processes") < workers or not service.settled():
        time.sleep(0.2)


def main() -> None:
    """Measure, print a table, and write the dated results."""
    parser = arguments("python -m benchmarks.memory", __doc__)
    options = parser.parse_args()
    folders = sorted(path.parent for path in (ROOT / "models").glob("*/manifest.json"))
    manifests = [Manifest.load(folder) for folder in folders]
    scoring = tuple(manifest.id for manifest in manifests if manifest.similarity is not None)
    found = list[Memory]()
    sets: dict[str, tuple[str, ...]] = {
        "avg-paraphrase": ("avg-paraphrase",),
        "eight": EIGHT,
        f"all {len(manifests)}": tuple(manifest.id for manifest in manifests),
    }
    for name, models in sets.items():
        for workers in WORKERS:
            settings: dict[str, Any] = {"workers": workers, "models": ",".join(models), "log_level": "warning"}
            with Service(**settings) as service:
                all_serve(service, workers)
                found.append(measure(service, name, workers, "start"))
                if workers == 1:
                    for seed, model in enumerate(model for model in models if model in scoring):
                        texts = sentences(200, seed)
                        for i in range(0, len(texts), 20):  # ten pairs in a request
                            service.post("/similarity", pairs(texts[i : i + 20]) | {"model": model})
                    found.append(measure(service, name, workers, "100 new pairs to each"))
                print(found[-1], file=sys.stderr, flush=True)
    rows = [[str(cell) if not isinstance(cell, float) else f"{cell:.0f}" for cell in astuple(each)] for each in found]
    head = ["models", "workers", "after", "resident", "proportional", "private", "private of a worker"]
    about = f"`python -m benchmarks.memory`: MB of all processes together. {machine('onnxruntime', 'numpy')}."
    write(options.out, "memory", "Memory", about, table(head, rows), {"memory": [vars(each) for each in found]})


if __name__ == "__main__":
    main()
