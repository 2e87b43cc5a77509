"""One thread and the same property examples every time, whatever the machine is doing; no log left to other tests.

Corpora of tiny samples lie in a data folder.
"""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from tests.harness.console_log import root_logger_as_it_was  # noqa: F401 (used by each test)
from tests.harness.exports import exports_are_kept, faster_exports  # noqa: F401 (used by each test)
from training.data import catalogue

torch.set_num_threads(1)
faster_exports()
settings.register_profile("semblance", derandomize=True, deadline=None, database=None)
settings.load_profile("semblance")


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
