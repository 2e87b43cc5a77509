"""What holds for all tests."""

from collections.abc import Iterator

import pytest

from service.compute import cache, vectors


@pytest.fixture(autouse=True, scope="session")
def vectors_are_kept() -> Iterator[None]:
    """As those of a model whose vectors pay to keep: otherwise the speed of the machine would choose for the toys."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (cache, vectors):
            patch.setattr(module, "FINDING_SECONDS", 0.0)
        yield
