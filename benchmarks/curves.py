"""How CPU time and memory grow: ten times the candidates, words of a text, words of the vocabulary, and models.

    python -m benchmarks.curves          # about two minutes on an idle machine

One service with avg-paraphrase; with larger vocabularies, and with copies of it, one after the other. All texts are
new. A curve is linear or better if ten times as much costs at most ten
times as much. The run writes a dated table and a plot into `benchmarks/results`.
"""

import argparse
import http.client
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks import grown  # noqa: E402 - the repository is not installed as a package
from benchmarks.apps import alone  # noqa: E402
from benchmarks.report import RESULTS, machine, table, write  # noqa: E402
from benchmarks.sentences import sentences  # noqa: E402
from benchmarks.servers import Service  # noqa: E402
from benchmarks.targets import DEFAULT  # noqa: E402

NAME = "curves"
CANDIDATES = (10, 100, 1000, 10_000)
WORDS = (20, 200, 2000, 20_000)
TIMES_WORDS = (1, 10)  # times the vocabulary of the model
MODELS_SERVED = (1, 10)
CURVES = {
    "candidates": "candidates of /rank",
    "words": "words of each text of a pair",
    "vocabulary": "words of the vocabulary, 64 pairs",
    "models": "models, 64 pairs",
}
PAIRS = 64  # of a request, where neither candidates nor words grow
SETTINGS: dict[str, Any] = {
    "max_model_bytes": 1 << 30,
    "max_candidates": 10_000,
    "max_text_chars": 200_000,
    "max_body_bytes": 16 << 20,
    "log_level": "warning",
}
_SEEDS = count(1)


@dataclass(frozen=True)
class Point:
    """CPU of one request of a size, and the service's peak memory after it."""

    curve: str
    size: int
    milliseconds: float
    peak_mb: float
    start_seconds: float = 0.0  # CPU until the service was ready, where that grows


def bodies(curve: str, size: int) -> Iterator[bytes]:
    """New bodies of this size."""
    while True:
        if curve == "candidates":
            query, *rest = sentences(size + 1, next(_SEEDS))
            yield json.dumps({"query": query, "candidates": rest}).encode()
        else:
            a, b = (" ".join(sentences(size // 20 + 1, next(_SEEDS))) for _ in range(2))
            pair = {side: " ".join(text.split()[:size]) for side, text in (("a", a), ("b", b))}
            yield json.dumps({"pairs": [pair]}).encode()


def measure(service: Service, curve: str, size: int, seconds: float) -> Point:
    """Requests of one size; see `asked_for`."""
    path = "/rank" if curve == "candidates" else "/similarity"
    return asked_for(service, curve, size, path, bodies(curve, size), seconds)


def asked_for(service: Service, curve: str, size: int, path: str, made: Iterator[bytes], seconds: float) -> Point:
    """Requests one after the other, until they have used these seconds of CPU, and ten at least."""
    used, asked = 0.0, 0
    with closing(http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)) as connection:
        while used < seconds or asked < 10:
            some = [next(made) for _ in range(10)]
            began = service.cpu_seconds()
            for body in some:
                connection.request("POST", path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                content = answer.read()
                if answer.status != 200:
                    raise SystemExit(f"{path} answered {answer.status}: {content[:300]!r}")
            used += service.cpu_seconds() - began
            asked += len(some)
    return Point(curve, size, 1e3 * used / asked, service.resources().peak_mb)


def pairs_of(words: Sequence[str] | None) -> Iterator[bytes]:
    """New requests of 64 pairs, of these words where they are given."""
    while True:
        seed = next(_SEEDS)
        made = sentences(2 * PAIRS, seed) if words is None else grown.texts(words, 2 * PAIRS, random.Random(seed))
        yield json.dumps({"pairs": [{"a": a, "b": b} for a, b in zip(made[::2], made[1::2], strict=True)]}).encode()


def of_folders(seconds: float) -> Iterator[Point]:
    """Services with ever larger folders of models."""
    for times in TIMES_WORDS:
        with tempfile.TemporaryDirectory() as folder:
            words = grown.with_words(DEFAULT, times, Path(folder))
            yield served(Path(folder), "vocabulary", len(words), pairs_of(words), seconds)
    for number in MODELS_SERVED:
        with tempfile.TemporaryDirectory() as folder:
            grown.copies(DEFAULT, number, Path(folder))
            yield served(Path(folder), "models", number, pairs_of(None), seconds)


def served(folder: Path, curve: str, size: int, made: Iterator[bytes], seconds: float) -> Point:
    """A service with these models, asked for pairs."""
    with Service(models_dir=folder, **SETTINGS) as service:
        start = service.cpu_seconds()
        return replace(asked_for(service, curve, size, "/similarity", made, seconds), start_seconds=start)


def main() -> None:
    """Measure, print a table, and write the dated results and the plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="of CPU, for each point")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(models_dir=alone(DEFAULT, Path(folder)), **SETTINGS) as service,
    ):
        found = [
            measure(service, curve, size, options.seconds)
            for curve, sizes in (("candidates", CANDIDATES), ("words", WORDS))
            for size in sizes
        ]
    found += of_folders(options.seconds)
    growth = {(a.curve, b.size): b.milliseconds / a.milliseconds for a, b in pairwise(found) if a.curve == b.curve}
    rows = [
        [
            each.curve,
            f"{each.size:,}",
            f"{each.milliseconds:.2f}",
            f"{each.peak_mb:.0f}",
            _start(each),
            _times(growth, each),
        ]
        for each in found
    ]
    figure, both = plt.subplots(1, 2, figsize=(10, 4))
    for axes, value, label in zip(both, ("milliseconds", "peak_mb"), ("CPU ms of a request", "peak MB"), strict=True):
        for curve, words in CURVES.items():
            shown = [each for each in found if each.curve == curve]
            axes.loglog(
                [each.size for each in shown], [getattr(each, value) for each in shown], marker="o", label=words
            )
        axes.set_xlabel("size")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    both[0].legend()
    plot = f"{datetime.now(UTC).date()}-{NAME}.png"
    figure.tight_layout()
    figure.savefig(options.out / plot, dpi=100)
    about = (
        f"`python -m benchmarks.curves --seconds {options.seconds:g}`: {DEFAULT}, new texts, one request at a time. A "
        f"text is read up to its model's limit of tokens; texts of the vocabulary are words drawn from all of it. "
        "In the last two curves each point is a service of its own. "
        f"{machine('onnxruntime', 'numpy')}."
    )
    head = ["curve", "size", "CPU ms of a request", "peak MB so far", "CPU s of the start", "of a tenth"]
    lines = [*table(head, rows), "", f"![CPU of a request by its size]({plot})"]
    write(options.out, NAME, "Growth", about, lines, {"points": [vars(each) for each in found]})


def _start(point: Point) -> str:
    return f"{point.start_seconds:.1f}" if point.start_seconds else ""


def _times(growth: dict[tuple[str, int], float], point: Point) -> str:
    return f"x {growth[point.curve, point.size]:.1f}" if (point.curve, point.size) in growth else ""


if __name__ == "__main__":
    main()
