import asyncio

import numpy as np
import pytest

from contract.manifest import Manifest
from contract.tokenizer import Tokenizer
from service.compute.cache import VectorCache
from service.compute.graph import graphs_of
from service.compute.pool import Pool
from service.observe.telemetry import ModelTelemetry, Telemetry
from service.scoring.scorer import Parts
from service.scoring.siamese import SiameseScorer
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
    manifest = manifest.model_copy(update={"limits": manifest.limits.model_copy(update={"max_tokens": 4096})})
    series = ModelTelemetry(manifest.graphs)
    tokenizer = Tokenizer.load(models / "avg-paraphrase" / manifest.tokenizer)
    graphs = graphs_of(manifest, {"encoder.onnx": recorder}, series)
    return SiameseScorer(Parts(manifest, tokenizer, graphs, series, Pool(1, 1), VectorCache(1_000_000, Telemetry())))


@pytest.mark.anyio
@pytest.mark.parametrize(("policy", "remembers"), [("auto", True), ("off", False)])
async def test_scores_are_remembered_where_memory_is_used(scorer, recorder, policy, remembers) -> None:
    texts = ["man", "a dog runs"], ["cat", "a man"]
    scorer.measure(*texts, policy)
    a, b = map(scorer.tokenise, texts)
    recorder.shapes.clear()
    first = await scorer.similarity(a, b)
    assert await scorer.similarity(a, b) == first
    turned = await scorer.similarity(b[:1], a[:1])  # cosine has no order
    assert turned.score == first.score[:1]
    assert len(recorder.shapes) == (1 if remembers else 3)


@pytest.mark.anyio
async def test_a_sentence_in_flight_is_not_encoded_again(scorer, recorder) -> None:
    a, b, c = scorer.tokenise(["man", "a dog runs", "a cat sleeps"])
    expect(scorer, 1.0)
    both = asyncio.gather(scorer.embed([a, b]), scorer.embed([b, c]))
    first, second = await both
    assert recorder.sentences == 3
    np.testing.assert_array_equal(first[1], second[0])


@pytest.mark.anyio
async def test_a_text_that_came_twice_is_read_no_more(scorer, monkeypatch) -> None:
    read: list[str] = []

    def tokenise(texts: list[str], encode=scorer._tokenise):
        read.extend(texts)
        return encode(texts)

    monkeypatch.setattr(scorer, "_tokenise", tokenise)
    long = " ".join(["man"] * 400)  # too long to be remembered
    texts = [" ".join([word] * 60) for word in fakes.WORDS] * 2 + [long]
    first = await scorer.read(texts, str)
    assert read == [*dict.fromkeys(texts)]
    assert await scorer.read(texts, str) == first
    assert read == 2 * [*dict.fromkeys(texts)]
    read.clear()
    assert await scorer.read(texts, str) == first
    assert read == [long]
    assert await scorer.read(texts[:1], str) == first[:1]
    assert read == [long]
