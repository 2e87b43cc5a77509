"""Sentences per CPU second of every exported encoder, as ratios measured in one run: to torch eager, to averaging.

    python benchmarks/encoder_speed.py            # about three minutes

Encoders are untrained, with 256 dimensions and a vocabulary of 20,000 ids: speed does not depend on the
weights. The models in `models/` are timed unchanged, against word averaging. One thread each; within a round every
encoder is measured in ONNX Runtime and in torch, followed by averaging; medians over rounds are reported
of each rate and of each ratio within a turn. Time is CPU time of this process; other processes
still share the caches, so absolute rates are only indications.
"""

import argparse
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.report import RESULTS, machine, table, write  # noqa: E402 - the repository is not installed as a package
from benchmarks.sentences import sentences  # noqa: E402
from contract.manifest import Manifest  # noqa: E402
from contract.padding import pad  # noqa: E402
from contract.tokenizer import Tokenizer  # noqa: E402
from contract.wordpiece import AnyTokenizer, load_tokenizer  # noqa: E402
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
from training.publishing.export import export_encoder  # noqa: E402
from training.publishing.runtime import open_graph  # noqa: E402

DIM, VOCABULARY = 256, 20_000
BATCHES = (1, 32, 256)
PACKAGES = ("onnxruntime", "torch", "numpy")
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
    """One encoder, and how to run it."""

    onnx: Encode
    torch: Encode | None  # None for a published model, of which only the graph is at hand
    feeds: dict[int, Feeds]  # by batch size


def feeds_for(tokenizer: AnyTokenizer | None) -> dict[int, Feeds]:
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
        feeds_for(load_tokenizer(folder / manifest.tokenizer)),
    )


def rate(encode: Encode, batch: Feeds, seconds: float) -> float:
    """Sentences per CPU second, over at least two calls and about `seconds` seconds; the first call is not counted."""
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


def lines_of(rows: list[dict[str, float | int | str | None]]) -> list[str]:
    """A line an encoder: at each batch size the rate, the ratio to torch, the ratio to averaging."""
    head = ["encoder"]
    for size in BATCHES:
        head += [f"sentences/s, batch {size}", ": torch", ": averaging"]
    cells: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: BATCHES.index(int(row["batch"] or 0))):
        to_torch = "" if row["to_torch"] is None else f"{row['to_torch']:.1f}"
        found = [f"{row['sentences_per_cpu_second']:,.0f}", to_torch, f"{row['to_averaging']:.3f}"]
        cells.setdefault(str(row["encoder"]), [str(row["encoder"])]).extend(found)
    return table(head, list(cells.values()))


def main() -> None:
    """Measure, print a table, and write the dated results, JSON and Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each measurement")
    parser.add_argument("--models", type=Path, default=ROOT / "models", help="model folders to time as well")
    parser.add_argument("--out", type=Path, default=RESULTS)
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
    packages = {name: version(name) for name in PACKAGES}
    tokens = float(np.mean(feeds[BATCHES[-1]]["lengths"]))
    command = f"python benchmarks/encoder_speed.py --rounds {options.rounds} --seconds {options.seconds:g}"
    about = (
        f"`{command}`: one thread, sentences of {tokens:.1f} tokens on average, medians over {options.rounds} "
        "interleaved rounds of each rate (per CPU second) and of each ratio within a turn. Encoders untrained, "
        f"{DIM} dimensions over {VOCABULARY:,} ids (speed does not depend on the weights); those in `models/` as "
        "published, int8 words included. \": torch\": ONNX Runtime over torch eager; \": averaging\": over the first "
        "line, at the same batch. The machine was doing other work as well: only ratios mean anything. "
        f"{machine(*PACKAGES)}."
    )  # fmt: skip
    result = {"command": command, "machine": machine(), "packages": packages, "tokens": tokens, "rows": rows}
    write(options.out, "encoder-speed", "Speed of exported encoders", about, lines_of(rows), result)


if __name__ == "__main__":
    main()
