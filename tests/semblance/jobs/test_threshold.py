"""Files of labelled pairs, the threshold that parts them best, and its interval; the command: test_choose.py."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semblance.errors import BatchError
from semblance.jobs.threshold import BinaryLabelledPairs, Candidate, Scored, choose, compare, quality, resampled
from tests.harness.labelled import ALIKE, models_in, scored
from training.publish.runtime import PublishedModel


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models_in(tmp_path_factory.mktemp("models"))


def test_a_precision_exactly_as_wanted_is_reached() -> None:
    scores, labels = np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, True, False, True])
    assert choose(scores, labels, 0.75) == 0.6  # all pass, three of four rightly
    with pytest.raises(BatchError, match=r"no threshold has a precision of 0\.75"):
        choose(scores, ~labels, 0.75)


def test_intervals_are_of_pairs_that_did_not_choose() -> None:
    """On those that did, every choice has the wanted precision."""
    random = np.random.default_rng(6)
    labels = random.random(60) < 0.5
    scores = labels * 0.3 + random.random(60) * 0.7
    found = resampled(scores, labels, 1.0, resamples=50)
    assert found.resamples > 40
    assert found.precision.mean < 1
    few = resampled(np.array([0.9, 0.8, 0.2, 0.1]), np.array([True, True, False, False]), resamples=50)
    assert 0 < few.resamples < 50  # a sample of all pairs with a label leaves none to measure on


def test_more_pairs_are_surer_and_the_seed_decides() -> None:
    random = np.random.default_rng(5)
    labels = random.random(2000) < 0.5
    scores = np.clip(labels * 0.3 + random.random(2000) * 0.7, 0, 1)
    few, many = (resampled(scores[:n], labels[:n], resamples=100) for n in (60, 2000))
    assert few.threshold.high - few.threshold.low > 1.5 * (many.threshold.high - many.threshold.low)
    assert many.threshold.low <= choose(scores, labels) <= many.threshold.high
    assert many.f1.mean < quality(scores, labels, choose(scores, labels)).f1  # measured on pairs that did not choose
    assert resampled(scores[:60], labels[:60], resamples=100) == few
    assert resampled(scores[:60], labels[:60], resamples=100, seed=2) != few


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=2, max_size=30))
def test_the_area_is_the_share_of_pairs_in_their_order(pairs: list[tuple[bool, int]]) -> None:
    labels, scores = np.array([label for label, _ in pairs]), np.array([score / 4 for _, score in pairs])
    ones, zeros = scores[labels], scores[~labels]
    if not ones.size or not zeros.size:
        return
    above = ones[:, None] - zeros
    (found,) = compare([Candidate("m", "similarity", scores, 0.0, 0)], labels, resamples=20)
    assert found.auc == pytest.approx(((above > 0) + 0.5 * (above == 0)).mean())
    assert 0 <= found.low <= found.high <= 1


def test_many_pairs_are_compared_in_little_memory() -> None:
    """All against all would be 10 billion."""
    labels = np.arange(200_000) % 2 == 0
    (found,) = compare([Candidate("m", "similarity", np.arange(200_000.0), 0.0, 0)], labels, resamples=5)
    assert found.low == pytest.approx(0.5, abs=0.01)


def test_scores_are_those_of_the_published_model(models: Path) -> None:
    pairs = BinaryLabelledPairs([a for a, _ in ALIKE], [b for _, b in ALIKE], np.ones(4, dtype=bool))
    model = PublishedModel(models / "both")
    tasks: tuple[Scored, ...] = ("similarity", "paraphrase", "relevance")
    for task in tasks:
        found, cut = scored(models, "both", pairs, task)
        np.testing.assert_allclose(found, model.similarity(pairs.a, pairs.b, task).score, atol=1e-6)
        assert cut == 0
    expected = [each["entailment"] for each in model.entailment(pairs.a, pairs.b)]
    np.testing.assert_allclose(scored(models, "both", pairs, "entailment")[0], expected, atol=1e-6)
    long = BinaryLabelledPairs(["a " * 20, "a dog"], ["a dog", "a cat"], np.ones(2, dtype=bool))
    assert scored(models, "both", long, "similarity")[1] == 1
    with pytest.raises(BatchError, match="model 'avg-paraphrase' has no entailment; for this: "):
        scored(models, "avg-paraphrase", pairs, "entailment")
