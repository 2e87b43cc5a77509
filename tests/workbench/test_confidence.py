"""The confidence of the main models: rankings with answers taken out, fitted across sources, written into manifests."""

from pathlib import Path

import numpy as np
import pytest

from core.manifest import Manifest
from core.ranking import of_stage, shared_words
from tests.harness import fakes
from workbench.confidence import NONE, RERANK_TOP, Drawn, Rows, fitted, rows_of, write_fits

QUESTIONS = ["who wrote the book", "when is it open", "where is it"]
ANSWERS = ["jane wrote it", "at nine", "in the park"]


def faq(taken_out: list[bool], right: list[int] | None = None) -> Drawn:
    return Drawn(ANSWERS, QUESTIONS, [0, 1, 2] if right is None else right, taken_out)


RAW = np.array([[0.9, 0.2, 0.1], [0.3, 0.8, 0.4], [0.5, 0.6, 0.1]])


def test_a_question_whose_answer_is_taken_out_ranks_the_others() -> None:
    features, right, none = rows_of(faq([False, True, False]), RAW, None)
    assert none.tolist() == [False, True, False]
    assert right.tolist() == [True, False, False]
    assert features[0].tolist() == [*of_stage(RAW[0], 0), shared_words(QUESTIONS[0], ANSWERS[0])]
    assert features[1].tolist() == [*of_stage([0.3, 0.4], 1), shared_words(QUESTIONS[1], ANSWERS[2])]

    # Both stages decide which comes first.
    fine = np.array([[0.3, 0.2, 0.9], [0.8, 0.4, 0.1], [0.9, 0.1, 0.2]])
    features, right, none = rows_of(faq([False] * 3, [0, NONE, 0]), RAW, fine)
    assert none.tolist() == [False, True, False]
    assert right.tolist() == [True, False, True]
    assert features[2].tolist() == [
        *of_stage(RAW[2], 0), shared_words(QUESTIONS[2], ANSWERS[0]), *of_stage(fine[2], 0),
    ]  # fmt: skip


def test_the_calibration_error_is_that_of_sources_left_out() -> None:
    random = np.random.default_rng(1)

    def source(shift: float) -> Rows:
        features = random.normal(size=(400, 4))
        right = random.random(400) < 1 / (1 + np.exp(-(2 * features[:, 0] + shift)))
        return Rows(features, right, ~right & (random.random(400) < 0.5))

    alike = fitted([source(0.0) for _ in range(3)])
    assert alike.rows == 1200
    assert alike.calibration_error < 0.06
    assert 0.75 < alike.auc < 0.95
    assert 0.3 < alike.threshold < 0.37  # half of the wrong ones have no answer
    unlike = fitted([source(shift) for shift in (-3.0, 0.0, 3.0)])
    assert (
        unlike.calibration_error > 2 * alike.calibration_error
    )  # what holds of two of these sources is wrong about the third


def test_fits_stand_in_the_manifests_for_these_models_alone_and_together(tmp_path: Path) -> None:
    manifests = {
        "avg-paraphrase": fakes.cosine_model(tmp_path / "avg-paraphrase"),
        "pair-sick": fakes.interaction_model(tmp_path / "pair-sick"),
    }
    drawn = {source: [faq([False, True, False])] for source in ("bank", "course", "covid")}
    raw = {name: {source: [RAW] for source in drawn} for name in manifests}
    said: list[str] = []
    fits = write_fits(tmp_path, manifests, drawn, raw, 7, said.append)
    assert [(fit.model, fit.rerank_model, fit.rows) for fit in fits] == [
        ("avg-paraphrase", None, 9), ("avg-paraphrase", "pair-sick", 9), ("pair-sick", None, 9),
    ]  # fmt: skip
    assert len(said) == 3
    for name, manifest in manifests.items():
        kept = Manifest.load(tmp_path / name)
        assert kept.confidence == tuple(fit for fit in fits if fit.model == name)
        assert kept.model_copy(update={"confidence": ()}) == manifest
        assert all(fit.fitted_by == "python -m workbench confidence --seed 7" for fit in kept.confidence)
    first, second = (manifests[name] for name in ("avg-paraphrase", "pair-sick"))
    assert fits[1].is_for((first.id, first.fingerprint), (second.id, second.fingerprint), RERANK_TOP)


def test_all_or_none_right_can_still_be_fitted() -> None:
    features, all_right = np.arange(12.0).reshape(3, 4), np.ones(3, dtype=bool)
    found = fitted([Rows(features, all_right, ~all_right)] * 3)
    assert (found.rows, np.isfinite([found.line.intercept, *found.line.weights]).all()) == (9, True)
    assert found.calibration_error == pytest.approx(0.0, abs=0.1)
