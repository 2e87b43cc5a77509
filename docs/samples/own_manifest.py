"""Write the manifest and the golden pairs of a model that was exported by hand (docs/own-model.md)."""

from datetime import date
from pathlib import Path

from core.golden import GoldenPair, GoldenPairs
from core.manifest import Limits, Manifest, Provenance, SimilarityTask, TrainingData, describe_file
from training.publish.runtime import PublishedModel

folder = Path("models/my-model")
PAIRS = [("A man plays the guitar.", "Someone plays an instrument."), ("A dog runs.", "The cat sleeps on the sofa.")]


def manifest(files: list[str]) -> Manifest:
    """The manifest of the model with these of its files, and their checksums."""
    draft = Manifest(
        id=folder.name,
        title="An encoder of my own",
        architecture="my-encoder",
        family="siamese",
        dim=256,  # of its embeddings
        encoder="encoder.onnx",
        tokenizer="tokenizer.json",
        golden="golden.json",
        files={name: describe_file(folder / name) for name in files},
        fingerprint="0" * 64,
        limits=Limits(max_tokens=128),
        similarity=SimilarityTask(comparison="cosine", raw_range=(-1.0, 1.0), symmetric=True),
        training_data=(TrainingData(name="mine", use="all", rows=0, licence="mine", source="mine"),),
        figures=(),
        provenance=Provenance(created=date.today(), recipe={}, commands=("by hand",), seed=0, environment={}),
    )
    return draft.model_copy(update={"fingerprint": draft.expected_fingerprint()})


# The golden pairs are what the model says now; the service refuses a runtime that says something else.
(folder / "golden.json").write_text('{"pairs": []}')
model = PublishedModel(folder, manifest(["encoder.onnx", "tokenizer.json", "golden.json"]))
found = model.similarity([a for a, _ in PAIRS], [b for _, b in PAIRS])
golden = [
    GoldenPair(a=a, b=b, raw_score=float(raw), score=float(score))
    for (a, b), raw, score in zip(PAIRS, found.raw_score, found.score, strict=True)
]
GoldenPairs(pairs=tuple(golden)).save(folder / "golden.json")
manifest(["encoder.onnx", "tokenizer.json", "golden.json"]).save(folder)
