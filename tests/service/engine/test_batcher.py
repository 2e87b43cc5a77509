"""Several requests' work through one graph: who shares a batch, who waits, who is spared."""

import asyncio
import threading
from itertools import chain
from math import inf, prod

import numpy as np
import pytest

from service.engine.admission import PIECE_SECONDS, RequestContext
from service.engine.batcher import Batcher, Cost, padded
from service.engine.graph import BatchBudget, Padding
from service.engine.measuring import measured_cost
from service.engine.queue import INLINE_SECONDS, Queue
from tests.harness.service import NEEDED_SECONDS

pytestmark = pytest.mark.anyio
LARGE = Cost(1.0, 0.0)  # any batch goes to a thread, and company is free


class Graph:
    """Doubles numbers; remembers what came together, and where it ran. A key is as long as it is large."""

    budget = BatchBudget(1000, 100)
    reproducible = False
    has_loop = False

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.threads: set[int] = set()
        self.open = threading.Event()
        self.open.set()

    def shapes(self, keys):
        return [(key,) for key in keys]

    def rows(self, keys, longest=()):
        assert self.open.wait(NEEDED_SECONDS)
        self.batches.append(list(keys))
        self.threads.add(threading.get_ident())
        if 13 in keys:
            raise ValueError("13")
        return np.array([[2.0 * key] for key in keys], np.float32)


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def queue():
    queue = Queue(threads=1)
    yield queue
    queue.close()


@pytest.fixture
def batcher(graph: Graph, queue: Queue) -> Batcher[int]:
    batcher = Batcher(queue, graph)
    batcher.cost = LARGE
    return batcher


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("seconds", "here"), [(INLINE_SECONDS, True), (INLINE_SECONDS * 1.01, False)])
async def test_requests_of_one_turn_share_a_batch(batcher, graph, seconds: float, here: bool) -> None:
    batcher.cost = Cost(seconds, 0.0)
    answers = await asyncio.gather(
        batcher.compute(RequestContext(), [1, 2]),
        batcher.compute(RequestContext(), [3]),
        batcher.compute(RequestContext(), [4]),
    )
    assert [rows.ravel().tolist() for rows in answers] == [[2, 4], [6], [8]]
    assert graph.batches == [[1, 2, 3, 4]]
    assert (graph.threads == {threading.get_ident()}) is here


async def test_company_that_would_pad_more_than_it_saves_is_left_for_later(batcher, graph) -> None:
    batcher.cost = Cost(fixed=0.001, per_token=0.0001)  # a run of its own costs as much as ten tokens of padding
    await asyncio.gather(
        batcher.compute(RequestContext(), [10]),
        batcher.compute(RequestContext(), [40]),
        batcher.compute(RequestContext(), [12]),
        batcher.compute(RequestContext(), [45]),
    )
    assert sorted(graph.batches) == [[10, 12], [40, 45]]  # the small one in the event loop, the large one beside it


async def test_where_answers_are_reproducible_only_keys_of_one_length_share_a_batch(batcher, graph) -> None:
    """Of one request and of several, however cheap company is."""
    graph.reproducible = True
    asked = [[4, 9, 4, 9, 2], [9, 4], [2]]
    answers = await asyncio.gather(*(batcher.compute(RequestContext(), each) for each in asked))
    assert [rows.ravel().tolist() for rows in answers] == [[2.0 * key for key in keys] for keys in asked]
    assert all(len(set(batch)) == 1 for batch in graph.batches)
    assert sorted(key for batch in graph.batches for key in batch) == sorted(chain.from_iterable(asked))
    assert max(map(len, graph.batches)) > 2  # those of several requests


async def test_a_large_request_lets_others_come_in_between(batcher, graph, monkeypatch) -> None:
    now = 0.0  # all come at once, however long this machine pauses between them
    monkeypatch.setattr("service.engine.queue.perf_counter", lambda: now)
    graph.open.clear()
    large = asyncio.create_task(batcher.compute(RequestContext(), list(range(400, 410))))  # pieces of two
    small = [asyncio.create_task(batcher.compute(RequestContext(), [900 + i])) for i in range(2)]
    await turn()
    now = 1.0
    graph.open.set()
    await asyncio.gather(large, *small)
    assert {900, 901} < {key for batch in graph.batches[:3] for key in batch}
    assert len(graph.batches) == 7


async def test_a_request_that_is_too_large_for_the_time_leads_no_batch(batcher, graph, queue, monkeypatch) -> None:
    monkeypatch.setattr(queue, "_schedule_dispatch", lambda: None)  # batches are taken here
    batcher.cost = Cost(fixed=0.0, per_token=1.0)  # each request is alone in its batch
    asking = [asyncio.create_task(batcher.compute(RequestContext(), [key])) for key in (900, 20, 10)]
    await turn()
    for most, taken in ((5.0, []), (15.0, [10]), (15.0, []), (50.0, [20]), (50.0, []), (inf, [900])):
        found = queue._next_batch(most)
        assert (found is not None) is bool(taken)
        if found is not None:
            queue._deliver(*found, 0.0, 1.0, found[0].run())
            assert graph.batches[-1] == taken
    assert queue._next_batch(inf) is None
    await asyncio.gather(*asking)


async def test_a_failed_batch_answers_everybody_and_fails_only_the_one_to_blame(batcher, graph) -> None:
    keys = ([1], [13], [2])
    answers = await asyncio.gather(*(batcher.compute(RequestContext(), each) for each in keys), return_exceptions=True)
    assert answers[0].tolist() == [[2]]
    assert isinstance(answers[1], ValueError)
    assert answers[2].tolist() == [[4]]
    assert graph.batches[0] == [1, 13, 2]
    assert (await batcher.compute(RequestContext(), [5])).tolist() == [[10]]


COSTS = [
    Cost(fixed=0.004, per_token=0.0002),
    Cost(fixed=0.003, per_token=0.0003, per_item=0.0004),  # as a transformer
    Cost(fixed=1e-5, per_token=1e-7, per_item=1e-6),  # as an average of vectors
    Cost(fixed=0.006, per_token=0.0005, per_item=0.002),  # as a transformer of pairs: by the sum of both lengths
    Cost(fixed=0.0003, per_token=5e-5, per_item=7e-5, per_cell=5e-6),  # by their product too
]


def seconds_of(cost: Cost, items: int, shape: tuple[int, ...]) -> float:
    """By the lengths of both texts together, and by each token of one with each of the other."""
    return cost.fixed + items * (cost.per_item + cost.per_token * sum(shape) + cost.per_cell * prod(shape))


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("max_tokens", [2, 10, 512])
async def test_what_a_run_costs_is_measured(queue, cost: Cost, axes: int, max_tokens: int, monkeypatch) -> None:
    """What each item, each token and each pair of tokens costs in this graph, not what it would in another."""
    if axes == 1 and cost.per_cell:
        return
    now = 0.0
    longest = 0

    class Timed:
        budget = BatchBudget(10_000, 100)
        has_loop = False

        def shapes(self, keys):
            return list(keys)

        def resized(self, key, shape):
            return shape

        def rows(self, keys):
            nonlocal now, longest
            now += seconds_of(cost, len(keys), padded(keys).longest)
            longest = max(longest, *map(max, keys))
            return keys

    monkeypatch.setattr("service.engine.measuring.thread_time", lambda: now)
    batcher = Batcher(queue, Timed())
    batcher.cost = measured_cost(batcher.graph, [(5, 7)[:axes], (3, 3)[:axes]], max_tokens)
    assert longest <= max_tokens
    for items, shape in ((1, (1, 1)), (1, (20, 30)), (8, (16, 16)), (1, (128, 128)), (1, (1, 128))):
        found = batcher.cost.of_batch(Padding(shape[:axes], items))
        assert found == pytest.approx(seconds_of(cost, items, shape[:axes]), rel=1e-6)


async def test_a_batch_takes_no_longer_than_others_may_wait(queue, graph) -> None:
    """However many fit by their size; one that takes longer by itself is alone."""
    batcher: Batcher[int] = Batcher(queue, graph)
    batcher.cost = Cost(fixed=0.01, per_token=PIECE_SECONDS / 100)
    keys = [25] * 8 + [90, 90, 200]
    rows = await batcher.compute(RequestContext(), keys)
    assert rows[:, 0].tolist() == [2.0 * key for key in keys]
    assert sorted(map(sorted, graph.batches)) == [[25] * 4, [25] * 4, [90], [90], [200]]
    batcher.cost = Cost(fixed=10 * PIECE_SECONDS, per_token=0.0)  # whatever it holds: company is free
    graph.batches.clear()
    await batcher.compute(RequestContext(), keys[:8])
    assert len(graph.batches) == 1
