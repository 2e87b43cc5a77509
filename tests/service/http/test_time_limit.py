"""The time limit of a request by itself; the limits of whole requests are tried through a socket elsewhere."""

import asyncio

from service.http.application import TimeLimit
from service.http.connection_tracker import ClientLeft


def test_nothing_is_ended_after_the_block() -> None:
    async def answered() -> str:
        task = asyncio.current_task()
        assert task is not None
        with TimeLimit(60.0) as limit:
            pass
        limit.end(ClientLeft)
        await asyncio.sleep(0)
        assert not task.cancelling()
        return "answered"

    assert asyncio.run(answered()) == "answered"
