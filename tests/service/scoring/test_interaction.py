"""Pairs through one graph: batches within bounds, each distinct pair once, answers in their places."""

from pathlib import Path

import numpy as np
import pytest

from contract.manifest import Manifest
from contract.tokenizer import Encoded, Tokenizer
from service.compute.cache import VectorCache
from service.compute.graph import graphs_of
from service.compute.pool import Pool
from service.observe.telemetry import ModelTelemetry, Telemetry
from service.scoring.interaction import InteractionScorer
from service.scoring.scorer import Parts


class Recorder:
    """A pair graph that remembers what it was fed; its output tells the order of the two sentences."""

    def __init__(self) -> None:
        self.pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self.shapes: list[tuple[int, int, int]] = []

    def __call__(self, feeds):
        a, b = feeds["input_ids_a"], feeds["input_ids_b"]
        sizes = zip(feeds["lengths_a"].tolist(), feeds["lengths_b"].tolist(), strict=True)
        pairs = [(tuple(x[:n]), tuple(y[:m])) for x, y, (n, m) in zip(a.tolist(), b.tolist(), sizes, strict=True)]
        self.pairs += pairs
        self.shapes.append((len(a), a.shape[1], b.shape[1]))
        return np.log(np.array([[sum(x), 2 * sum(y), 1, 1, 1] for x, y in pairs], dtype=np.float32))


def encoded(*ids: int) -> Encoded:
    return Encoded(ids, len(ids), 0, False)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def scorer(models: Path, recorder: Recorder) -> InteractionScorer:
    folder = models / "pair-sick"
    manifest = Manifest.load(folder)
    telemetry = Telemetry()
    tokenizer = Tokenizer.load(manifest.path_of(folder, manifest.tokenizer))
    matrices = np.zeros((1, 2, 1, 1), np.float32)
    runs = {
        "relatedness.onnx": recorder,
        "entailment.onnx": lambda feeds: recorder(feeds)[:, :3],
        "explanation.onnx": lambda _: matrices,
    }
    series = ModelTelemetry(manifest.graphs)
    graphs = graphs_of(manifest, runs, series)
    return InteractionScorer(Parts(manifest, tokenizer, graphs, series, Pool(1, 1), VectorCache(1_000_000, telemetry)))


@pytest.mark.anyio
async def test_a_pair_that_stands_there_twice_is_scored_once(scorer, recorder) -> None:
    a = [encoded(1, 2), encoded(3), encoded(1, 2), encoded(1, 2)]
    b = [encoded(4, 5), encoded(6), encoded(4, 5), encoded(6)]
    raw = (await scorer.similarity(a, b)).raw
    assert len(recorder.pairs) == 3
    assert raw[0] == raw[2]
    assert len(set(raw)) == 3


@pytest.mark.anyio
async def test_a_pair_turned_round_is_the_same_where_order_does_not_matter(scorer, recorder) -> None:
    a, b = [encoded(1, 2, 3), encoded(4), encoded(7)], [encoded(4), encoded(1, 2, 3), encoded(4)]
    raw = (await scorer.similarity(a, b)).raw
    assert sorted(recorder.pairs) == [((4,), (1, 2, 3)), ((4,), (7,))]
    assert raw[0] == raw[1] != raw[2]
    assert scorer.similarity_at_once(b[:1], a[:1]).raw_score == pytest.approx(raw[:1])


@pytest.mark.anyio
async def test_a_pair_is_kept_and_found_turned_round_where_order_does_not_matter(scorer, recorder) -> None:
    a, b = encoded(1, 2, 3), encoded(4)
    scorer.measure(["a man runs"], ["dog"], "memory")
    recorder.pairs.clear()
    many = [encoded(i) for i in range(1, 300)]  # too many to be remembered score by score
    first = await scorer.similarity([a, *many], [b, *many])
    again = await scorer.similarity([b, *many], [a, *many])
    assert again.raw == first.raw
    assert len(recorder.pairs) == 300
    await scorer.entailment([a], [b])  # another graph's answer is another thing
    assert len(recorder.pairs) == 301
