import asyncio

import numpy as np
import pytest

from contract.manifest import Manifest
from contract.tokenizer import Tokenizer
from service.batching import UNKNOWN
from service.cache import Tiers, VectorCache
from service.scorer import SiameseScorer
from service.telemetry import ModelTelemetry, Telemetry
from service.workers import Workers
from tests import fakes
from tests.service.conftest import expect


class Recorder:
    """An encoder that remembers the shapes it was fed, and embeds a sentence as its length."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []

    @property
    def sentences(self) -> int:
        return sum(count for count, _ in self.shapes)

    def __call__(self, feeds):
        self.shapes.append(feeds["input_ids"].shape)
        return np.repeat(feeds["lengths"][:, None], fakes.DIM, axis=1).astype(np.float32)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def scorer(models, recorder):
    manifest = Manifest.load(models / "avg-paraphrase")
    telemetry = Telemetry()
    return SiameseScorer(
        manifest.model_copy(update={"limits": manifest.limits.model_copy(update={"max_tokens": 4096})}),
        Tokenizer.load(models / "avg-paraphrase" / manifest.tokenizer),
        {"encoder.onnx": recorder},
        ModelTelemetry(manifest.id, manifest.graphs),
        Workers(1, 1),
        VectorCache(1000, telemetry),
    )


@pytest.mark.anyio
async def test_one_long_text_does_not_pad_the_short_ones(scorer, recorder) -> None:
    texts = ["man " * 4000, *[" ".join(fakes.WORDS[:n]) for n in range(1, 21)]]
    sentences = await scorer.read(texts, str)
    matrix, _ = await scorer.embed(sentences)
    assert matrix[:, 0].tolist() == [4000, *range(1, 21)]
    assert sorted(recorder.shapes) == [(1, 4000), (20, 20)]


@pytest.mark.anyio
async def test_what_is_kept_does_not_hold_its_batch_in_memory(scorer) -> None:
    sentences = await scorer.read(["man", "dog", "cat"], str)
    scorer.measure(sentences, sentences, "memory")
    await scorer.embed(sentences)
    kept = scorer.embeddings._cache._entries.values()
    assert len(kept) == 3
    for each in kept:
        assert each.base is None
        assert each.shape == (1, fakes.DIM)


@pytest.mark.anyio
async def test_measuring_learns_what_work_costs_here(scorer) -> None:
    assert scorer.embeddings.batcher.cost is UNKNOWN
    sentences = scorer.tokenise(["man", "a dog runs"])
    assert scorer.measure(sentences, sentences, "auto") == Tiers(memory=True, redis=False)
    assert 0 < scorer.embeddings.batcher.expected_seconds([sentences[0].ids]) < 1e-3
    assert 0 < scorer.seconds_per_pair < 1e-3


@pytest.mark.anyio
@pytest.mark.parametrize(("policy", "remembers"), [("auto", True), ("off", False)])
async def test_scores_are_remembered_where_memory_is_used(scorer, recorder, policy, remembers) -> None:
    a, b = scorer.tokenise(["man", "a dog runs"]), scorer.tokenise(["cat", "a man"])
    scorer.measure(a, b, policy)
    recorder.shapes.clear()
    first = await scorer.similarity(a, b)
    assert first.computed == {sentence.ids for sentence in (*a, *b)}
    assert await scorer.similarity(a, b) == first._replace(computed=() if remembers else first.computed)
    turned = await scorer.similarity(b[:1], a[:1])  # cosine has no order
    assert turned.score == first.score[:1]
    assert len(recorder.shapes) == (1 if remembers else 3)


@pytest.mark.anyio
async def test_a_sentence_in_flight_is_not_encoded_again(scorer, recorder) -> None:
    a, b, c = scorer.tokenise(["man", "a dog runs", "a cat sleeps"])
    expect(scorer, 1.0)
    both = asyncio.gather(scorer.embed([a, b]), scorer.embed([b, c]))
    (first, of_first), (second, of_second) = await both
    assert recorder.sentences == 3
    np.testing.assert_array_equal(first[1], second[0])
    assert set(of_first) == {a.ids, b.ids}
    assert set(of_second) == {b.ids, c.ids}


@pytest.mark.anyio
async def test_what_reading_costs_is_learnt_from_large_requests(scorer) -> None:
    texts = [" ".join([word] * 60) for word in fakes.WORDS]
    scorer._read_seconds = 1.0
    for _ in range(100):
        await scorer.read(texts, str)
    assert scorer._read_seconds < 1e-3
    scorer.measure_reading(texts)
    assert 0 < scorer._read_seconds < 1e-4
