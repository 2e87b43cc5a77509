"""Progress: lines that say how far the work is, so that a log is never silent for minutes."""

import logging

import pytest

from training import progress
from training.progress import StepProgress, tracked


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> list[float]:
    """A clock that a test turns."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    caplog.set_level(logging.INFO)
    return now


def test_a_line_comes_at_the_start_and_every_half_minute_with_the_time_left(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    shown = StepProgress("run", 1000, done=400)
    for done in range(401, 461):
        clock[0] += 1.0
        shown.update(done)
    shown.note("epoch 1 of 2")
    assert caplog.messages == [
        "run: 400 of 1,000, goes on",
        "run: 430 of 1,000, about 0:09:30 left",  # one a second, those of the earlier process aside
        "run: 460 of 1,000, about 0:09:00 left",
        "run: 460 of 1,000, about 0:09:00 left, epoch 1 of 2",
    ]


def test_items_pass_through(caplog: pytest.LogCaptureFixture) -> None:
    assert list(tracked(iter("abc"), "letters")) == ["a", "b", "c"]
    assert list(tracked("ab", "letters")) == ["a", "b"]
    assert caplog.messages == ["letters: 0, begins", "letters: 0 of 2, begins"]
