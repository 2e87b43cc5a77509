"""One thread and the same property examples every time, whatever the machine is doing; no log left to other tests."""

import logging
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings
from rich.logging import RichHandler

torch.set_num_threads(1)
settings.register_profile("semblance", derandomize=True, deadline=None, database=None)
settings.load_profile("semblance")


@pytest.fixture(autouse=True)
def root_logger_as_it_was() -> Iterator[None]:
    """The command line logs to the console; tests of others, in whatever order, must not find its handler there."""
    root = logging.getLogger()
    level = root.level
    yield
    for handler in [handler for handler in root.handlers if isinstance(handler, RichHandler)]:
        root.removeHandler(handler)
    root.setLevel(level)
