"""Closed-loop load by wrk: each connection sends its next request after an answer, at once or after a pause."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.servers import pinned

LUA = """
local requests, n = {}, 0
local at, pause = 0, 0
delay = function()
  return pause
end
init = function(args)
  pause = tonumber(args[2])
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
    '{"requests": %d, "seconds": %.6f, "refused": %d, "broken": %d}\\n',
    summary.requests, summary.duration / 1e6, e.status, e.connect + e.read + e.write + e.timeout))
end
"""


@dataclass(frozen=True)
class Measured:
    """One run of wrk."""

    requests: int  # answered, refusals included
    seconds: float
    refused: int  # of these, with a status of 400 and above
    broken: int  # connections refused or cut off, and answers that came too late

    @property
    def rate(self) -> float:
        """Requests a second that were answered as asked."""
        return (self.requests - self.refused) / self.seconds


def read(output: str) -> Measured:
    """The result in wrk's output: the last line, printed by our script.

    Raises:
        ValueError: there is none.
    """
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if not lines:
        raise ValueError(f"wrk printed no result: {output!r}")
    return Measured(**json.loads(lines[-1]))


def load(
    port: int, path: str, bodies: Path, connections: int, seconds: float, cpus: str | None = None, pause: float = 0.0
) -> Measured:
    """Run wrk.

    Args:
        port: of the server, on loopback.
        path: of the requests, which are POSTs.
        bodies: request bodies, one a line; sent in turn, then from the first again.
        connections: each has one request in flight at any time.
        seconds: duration; wrk takes whole seconds.
        cpus: that wrk may use, as `taskset -c` takes them; None: any.
        pause: seconds of a connection before each request.
    """
    script = bodies.with_suffix(".lua")
    script.write_text(LUA)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "30s", "-s", str(script)]
    command += [f"http://127.0.0.1:{port}{path}", "--", str(bodies), f"{1000 * pause:.0f}"]
    return read(subprocess.run([*pinned(cpus), *command], capture_output=True, text=True, check=True).stdout)
