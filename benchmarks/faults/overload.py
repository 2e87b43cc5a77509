"""Overload by half as many callers again as are let in: the excess is refused at once, the rest is answered in time.

For each of three kinds of request (a cheap model with warm caches, a heavy one without caches, large requests) wrk
measures the saturation rate over few connections, and then floods: half as many connections again as are let in ask,
and again after a pause, so that they send up to five times that rate. A few callers beside it time their answers. Every
refusal must have Retry-After.
"""

import asyncio
import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults.load import Ask
from benchmarks.faults.trial import Kind, Trial
from benchmarks.sentences import pairs, sentences
from benchmarks.servers import Service, pinned

CONNECTIONS = 1.5  # of the flood, per request that the service admits; fewer could not overload it
TIMES = 5.0  # the measured rate, that the flood sends where the service is fast enough to refuse it
SATURATION_SECONDS = 10.0  # for measuring what it can take
MAX_IN_FLIGHT, MAX_QUEUE_SECONDS, HEAVY = 1024, 2.0, "pwim-qa"  # of the service; an interaction model
CHEAP = "avg-paraphrase"  # of cheap and large requests
LEAST_ANSWERED = 0.4
LATE_SECONDS = 10  # an answer of the flood that comes later counts as broken
MEMORY_MB = 256.0  # growth that is allowed for a full queue
# Factors on the time of a full queue: the queue's length is based on an estimated rate, its order is not first come,
# first served, and with this many busy connections a request costs a third more than with 64.
SLACK, SLACK_OF_CHEAP = 2.0, 3.0


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


def wrk(
    port: int, path: str, bodies: Sequence[bytes], connections: int, seconds: float, cpus: str, pause: float = 0.0
) -> Measured:
    """Run wrk: each connection sends its next body after an answer, at once or after a pause in seconds.

    wrk takes whole seconds; `cpus` are those that it may use, as `taskset -c` takes them, or empty for any.
    """
    with tempfile.TemporaryDirectory() as folder:
        script, lines = Path(folder) / "script.lua", Path(folder) / "bodies.jsonl"
        script.write_text(LUA)
        lines.write_bytes(b"\n".join(bodies) + b"\n")
        command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", f"{LATE_SECONDS}s"]
        command += ["-s", str(script), f"http://127.0.0.1:{port}{path}", "--", str(lines), f"{1000 * pause:.0f}"]
        return read(subprocess.run([*pinned(cpus), *command], capture_output=True, text=True, check=True).stdout)


@dataclass(frozen=True)
class Flood:
    """A kind of request."""

    name: str
    path: str
    bodies: Sequence[bytes]
    warm: bool  # and so cheap that it is computed in the event loop, without the queue
    connections: int  # of the closed loop: enough to saturate the service, and few enough that it refuses none


def floods() -> list[Flood]:
    """The three kinds; bodies are distinct, so that requests in flight do not share answers."""
    cheap, costly, many = (sentences(count, seed) for seed, count in enumerate((1000, 8000, 60 * 1001), 1))

    def single(texts: Sequence[str], model: str) -> list[bytes]:
        return [json.dumps(pairs(texts[i : i + 2]) | {"model": model}).encode() for i in range(0, len(texts), 2)]

    large = [
        json.dumps({"query": many[i], "candidates": many[i + 1 : i + 1001], "top_k": 10, "model": CHEAP}).encode()
        for i in range(0, len(many), 1001)
    ]
    return [
        Flood("cheap: one pair, averaging, warm", "/similarity", single(cheap, CHEAP), True, 64),
        Flood(f"heavy: one pair, {HEAVY}, cold", "/similarity", single(costly, HEAVY), False, 8),
        Flood("large: /rank of 1,000, averaging, cold", "/rank", large, False, 4),
    ]


async def run(trial: Trial) -> None:
    """Run every kind of overload."""
    for flood in floods():
        if trial.options.only in flood.name:
            own = {} if flood.warm else {"cache_bytes": 0}
            with trial.service(max_in_flight=MAX_IN_FLIGHT, max_queue_seconds=MAX_QUEUE_SECONDS, **own) as served:
                await _overload(trial, served, flood)
                trial.quiet(flood.name, served.complaints())


async def _overload(trial: Trial, served: Service, flood: Flood) -> None:
    def closed(seconds: float, connections: int = flood.connections, pause: float = 0.0) -> Measured:
        return wrk(served.port, flood.path, flood.bodies, connections, seconds, trial.options.client_cpus, pause)

    def says(what: str, kept: bool, found: object) -> None:
        trial.promise(f"{flood.name}: {what}", kept, found)

    if flood.warm:
        await asyncio.to_thread(closed, 3.0)  # sends each body many times
    alone = await asyncio.to_thread(closed, min(SATURATION_SECONDS, trial.options.seconds))
    fine = alone.refused == alone.broken == 0 < alone.requests
    found = f"{alone.requests} requests, {alone.refused} refused, {alone.broken} broken"
    says(f"{flood.connections} connections at once are all answered", fine, found)
    if not alone.requests:
        raise SystemExit(f"{flood.name}: not one answer in time: ask for more --seconds")
    most = alone.rate
    await asyncio.sleep(1)
    before = served.resources()
    connections = round(CONNECTIONS * MAX_IN_FLIGHT)
    async with trial.load(served, [Ask(flood.path, body) for body in flood.bodies]) as load:
        await asyncio.sleep(0.2)
        offered = await asyncio.to_thread(closed, trial.options.seconds, connections, connections / (TIMES * most))
        tally = load.take()
    after = served.resources()
    await asyncio.sleep(1.0)
    metrics = served.metrics()

    answered, refused = tally.statuses[200], tally.statuses[429]
    others = tally.asked - answered - refused
    good = (offered.requests - offered.refused + answered) / offered.seconds  # of the flood and of those beside it
    bound_ms = 1000 * (SLACK_OF_CHEAP * connections / most if flood.warm else SLACK * MAX_QUEUE_SECONDS)
    sent = offered.requests / offered.seconds
    trial.row(
        flood.name, round(most), round(sent), round(sent / most, 2), round(good), answered, refused, others,
        *tally.times, round(bound_ms), round(before.resident_mb), round(after.peak_mb),
    )  # fmt: skip
    trial.values[flood.name] = {"closed_loop_rate": most, "flood": vars(offered), "callers": dict(tally.statuses)}
    says("the flood was refused in part", offered.refused > 0, f"{offered.refused} of {offered.requests}")
    says("only 200 and 429", others == offered.broken == 0, f"{others}, {offered.broken} broken")
    says("each 429 says Retry-After and retry-after-ms", tally.bare == 0, f"{refused - tally.bare} do")
    p99 = tally.times[1]
    says("p99 of the callers' 200s", p99 <= bound_ms, f"{p99:.0f} of {bound_ms:.0f} ms")
    share = f"at least {LEAST_ANSWERED:.0%} of the measured rate is still answered"
    says(share, good >= LEAST_ANSWERED * most, f"{good:.0f}/s, {good / most:.0%}")
    found = f"{before.resident_mb:.0f} MB before, {after.peak_mb:.0f} at most"
    says("memory is bounded", after.peak_mb - before.resident_mb <= MEMORY_MB, found)
    gauges = {name: metrics.total(f"semblance_{name}") for name in ("requests_in_flight", "requests_admitted")}
    # The scrape itself is one in flight.
    says("an empty queue a second later", gauges["requests_in_flight"] <= 1 and not gauges["requests_admitted"], gauges)


KIND = Kind(
    "More callers than are let in",
    f"{CONNECTIONS:g} times as many connections of wrk as requests are let in, which send up to {TIMES:g} times "
    "the rate that few get answered, for {seconds:g} s; latencies are those of the 200s of {callers} callers beside "
    f"it. Bound, in times that a full queue takes: for cheap ones {SLACK_OF_CHEAP:g}, of one on each connection "
    f"(`SEMBLANCE_MAX_IN_FLIGHT`, {MAX_IN_FLIGHT}) at the measured rate; for others {SLACK:g}, of the work let in "
    f"(`SEMBLANCE_MAX_QUEUE_SECONDS`, {MAX_QUEUE_SECONDS:g}). "
    "Service on cores {service_cpus}, load on {client_cpus}; empty or None: any.",
    ("load", "most answered/s", "flood asked/s", "times", "all 200/s", "callers: 200", "429", "others", "p50 ms",
     "p99 ms", "max ms", "bound ms", "MB before", "MB peak"),
    {"seconds": 60.0, "only": "", "client_cpus": "", "callers": 16, "rate": 160.0},
    run,
)  # fmt: skip
