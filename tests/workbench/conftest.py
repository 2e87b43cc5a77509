"""As the tests of the training half: one thread, the same property examples every time, no log left to other tests."""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness import hub as small_hub
from tests.training.conftest import exports_are_kept, root_logger_as_it_was  # noqa: F401 - fixtures


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[small_hub.Hub]:
    """A model hub that huggingface_hub asks, with an empty cache and no token."""
    pytest.importorskip("huggingface_hub", reason="missing here: pip install '.[import]'")
    constants = importlib.import_module("huggingface_hub.constants")
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HF_HUB_CACHE": "cache/hub", "HF_TOKEN_PATH": "cache/token"}.items():
        monkeypatch.setattr(constants, name, str(tmp_path / value))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with small_hub.running() as made:
        monkeypatch.setattr(constants, "ENDPOINT", made.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{made.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        )
        yield made


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Sets what HF_HUB_OFFLINE=1 does in another process."""
    constants = importlib.import_module("huggingface_hub.constants")
    return lambda: monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
