"""Callers whose requests ask for much: told at once, counted as what they take, and in nobody's way."""

import asyncio
import json
import socket
import threading
from collections.abc import Mapping
from functools import partial
from itertools import islice, product
from pathlib import Path

import pytest

from core.scoring import Array, Embeddings, Run
from service.engine.cache import ENTRY_BYTES
from tests.harness import fakes
from tests.harness.process import BODY
from tests.harness.server import Address, post, serving
from tests.harness.service import NEEDED_SECONDS, expect

pytestmark = pytest.mark.anyio
TEXTS = [" ".join(words) for words in islice(product(fakes.WORDS, repeat=3), 400)]


async def answered(address: Address, body: object, path: str, mine: str = "127.0.0.1") -> tuple[int, dict[str, object]]:
    """Status and answer of one request on a connection of its own."""
    incoming, out = await asyncio.open_connection(*address, local_addr=(mine, 0))
    out.write(post(body, path).replace(b"host: a", b"host: a\r\nconnection: close"))
    head, _, content = (await incoming.read()).partition(b"\r\n\r\n")
    out.close()
    return int(head[9:12]), json.loads(content)


async def test_who_asks_for_one_of_many_does_not_wait_for_the_others(models: Path) -> None:
    """What is being computed for a request of many keys is computed once more for one of them."""
    own = {"worker_threads": 2, "cache": "memory", "request_timeout": NEEDED_SECONDS}
    async with serving(models, **own) as (app, address):
        scorer = app.service.registry["avg-sick"].scorer
        expect(scorer, 0.1)
        others, go_on = threading.Event(), threading.Event()

        def held(run: Run, feeds: Mapping[str, Array]) -> Embeddings:
            if len(feeds["lengths"]) > 1:
                others.set()
                assert go_on.wait(NEEDED_SECONDS)
            return run(feeds)

        for graph in scorer.graphs.values():
            graph.run = partial(held, graph.run)
        large = asyncio.create_task(answered(address, {"model": "avg-sick", "sentences": TEXTS[:40]}, "/embed"))
        await asyncio.to_thread(others.wait, NEEDED_SECONDS)
        small = await answered(address, {"model": "avg-sick", "sentences": TEXTS[:1]}, "/embed")
        assert small[0] == 200
        assert not large.done()
        go_on.set()
        assert (await large)[0] == 200


async def test_texts_that_are_sent_back_are_dropped_with_the_size_they_were_kept_with(models: Path) -> None:
    """CPython keeps the UTF-8 of a text that an answer repeats, and `getsizeof` counts it from then on."""
    budget = 20_000
    async with serving(models, cache_bytes=budget) as (app, address):
        kept = app.service.registry["avg-paraphrase"].scorer._lru
        for i in range(10):
            texts = ["caf\u00e9 " * 20 + f"{i} {j}" for j in range(90)]
            body = {"texts": texts, "input_type": "classification", "embedding_types": ["float"]}
            for _ in range(2):  # kept at the second time
                status, answer = await answered(address, body, "/v2/embed")
                assert (status, answer["texts"]) == (200, texts)
            assert 0 < len(kept) <= budget / ENTRY_BYTES


async def test_callers_by_ipv4_of_a_socket_for_both_are_told_apart(models: Path) -> None:
    """As with HOST=:: and several workers."""
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listening:
        address = ("127.0.0.1", listening.getsockname()[1])
        async with serving(models, listening, rate_limit="1/hour"):
            statuses = [
                (await answered(address, BODY, "/similarity", mine))[0]
                for mine in ("127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2")
            ]
    assert statuses == [200, 429, 200, 429]
