"""The budget in bytes that all caches of a process share."""

import random
import tracemalloc

import numpy as np
import pytest

from core import text as text_of_contract
from core.tokenizer import Tokenizer
from service.engine.cache import CacheTiers, LruCache, MemoryBudget, VectorCache, score_bytes
from service.engine.vector_codec import VectorSpace
from service.observe.telemetry import Telemetry
from service.scoring.scorer import ScoreEntry
from service.scoring.tokenising import _encoded_bytes
from tests.harness.service import Serve

pytestmark = pytest.mark.anyio
RARE = [chr(code) for code in range(0x20000, 0x2F000)]


@pytest.mark.parametrize("words", [3, 60, 490])
def test_what_is_counted_is_what_is_taken(words: int) -> None:
    """Texts, vectors and scores of rare characters, each of which falls into a bucket."""
    tokenizer = Tokenizer(["a"], buckets=1024)
    rng = random.Random(words)
    vectors = VectorCache(10**9, Telemetry())
    texts, scores = vectors.memory.lru(_encoded_bytes), vectors.memory.lru(score_bytes)
    space = VectorSpace("f" * 64, 256)
    tracemalloc.start()
    for _ in range(100):
        text = "".join(rng.choice(RARE) for _ in range(words))
        sentence = tokenizer.encode(text, 512)
        texts.keep([(text, sentence)])
        vectors.keep(space, {sentence.ids: np.zeros((1, 256), np.float32)}, CacheTiers(True))
        scores.keep([((sentence.ids, (1,)), ScoreEntry(rng.random(), rng.random(), rng.random()))])
    # What the tokenizer remembers of characters is bounded by itself, and no cache of the service.
    others = tracemalloc.Filter(inclusive=False, filename_pattern=text_of_contract.__file__)
    taken = sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([others]).traces)
    tracemalloc.stop()
    assert len(texts) == len(vectors) == 100
    # The ids are the same objects in all three, and counted thrice; of less than what is taken nothing may be counted.
    assert 0.9 * taken < vectors.memory.held < 2.2 * taken


def test_what_was_used_outlives_what_was_not() -> None:
    cache: LruCache[str, int] = MemoryBudget(2).lru(lambda key, value: 1)
    cache.keep([("old", 1), ("younger", 2)])
    cache.get_many(["old"])
    cache.keep([("new", 3)])
    assert cache.get_many(["old", "younger", "new"]) == [1, None, 3]


async def test_texts_that_never_recur_stay_within_the_budget(serve: Serve) -> None:
    """16,000 pairs of 500 rare characters took 605 MB."""
    rng = random.Random(1)
    budget = 300_000
    async with serve(cache_bytes=budget) as client:
        for model in ("avg-paraphrase", "avg-sick", "pair-sick"):
            for _ in range(4):
                a, b = (["".join(rng.choice(RARE) for _ in range(50)) for _ in range(100)] for _ in "ab")
                pairs = [{"a": x, "b": y} for x, y in zip(a, b, strict=True)]
                answer = await client.post("/similarity", json={"pairs": pairs, "model": model})
                assert answer.status_code == 200
                assert 0 < await client.metric("semblance_cache_bytes") <= budget
