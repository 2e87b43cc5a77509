"""One thread; no log left to other tests."""

import logging
from collections.abc import Iterator

import pytest
import torch
from rich.logging import RichHandler

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def root_logger_as_it_was() -> Iterator[None]:
    """The command line logs to the console; tests of others, in whatever order, must not find its handler there."""
    root = logging.getLogger()
    level = root.level
    yield
    for handler in [handler for handler in root.handlers if isinstance(handler, RichHandler)]:
        root.removeHandler(handler)
    root.setLevel(level)
