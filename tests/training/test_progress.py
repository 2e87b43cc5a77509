"""Progress off a terminal: lines that say how far the work is, so that a log is never silent for minutes."""

import logging

import pytest
from rich.console import Console

from training import progress
from training.progress import Progress, as_text, tracked


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that a test turns."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def console(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> None:
    made = Console(force_terminal=terminal, quiet=True)
    monkeypatch.setattr(progress, "get_console", lambda: made)


def test_a_line_comes_at_the_start_and_every_half_minute_with_the_time_left(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    console(monkeypatch, terminal=False)
    with caplog.at_level(logging.INFO), Progress("run", 1000, done=400) as shown:
        for done in range(401, 521):
            clock[0] += 1.0
            shown.update(done)
    assert caplog.messages == [
        "run: 400 of 1,000, goes on",
        "run: 430 of 1,000, about 10 min left",  # one a second, those of the earlier process aside
        "run: 460 of 1,000, about 9 min left",
        "run: 490 of 1,000, about 8 min left",
        "run: 520 of 1,000, about 8 min left",
    ]


def test_a_note_is_a_line_at_once(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    console(monkeypatch, terminal=False)
    with caplog.at_level(logging.INFO), Progress("run", 4) as shown:
        clock[0] = 1.0
        shown.update(2)
        shown.note("epoch 1 of 2 loss 0.5")
        shown.update(4)
        shown.note("epoch 2 of 2 loss 0.4")
    assert caplog.messages == [
        "run: 0 of 4, begins",
        "run: 2 of 4, about 1 s left, epoch 1 of 2 loss 0.5",
        "run: 4 of 4, epoch 2 of 2 loss 0.4",
    ]


def test_a_terminal_gets_a_bar_and_no_lines(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    console(monkeypatch, terminal=True)
    with caplog.at_level(logging.INFO), Progress("run", 4) as shown:
        clock[0] += 100.0
        shown.update(1)
        shown.note("epoch 1")
    assert caplog.messages == []


def test_items_pass_through(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    console(monkeypatch, terminal=False)
    with caplog.at_level(logging.INFO):
        assert list(tracked(iter("abc"), "letters")) == ["a", "b", "c"]
        assert list(tracked("ab", "letters")) == ["a", "b"]
    assert caplog.messages == ["letters: 0, begins", "letters: 0 of 2, begins"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(40.4, "40 s"), (600, "10 min"), (11_100, "3 h 05 min"), (3_590, "1 h 00 min")]
)
def test_seconds_are_told_as_people_do(seconds: float, text: str) -> None:
    assert as_text(seconds) == text
