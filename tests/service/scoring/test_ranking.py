"""A large ranking: the same order as in one part, with turns for other requests in between."""

import asyncio

import pytest

from service.scoring import ranking
from tests.harness.service import Client

pytestmark = pytest.mark.anyio
CANDIDATES = ["a man walks", "a dog runs", "a man runs", "the dog walks", "a man", "a dog", "walks"] * 3


@pytest.mark.parametrize("extra", [{}, {"rerank_model": "pair-sick", "rerank_top": 5}])
async def test_a_ranking_in_parts_is_that_of_one_part(
    client: Client, monkeypatch: pytest.MonkeyPatch, extra: dict[str, object]
) -> None:
    body = {"query": "a man walks a dog", "candidates": CANDIDATES} | extra
    await client.post("/rank", json=body)  # everything is cached from here on
    whole = (await client.post("/rank", json=body)).json()
    monkeypatch.setattr(ranking, "_PART", 4)
    assert (await client.post("/rank", json=body)).json() == whole


async def test_others_have_turns_between_parts(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_PART", 2)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    body = {"query": "a man", "candidates": CANDIDATES}
    await client.post("/rank", json=body)
    task = asyncio.create_task(others())
    await client.post("/rank", json=body)
    task.cancel()
    assert turns >= len(CANDIDATES) // 2
