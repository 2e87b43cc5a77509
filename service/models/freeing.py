"""Frees the memory of models that a reload has replaced."""

import asyncio
import ctypes
import gc
import logging
import weakref
from collections.abc import Sequence

log = logging.getLogger(__name__)


async def collect_late(scorers: Sequence[weakref.ref[object]], seconds: float) -> None:
    """After `seconds`, collect garbage if a scorer is still in memory, as part of a reference cycle."""
    await asyncio.sleep(seconds)
    if any(scorer() is not None for scorer in scorers):
        log.warning("replaced models are still in memory: a full garbage collection delays all requests")
        frozen = gc.get_freeze_count()
        gc.unfreeze()
        gc.collect()
        if frozen:
            gc.freeze()


def trim_allocator() -> None:
    """Return free memory to the system; glibc's allocator keeps most of it otherwise."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
