"""What keeps the event loop busy shows in a metric."""

import asyncio
import time

import pytest

from service.observe.loop_lag import LoopLag
from service.observe.tallies import Histogram

pytestmark = pytest.mark.anyio
BOUNDS = (0.001, 0.2, 10.0)


async def test_what_keeps_the_loop_busy_is_seen() -> None:
    lags = Histogram(BOUNDS)
    lag = LoopLag(lags)
    lag.start()
    await asyncio.sleep(0.05)
    time.sleep(0.5)  # the fault
    await asyncio.sleep(0.05)
    assert lags.counts[2] >= 1
    assert lags.total > 0.4
    lag.stop()
    looks = sum(lags.counts)
    await asyncio.sleep(0.1)
    assert sum(lags.counts) == looks
