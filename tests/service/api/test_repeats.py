"""Bodies that come again are answered whole from memory, and counted as if they had been scored."""

from itertools import pairwise

import pytest

from service.api.repeats import MOST_BYTES
from tests.service.conftest import Client, Serve

pytestmark = pytest.mark.anyio
BODY = {"pairs": [{"a": "a man plays the guitar", "b": "a zebra"}, {"a": "a dog", "b": "the dog"}], "model": "avg-sick"}
COUNTED = ("sentences", "words", "words_unknown", "sentences_truncated")


async def counts(client: Client) -> list[float]:
    """What answers count."""
    found = [await client.metric(f"semblance_{name}_total", model="avg-sick") for name in COUNTED]
    found += [await client.metric("semblance_cache_hits_total", tier="scores")]
    found += [await client.metric("semblance_cache_misses_total", tier="scores")]
    found += [await client.metric("semblance_score_count", model="avg-sick")]
    found += [await client.metric("semblance_score_sum", model="avg-sick")]
    return found


def watch(client: Client) -> list[int]:
    """The number of texts that the model is asked to read, each time."""
    scorer = client.app.service.registry["avg-sick"].scorer
    asked: list[int] = []
    read = scorer.read

    async def watched(texts, field_of, share=1.0):
        asked.append(len(texts))
        return await read(texts, field_of, share)

    scorer.read = watched
    return asked


async def test_a_body_is_scored_twice_at_most_and_counted_each_time(serve: Serve) -> None:
    async with serve() as client:
        asked = watch(client)
        answers, figures = [], []
        for _ in range(4):
            response = await client.post("/similarity", json=BODY)
            answers.append((response.status_code, response.content))
            assert "server-timing" in response.headers
            figures.append(await counts(client))
        assert asked == [4, 4]  # new; then from the cache of scores; then whole
        assert answers == [answers[0]] * 4
        grown = [[b - a for a, b in zip(*two, strict=True)] for two in pairwise(figures)]
        assert grown == [pytest.approx(grown[0])] * 3
        assert grown[0][0] == 4
        assert grown[0][4:6] == [2, 0]


@pytest.mark.parametrize(
    ("body", "settings"),
    [
        (BODY | {"tell_cached": True}, {}),
        (BODY, {"cache": "off"}),
        (BODY, {"cache_bytes": 0}),
        (BODY | {"pairs": [{"a": "a man " * MOST_BYTES, "b": "a dog"}]}, {}),
    ],
)
async def test_what_depends_on_the_cache_or_is_large_is_scored_each_time(serve: Serve, body, settings) -> None:
    async with serve(**settings) as client:
        asked = watch(client)
        for _ in range(4):
            assert (await client.post("/similarity", json=body)).status_code == 200
        assert len(asked) == 4


async def test_errors_are_not_kept(serve: Serve) -> None:
    async with serve() as client:
        for _ in range(3):
            await client.post("/similarity", json=BODY)
            response = await client.post("/similarity", json=BODY | {"model": "none"})
            assert response.status_code == 404
