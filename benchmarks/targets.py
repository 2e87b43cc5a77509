"""Targets of the service under load, and verdicts on them."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.measurements import CLOSED, Key, Measurements

ECHO, PEER, FLOOR = "echo", "peer", "floor"  # the last: `benchmarks/floor.py`
DEFAULT = "avg-paraphrase"
BOTH_CORES = f"{DEFAULT}, both cores"
MINILM = "minilm"  # the peer's own weights
MINILM_BOTH_CORES = f"{MINILM}, both cores"
REDIS = f"{DEFAULT}, Redis"
TO_PEER, TO_FLOOR, RANK_MS, REDIS_US = 200.0, 2.2, 12.0, 150.0
TO_ECHO = {"warm": 0.6, "cold": 0.25}  # of one pair
INTERACTION = {"pwim-sick": 600.0, "pwim-qa": 900.0, "mgim-sick": 3000.0}  # pairs/s of 64 new ones
SAME_WEIGHTS = {64: 2.0, 1: 1.0}  # pairs a request -> times the peer's rate with the same weights


@dataclass(frozen=True)
class Verdict:
    """A target and its measurement."""

    target: str
    measured: str
    reached: bool | None  # None: not measured

    @property
    def words(self) -> str:
        """The verdict as text."""
        return {True: "reached", False: "**missed**", None: "not measured"}[self.reached]


def verdicts(found: Measurements) -> list[Verdict]:
    """All targets, measured or not."""
    return [
        *_echo(found),
        _floor(found),
        *_peer(found),
        *_same_weights(found),
        _rank(found),
        _redis(found),
        *_interaction(found),
        _tail(found),
    ]


def _verdict(
    target: str, value: float | None, form: Callable[[float], str], reached: Callable[[float], bool]
) -> Verdict:
    if value is None:
        return Verdict(target, "-", None)
    return Verdict(target, form(value), reached(value))


def _echo(found: Measurements) -> list[Verdict]:
    verdicts = []
    for cache, least in TO_ECHO.items():
        # By CPU time: the load's core cannot always keep the echo's core busy.
        ratio = found.ratio_for_cpu(Key(DEFAULT, "similarity", 1, cache, 16), Key(ECHO, "similarity", 1, "", 16))
        target = f"one pair, {cache}: requests/s of CPU at least {least:.0%} of the echo's"
        reached = lambda value, least=least: value >= least  # noqa: E731
        verdicts.append(_verdict(target, ratio, lambda value: f"{value:.1%}", reached))
    return verdicts


def _floor(found: Measurements) -> Verdict:
    floor, ours = Key(FLOOR, "similarity", 64, "", 1), Key(DEFAULT, "similarity", 64, "cold", 2)
    ratio = found.ratio_for_cpu(floor, ours)
    target = f"64 pairs, averaging, cold: CPU at most {TO_FLOOR:g} times the floor's"
    return _verdict(target, ratio, lambda value: f"{value:.2f} times", lambda value: value <= TO_FLOOR)


def best_of(found: Measurements, app: str, items: int, cache: str) -> Key | None:
    """The load at whose number of connections a server's rate is highest."""
    keys = [key for key in found if key[:4] == (app, "similarity", items, cache) and key.load == CLOSED]
    return max(keys, key=lambda key: found.median(key, "rate") or 0.0, default=None)


def _peer(found: Measurements) -> list[Verdict]:
    verdicts = []
    base = best_of(found, PEER, 64, "")
    for cache in ("warm", "cold"):
        ours = best_of(found, BOTH_CORES, 64, cache)
        ratio = found.ratio(ours, base) if ours is not None and base is not None else None
        target = f"64 pairs, averaging, {cache}: pairs/s at least {TO_PEER:.0f} times the peer's on the same cores"
        verdicts.append(_verdict(target, ratio, lambda value: f"{value:,.0f} times", lambda value: value >= TO_PEER))
    return verdicts


def _same_weights(found: Measurements) -> list[Verdict]:
    """MiniLM served by us and by the peer, nothing cached: many pairs in a request, and one pair at a time."""
    verdicts = []
    for items, least in SAME_WEIGHTS.items():
        ours, base = (best_of(found, MINILM_BOTH_CORES, items, "cold"), best_of(found, PEER, items, ""))
        ratio = found.ratio(ours, base) if ours is not None and base is not None else None
        pairs = f"{items} pair{'s' if items > 1 else ''}"
        target = f"{pairs}, MiniLM, cold: pairs/s at least {least:g} times the peer's with the same weights and cores"
        reached = lambda value, least=least: value >= least  # noqa: E731
        verdicts.append(_verdict(target, ratio, lambda value: f"{value:.2f} times", reached))
    return verdicts


def _tail(found: Measurements) -> Verdict:
    """At half of saturation, in the open loop."""
    load = "open, 50%"
    ours, echo = (
        found.quotient(Key(app, "similarity", 1, cache, 64, load), "p99", "p50")
        for app, cache in ((DEFAULT, "warm"), (ECHO, ""))
    )
    target = "p99 over p50 at half of saturation, one pair, warm: no more than the echo's"
    if ours is None or echo is None:
        return Verdict(target, "-", None)
    return Verdict(target, f"{ours:.1f}, the echo's {echo:.1f}", ours <= echo)


def _cpu(found: Measurements, key: Key) -> float | None:
    """CPU seconds of a request."""
    return found.quotient(key, "busy_cores", "rate")


def _rank(found: Measurements) -> Verdict:
    used = _cpu(found, Key(DEFAULT, "rank", 1000, "cold", 1))
    target = f"/rank of 1,000 candidates, cold: CPU at most {RANK_MS:.0f} ms"
    value = None if used is None else used * 1e3
    return _verdict(target, value, lambda value: f"{value:.1f} ms", lambda value: value <= RANK_MS)


def _redis(found: Measurements) -> Verdict:
    used = _cpu(found, Key(REDIS, "similarity", 1, "redis", 16))
    target = f"one pair whose vectors are in Redis: CPU at most {REDIS_US:.0f} us"
    value = None if used is None else used * 1e6
    return _verdict(target, value, lambda value: f"{value:.0f} us", lambda value: value <= REDIS_US)


def _interaction(found: Measurements) -> list[Verdict]:
    verdicts = []
    for model, least in INTERACTION.items():
        rate = found.median(Key(model, "similarity", 64, "cold", 2), "rate")
        reached = lambda value, least=least: value >= least  # noqa: E731
        target = f"{model}, 64 pairs, cold: at least {least:,.0f} pairs/s"
        value = None if rate is None else rate * 64
        verdicts.append(_verdict(target, value, lambda value: f"{value:,.0f}", reached))
    return verdicts
