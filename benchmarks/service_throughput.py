"""Throughput of `POST /similarity` as ratios measured in one run: to a bare ASGI echo, and to MiniLM behind FastAPI.

    python benchmarks/service_throughput.py            # about four minutes; needs `wrk` (Debian: apt install wrk)

Every app runs on one uvicorn worker with the same options, on loopback; apps alternate within each round and the
medians over rounds are reported, so that a busy machine hurts all alike. Absolute rates are only indications.
"""

import argparse
import json
import os
import platform
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.sentences import sentences  # noqa: E402 - the repository is not installed as a package

UVICORN = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
BODIES = 500  # distinct requests that a load cycles through
CONNECTIONS = {1: 16, 64: 2}  # by pairs a request; more large requests at once would only queue in the slowest app
LUA = """
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local n = 0
request = function()
  n = n %% #bodies + 1
  return wrk.format("POST", "/similarity", {["Content-Type"] = "application/json"}, bodies[n])
end
"""


@contextmanager
def serving(command: list[str], port: int, environment: dict[str, str]) -> Iterator[int]:
    """Run a server until the block ends; yields its process id once it answers."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment},
        stdout=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise RuntimeError(f"{command} ended with {process.returncode}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1)
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait(20)


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def load(port: int, lua: Path, connections: int, seconds: int) -> dict[str, float]:
    """One wrk run: requests per second and latencies in milliseconds.

    Raises:
        RuntimeError: any answer was not a 2xx.
    """
    out = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "--latency", "-s", str(lua), f"http://127.0.0.1:{port}"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    if "Non-2xx" in out or "Socket errors" in out:
        raise RuntimeError(out)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", out)
    assert rate is not None, out
    measured = {"requests_per_second": float(rate[1])}
    for percent in ("50", "99"):
        found = re.search(rf"{percent}%\s+([\d.]+)(us|ms|s)\b", out)
        assert found is not None, out
        measured[f"p{percent}_ms"] = float(found[1]) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[found[2]]
    return measured


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found is not None
    return int(found[1]) / 1024


def main() -> None:
    """Measure, print a table, and write the dated result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=8, help="of each load")
    parser.add_argument("--no-peer", action="store_true", help="leave MiniLM out")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("this benchmark needs wrk on the PATH (Debian: apt install wrk)")

    def uvicorn(target: str, port: int) -> list[str]:
        return [sys.executable, "-m", "uvicorn", target, "--port", str(port), *UVICORN]

    service = [sys.executable, "-m", "service"]
    apps: dict[str, tuple[list[str], dict[str, str], tuple[int, ...]]] = {}  # command, environment, pairs a request
    ports = {name: free_port() for name in ("echo", "semblance", "semblance, no cache", "minilm")}
    quiet = {"SEMBLANCE_LOG_LEVEL": "warning"}
    apps["echo"] = (uvicorn("benchmarks.echo_app:app", ports["echo"]), {}, (1, 64))
    for name, cache in (("semblance", "100000"), ("semblance, no cache", "0")):
        own = {**quiet, "SEMBLANCE_PORT": str(ports[name]), "SEMBLANCE_CACHE_SIZE": cache}
        apps[name] = (service, own, (1, 64))
    if not options.no_peer:
        apps["minilm"] = (uvicorn("benchmarks.minilm_app:app", ports["minilm"]), {}, (1, 64))

    runs: dict[tuple[str, int], list[dict[str, float]]] = {}
    memory: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as temporary:
        scripts = {pairs: write_load(Path(temporary), pairs) for pairs in (1, 64)}
        for round_ in range(options.rounds):
            for name, (command, environment, sizes) in apps.items():
                with serving(command, ports[name], environment) as pid:
                    for pairs in sizes:
                        load(ports[name], scripts[pairs], CONNECTIONS[pairs], 2)  # warm up
                        measured = load(ports[name], scripts[pairs], CONNECTIONS[pairs], options.seconds)
                        runs.setdefault((name, pairs), []).append(measured)
                        print(f"round {round_ + 1} {name:20} {pairs:3} pairs: {measured}", flush=True)
                    memory[name] = resident_mb(pid)
    write_result(options, runs, memory)


def write_load(folder: Path, pairs: int) -> Path:
    """The bodies of a load and the wrk script that cycles through them."""
    texts = sentences(BODIES * pairs * 2 if pairs == 1 else 100 * pairs * 2, seed=pairs)
    bodies = [
        json.dumps({"pairs": [{"a": texts[i + 2 * k], "b": texts[i + 2 * k + 1]} for k in range(pairs)]})
        for i in range(0, len(texts), 2 * pairs)
    ]
    lines = folder / f"bodies-{pairs}.jsonl"
    lines.write_text("\n".join(bodies) + "\n")
    script = folder / f"load-{pairs}.lua"
    script.write_text(LUA % lines)
    return script


def write_result(
    options: argparse.Namespace, runs: dict[tuple[str, int], list[dict[str, float]]], memory: dict[str, float]
) -> None:
    """Print and write medians and ratios, with what was measured on."""

    def median(key: tuple[str, int], value: str) -> float:
        return statistics.median(run[value] for run in runs[key])

    def ratio(key: tuple[str, int], base: tuple[str, int]) -> float:
        rates = [[run["requests_per_second"] for run in runs[each]] for each in (key, base)]
        return statistics.median(ours / theirs for ours, theirs in zip(*rates, strict=True))

    lines = [
        f"# Throughput of POST /similarity, {datetime.now(UTC).date()}", "",
        f"`python benchmarks/service_throughput.py --rounds {options.rounds} --seconds {options.seconds}`"
        f": one uvicorn worker each, {CONNECTIONS[1]} connections for single pairs and {CONNECTIONS[64]} for 64, "
        f"medians over {options.rounds} alternating rounds of each rate and of each ratio within a round, loopback. "
        f"{os.cpu_count()} cores ({cpu_model()}), Python {platform.python_version()}, "
        + ", ".join(f"{p} {version(p)}" for p in ("fastapi", "uvicorn", "pydantic", "onnxruntime", "numpy")) + ".",
        "",
        "| app | pairs a request | requests/s | pairs/s | p50 ms | p99 ms | RSS MB | requests/s : echo | : MiniLM |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for (name, pairs), _ in runs.items():
        rate = median((name, pairs), "requests_per_second")
        to_echo = ratio((name, pairs), ("echo", pairs))
        peer = ("minilm", pairs)
        to_peer = f"{ratio((name, pairs), peer):.1f}" if peer in runs and name != "echo" else ""
        p50, p99 = (median((name, pairs), f"p{p}_ms") for p in (50, 99))
        lines.append(
            f"| {name} | {pairs} | {rate:.0f} | {rate * pairs:.0f} | {p50:.2f} | {p99:.2f} | {memory[name]:.0f} | "
            f"{to_echo:.2f} | {to_peer} |"
        )
    text = "\n".join(lines) + "\n"
    print(text)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{datetime.now(UTC).date()}-service-throughput.md").write_text(text)


def cpu_model() -> str:
    """The processor's name, where the system tells."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.processor()


if __name__ == "__main__":
    main()
