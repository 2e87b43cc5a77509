"""Toy models, published as the real ones are, and files of labelled pairs with something to learn from."""

import json
import shutil
import tempfile
from dataclasses import asdict
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from core.golden import GOLDEN_TEXTS
from core.manifest import Limits, Manifest, Provenance
from tests.harness import toys
from tests.harness.toy_wordpiece import WORDS, wordpiece, wordpiece_json
from training.data.words.storage import stored
from training.families import siamese
from training.families.transformer import write_encoder
from training.models import WordAveragingConfig, build_encoder
from training.models.transformer import BERTConfig, SentenceBERT, SentenceBERTConfig
from training.publish.folders import assemble, finish
from training.recipes.sources.credits import TEACHER
from workbench.imports.model import COSINE

# Not smaller: an export folds tensors of a few thousand numbers into others.
BERT = SentenceBERTConfig(BERTConfig(len(wordpiece()), hidden=96, layers=1, attention_heads=2, inner=96, positions=20))


def shaken(module: nn.Module, seed: int = 5) -> nn.Module:
    """The module with every weight drawn anew: no two of them, nor the biases, are equal as at a start."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return module.eval()


@cache
def _average(model_id: str) -> tempfile.TemporaryDirectory[str]:
    """A folder of models with an average of words, which most tests start from: exported once."""
    kept = tempfile.TemporaryDirectory(prefix="average-")
    module = build_encoder(WordAveragingConfig(), stored(torch.from_numpy(toys.table().rows), "int8")).eval()

    def write(folder: Path) -> dict[str, Any]:
        fields = siamese.write_graphs(module, {}, toys.tokenizer(), folder, model_id, words_are_shared=False)
        return {"limits": Limits(max_tokens=toys.MAX_TOKENS), "similarity": COSINE, "additive": True, **fields}

    _published(Path(kept.name), model_id, "word_averaging", {"kind": "WordAveragingConfig"}, write)
    return kept


def average_model(models: Path, model_id: str) -> Path:
    """The mean of the toy words."""
    shutil.copytree(_average(model_id).name, models, dirs_exist_ok=True)
    return models / model_id


def transformer_model(models: Path, model_id: str) -> Path:
    """A bi-encoder with the toy WordPiece."""
    shutil.copytree(_transformer(model_id).name, models, dirs_exist_ok=True)
    return models / model_id


@cache
def _transformer(model_id: str) -> tempfile.TemporaryDirectory[str]:
    kept = tempfile.TemporaryDirectory(prefix="transformer-")

    def write(folder: Path) -> dict[str, Any]:
        tokenizer = folder.parent / "wordpiece.json"
        tokenizer.write_text(wordpiece_json(), encoding="utf-8")
        model = SentenceBERT(BERT)
        shaken(model)
        return write_encoder(model, tokenizer, folder, model_id, max_tokens=toys.MAX_TOKENS)

    _published(Path(kept.name), model_id, "minilm", asdict(BERT), write)
    return kept


def _published(models: Path, model_id: str, architecture: str, settings: dict[str, Any], write: Any) -> Path:
    with tempfile.TemporaryDirectory() as temporary:
        draft = Path(temporary) / model_id
        draft.mkdir()
        fields = write(draft)
        provenance = Provenance(
            created=date(2026, 1, 1),
            recipe={"architecture": json.loads(json.dumps(settings))},
            commands=("none",),
            seed=0,
            environment={"torch": torch.__version__},
        )
        said = {"architecture": architecture, "training_data": (TEACHER,), "provenance": provenance}
        manifest = assemble(draft, fields, title="A toy", **said)
        finish(draft, manifest, (), GOLDEN_TEXTS, models, models / model_id)
    Manifest.load(models / model_id).verify(models / model_id)
    return models / model_id


def sentences(count: int, seed: int = 0) -> list[tuple[str, bool]]:
    """Different sentences of seven words, and whether they are about a guitar or about a dog."""
    rng = np.random.default_rng(seed)
    others = [word for word in WORDS if word not in ("guitar", "dog", ".")]
    found: dict[str, bool] = {}
    while len(found) < count:
        topic = bool(rng.random() < 0.5)
        parts = [*rng.choice(others, 6), "guitar" if topic else "dog"]
        found[" ".join(map(str, rng.permutation(parts)))] = topic
    return list(found.items())


def rows(kind: str, count: int, seed: int = 0) -> list[dict[str, object]]:
    """Pairs of sentences in which one word decides: those of one topic go together."""
    said = sentences(2 * count, seed)
    found: list[dict[str, object]] = []
    for i in range(count):
        (a, one), (b, other) = said[2 * i], said[2 * i + 1]
        same = one == other
        if kind == "ranking":
            a, one = said[2 * (i - i % 4)]
            found.append({"question": a, "answer": b, "label": int(one == other)})
        elif kind == "score":
            found.append({"a": a, "b": b, "score": 10.0 * same + (i % 7) / 7})
        else:
            found.append({"a": a, "b": b, "label": int(same)})
    return found
