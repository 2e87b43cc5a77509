"""What several look for at once is looked for once, for as long as anybody waits."""

import asyncio

import pytest

from service.compute.flights import Flights

pytestmark = pytest.mark.anyio


class Search:
    """Finds the square of what it is asked for, when it is let go."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.finished = 0
        self.go = asyncio.Event()

    async def __call__(self, keys):
        self.asked.append(list(keys))
        await self.go.wait()
        if 13 in keys:
            raise ValueError("13")
        self.finished += 1
        return {key: key * key for key in keys}


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_when_the_last_one_leaves_it_is_given_up_and_can_be_sent_again() -> None:
    flights, search = Flights(), Search()
    asked = [asyncio.create_task(flights.get([1], search)) for _ in range(2)]
    await turn()
    for each in asked:
        each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    new = asyncio.create_task(flights.get([1], search))  # before the one given up has noticed
    await turn()
    search.go.set()
    assert await new == {1: 1}
    assert search.asked == [[1], [1]]
    assert search.finished == 1
    assert len(flights) == 0


async def test_all_who_wait_hear_of_a_failure_and_the_next_tries_again() -> None:
    flights, search = Flights(), Search()
    asked = [asyncio.create_task(flights.get(keys, search)) for keys in ([13, 1], [1], [2])]
    await turn()
    search.go.set()
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(each, ValueError) for each in outcomes] == [True, True, False]
    assert await flights.get([1], search) == {1: 1}
    assert len(flights) == 0
