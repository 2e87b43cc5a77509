"""CPU time of a new pair for every published model.

    python -m benchmarks.model_cost                          # about two minutes
    python -m benchmarks.model_cost --large                  # those of `make models-large`, beside minilm

Batches of 64 new pairs go through tokenizer, graphs and contract, as in the service but without HTTP and caches. One
thread; each model takes turns with averaging (or minilm), so that the ratio of a turn is of one moment.
"""

import statistics
import time
from itertools import count

from benchmarks.report import ROOT, arguments, command, figures, machine, write
from benchmarks.sentences import sentences
from training.publish.runtime import PublishedModel

BASE, LARGE_BASE = "avg-paraphrase", "minilm"
LARGE = ("mpnet", "mpnet-cross")
BATCH = 64
ROUNDS, SECONDS = 5, 0.2  # of each measurement
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


def main() -> None:
    """Measure, print a table, and write the dated results."""
    parser = arguments("python -m benchmarks.model_cost", __doc__)
    parser.add_argument("--large", action="store_true", help="the large models alone")
    options = parser.parse_args()
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
