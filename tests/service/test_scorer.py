import numpy as np
import pytest

from contract.manifest import Manifest
from contract.tokenizer import Tokenizer
from service.batches import BATCH_TOKENS, batched_by_cost
from service.cache import EmbeddingCache
from service.scorer import SiameseScorer
from service.telemetry import Telemetry
from service.workers import Workers
from tests import fakes


@pytest.mark.parametrize(
    ("lengths", "batches"),
    [
        ([3], [[0]]),
        ([3, 1, 2], [[0, 1, 2]]),  # 9 padded tokens fit
        ([1, 9, 1, 9, 1], [[0, 2, 4], [1], [3]]),
        ([20, 1], [[1], [0]]),  # one over the budget is alone
        ([5, 5, 5], [[0, 1], [2]]),
    ],
)
def test_batches_stay_within_the_padded_cost(lengths, batches) -> None:
    assert batched_by_cost(lengths, budget=10) == batches


def test_no_position_is_lost_or_doubled() -> None:
    lengths = np.random.default_rng(0).integers(1, 300, size=500).tolist()
    batches = batched_by_cost(lengths)
    assert sorted(position for batch in batches for position in batch) == list(range(500))
    assert all(len(batch) * max(lengths[i] for i in batch) <= BATCH_TOKENS for batch in batches)


class Recorder:
    """An encoder that remembers the shapes it was fed, and embeds a sentence as its length."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []

    def __call__(self, feeds):
        self.shapes.append(feeds["input_ids"].shape)
        return np.repeat(feeds["lengths"][:, None], fakes.DIM, axis=1).astype(np.float32)


@pytest.fixture
def scorer(models):
    manifest = Manifest.load(models / "avg-paraphrase")
    telemetry = Telemetry()
    return SiameseScorer(
        manifest.model_copy(update={"limits": manifest.limits.model_copy(update={"max_tokens": 4096})}),
        Tokenizer.load(models / "avg-paraphrase" / manifest.tokenizer),
        {"encoder.onnx": Recorder()},
        telemetry.model(manifest.id, manifest.graphs),
        Workers(1, 1),
        EmbeddingCache(1000, telemetry),
    )


@pytest.mark.anyio
async def test_one_long_text_does_not_pad_the_short_ones(scorer, monkeypatch) -> None:
    shapes: list[tuple[int, int]] = []
    recorder = scorer._runs["encoder.onnx"]

    def remember(feeds):
        shapes.append(feeds["input_ids"].shape)
        return recorder(feeds)

    scorer._encoder = remember
    texts = ["man " * 4000, *[" ".join(fakes.WORDS[:n]) for n in range(1, 21)]]
    sentences = await scorer.read(texts, str)
    matrix = await scorer.embed(sentences)
    assert matrix[:, 0].tolist() == [4000, *range(1, 21)]
    assert shapes == [(20, 20), (1, 4000)]


@pytest.mark.anyio
async def test_what_is_kept_does_not_hold_its_batch_in_memory(scorer) -> None:
    sentences = await scorer.read(["man", "dog", "cat"], str)
    await scorer.embed(sentences)
    for kept in scorer._cache._entries.values():
        assert kept.base is None
        assert kept.shape == (1, fakes.DIM)


@pytest.mark.anyio
async def test_measuring_learns_what_work_costs_here(scorer) -> None:
    assert scorer.seconds_per_token == 1e-3
    sentences = scorer.tokenise(["man", "dog"])
    scorer.measure(sentences, sentences)
    assert 0 < scorer.seconds_per_token < 1e-3
    assert 0 < scorer.seconds_per_pair < 1e-3
