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
from pathlib import Path
from typing import Any

from benchmarks.report import ROOT, arguments, figures, machine, write
from benchmarks.sentences import pairs, sentences
from benchmarks.servers import Service
from contract.manifest import Manifest

# Those of the round that set the target, by their dates of publication.
EIGHT = (
    "avg-paraphrase", "avg-sick", "avg-sick-tuned", "malstm-sick", "pwim-sick", "pwim-qa", "mgim-sick", "mgim-msrp",
)  # fmt: skip
WORKERS = (1, 2, 3)
_LINE = re.compile(r"^(\w+): +(\d+) kB$", re.MULTILINE)


def measure(service: Service) -> dict[str, float]:
    """Memory of the processes that run now, in MB: of all together, and what the largest one has of its own."""
    rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in service.pids()]  # sums of all mappings
    found = [Counter[str]({name: int(kb) for name, kb in _LINE.findall(rollup)}) for rollup in rollups]
    private = [each["Private_Clean"] + each["Private_Dirty"] for each in found]
    kilobytes = {
        "resident": sum(each["Rss"] for each in found),
        "proportional": sum(each["Pss"] for each in found),
        "private": sum(private),
        "private_of_a_worker": max(private),
    }
    return {name: kb / 1024 for name, kb in kilobytes.items()}


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
    rows: list[dict[str, Any]] = []
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
                rows.append({"models": name, "workers": workers, "after": "start", **measure(service)})
                if workers == 1:
                    for seed, model in enumerate(model for model in models if model in scoring):
                        texts = sentences(200, seed)
                        for i in range(0, len(texts), 20):  # ten pairs in a request
                            service.post("/similarity", pairs(texts[i : i + 20]) | {"model": model})
                    rows.append({**rows[-1], "after": "100 new pairs to each", **measure(service)})
                print(rows[-1], file=sys.stderr, flush=True)
    about = f"`python -m benchmarks.memory`: MB of all processes together. {machine('onnxruntime', 'numpy')}."
    write(options.out, "memory", "Memory", about, [figures(rows)], {"memory": rows})


if __name__ == "__main__":
    main()
