"""What the graphs of published models give for the same texts on this CPU, as a digest of the bits.

    python -m benchmarks.digits minilm-small minilm minilm-cross
    qemu-x86_64 -cpu Haswell .venv/bin/python -m benchmarks.digits minilm-small    # as a CPU with AVX2 alone

Models that multiply integers have the same digest on every x86 CPU with AVX2 (docs/decisions/0010); of others it may
follow from the CPU.
"""

import argparse
import hashlib

import numpy as np

from benchmarks.report import ROOT, machine
from benchmarks.sentences import sentences
from training.publish.runtime import PublishedModel

PAIRS = 8
LONG = "The fee is waived for members who order online before noon. " * 20


def digest(name: str) -> str:
    """Of what a model's graphs give for some pairs: its embeddings to six digits, and its outputs of pairs.

    The digits behind are NumPy's, which takes the mean of tokens in another order on another CPU.
    """
    model = PublishedModel(ROOT / "models" / name)
    a, b = [*sentences(PAIRS, 1), LONG], [*sentences(PAIRS, 2), LONG[7:]]
    found = hashlib.sha256()
    for graph, kind in model.manifest.graph_kinds.items():
        if kind == "encoder":
            ids = [model.tokenizer.encode(text, model.manifest.limits.max_tokens).ids for text in (*a, *b)]
            found.update(np.round(model.embed_ids(ids), 6).tobytes())
        elif kind == "pair":
            found.update(model.outputs(graph, a, b).tobytes())
    return found.hexdigest()[:16]


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.digits")
    parser.add_argument("models", nargs="+", metavar="MODEL", help="of models/")
    for name in parser.parse_args().models:
        print(name, digest(name), machine("onnxruntime"))


if __name__ == "__main__":
    main()
