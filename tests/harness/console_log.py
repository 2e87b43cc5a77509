"""The root logger, which command lines of training and papers set up."""

import logging
from collections.abc import Iterator

import pytest
from rich.logging import RichHandler


@pytest.fixture(autouse=True)
def root_logger_as_it_was() -> Iterator[None]:
    """The command line logs to the console; tests of others, in whatever order, must not find its handler there."""
    root = logging.getLogger()
    level = root.level
    yield
    for handler in [handler for handler in root.handlers if isinstance(handler, RichHandler)]:
        root.removeHandler(handler)
    root.setLevel(level)
