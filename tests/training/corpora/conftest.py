"""A data folder of tiny samples, written for these tests."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from training.corpora import catalogue

Write = Callable[..., Path]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder; readers expect no published counts until a test says so."""
    folder = tmp_path / "data"
    monkeypatch.setenv("SEMBLANCE_DATA", str(folder))
    monkeypatch.setattr(catalogue, "PUBLISHED", {})
    return folder


@pytest.fixture
def write(data: Path) -> Write:
    """``write("sick/SICK_train.txt", ("a", "b"), ("1", "2"))``: rows of cells; gzip when the name ends in .gz."""

    def write_rows(relative: str, *rows: tuple[str, ...]) -> Path:
        path = data / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        content = "".join("\t".join(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(content) if relative.endswith(".gz") else content)
        return path

    return write_rows
