"""Closed-loop load by wrk: connections that each ask again once they are answered; it gives the most a server can.

Its latencies are those of a server that is never left idle; `benchmarks.open_loop` has those under a given load.
"""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.servers import pinned

LUA = """
local requests, n = {}, 0
local at = 0
init = function(args)
  at = tonumber(args[2])
  for line in io.lines(args[1]) do
    n = n + 1
    requests[n] = wrk.format("POST", wrk.path, {["Content-Type"] = "application/json"}, line)
  end
end
request = function()
  at = at % n + 1
  return requests[at]
end
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '{"requests": %d, "microseconds": %d, "refused": %d, "broken": %d, "p50": %d, "p95": %d, "p99": %d, "max": %d}\\n',
    summary.requests, summary.duration, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50), latency:percentile(95), latency:percentile(99), latency.max))
end
"""


@dataclass(frozen=True)
class Measured:
    """One run of wrk."""

    requests: int  # answered, refusals included
    seconds: float
    refused: int  # of these, with a status of 400 and above
    broken: int  # connections refused or cut off, and answers that came too late
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float

    @property
    def rate(self) -> float:
        """Requests a second that were answered as asked."""
        return (self.requests - self.refused) / self.seconds


def read(output: str) -> Measured:
    """What our script made wrk print last.

    Raises:
        ValueError: it did not.
    """
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if not lines:
        raise ValueError(f"wrk printed no result: {output!r}")
    found = json.loads(lines[-1])
    return Measured(
        requests=found["requests"],
        seconds=found["microseconds"] / 1e6,
        refused=found["refused"],
        broken=found["broken"],
        p50_ms=found["p50"] / 1e3,
        p95_ms=found["p95"] / 1e3,
        p99_ms=found["p99"] / 1e3,
        max_ms=found["max"] / 1e3,
    )


def load(
    port: int, path: str, bodies: Path, first: int, connections: int, seconds: float, cores: Sequence[int] = ()
) -> Measured:
    """Ask in a closed loop.

    Args:
        port: where the server is, on loopback.
        path: what is asked.
        bodies: request bodies, one a line; sent in turn, then from the first again.
        first: the place of the body to begin with, from 0.
        connections: each has one request under way at any time.
        seconds: how long; wrk counts whole seconds.
        cores: that wrk may use; any, without one.
    """
    script = bodies.with_suffix(".lua")
    script.write_text(LUA)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "30s", "-s", str(script)]
    command = [*pinned(cores), *command, f"http://127.0.0.1:{port}{path}", "--", str(bodies), str(first)]
    return read(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
