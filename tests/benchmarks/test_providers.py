"""benchmarks/providers.py times the sessions that the service opens, and compares their outputs."""

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from benchmarks import providers
from service.compute.session import Session
from service.settings import Settings

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.mark.artifacts
@pytest.mark.parametrize(("model", "first"), [("avg-sick", "input_ids"), ("pwim-sick", "input_ids_a")])
def test_a_model_runs_on_the_cpu(model: str, first: str) -> None:
    sessions = providers.opened(MODELS / model, Settings(models_dir=MODELS, providers="cpu"))
    assert list(sessions) == ["cpu"]
    feeds = providers.feeds_of(MODELS / model, 3)
    assert feeds[first].shape[0] == 3
    found = providers.measure(sessions, feeds, rounds=1, seconds=0)
    assert found["cpu"] > 0
    assert found["apart"] == 0


def test_outputs_are_compared_with_the_cpu() -> None:
    sessions = {"cpu": lambda _: np.array([[1.0, 2.0]]), "cuda": lambda _: np.array([[1.0, 2.5]])}
    found = providers.measure(cast(dict[str, Session], sessions), {}, rounds=2, seconds=0)
    assert found["apart"] == 0.5
    assert found["cuda"] >= 0
