"""Sentences per CPU second of every exported encoder, as ratios measured in one run: to torch eager, to averaging.

    python benchmarks/encoder_speed.py            # about three minutes

Encoders are built untrained, 256 dimensions wide over a vocabulary of 20,000 ids: speed does not depend on the
weights. The models in `models/` are timed as they are, against word averaging. One thread each; within a round every
encoder takes its turn, in ONNX Runtime, in torch, and averaging right beside it, and medians over rounds are reported
of each rate and of each ratio within a turn. Time is that of the processor, without what other processes took; they
still share its caches, so that absolute rates are only indications.
"""

import argparse
import json
import logging
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.report import cpu_model  # noqa: E402 - the repository is not installed as a package
from benchmarks.sentences import sentences  # noqa: E402
from contract.manifest import Manifest  # noqa: E402
from contract.padding import pad  # noqa: E402
from contract.tokenizer import Tokenizer  # noqa: E402
from training.architectures import (  # noqa: E402
    ArchitectureConfig,
    DANConfig,
    GRANConfig,
    LSTMConfig,
    ProjectionConfig,
    RNNConfig,
    WordAveragingConfig,
    build_encoder,
)
from training.export import export_encoder  # noqa: E402
from training.runtime import open_graph  # noqa: E402

DIM, VOCABULARY = 256, 20_000
BATCHES = (1, 32, 256)
BASE = "averaging"
ENCODERS: dict[str, ArchitectureConfig] = {
    BASE: WordAveragingConfig(),
    "projection": ProjectionConfig(),
    "projection to 2400": ProjectionConfig(outputs=2400),
    "DAN, 1 layer": DANConfig(layers=1),
    "DAN, 2 layers": DANConfig(layers=2),
    "RNN, tanh": RNNConfig(activation="tanh"),
    "RNN, ReLU": RNNConfig(activation="relu"),
    "identity-RNN": RNNConfig(activation="identity"),
    "LSTM": LSTMConfig(),
    "LSTM without output gate": LSTMConfig(output_gate=False),
    "LSTM-AVG": LSTMConfig(pooling="mean"),
    "BiLSTM-AVG": LSTMConfig(pooling="mean", bidirectional=True),
    "BiLSTM-AVG, tanh": LSTMConfig(pooling="mean", bidirectional=True, combine="tanh"),
    "MaLSTM (50 units)": LSTMConfig(hidden=50, peepholes=False, forget_bias=2.5),
    "GRAN": GRANConfig(variant=1),
    "GRAN-2": GRANConfig(variant=2),
    "GRAN-3": GRANConfig(variant=3),
    "GRAN-4": GRANConfig(variant=4),
    "GRAN-5": GRANConfig(variant=5),
    "BiGRAN": GRANConfig(bidirectional=True),
    "BiGRAN, tanh": GRANConfig(bidirectional=True, combine="tanh"),
}
Feeds = dict[str, np.ndarray]
Encode = Callable[[Feeds], object]


@dataclass(frozen=True)
class Subject:
    """One encoder, in the ways it can be run."""

    onnx: Encode
    torch: Encode | None  # none for a published model: its module is elsewhere
    feeds: dict[int, Feeds]  # by batch size


def feeds_for(tokenizer: Tokenizer | None) -> dict[int, Feeds]:
    """A batch of each size, of the sentences of the load tests; without a tokenizer, ids drawn at their lengths."""
    rng = np.random.default_rng(0)
    counting = tokenizer or Tokenizer(["a"])
    found = {}
    for batch in BATCHES:
        ids = [counting.encode(text, 512).ids for text in sentences(batch, seed=batch)]
        if tokenizer is None:
            ids = [tuple(rng.integers(1, VOCABULARY, len(each)).tolist()) for each in ids]
        padded, lengths = pad(ids)
        found[batch] = {"input_ids": padded, "lengths": lengths}
    return found


def built(config: ArchitectureConfig, folder: Path, number: int, feeds: dict[int, Feeds]) -> Subject:
    """An untrained encoder, exported, beside its module."""
    torch.manual_seed(0)
    encoder = build_encoder(config, nn.Embedding(VOCABULARY, DIM, padding_idx=0)).eval()
    path = folder / f"{number}.onnx"
    export_encoder(encoder, path, "benchmark")

    def eager(batch: Feeds) -> object:
        with torch.inference_mode():
            return encoder(torch.from_numpy(batch["input_ids"]), torch.from_numpy(batch["lengths"])).numpy()

    return Subject(open_graph(path, "encoder"), eager, feeds)


def published(folder: Path) -> Subject:
    """A model folder's encoder."""
    manifest = Manifest.load(folder)
    assert manifest.encoder is not None
    return Subject(
        open_graph(folder / manifest.encoder, "encoder"),
        None,
        feeds_for(Tokenizer.load(folder / manifest.tokenizer)),
    )


def rate(encode: Encode, batch: Feeds, seconds: float) -> float:
    """Sentences per CPU second, over at least two calls and about so many seconds; the first call is not counted."""
    encode(batch)
    calls, started = 0, time.process_time()
    while (passed := time.process_time() - started) < seconds or calls < 2:
        encode(batch)
        calls += 1
    return calls * len(batch["lengths"]) / passed


def measure(subjects: dict[str, Subject], rounds: int, seconds: float) -> list[dict[str, float | int | str | None]]:
    """Medians over rounds: rates, the ratio to torch of the same encoder, and the ratio to averaging in ONNX."""
    onnx: dict[tuple[str, int], list[float]] = {}
    eager: dict[tuple[str, int], list[float]] = {}
    base: dict[tuple[str, int], list[float]] = {}
    for round_ in range(rounds):
        for size in BATCHES:
            for name, subject in subjects.items():
                batch = subject.feeds[size]
                onnx.setdefault((name, size), []).append(rate(subject.onnx, batch, seconds))
                base.setdefault((name, size), []).append(rate(subjects[BASE].onnx, subjects[BASE].feeds[size], seconds))
                if subject.torch is not None:
                    eager.setdefault((name, size), []).append(rate(subject.torch, batch, seconds))
        print(f"round {round_ + 1} of {rounds}", flush=True)

    def ratio(ours: list[float], theirs: list[float]) -> float:
        return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))

    rows: list[dict[str, float | int | str | None]] = []
    for (name, size), rates in onnx.items():
        own = eager.get((name, size))
        rows.append(
            {
                "encoder": name,
                "batch": size,
                "sentences_per_cpu_second": round(statistics.median(rates), 1),
                "to_torch": None if own is None else round(ratio(rates, own), 2),
                "to_averaging": 1.0 if name == BASE else round(ratio(rates, base[name, size]), 4),
            }
        )
    return rows


def markdown(rows: list[dict[str, float | int | str | None]], about: str) -> str:
    """A line an encoder: at each batch size the rate, the ratio to torch, the ratio to averaging."""
    head = ["encoder"]
    for size in BATCHES:
        head += [f"sentences/s, batch {size}", ": torch", ": averaging"]
    lines = [f"# Speed of exported encoders, {datetime.now(UTC).date()}", "", about, ""]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name in dict.fromkeys(row["encoder"] for row in rows):
        cells = [str(name)]
        for size in BATCHES:
            row = next(each for each in rows if each["encoder"] == name and each["batch"] == size)
            to_torch = "" if row["to_torch"] is None else f"{row['to_torch']:.1f}"
            cells += [f"{row['sentences_per_cpu_second']:,.0f}", to_torch, f"{row['to_averaging']:.3f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print a table, and write the dated results, JSON and Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each measurement")
    parser.add_argument("--models", type=Path, default=ROOT / "models", help="model folders to time as well")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    subjects: dict[str, Subject] = {}
    with tempfile.TemporaryDirectory() as temporary:
        feeds = feeds_for(None)
        for number, (name, config) in enumerate(ENCODERS.items()):
            subjects[name] = built(config, Path(temporary), number, feeds)
            print(f"exported {name}", flush=True)
        for folder in sorted(each.parent for each in options.models.glob("*/manifest.json")):
            if Manifest.load(folder).family == "siamese":
                subjects[f"models/{folder.name}"] = published(folder)
        rows = measure(subjects, options.rounds, options.seconds)
    packages = {name: version(name) for name in ("onnxruntime", "torch", "numpy")}
    tokens = float(np.mean(feeds[BATCHES[-1]]["lengths"]))
    command = f"python benchmarks/encoder_speed.py --rounds {options.rounds} --seconds {options.seconds:g}"
    machine = f"{os.cpu_count()} cores ({cpu_model()}), Python {platform.python_version()}"
    about = (
        f"`{command}`: one thread, sentences of {tokens:.1f} tokens on average, medians over {options.rounds} "
        "interleaved rounds of each rate (per CPU second) and of each ratio within a turn. Encoders untrained, "
        f"{DIM} dimensions over {VOCABULARY:,} ids (speed does not depend on the weights); those in `models/` as "
        "published, int8 words included. \": torch\": ONNX Runtime over torch eager; \": averaging\": over the first "
        "line, at the same batch. The machine was doing other work as well: only ratios mean anything. "
        f"{machine}, {', '.join(f'{name} {number}' for name, number in packages.items())}."
    )  # fmt: skip
    text = markdown(rows, about)
    print(text)
    options.out.mkdir(parents=True, exist_ok=True)
    stem = f"{datetime.now(UTC).date()}-encoder-speed"
    (options.out / f"{stem}.md").write_text(text)
    result = {"command": command, "machine": machine, "packages": packages, "tokens": tokens, "rows": rows}
    (options.out / f"{stem}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
