"""CPU time of a new pair for every published model.

    python -m benchmarks.model_cost                          # about two minutes
    python -m benchmarks.model_cost --large                  # those of `make models-large`, beside minilm
    python -m benchmarks.model_cost --operators minilm       # shares of the graph's time, by ONNX Runtime's profiler

Batches of 64 new pairs go through tokenizer, graphs and contract, as in the service but without HTTP and caches. One
thread; each model takes turns with averaging (or minilm), so that the ratio of a turn is of one moment.
"""

import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from benchmarks.report import ROOT, arguments, command, figures, machine, write
from benchmarks.sentences import sentences
from core.graph import IDS, MASK, POSITIONS, SEGMENTS, SLOW_FUSIONS
from core.manifest import Manifest
from core.tensors import load_tensors, tensors_of
from training.markdown import table
from training.publish.runtime import PublishedModel

BASE, LARGE_BASE = "avg-paraphrase", "minilm"
LARGE = ("mpnet", "mpnet-cross")
BATCH = 64
ROUNDS, SECONDS = 5, 0.2  # of each measurement
SHAPES = ((2, 16), (64, 24), (16, 128))  # sequences and tokens of each, of a profile
RUNS, SHOWN = 10, 0.01  # of each shape; shares below are left out
_SEEDS = count()


def milliseconds(model: PublishedModel, seconds: float) -> float:
    """CPU milliseconds of one new pair, over at least one batch and about `seconds` seconds."""
    pairs, passed = 0, 0.0
    while passed < seconds or not pairs:
        a, b = sentences(BATCH, next(_SEEDS)), sentences(BATCH, next(_SEEDS))
        started = time.process_time()
        model.similarity(a, b)
        passed += time.process_time() - started
        pairs += BATCH
    return 1000 * passed / pairs


def shares(folder: Path, texts: int, tokens: int) -> tuple[float, Mapping[str, float]]:
    """Milliseconds of a run of a transformer's graph on one thread, and the share of each operator."""
    manifest = Manifest.load(folder)
    path = manifest.path_of(folder, manifest.graphs[0])
    options, weights = onnxruntime.SessionOptions(), tensors_of(path.read_bytes(), load_tensors(folder, manifest))
    options.intra_op_num_threads, options.log_severity_level, options.enable_profiling = 1, 3, True
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(each) for each in weights.values()]
    options.add_external_initializers(list(weights), values)
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path))
    ids = np.random.default_rng(1).integers(1_000, 30_000, (texts, tokens))
    places = np.broadcast_to(np.arange(tokens), ids.shape)
    every = {IDS: ids, MASK: np.ones_like(ids), SEGMENTS: np.zeros_like(ids), POSITIONS: places}
    with tempfile.TemporaryDirectory() as temporary:
        options.profile_file_prefix = f"{temporary}/profile"
        cpu = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(str(path), options, cpu, disabled_optimizers=SLOW_FUSIONS)
        feeds: dict[str, Any] = {each.name: every[each.name] for each in session.get_inputs()}
        for _ in range(RUNS):
            session.run(None, feeds)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    spent = Counter[str]()
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("kernel_time"):
            spent[event["args"]["op_name"]] += event["dur"]
    return spent.total() / RUNS / 1000, {name: each / spent.total() for name, each in spent.most_common()}


def print_shares(name: str) -> None:
    """Print the shares of a model of `models/`."""
    found = [shares(ROOT / "models" / name, *shape) for shape in SHAPES]
    names = [each for each in found[-1][1] if any(by_name.get(each, 0) >= SHOWN for _, by_name in found)]
    rows = [[each, *(f"{by_name.get(each, 0):.3f}" for _, by_name in found)] for each in names]
    head = [f"{texts} x {tokens} tokens: {ms:.1f} ms" for (texts, tokens), (ms, _) in zip(SHAPES, found, strict=True)]
    print(table(["operator", *head], rows))


def main() -> None:
    """Measure, print a table, and write the dated results."""
    parser = arguments("python -m benchmarks.model_cost", __doc__)
    parser.add_argument("--large", action="store_true", help="the large models alone")
    parser.add_argument("--operators", metavar="MODEL", help="print where the time of its graph goes, and nothing else")
    options = parser.parse_args()
    if options.operators:
        return print_shares(options.operators)
    base = LARGE_BASE if options.large else BASE
    folders = sorted(path.parent for path in (ROOT / "models").glob("*/manifest.json"))
    if options.large:
        folders = [ROOT / "models" / base, *(ROOT / "own-models" / name for name in LARGE)]
    opened = {folder.name: PublishedModel(folder) for folder in folders}
    similar = {name: model for name, model in opened.items() if model.manifest.similarity is not None}
    costs: dict[str, list[float]] = {name: [] for name in similar}
    ratios: dict[str, list[float]] = {name: [] for name in similar}
    for model in similar.values():  # the first run of a graph plans its memory
        milliseconds(model, 0)
    for _ in range(ROUNDS):
        for name, model in similar.items():
            cost, beside = milliseconds(model, SECONDS), milliseconds(similar[base], SECONDS)
            costs[name].append(cost)
            ratios[name].append(cost / beside)
    rows = [
        {
            "model": name,
            "CPU ms a new pair": statistics.median(costs[name]),
            f": {base}": statistics.median(ratios[name]),
        }
        for name in sorted(similar, key=lambda name: statistics.median(ratios[name]))
    ]
    about = (
        f"{command(parser)}: new pairs of sentences of 10 to 20 words, in batches of {BATCH}, through tokenizer, "
        f"graphs and contract without HTTP and caches; one thread, CPU time, medians over {ROUNDS} rounds; the "
        f"ratio is to {base} in the same turn. The machine was doing other work as well: the ratios mean more than "
        f"the times. {machine('onnxruntime', 'numpy')}."
    )
    points = [{"name": name, "rate": 1000 / statistics.median(found)} for name, found in costs.items()]
    result = {"machine": machine(), "base": base, "points": points, "ratios": ratios}
    name = "model-cost-large" if options.large else "model-cost"
    write(options.out, name, "Cost of a new pair", about, [figures(rows)], result)


if __name__ == "__main__":
    main()
