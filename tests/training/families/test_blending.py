"""A cross-encoder's similarity and relevance blended with the cosine of the encoder that it started from."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from tests.harness import toy_runs, toy_wordpiece, toys
from tests.harness.tiny_bert import TINY, spread
from training.data.pairs import Pair
from training.families import family_of, heads, transformer
from training.families.heads import HeadCalibrations
from training.families.transformer import START_NAME, Blend, fit_blend, write_cross_encoder
from training.families.words import TOKENIZER
from training.models.transformer import (
    CrossEncoder,
    CrossEncoderConfig,
    SentenceBERT,
    SentenceBERTConfig,
    words_of,
)
from training.objectives.supervised import LABELS
from training.objectives.tasks import PairTokens
from training.publish.folders import files_of
from training.recipes import published_as
from training.recipes.recipe import Recipe
from training.train.folder import WEIGHTS_NAME, RunMissing

HEADS = {"entailment": 3, "similarity": 1, "paraphrase": 1, "relevance": 1}


def models() -> tuple[CrossEncoder, SentenceBERT]:
    return spread(CrossEncoder(CrossEncoderConfig(TINY, HEADS))), spread(SentenceBERT(SentenceBERTConfig(TINY)))


def questions(encoder: SentenceBERT) -> tuple[dict[str, list[Pair]], np.ndarray]:
    """Ten questions with four answers each, of which the one nearest by cosine is right."""
    pairs = toys.pairs(40)
    batch = PairTokens(pairs, toy_wordpiece.wordpiece(), 16).batch(np.arange(len(pairs)))
    with torch.no_grad():
        cosines = (encoder(*batch[:2]) * encoder(*batch[2:])).sum(1).numpy().reshape(-1, 4)
    right = cosines == cosines.max(1, keepdims=True)
    asked = [
        replace(pair, label=str(int(label)), group=str(i // 4))
        for i, (pair, label) in enumerate(zip(pairs, right.ravel(), strict=True))
    ]
    return {"one": asked[:20], "other": asked[20:]}, right


def test_the_weights_are_the_best_on_development_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = toys.pairs(40)
    toy_runs.read_instead(monkeypatch, labelled={"stsb-dev": pairs}.__getitem__)
    cross, encoder = models()
    tokenizer = toy_wordpiece.wordpiece()
    kinds, right = questions(encoder)
    monkeypatch.setattr(transformer, "answers_of_three_kinds", lambda: kinds)
    blend, calibrations = fit_blend(cross, encoder, tokenizer, 16)
    assert blend.encoder is encoder
    gold = np.array([pair.target for pair in pairs])
    batch = PairTokens(pairs, tokenizer, 16).batch(np.arange(len(pairs)))

    def raw(task: str, **changed: float) -> np.ndarray:
        own, of_cosine = replace(blend, **changed).of_tasks[task]
        with torch.no_grad():
            output = cross(*batch)[task][:, 0]
            cosine = (encoder(*batch[:2]) * encoder(*batch[2:])).sum(1).clamp(min=0)
            output = torch.sigmoid(output) if task == "similarity" else output
            return (own * output + of_cosine * cosine).double().numpy()

    found = {weight: spearmanr(raw("similarity", similarity=weight), gold).statistic for weight in heads.WEIGHTS}
    assert found[blend.similarity] == pytest.approx(max(found.values()), abs=1e-4)
    assert max(found.values()) - min(found.values()) > 0.01
    assert calibrations.similarity is not None
    ratings = calibrations.similarity.apply(raw("similarity"))
    assert ((ratings >= 0) & (ratings <= 5)).all()
    assert abs(ratings.mean() - gold.mean()) < 0.5

    def precision(multiple: float) -> float:  # of one right answer among four: one over its place
        scores = raw("relevance", relevance=multiple).reshape(-1, 4)
        return float((1 / (scores >= scores[right][:, None]).sum(1)).mean())

    found = {multiple: precision(multiple) for multiple in heads.MULTIPLES}
    assert found[blend.relevance] == pytest.approx(max(found.values()))
    assert max(found.values()) > min(found.values())
    probability = calibrations.relevance.apply(raw("relevance"))
    # At even odds: as if half of the pairs were right. The targets are Platt's, of 10 right ones and 30 others.
    means = probability[right.ravel()].mean(), probability[~right.ravel()].mean()
    assert sum(means) / 2 == pytest.approx((11 / 12 + 1 / 32) / 2, abs=1e-3)
    assert right.sum() == 10


def test_a_run_is_published_with_the_encoder_it_started_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recipe: Recipe = replace(
        published_as("minilm-cross"), name="minilm-cross", start=None, architecture=CrossEncoderConfig(TINY, HEADS)
    )
    assert recipe.publication is not None
    publication = replace(recipe.publication, max_tokens=24)
    assert publication.blend
    texts = toys.pairs(40)
    labelled = [replace(pair, label=LABELS[i % 3]) for i, pair in enumerate(texts)]
    decided = [replace(pair, label=str((i + 1) % 2)) for i, pair in enumerate(texts)]
    toy_runs.read_instead(monkeypatch, labelled=lambda name: texts if name == "stsb-dev" else labelled)
    monkeypatch.setattr(heads, "development", lambda corpus: decided)
    cross, encoder = models()
    monkeypatch.setattr(transformer, "answers_of_three_kinds", lambda: questions(encoder)[0])
    monkeypatch.delattr(heads, "answers_of_three_kinds")  # the blend's relevance is fitted, not the head's
    family = family_of(recipe, tmp_path, 1)
    family.folder.mkdir(parents=True)
    torch.save(cross.state_dict(), family.folder / WEIGHTS_NAME)
    toy_wordpiece.wordpiece().save(family.folder / TOKENIZER)
    folder = tmp_path / "draft" / "m"
    folder.mkdir(parents=True)
    with pytest.raises(RunMissing, match=r"start\.pt .*: run `python -m training train minilm-cross --seed 1"):
        family.export(publication, folder)
    torch.save(encoder.bert.state_dict(), family.folder / START_NAME)
    found: list[tuple[Blend, HeadCalibrations]] = []
    monkeypatch.setattr(transformer, "fit_blend", lambda *given: found.append(fit_blend(*given)) or found[0])
    fields = family.export(publication, folder)
    ((blend, fitted),) = found
    assert {fields[task].graph for task in HEADS} == {"pair.onnx"}
    assert fields["paraphrase"].blend is None
    assert fields["similarity"].calibration is not None
    assert fields["similarity"].calibration == fitted.similarity
    assert fields["relevance"].calibration == fitted.relevance
    assert fields["paraphrase"].calibration not in (HeadCalibrations().paraphrase, fitted.paraphrase)
    assert {task: fields[task].blend for task in ("similarity", "relevance")} == blend.of_tasks
    assert fields["bi_encoder"].graph in fields["shared"]
    assert set(files_of(folder)) == {"pair.onnx"}


def test_a_blend_with_other_words_is_refused(tmp_path: Path) -> None:
    cross, encoder = models()
    with torch.no_grad():
        words_of(cross.bert).weight.add_(1)
    tokenizer = tmp_path / "tokenizer.json"
    toy_wordpiece.wordpiece().save(tokenizer)
    with pytest.raises(ValueError, match="a bi-encoder with the words of the cross-encoder"):
        write_cross_encoder(
            cross, tokenizer, tmp_path, "m", HeadCalibrations(), Blend(encoder, 0.5, 2.0), max_tokens=24
        )
