"""The large models, with tiny weights: what is fitted once is there again when they are built without data."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core.manifest import Figure, FileEntry, Manifest
from core.ranking import ConfidenceFit
from tests.workbench import foreign
from training.families import updates
from training.models import CrossEncoder, CrossEncoderConfig
from training.models.transformer import BERTConfig, is_update, merge_updates
from training.publish.graphs import ParityError
from training.recipes import RECIPES, find
from training.recipes.recipe import Recipe
from training.recipes.sources.credits import MPNET
from training.recipes.sources.tables import PretrainedEncoder
from training.recipes.teacher import SERVED
from training.teacher.weights import weights_folder
from workbench.large import build, fit
from workbench.large.build import CROSS_ID, ENCODER_ID, build_large, check_answers

pytestmark = pytest.mark.filterwarnings("ignore")  # of the other libraries
LINE = dict.fromkeys(("score", "lead", "standing", "words"), 1.0)
FIGURE = Figure(task="entailment", corpus="MultiNLI", split="development", metric="accuracy", value=0.7, rows=300)


def sizes(vocabulary: int) -> BERTConfig:
    return BERTConfig(
        vocabulary=vocabulary, hidden=24, layers=1, attention_heads=3, inner=48, positions=300, layout="mpnet",
        update_rank=2,
    )  # fmt: skip


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A teacher of tiny published weights, with random updates and heads."""
    kind, settings = foreign.FAMILIES["mpnet"]
    monkeypatch.setitem(foreign.FAMILIES, "mpnet", (kind, settings | {"max_position_embeddings": 300}))
    folder = weights_folder(tmp_path / "runs", "toy")
    folder.parent.mkdir(parents=True)
    foreign.encoder(folder, "mpnet")
    heads = {"entailment": 3, "paraphrase": 1, "related": 1, "relevance": 1}
    architecture = CrossEncoderConfig(sizes(foreign.tokenizer(kind).get_vocab_size()), heads)
    recipe = replace(
        find(SERVED), name="toy", table=PretrainedEncoder("toy", ("toy",)), architecture=architecture, start=None
    )
    monkeypatch.setitem(RECIPES, "toy", recipe)
    monkeypatch.setattr(updates, "FOLDER", tmp_path)
    random = np.random.default_rng(0)
    shapes = {n: p.shape for n, p in CrossEncoder(architecture).named_parameters() if p.requires_grad}
    np.savez(tmp_path / "toy.npz", **{name: random.normal(0, 0.2, shape) for name, shape in shapes.items()})  # type: ignore[arg-type]
    return recipe


def test_merged_updates_answer_as_before() -> None:
    model = CrossEncoder(CrossEncoderConfig(sizes(50))).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if is_update(name):
                parameter.normal_(std=0.3)
    tokens = torch.tensor([[5, 6, 7], [8, 9, 4]]), torch.tensor([3, 2])
    before = model(*tokens, *tokens)
    merge_updates(model.bert)
    assert not any(is_update(name) for name, _ in model.named_parameters())
    for head, output in model(*tokens, *tokens).items():
        torch.testing.assert_close(output, before[head], atol=1e-5, rtol=1e-5)


@pytest.mark.extras
def test_what_was_fitted_once_is_there_again_when_they_are_built_without_data(
    toy: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two graphs are exported, which takes some seconds; the second time they are there already."""
    runs, kept, first, models, made = (tmp_path / name for name in ("runs", "kept", "first", "models", "made"))

    def fitted(model: object, manifest: Manifest, most: int, said: object) -> Manifest:
        assert manifest.entailment is not None
        return manifest.model_copy(update={"entailment": manifest.entailment.model_copy(update={"temperature": 1.7})})

    def confidence(model: object, manifest: Manifest, seed: int, command: str) -> tuple[ConfidenceFit, float]:
        line: dict[str, Any] = {"intercept": -2.0, "weights": LINE, "threshold": 0.3, "rows": 9}
        known = {"model": ENCODER_ID, "fingerprint": manifest.fingerprint, "calibration_error": 0.05}
        return ConfidenceFit(**known, **line, fitted_by=command), 0.8

    def written(*given: Any) -> dict[str, Any]:
        files.append(build.write_cross(*given))
        shutil.copytree(given[3], made)
        return files[0]

    files: list[dict[str, Any]] = []
    monkeypatch.setattr(fit, "write_cross", written)
    monkeypatch.setattr(fit, "fitted", fitted)
    monkeypatch.setattr(fit, "cross_figures", lambda *_: [FIGURE])
    monkeypatch.setattr(fit, "training_data_for", lambda _: (MPNET,))
    monkeypatch.setattr(fit, "confidence", confidence)
    lines: list[str] = []
    fit.fit_large(runs, first, 50, 1, lines.append, teacher="toy", kept=kept)
    assert any("sentence-transformers" in line and "texts: answers differ by at most" in line for line in lines)

    def as_before(source: Path, work: Path, said: object) -> FileEntry:
        shutil.copytree(made, work, dirs_exist_ok=True)
        return Manifest.load(first / ENCODER_ID).files["encoder.onnx"]

    monkeypatch.setattr(build, "write_encoder", as_before)
    monkeypatch.setattr(build, "write_cross", lambda *_: files[0])
    build_large(runs, models, lines.append, teacher="toy", kept=kept)
    encoder, cross = (Manifest.load(models / name) for name in (ENCODER_ID, CROSS_ID))
    assert cross.tasks == ("similarity", "entailment", "paraphrase", "relevance")
    assert cross.files["encoder.onnx"] == encoder.files["encoder.onnx"]
    assert cross.files["encoder.onnx"].shared
    assert cross.entailment is not None
    assert cross.entailment.temperature == 1.7
    assert cross.figures == (FIGURE,)
    assert MPNET in cross.training_data
    assert "Apache-2.0" in (models / ENCODER_ID / "README.md").read_text()
    (found,) = encoder.confidence
    assert (found.intercept, found.fingerprint) == (-2.0, encoder.fingerprint)

    with foreign.served(models) as client:
        listed = client.get("/models").json()
        assert [model["main"] for model in listed["models"]] == [True, True]
        assert listed["rerank"]["default_model"] == CROSS_ID
        texts = {"query": "Where is the dog?", "candidates": ["a dog in the park", "the flute", "the man plays"]}
        answer = client.post("/rank", json={**texts, "model": ENCODER_ID}).json()
        assert 0 < answer["confidence"] < 1
        again = client.post("/rank", json={**texts, "model": ENCODER_ID, "rerank_top": 3}).json()
        assert [result["stage"] for result in again["results"]] == [2, 2, 2]
        asked = {"pairs": [{"premise": "a dog runs", "hypothesis": "a cat sleeps"}]}
        assert client.post("/entailment", json=asked).json()["model"] == CROSS_ID

    # Answers of other weights are not those kept.
    golden = kept / CROSS_ID / "golden.json"
    golden.write_text((kept / ENCODER_ID / "golden.json").read_text())
    with pytest.raises(ParityError, match="mpnet-cross: its answers differ from those kept by"):
        check_answers(CROSS_ID, models, kept)
