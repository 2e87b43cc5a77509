"""The loop through SIGKILL, and in two processes: the same bits as if never interrupted, the same weights as in one.

The runs are those of `loop_worker.py`: dropout, sparse Adam, random negatives, a decaying rate, clipping, penalties.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

WORKER = Path(__file__).parent / "loop_worker.py"
ROOT = Path(__file__).parents[3]
STEPS = 5 * 3


class Runner:
    """The worker process, and the runs it is told to do."""

    def __init__(self, errors: Path) -> None:
        self.errors = errors
        environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": "lo", "NO_COLOR": "1"}
        with errors.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", str(WORKER)],
                env={**os.environ, **environment},
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,
            )

    def codes(self, *runs: list[str]) -> list[int]:
        """Do runs side by side; their exit codes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(runs), file=self.process.stdin, flush=True)
        codes: list[int] = json.loads(self.process.stdout.readline())
        return codes

    def finish(self, *runs: list[str]) -> None:
        """Do runs side by side, all of which must end well."""
        assert self.codes(*runs) == [0] * len(runs), self.errors.read_text()

    def die(self, *run: str) -> None:
        """Do a run that kills itself."""
        assert self.codes(list(run)) == [-signal.SIGKILL], self.errors.read_text()


def ranks(folder: Path, *options: str, kill: str = "") -> list[list[str]]:
    """One run in two processes; `kill` tells the second when to die."""
    folder.with_suffix(".store").unlink(missing_ok=True)
    both = [[str(folder), *options, "--world", "2", "--rank", str(rank)] for rank in (0, 1)]
    return [both[0], [*both[1], "--die", kill] if kill else both[1]]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    runner = Runner(tmp_path_factory.mktemp("worker") / "errors.txt")
    try:
        yield runner
        runner.process.communicate(timeout=240)
        assert runner.process.returncode == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(runner.process.pid, signal.SIGKILL)  # of a run that hangs, nothing stays behind


def final(folder: Path, rank: int = 0) -> dict[str, Any]:
    loaded: dict[str, Any] = torch.load(folder / f"final-{rank}.pt", weights_only=True)
    return loaded


def assert_same_bits(found: Any, expected: Any, where: str = "") -> None:
    """Nested state, tensors included, is equal to the last bit."""
    assert type(found) is type(expected), where
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key in expected:
            assert_same_bits(found[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), where
        for i, (f, e) in enumerate(zip(found, expected, strict=True)):
            assert_same_bits(f, e, f"{where}[{i}]")
    elif isinstance(expected, torch.Tensor):
        assert torch.equal(found, expected), where
    else:
        assert found == expected, where


def assert_same_run(found: Path, expected: Path) -> None:
    assert_same_bits(final(found)["best"], final(expected)["best"], "best")
    states = [torch.load(folder / "checkpoint.pt", weights_only=True) for folder in (found, expected)]
    for state in states:
        state["progress"]["seconds"] = 0.0
    assert_same_bits(*states)
    assert (found / "metrics.jsonl").read_bytes() == (expected / "metrics.jsonl").read_bytes()
    results = [json.loads((folder / "result.json").read_text()) for folder in (found, expected)]
    assert {**results[0], "seconds": 0} == {**results[1], "seconds": 0}
    assert not list(found.glob("*.partial"))


@pytest.fixture(scope="module")
def uninterrupted(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loop") / "uninterrupted"
    runner.finish([str(folder)])
    return folder


def test_a_run_has_something_to_lose(uninterrupted: Path) -> None:
    content = final(uninterrupted)
    assert content["best_epoch"] == 3
    assert len(content["batches"]) == STEPS
    log = [json.loads(line) for line in (uninterrupted / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in log] == [0, 1, 2, 3]


def test_killed_again_and_again_it_ends_with_the_same_bits(runner: Runner, uninterrupted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    deaths = [
        "fsync:1",  # writing the first best weights: nothing is there yet
        "loss:4",  # inside the first epoch
        "log:1",  # the first epoch is logged, but no checkpoint knows
        "best:1",  # it is logged and kept, but no checkpoint knows
        "fsync:5",  # inside the second epoch, a checkpoint half in place
        "loss:2",
    ]
    for death in deaths:
        runner.die(str(folder), "--die", death)
    runner.finish([str(folder)])
    batches = final(folder)["batches"]
    assert 0 < len(batches) < STEPS - 5  # the last process began after the first epoch, inside an epoch
    assert batches == final(uninterrupted)["batches"][-len(batches) :]
    assert_same_run(folder, uninterrupted)


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_a_kill_in_any_batch_costs_no_bit(runner: Runner, uninterrupted: Path, tmp_path: Path, step: int) -> None:
    folder = tmp_path / "killed"
    runner.die(str(folder), "--die", f"loss:{step}")
    runner.finish([str(folder)])
    assert len(final(folder)["batches"]) == STEPS - step + 1
    assert_same_run(folder, uninterrupted)


def test_work_since_the_last_checkpoint_is_done_again(runner: Runner, uninterrupted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    runner.die(str(folder), "--checkpoint-seconds", "1000", "--die", "loss:8")
    runner.finish([str(folder)])
    assert final(folder)["batches"] == final(uninterrupted)["batches"][5:]  # only the end of an epoch was saved
    assert_same_run(folder, uninterrupted)


@pytest.mark.parametrize("optimiser", ["adam", "adagrad"])
def test_two_processes_train_what_one_does(runner: Runner, tmp_path: Path, optimiser: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    options = ("--objective", "supervised", "--optimiser", optimiser)
    runner.finish([str(one), *options], *ranks(two, *options))
    alone, first, second = final(one), final(two), final(two, rank=1)
    # Each batch of one process is dealt out to the two.
    for whole, a, b in zip(alone["batches"], first["batches"], second["batches"], strict=True):
        assert (a, b) == (whole[0::2], whole[1::2])
    assert_same_bits(first["best"], second["best"])
    for name, expected in alone["best"].items():
        assert torch.allclose(first["best"][name], expected, atol=1e-6), name
    logs = [[json.loads(x) for x in (f / "metrics.jsonl").read_text().splitlines()] for f in (one, two)]
    assert [line["selection"] for line in logs[1]] == pytest.approx([line["selection"] for line in logs[0]], abs=1e-5)


def test_rank_0_decides_when_to_save_and_what_to_keep(runner: Runner, tmp_path: Path) -> None:
    # The second process has another clock and another opinion; on its own it would save, keep and stop elsewhere.
    alike, unlike = tmp_path / "alike", tmp_path / "unlike"
    options = ("--objective", "supervised", "--checkpoint-seconds", "0")
    runner.finish(*ranks(alike, *options))
    first, second = ranks(unlike, *options)
    runner.finish(first, [*second, "--checkpoint-seconds", "1000", "--optimist"])
    assert_same_run(unlike, alike)
    assert final(unlike, rank=1)["best_epoch"] == final(alike)["best_epoch"]
    assert_same_bits(final(unlike, rank=1)["best"], final(alike)["best"])


def test_two_processes_drop_out_different_values(runner: Runner, tmp_path: Path) -> None:
    runner.finish(*ranks(tmp_path / "two", "--objective", "supervised-dropout"))
    saved = torch.load(tmp_path / "two" / "checkpoint.pt", weights_only=True)
    (other,) = saved["other_ranks"]
    assert not torch.equal(saved["torch_rng"], other["torch_rng"])


def test_two_processes_resume_at_one_batch_and_end_with_the_same_bits(runner: Runner, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    options = ("--objective", "supervised-dropout")
    runner.finish(*ranks(whole, *options))
    survivor, victim = runner.codes(*ranks(killed, *options, kill="loss:8"))
    assert victim == -signal.SIGKILL
    assert survivor == 1  # its partner is gone
    runner.finish(*ranks(killed, *options))
    assert_same_run(killed, whole)
    assert_same_bits(final(killed, rank=1)["best"], final(whole)["best"])
    batches = [final(killed, rank)["batches"] for rank in (0, 1)]
    assert len(batches[0]) == len(batches[1]) == STEPS - 7
    assert not set(batches[0][0]) & set(batches[1][0])
