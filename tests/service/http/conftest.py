"""A process of the service for all tests here that ask nothing special of it, and the event loop that it runs on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.process import running


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(scope="session")
def url(models: Path) -> Iterator[str]:
    with running(models) as (_, address):
        yield address
