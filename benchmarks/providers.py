"""Time of a model's main graph on the CPU and on a GPU, in turns of one run, and how far their outputs are apart.

    python benchmarks/providers.py                     # about a minute
    python benchmarks/providers.py --models minilm,minilm-cross --batches 1,32,256

Sessions are opened as the service opens them, with its settings (SEMBLANCE_CUDA_DEVICE and the others). A row of a
batch is a sentence, or a pair for models that read both texts together. Wall time, because a GPU's work is no CPU time
of this process; medians over rounds, in each of which the providers take turns. Where CUDA does not start, the CPU
alone is timed, and the result says so.
"""

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.report import RESULTS, machine, table, write  # noqa: E402 - the repository is not installed as a package
from benchmarks.sentences import sentences  # noqa: E402
from contract.graph import SPECS  # noqa: E402
from contract.manifest import Manifest  # noqa: E402
from contract.padding import pad  # noqa: E402
from contract.scoring import Array  # noqa: E402
from contract.tensors import load_tensors  # noqa: E402
from contract.wordpiece import load_tokenizer  # noqa: E402
from service.compute.session import CPU, CUDA, Session, cuda_options, open_session, provider_order  # noqa: E402
from service.cpus import counts  # noqa: E402
from service.errors import ProviderError  # noqa: E402
from service.settings import Settings  # noqa: E402

Feeds = Mapping[str, Array]
MODELS = "avg-paraphrase,pwim-general,minilm,minilm-cross"


def opened(folder: Path, settings: Settings) -> dict[str, Session]:
    """The model's main graph on each provider that starts here: cpu, cuda."""
    manifest = Manifest.load(folder)
    graph = manifest.graphs[0]
    found = {}
    for name, providers in (("cpu", [CPU]), ("cuda", provider_order(settings.providers))):
        if name == "cuda" and CUDA not in providers:
            continue
        session = open_session(
            manifest.path_of(folder, graph),
            SPECS[manifest.kind_of(graph)],
            providers,
            threads=counts(settings).ort_threads,
            must_use_cuda=False,
            tensors=load_tensors(folder, manifest, {}),
            cuda=cuda_options(settings.cuda_device, settings.cuda_memory_bytes),
        )
        if name == "cpu" or session.has_cuda:
            found[name] = session
    return found


def feeds_of(folder: Path, rows: int) -> Feeds:
    """A batch for the model's main graph, of sentences without a corpus."""
    manifest = Manifest.load(folder)
    tokenizer = load_tokenizer(manifest.path_of(folder, manifest.tokenizer))
    a, b = (
        pad([tokenizer.encode(text, manifest.limits.max_tokens).ids for text in sentences(rows, seed)])
        for seed in (rows, rows + 1)
    )
    if manifest.family == "siamese":
        return {"input_ids": a[0], "lengths": a[1]}
    return {"input_ids_a": a[0], "lengths_a": a[1], "input_ids_b": b[0], "lengths_b": b[1]}


def milliseconds(session: Session, feeds: Feeds, seconds: float) -> float:
    """Wall milliseconds of one run, over at least one run and about `seconds` seconds."""
    runs, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < seconds or not runs:
        session(feeds)
        runs += 1
    return 1000 * passed / runs


def measure(sessions: Mapping[str, Session], feeds: Feeds, rounds: int, seconds: float) -> dict[str, float]:
    """Milliseconds of a run by provider, and `apart`: the largest difference of any output value from the CPU's."""
    outputs = {name: session(feeds) for name, session in sessions.items()}  # warms up as well
    times: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(rounds):
        for name, session in sessions.items():
            times[name].append(milliseconds(session, feeds, seconds))
    apart = max(float(np.abs(output - outputs["cpu"]).max()) for output in outputs.values())
    return {name: statistics.median(values) for name, values in times.items()} | {"apart": apart}


def main() -> None:
    """Measure, print a table, and write the dated results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each measurement")
    parser.add_argument("--models", default=MODELS, help="ids, with commas between them")
    parser.add_argument("--batches", default="1,32,256", help="rows of a run, with commas between them")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    settings = Settings.from_environment()
    rows, values, placements, on_gpu = [], {}, {}, False
    for model in options.models.split(","):
        folder = settings.models_dir / model
        try:
            sessions = opened(folder, settings)
        except ProviderError as error:
            sys.exit(str(error))
        placed: Mapping[str, Counter[str]] = sessions.get("cuda", sessions["cpu"]).placement
        placements[model] = {provider: dict(operators) for provider, operators in placed.items()}
        on_gpu |= "cuda" in sessions
        for batch in map(int, options.batches.split(",")):
            found = measure(sessions, feeds_of(folder, batch), options.rounds, options.seconds)
            values[f"{model}, {batch}"] = found
            cuda = found.get("cuda")
            rows.append(
                [
                    model,
                    str(batch),
                    f"{found['cpu']:.3g}",
                    "-" if cuda is None else f"{cuda:.3g}",
                    "-" if cuda is None else f"{found['cpu'] / cuda:.1f}",
                    "-" if cuda is None else f"{found['apart']:.0e}",
                    ", ".join(f"{provider} {operators.total()}" for provider, operators in placed.items()),
                ]
            )
    lines = table(["model", "rows", "CPU ms", "GPU ms", "times as fast", "apart", "nodes"], rows)
    none = "" if on_gpu else "**Not yet run on a GPU**: CUDA does not start here, so the CPU alone was timed.\n\n"
    command = " ".join(["python benchmarks/providers.py", *sys.argv[1:]])
    about = f"{none}`{command}`, {options.rounds} rounds, on {machine('numpy')}."
    write(
        options.out,
        "providers",
        "CPU and GPU",
        about,
        lines,
        {"milliseconds": values, "operators": placements, "gpu": on_gpu},
    )


if __name__ == "__main__":
    main()
