"""One thread and the same property examples every time, whatever the machine is doing; no log left to other tests.

Exports that are not the subject of a test are made once; corpora of tiny samples lie in a data folder.
"""

import gzip
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from rich.logging import RichHandler

from tests.harness.exports import keep_registry, remembering
from training.corpora import catalogue
from training.publishing import export

torch.set_num_threads(1)
keep_registry()
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


@pytest.fixture
def exports_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An export takes seconds, and the same weights give the same bytes (which `test_export.py` makes sure of)."""
    monkeypatch.setattr(export, "_export", remembering(export._export))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder; readers expect no published counts until a test says so."""
    folder = tmp_path / "data"
    monkeypatch.setenv("SEMBLANCE_DATA", str(folder))
    monkeypatch.setattr(catalogue, "PUBLISHED", {})
    return folder


@pytest.fixture
def write(data: Path) -> Callable[..., Path]:
    """``write("sick/SICK_train.txt", ("a", "b"), ("1", "2"))``: rows of cells; gzip when the name ends in .gz."""

    def write_rows(relative: str, *rows: tuple[str, ...]) -> Path:
        path = data / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        content = "".join("\t".join(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(content) if relative.endswith(".gz") else content)
        return path

    return write_rows
