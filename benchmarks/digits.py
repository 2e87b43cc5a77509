"""What published models answer to the same texts on this CPU, as a digest of the bits.

    python -m benchmarks.digits minilm-small minilm minilm-cross
    qemu-x86_64 -cpu Haswell .venv/bin/python -m benchmarks.digits minilm-small    # as a CPU with AVX2 alone

Models that multiply integers have the same digest on every x86 CPU with AVX2 (docs/decisions/0010); of others it may
follow from the CPU.
"""

import argparse
import hashlib

from benchmarks.report import ROOT, machine
from benchmarks.sentences import sentences
from training.publish.runtime import PublishedModel

PAIRS = 8
LONG = "The fee is waived for members who order online before noon. " * 20


def digest(name: str) -> str:
    """Of the raw scores, or of the probabilities of labels, of some pairs."""
    model = PublishedModel(ROOT / "models" / name)
    a, b = [*sentences(PAIRS, 1), LONG], [*sentences(PAIRS, 2), LONG[7:]]
    found = hashlib.sha256()
    for task in model.manifest.score_tasks:
        found.update(model.similarity(a, b, task).raw_score.tobytes())
    if model.manifest.entailment is not None:
        found.update(repr(model.entailment(a, b)).encode())
    return found.hexdigest()[:16]


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.digits")
    parser.add_argument("models", nargs="+", metavar="MODEL", help="of models/")
    for name in parser.parse_args().models:
        print(name, digest(name), machine("onnxruntime"))


if __name__ == "__main__":
    main()
