"""A service of models that a test may change; a folder that is gone is not waited for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.models import reload
from tests.harness.service import Client, Serve


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "REPLACING_SECONDS", 0.0)


@pytest.fixture
async def client(serve: Serve, root: Path) -> AsyncIterator[Client]:
    """A service of all models in `root`."""
    async with serve(models_dir=root) as client:
        yield client
