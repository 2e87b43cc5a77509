"""Transformers on the whole road: exported in int8, published, and served; several tasks from one graph."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from core.errors import TokenizerError
from core.manifest import Manifest, Provenance, TrainingData
from core.scoring import CentredIsotonic, Logistic
from core.sequences import pad
from core.subwords import Subwords
from tests.harness import toy_wordpiece
from tests.harness.tiny_bert import TINY, spread
from training.families import transformer
from training.families.heads import HeadCalibrations
from training.families.transformer import (
    Blend,
    write_cross_encoder,
    write_encoder,
)
from training.models.transformer import (
    CrossEncoder,
    CrossEncoderConfig,
    SentenceBERT,
    SentenceBERTConfig,
)
from training.publish.folders import assemble, finish
from training.publish.network_graph import network_graph
from training.publish.runtime import PublishedModel

pytestmark = [pytest.mark.timeout(600)]  # two graphs are exported
PAIRS = (
    ("the cat sat on the sofa", "a cat sleeps"),
    ("the man plays the guitar", "the woman plays the flute."),
    ("dog", "the big dog runs in the park"),
    ("\U0001f600 \u732b", "zz"),
)
A, B = zip(*PAIRS, strict=True)
CALIBRATIONS = HeadCalibrations(
    temperature=1.5,
    similarity=CentredIsotonic(x=(0.0, 0.5, 1.0), y=(0.0, 2.0, 5.0)),
    paraphrase=Logistic(slope=4.0, intercept=-0.5),
    relevance=Logistic(slope=9.0, intercept=0.5),
)
DATA = (TrainingData(name="none", use="none", rows=0, licence="CC0-1.0", source="made up"),)
PROVENANCE = Provenance(created=date(2026, 1, 2), recipe={}, commands=("none",), seed=0, environment={})


def encoder() -> SentenceBERT:
    return spread(SentenceBERT(SentenceBERTConfig(TINY)))


def cross(config: CrossEncoderConfig | None = None) -> CrossEncoder:
    return spread(CrossEncoder(config or CrossEncoderConfig(TINY)))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`bi`; `cross` with the answers of its heads; `blend` with the cosine of `bi` in similarity and relevance."""
    drafts, models = tmp_path_factory.mktemp("drafts"), tmp_path_factory.mktemp("models")
    tokenizer = drafts / "given.json"
    tokenizer.write_text(toy_wordpiece.wordpiece_json())
    exported: dict[str, onnx.ModelProto] = {}

    def once(module: torch.nn.Module, inputs: Sequence[str], output: str, *given: Any) -> onnx.ModelProto:
        """The encoder and the cross-encoder are the same in all three models."""
        if output not in exported:
            exported[output] = network_graph(module, inputs, output, *given)
        copied = onnx.ModelProto()
        copied.CopyFrom(exported[output])
        return copied

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transformer, "network_graph", once)
        for name in ("bi", "cross", "blend"):
            folder = drafts / name
            folder.mkdir()
            if name == "bi":
                fields = write_encoder(encoder(), tokenizer, folder, name)
            else:
                blend = Blend(encoder(), 0.6, 3.0, "bi") if name == "blend" else None
                fields = write_cross_encoder(cross(), tokenizer, folder, name, CALIBRATIONS, blend)
            manifest = assemble(folder, fields, title=name, architecture="x", training_data=DATA, provenance=PROVENANCE)
            finish(folder, manifest, [], PAIRS, models, models / name)
    return models


def feeds(texts: tuple[str, ...]) -> list[torch.Tensor]:
    tokenizer = toy_wordpiece.wordpiece()
    return list(map(torch.from_numpy, pad([tokenizer.encode(text, 128).ids for text in texts])))


def within(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether values are those of the module but for int8: products of integers move them by some steps."""
    return float(np.abs(found - expected).max()) < 0.1 * float(np.ptp(expected))


def test_the_bi_encoder_answers_as_its_module(root: Path) -> None:
    with torch.no_grad():
        expected = encoder()(*feeds(A + B)).numpy()
    found = PublishedModel(root / "bi").embed(A + B)
    assert np.ptp(found @ found.T) > 0.1  # there is something to agree on
    assert (found * expected).sum(axis=1).min() > 0.99
    folder = root / "bi"
    stored = onnx.load(Manifest.load(folder).path_of(folder, "encoder.onnx"), load_external_data=False)
    products = {"MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeLinear"}
    assert products & {node.op_type for node in stored.graph.node} == {"MatMulIntegerToFloat"}


@pytest.mark.parametrize("name", ["cross", "blend"])
def test_every_task_answers_as_its_module(root: Path, name: str) -> None:
    with torch.no_grad():
        outputs = cross()(*feeds(A), *feeds(B))
        cosine = (encoder()(*feeds(A)) * encoder()(*feeds(B))).sum(dim=1).clamp(min=0.0)
    raw = {task: output[:, 0] for task, output in outputs.items()}
    raw["similarity"] = torch.sigmoid(raw["similarity"])
    if name == "blend":
        for task, (part, of_cosine) in Blend(encoder(), 0.6, 3.0).of_tasks.items():
            raw[task] = part * raw[task] + of_cosine * cosine
    model = PublishedModel(root / name)
    assert model.manifest.tasks == ("similarity", "entailment", "paraphrase", "relevance")
    assert len(model.manifest.graphs) == (2 if name == "blend" else 1)
    assert within(model.similarity(A, B).raw_score, raw["similarity"].numpy())
    for task, calibration in (("paraphrase", CALIBRATIONS.paraphrase), ("relevance", CALIBRATIONS.relevance)):
        found = model.similarity(A, B, task)  # type: ignore[arg-type]
        assert within(found.raw_score, raw[task].numpy())
        chance = 1 / (1 + np.exp(-calibration.slope * found.raw_score - calibration.intercept))
        assert found.score == pytest.approx(chance, abs=1e-5)
        assert found.rating is None
    labels = np.array([list(row.values()) for row in model.entailment(A, B)])
    assert within(labels, torch.softmax(outputs["entailment"] / 1.5, dim=1).numpy())


def test_words_and_tokenizer_are_stored_once(root: Path) -> None:
    shared = {
        model: {name: entry.sha256 for name, entry in Manifest.load(root / model).files.items() if entry.shared}
        for model in ("bi", "cross", "blend")
    }
    # So few words stay as they are.
    assert set(shared["cross"]) == {"words.weight.npy", "tokenizer.json", "pair.cuda.onnx"}
    assert shared["blend"] == shared["bi"] | shared["cross"]  # with the encoder
    assert isinstance(PublishedModel(root / "bi").tokenizer, Subwords)


def test_what_cannot_be_published_is_refused(tmp_path: Path) -> None:
    tokenizer = tmp_path / "given.json"
    tokenizer.write_text(toy_wordpiece.wordpiece_json())
    other = replace(CrossEncoderConfig(TINY), heads={"sentiment": 2})
    with pytest.raises(ValueError, match="no task for the heads sentiment"):
        write_cross_encoder(cross(other), tokenizer, tmp_path, "x", CALIBRATIONS)
    smaller = replace(CrossEncoderConfig(TINY), bert=replace(TINY, vocabulary=104))
    with pytest.raises(TokenizerError, match="105 ids, the model has 104 words"):
        write_cross_encoder(cross(smaller), tokenizer, tmp_path, "x", CALIBRATIONS)
    around = {"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[SEP]", 102]}}
    tokenizer.write_text(json.dumps(json.loads(tokenizer.read_text()) | around))
    with pytest.raises(TokenizerError, match="post_processor puts other special tokens"):
        write_encoder(encoder(), tokenizer, tmp_path, "x")
