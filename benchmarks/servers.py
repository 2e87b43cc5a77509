"""Servers under measurement: started on the cores they may use, watched, and stopped again."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 120.0
STOP_SECONDS = 20.0
SETTLE_SECONDS = 30.0
TICKS = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pinned(cores: Sequence[int]) -> list[str]:
    """What begins a command that may run on these cores only; nothing, where no core is named."""
    return ["taskset", "-c", ",".join(map(str, cores))] if cores else []


@contextmanager
def serving(
    command: Sequence[str], port: int, environment: Mapping[str, str], cores: Sequence[int] = ()
) -> Iterator[int]:
    """Run a server until the block ends; yields its process id once it answers.

    Raises:
        RuntimeError: it ended, or did not answer in time.
    """
    # What a shell has set for other purposes would change what is measured.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SEMBLANCE_", "MALLOC_"))}
    process = subprocess.Popen(
        [*pinned(cores), *command],
        cwd=ROOT,
        env={**inherited, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment},
        stdout=subprocess.DEVNULL,
    )
    try:
        _await_answer(process, command, port)
        yield process.pid
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:  # one that was still starting may not have listened
        process.kill()
        process.wait()


def _await_answer(process: subprocess.Popen[bytes], command: Sequence[str], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{command} ended with {process.returncode}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1)
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{command} does not answer on port {port}")


@contextmanager
def redis_serving(cores: Sequence[int] = ()) -> Iterator[str]:
    """A redis-server of our own that keeps nothing on disk, until the block ends; yields its URL.

    Raises:
        RuntimeError: there is none on the PATH, or it does not answer.
    """
    if shutil.which("redis-server") is None:
        raise RuntimeError("no redis-server on the PATH (Debian: apt install redis-server)")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        process = subprocess.Popen([*pinned(cores), *command], stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + START_SECONDS
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError("redis-server does not answer") from None
                    time.sleep(0.02)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            _stop(process)


@dataclass(frozen=True)
class Usage:
    """What a server and its child processes have taken so far."""

    resident_mb: float
    peak_mb: float  # the sum of each process's own peak: what they can have held together at most
    cpu_seconds: float


def usage(pid: int) -> Usage:
    """Memory and processor time of a process and all below it."""
    resident = peak = ticks = 0
    for each in _family(pid):
        try:
            status, stat = (Path(f"/proc/{each}/{name}").read_text() for name in ("status", "stat"))
        except OSError:  # it has ended meanwhile
            continue
        resident += _kilobytes(status, "VmRSS")
        peak += _kilobytes(status, "VmHWM")
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))  # utime, stime
    return Usage(resident / 1024, peak / 1024, ticks / TICKS)


def settled(pid: int) -> bool:
    """Wait until a server rests: what a load left behind, its answers unread, would slow the next one.

    Returns:
        False: it still worked after half a minute.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        spent = usage(pid).cpu_seconds
        time.sleep(0.1)
        if usage(pid).cpu_seconds - spent <= 1.5 / TICKS:  # processes without work have some, too
            return True
    return False


def _family(pid: int) -> list[int]:
    found = [pid]
    for each in found:  # grows while it is walked
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:
                continue
    return found


def _kilobytes(status: str, name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+)", status)
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class Counts:
    """What a service has counted so far."""

    lookups: Mapping[str, tuple[float, float]]  # tier of the cache -> hits, misses
    sentences: float  # read
    computed: float  # of these, run through a graph


def counts(metrics: str) -> Counts:
    """What a service's metrics say, over all models."""
    lookups: dict[str, dict[str, float]] = {}
    sentences = computed = 0.0
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            if found := re.fullmatch(r"semblance_cache_(hits|misses)_total", sample.name):
                tier = lookups.setdefault(sample.labels["tier"], {"hits": 0.0, "misses": 0.0})
                tier[found[1]] += sample.value
            elif sample.name == "semblance_sentences_total":
                sentences += sample.value
            elif sample.name == "semblance_batch_rows_sum":  # of heads, too, which do not read sentences
                reads = {"encoder": 1, "pair": 2}.get(sample.labels["graph"].removesuffix(".onnx"), 0)
                computed += reads * sample.value
    return Counts({tier: (of["hits"], of["misses"]) for tier, of in lookups.items()}, sentences, computed)


def counted(port: int) -> Counts:
    """What a service has counted so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return counts(answer.read().decode())


def shares(before: Counts, after: Counts) -> dict[str, float]:
    """What was found between two moments in each tier that was asked; and of all sentences, how many were computed."""
    found = {}
    for tier, (hits, misses) in after.lookups.items():
        earlier = before.lookups.get(tier, (0.0, 0.0))
        if asked := hits + misses - sum(earlier):
            found[tier] = (hits - earlier[0]) / asked
    if sentences := after.sentences - before.sentences:
        found["computed"] = (after.computed - before.computed) / sentences
    return found
