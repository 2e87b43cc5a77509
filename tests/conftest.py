"""What holds for all tests."""

import functools
import gc
import inspect
import os
import sys
from collections.abc import Iterator

import httpx
import pytest
from httpx._transports import default

from service.engine import measuring

# Files, or folders, whose tests export graphs, open every published model, or start services and browsers.
SLOW = (
    "tests/semblance/client/test_docs.py",
    "tests/semblance/cli/test_tutorial.py",
    "tests/deploy",
    "tests/dialects",
    "tests/parity",
    "tests/service/routes/test_openapi.py",
    "tests/service/routes/test_properties.py",
    "tests/service/playground",
    "tests/service/process",
    "tests/test_packages.py",
    "tests/training/models",
    "tests/training/families",
    "tests/training/publish",
    "tests/training/train",
    "tests/workbench",
)

# Tests that are compiled, and a project that each of their processes compiles, cost a minute where a shell forbids to
# keep what was compiled.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Read once, when huggingface_hub is imported, by whichever test of the process comes first.
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

# httpx reads all authorities again for each client, which takes a fifth of a second.
default.create_ssl_context = functools.cache(default.create_ssl_context)  # type: ignore[attr-defined]

# httpx waits five seconds for an answer, which a machine that does much else may need for a small one.
_patience = inspect.signature(httpx.get).parameters["timeout"].default
_patience.connect = _patience.read = _patience.write = _patience.pool = 240.0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow files first: `make test` gives files to its workers in this order, and none is left with a long one."""
    slow = {config.rootpath / name for name in SLOW}
    items.sort(key=lambda item: slow.isdisjoint({item.path, *item.path.parents}))


def pytest_collection_finish() -> None:
    """Nothing that was imported or collected goes: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def vectors_are_kept() -> Iterator[None]:
    """As those of a model whose vectors pay to keep: otherwise the speed of the machine would choose for the toys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "LOOKUP_SECONDS", 0.0)
        yield
