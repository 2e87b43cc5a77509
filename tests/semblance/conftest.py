"""A service of tiny models: in this process for most tests, on a loopback port for those about the wire."""

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from semblance.__main__ import main
from tests.harness.commands import Ran, Run
from tests.harness.process import ROOT, running
from tests.service.conftest import anyio_backend, models, no_settings_from_outside  # noqa: F401 - fixtures


@pytest.fixture(scope="session")
def url(models: Path) -> Iterator[str]:  # noqa: F811
    """A real service on a port."""
    with running(models, cache="memory") as (_, address):
        yield address


@pytest.fixture(scope="session")
def published() -> Iterator[str]:
    """A service of the published models, as `make serve` runs it."""
    with running(ROOT / "models") as (_, address):
        yield address


@pytest.fixture
def printed_by(published: str) -> Callable[[str], str]:
    """What a page's example in Python prints, beside the service of the published models."""

    def run(code: str) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code.replace("http://127.0.0.1:8000", published), "snippet", "exec"), {})
        return out.getvalue()

    return run


@pytest.fixture
def semblance(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`semblance("score", "a man", "a dog")` as the shell would run it, 80 characters wide and without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["semblance", *map(str, arguments)])
        try:
            code = main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Ran(code, *capsys.readouterr())

    return run
