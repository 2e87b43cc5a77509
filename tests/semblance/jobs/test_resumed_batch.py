"""A batch that is interrupted, killed or refused goes on where it stopped, and its file is as if nothing had been."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from semblance import AsyncClient
from semblance.errors import BatchError, NoAnswer, ServiceFailed
from semblance.jobs.batch import job
from semblance.jobs.batch.job import run_batch
from semblance.jobs.batch.journal import Journal
from semblance.jobs.batch.tasks import DEFAULT_COLUMNS, BatchOptions
from semblance.types import Similarities
from tests.harness.replaced import Replaced
from tests.harness.service import NEEDED_SECONDS
from tests.harness.tables import read, rows, write

ROOT = Path(__file__).parents[3]
OPTIONS = BatchOptions("similarity", DEFAULT_COLUMNS["similarity"])
# Kills itself, as `kill -9` would, after some chunks.
CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from semblance import AsyncClient
from semblance.jobs.batch import job
from semblance.jobs.batch.tasks import BatchOptions
source, output, url, kill = sys.argv[1:]
job.ROWS_AT_ONCE = 16
seen = 0
def watch(done):
    global seen
    seen += 1
    if seen == int(kill):
        os.kill(os.getpid(), signal.SIGKILL)
async def run():
    async with AsyncClient(url) as client:
        options = BatchOptions("similarity", ("a", "b"))
        await job.run_batch(client, Path(source), Path(output), options, watch=watch)
asyncio.run(run())
"""


def skipped_in(output: Path) -> list[dict[str, Any]]:
    return read(output.with_name(f"{output.name}.errors.jsonl").rename(output.with_name("errors.jsonl")))


def killed(source: Path, output: Path, url: str, kill: int) -> int:
    arguments = [sys.executable, "-c", CHILD, source, output, url, kill]
    done = subprocess.run(list(map(str, arguments)), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode


@pytest.mark.parametrize("out", [".jsonl", ".parquet"])
def test_killed_it_goes_on_exactly(url: str, tmp_path: Path, out: str) -> None:
    given = rows(100)
    given[3]["a"] = given[60]["b"] = ""
    source, output = write(tmp_path / "in.jsonl", given), tmp_path / f"out{out}"
    assert killed(source, output, url, 3) == -signal.SIGKILL
    assert not output.exists()
    partial = tmp_path / f"out{out}.partial"
    with partial.open("ab") as file:
        file.write(b'[{"half a ro')
    seen = []
    ask_all(url, source, output, watch=lambda progress: seen.append(progress.rows))
    assert seen[0] == 100  # 48 were answered already
    found = read(output)
    assert [row["id"] for row in found] == [row["id"] for i, row in enumerate(given) if i not in (3, 60)]
    assert [line["row"] for line in skipped_in(output)] == [4, 61]
    ask_all(url, source, tmp_path / f"whole{out}")
    assert found == read(tmp_path / f"whole{out}")
    assert not partial.exists()


def ask_all(
    url: str, source: Path, output: Path, client: Callable[[str], AsyncClient] = AsyncClient, **options: Any
) -> Any:
    async def run() -> Any:
        async with client(url) as opened:
            return await run_batch(opened, source, output, OPTIONS, **options)

    return asyncio.run(run())


class Leaving(AsyncClient):
    """Answers twice, and is gone."""

    asked = 0

    async def similarity(self, pairs: Any, *, model: str | None = None, task: Any = None) -> Similarities:
        type(self).asked += 1
        if type(self).asked > 2:
            raise NoAnswer("gone")
        return await super().similarity(pairs, model=model)


def interrupted(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A batch of 40 rows that has answered 20 when the service goes."""
    monkeypatch.setattr(job, "ROWS_AT_ONCE", 10)
    monkeypatch.setattr(Leaving, "asked", 0)
    source, output = write(tmp_path / "in.jsonl", rows(40)), tmp_path / "out.jsonl"
    with pytest.raises(NoAnswer, match="gone"):
        ask_all(url, source, output, Leaving, concurrency=1)
    return source, output


@pytest.mark.parametrize("step", ["os.replace", "pathlib.Path.unlink", "os.fsync"])
def test_killed_while_it_finishes_it_finishes(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    source, output = write(tmp_path / "in.jsonl", [*rows(10), {"a": "", "b": "x"}]), tmp_path / "out.csv"

    def power_cut(*given: object) -> None:
        if step == "os.fsync":
            os.ftruncate(cast("int", given[0]), 10)  # half of it is on the disk
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(step, power_cut)
        with pytest.raises(KeyboardInterrupt):
            ask_all(url, source, output)
    asked = []
    ask_all(url, source, output, watch=asked.append)
    assert asked == []
    assert len(read(output)) == 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.csv", "out.csv.errors.jsonl"]


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.errors.jsonl"])
@pytest.mark.parametrize("when", ["before it goes on", "while it asks"])
def test_what_it_did_not_write_is_kept_however_often_it_is_asked(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, when: str
) -> None:
    source, output = interrupted(url, tmp_path, monkeypatch)

    def foreign(_: object = None) -> None:
        (tmp_path / name).write_text("precious")

    if when == "before it goes on":
        foreign()
    for watch in (foreign, lambda _: None):
        with pytest.raises(BatchError, match=f"{name} exists; --overwrite replaces it"):
            ask_all(url, source, output, watch=watch)
        assert (tmp_path / name).read_text() == "precious"
    seen: list[int] = []
    ask_all(url, source, output, overwrite=True, watch=lambda progress: seen.append(progress.rows))
    assert seen == ([30, 40] if when == "before it goes on" else [])  # what was answered is not asked again
    assert len(read(output)) == 40


DAMAGED: dict[str, Callable[[bytes, bytes], bytes]] = {
    "a line lost": lambda one, two: two,
    "a line twice": lambda one, two: one + one + two,
    "lines exchanged": lambda one, two: two + one,
    "a score changed": lambda one, two: one.replace(b"0.", b"0.9", 1) + two,
    "a line of another program": lambda one, two: one + b"[5]\n" + two,
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_journal_gives_no_row_another_answer(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    source, output = interrupted(url, tmp_path, monkeypatch)
    partial = tmp_path / "out.jsonl.partial"
    first, *lines = partial.read_bytes().splitlines(keepends=True)
    partial.write_bytes(first + DAMAGED[damage](*lines))
    ask_all(url, source, output)
    ask_all(url, source, tmp_path / "whole.jsonl")
    assert read(output) == read(tmp_path / "whole.jsonl")


@pytest.mark.parametrize("change", ["input", "model", "prefix", "fingerprint"])
def test_another_batch_does_not_go_on_from_there(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    source, output = interrupted(url, tmp_path, monkeypatch)
    options = OPTIONS
    if change == "input":
        with source.open("a") as file:
            file.write("\n")
    elif change == "fingerprint":
        path = tmp_path / "out.jsonl.partial"
        path.write_text(path.read_text().replace('"fingerprints": ["', '"fingerprints": ["0'))
    else:
        options = replace(OPTIONS, **{change: "avg-sick"})
    monkeypatch.setattr(sys.modules[__name__], "OPTIONS", options)
    with pytest.raises(BatchError, match=f"is of another batch .*{change}.* was .*--overwrite begins again"):
        ask_all(url, source, output)
    ask_all(url, source, output, overwrite=True)
    assert len(read(output)) == 40


def test_answers_of_a_model_and_its_successor_are_not_mixed(url: str, tmp_path: Path) -> None:
    source, output = write(tmp_path / "in.jsonl", rows(3)), tmp_path / "out.jsonl"
    with pytest.raises(BatchError, match="the model changed while rows were asked"):
        ask_all(url, source, output, Replaced)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


@pytest.mark.parametrize(
    "content", ["{", "[]\n", "{}\n", pytest.param("[" * 100_000 + "\n", id="deep"), '{"batch": 2}\n']
)
def test_a_file_that_is_not_of_a_batch(url: str, tmp_path: Path, content: str) -> None:
    source, output = write(tmp_path / "in.jsonl", rows(3)), tmp_path / "out.jsonl"
    (tmp_path / "out.jsonl.partial").write_text(content)
    with pytest.raises(BatchError, match=r"not of a batch .*--overwrite begins again"):
        ask_all(url, source, output)


def test_two_at_once_do_not_write_one_file(url: str, tmp_path: Path) -> None:
    source, output = write(tmp_path / "in.jsonl", rows(3)), tmp_path / "out.jsonl"

    held = Journal(tmp_path / "out.jsonl.partial", {})
    with pytest.raises(BatchError, match=r"out\.jsonl\.partial: another run is writing it"):
        ask_all(url, source, output)
    held.close()
    assert ask_all(url, source, output, overwrite=True).rows == 3


def test_interrupted_by_the_keyboard_it_goes_on_from_there(url: str, tmp_path: Path) -> None:
    source, output = write(tmp_path / "in.jsonl", rows(50_000)), tmp_path / "out.jsonl"
    journal = tmp_path / "out.jsonl.partial"
    process = subprocess.Popen(
        [sys.executable, "-m", "semblance", "batch", source, output, "--url", url],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A test run in the background has it ignored, and hands that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + NEEDED_SECONDS
    while not (journal.exists() and journal.stat().st_size > 1000) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=NEEDED_SECONDS)
    assert (process.returncode, out) == (130, "")
    assert err == "semblance: interrupted; the same command goes on from here\n"
    assert journal.stat().st_size > 1000
    assert not output.exists()


class Stumbling(AsyncClient):
    """Fails at requests that hold a certain text, without saying which of its rows that is."""

    def __init__(self, url: str, text: str, code: str) -> None:
        super().__init__(url)
        self._text, self._code = text, code
        self.asked: list[int] = []

    async def similarity(self, pairs: Any, *, model: str | None = None, task: Any = None) -> Similarities:
        self.asked.append(len(pairs))
        if any(a == self._text for a, _ in pairs):
            raise ServiceFailed(500 if self._code == "inference_failed" else 503, self._code, "it failed")
        return await super().similarity(pairs, model=model)


@pytest.mark.parametrize("code", ["inference_failed", "timeout"])
def test_a_row_that_the_service_stumbles_over_is_found(url: str, tmp_path: Path, code: str) -> None:
    given = rows(64)
    given[37]["a"] = "guitar guitar guitar"
    stumbling = Stumbling(url, given[37]["a"], code)
    ask_all(url, write(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl", lambda _: stumbling)
    tries = 2 if code == "timeout" else 0  # a time-out may be the service's
    assert len(stumbling.asked) <= 2 * 6 + 1 + tries  # halves of 64
    assert [row["id"] for row in read(tmp_path / "out.jsonl")] == [row["id"] for row in given if row != given[37]]
    assert skipped_in(tmp_path / "out.jsonl") == [{"row": 38, "column": None, "code": code, "reason": "it failed"}]


@pytest.mark.artifacts
@pytest.mark.parametrize("model", ["minilm-small", "minilm-cross"])
def test_a_file_is_the_same_however_its_texts_share_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """A transformer's last digits hang on how far a text is padded: of these rows most differed, run after run."""
    source = write(tmp_path / "in.csv", rows(12))
    options = BatchOptions("similarity", DEFAULT_COLUMNS["similarity"], model=model)

    def stop(progress: job.BatchProgress) -> None:
        raise NoAnswer("gone")

    async def ask() -> None:
        async with AsyncClient.local(ROOT / "models", whole_files=True) as client:

            async def written(
                name: str, rows_at_once: int, concurrency: int, watch: job.Watch = lambda _: None
            ) -> bytes:
                monkeypatch.setattr(job, "ROWS_AT_ONCE", rows_at_once)
                output = tmp_path / name
                await run_batch(client, source, output, options, concurrency=concurrency, watch=watch)
                return output.read_bytes()

            whole = await written("whole.csv", 12, 1)
            assert await written("parts.csv", 5, 3) == whole
            with pytest.raises(NoAnswer):
                await written("resumed.csv", 2, 2, stop)
            assert not (tmp_path / "resumed.csv").exists()
            assert await written("resumed.csv", 7, 2) == whole

    asyncio.run(ask())
