"""What the graphs of published models give for the same texts on this CPU, as a digest of the bits.

    python -m benchmarks.digits minilm-small minilm minilm-cross
    qemu-x86_64 -cpu Haswell .venv/bin/python -m benchmarks.digits minilm-small    # as a CPU with AVX2 alone

Models that multiply integers have the same digest on every x86 CPU with AVX2 (docs/decisions/0010); of others it may
follow from the CPU.
"""

import argparse
import hashlib

from benchmarks.report import ROOT, machine
from benchmarks.sentences import sentences
from core.manifest import Manifest
from core.sequences import SequenceFeeds, feeds_of
from core.subwords import load_tokenizer
from core.tensors import load_tensors
from training.publish.runtime import open_graph

PAIRS = 8
LONG = "The fee is waived for members who order online before noon. " * 20


def digest(name: str) -> str:
    """Of all that the graphs of a transformer give for some texts, or pairs of them, each by itself."""
    folder, found = ROOT / "models" / name, hashlib.sha256()
    manifest = Manifest.load(folder)
    tokenizer, tensors = load_tokenizer(manifest.path_of(folder, manifest.tokenizer)), load_tensors(folder, manifest)
    sides = [[*sentences(PAIRS, 1), LONG], [*sentences(PAIRS, 2), LONG[7:]]]
    ids = [[tokenizer.encode(text, manifest.limits.max_tokens).ids for text in texts] for texts in sides]
    for graph, kind in manifest.graph_kinds.items():
        run, most = open_graph(manifest.path_of(folder, graph), kind, tensors), manifest.max_tokens(graph)
        feeds = feeds_of(run.signature, kind, tokenizer, manifest.pooling_of(graph), most, where=graph)
        if not isinstance(feeds, SequenceFeeds):
            raise SystemExit(f"{name}: {graph} is no transformer")
        texts = zip(*ids, strict=True) if kind == "pair" else zip([*ids[0], *ids[1]], strict=True)
        for each in texts:
            found.update(run(feeds.joined([[text] for text in each]).feeds).tobytes())
    return found.hexdigest()[:16]


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.digits")
    parser.add_argument("models", nargs="+", metavar="MODEL", help="of models/")
    for name in parser.parse_args().models:
        print(name, digest(name), machine("onnxruntime"))


if __name__ == "__main__":
    main()
