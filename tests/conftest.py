"""What holds for all tests."""

import os
from collections.abc import Iterator

import pytest

from service.compute import cache, vectors

# Read once, when huggingface_hub is imported, by whichever test of the process comes first.
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"


@pytest.fixture(autouse=True, scope="session")
def vectors_are_kept() -> Iterator[None]:
    """As those of a model whose vectors pay to keep: otherwise the speed of the machine would choose for the toys."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (cache, vectors):
            patch.setattr(module, "FINDING_SECONDS", 0.0)
        yield
