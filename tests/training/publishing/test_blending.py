"""A cross-encoder's similarity blended with the cosine of the encoder that it started from."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from tests import toy_wordpiece, toys
from training.architectures.transformer import (
    BERTConfig,
    CrossEncoder,
    CrossEncoderConfig,
    SentenceBERT,
    SentenceBERTConfig,
)
from training.objectives.tasks import PairTokens
from training.publishing.families import blending
from training.publishing.families.blending import fit_blend
from training.publishing.families.heads import HeadCalibrations
from training.publishing.families.tasks import write_folder
from training.publishing.families.transformer import BlendedSimilarity
from training.publishing.publish import files_of
from training.recipes import find
from training.recipes.recipe import Recipe
from training.runs.folder import WEIGHTS_NAME, RunMissing, run_folder
from training.runs.tasks import START_NAME, TOKENIZER_NAME

TINY = BERTConfig(vocabulary=105, hidden=24, layers=1, attention_heads=3, inner=48, positions=300)
HEADS = {"entailment": 3, "similarity": 1, "paraphrase": 1, "relevance": 1}


def models() -> tuple[CrossEncoder, SentenceBERT]:
    torch.manual_seed(3)
    cross, encoder = CrossEncoder(CrossEncoderConfig(TINY, HEADS)).eval(), SentenceBERT(SentenceBERTConfig(TINY)).eval()
    with torch.no_grad():  # tiny random heads say nearly the same of every pair
        cross.heads["similarity"].weight *= 100
        cross.bert.words.weight.copy_(encoder.bert.words.weight)
    return cross, encoder


def test_the_weight_is_the_best_on_development_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = toys.pairs(40)
    monkeypatch.setattr(blending.stsb, "read", lambda part: pairs if part == "dev" else [])
    cross, encoder = models()
    tokenizer = toy_wordpiece.wordpiece()
    blend, calibration = fit_blend(cross, encoder, tokenizer, 16)
    assert blend.encoder is encoder
    gold = np.array([pair.target for pair in pairs])
    batch = PairTokens(pairs, tokenizer, 16).batch(np.arange(len(pairs)))

    def raw(weight: float) -> np.ndarray:
        with torch.no_grad():
            return BlendedSimilarity(cross, replace(blend, weight=weight))(*batch)[:, 0].double().numpy()

    found = {weight: spearmanr(raw(weight), gold).statistic for weight in blending.WEIGHTS}
    assert found[blend.weight] == pytest.approx(max(found.values()), abs=1e-4)
    assert max(found.values()) - min(found.values()) > 0.01
    ratings = calibration.apply(raw(blend.weight))
    assert ((ratings >= 0) & (ratings <= 5)).all()
    assert abs(ratings.mean() - gold.mean()) < 0.5


def test_a_run_is_published_with_the_encoder_it_started_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recipe: Recipe = replace(find("minilm-cross"), architecture=CrossEncoderConfig(TINY, HEADS))
    publication = recipe.publication
    assert publication is not None
    assert publication.blend
    monkeypatch.setattr(blending.stsb, "read", lambda part: toys.pairs(40))
    monkeypatch.setattr("training.publishing.families.tasks.calibrated", lambda *_: HeadCalibrations())
    cross, encoder = models()
    run = run_folder(tmp_path, recipe, 1)
    run.mkdir(parents=True)
    torch.save(cross.state_dict(), run / WEIGHTS_NAME)
    toy_wordpiece.wordpiece().save(run / TOKENIZER_NAME)
    folder = tmp_path / "draft" / "m"
    folder.mkdir(parents=True)
    with pytest.raises(RunMissing, match=r"start\.pt is not there: run `python -m training train minilm-cross"):
        write_folder(recipe, publication, tmp_path, folder, 1)
    torch.save(encoder.bert.state_dict(), run / START_NAME)
    fields = write_folder(recipe, publication, tmp_path, folder, 1)
    assert fields["similarity"].graph == "similarity.onnx"
    assert fields["similarity"].calibration is not None
    assert fields["paraphrase"].graph == "pair.onnx"
    assert {"pair.onnx", "similarity.onnx"} <= set(files_of(folder))
