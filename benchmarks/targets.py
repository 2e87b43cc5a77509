"""Targets of the service under load, and verdicts on them."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.measurements import CLOSED, Key, Measurements

ECHO, PEER = "echo", "peer"
DEFAULT = "avg-paraphrase"
BOTH_CORES = f"{DEFAULT}, both cores"
MINILM = "minilm"  # the peer's own weights
MINILM_BOTH_CORES = f"{MINILM}, both cores"
TO_ECHO, TO_PEER, TAIL, RANK_MS = 0.5, 200.0, 5.0, 20.0
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
    return [*_floor(found), *_peer(found), *_same_weights(found), *_tails(found), _rank(found)]


def _verdict(
    target: str, value: float | None, form: Callable[[float], str], reached: Callable[[float], bool]
) -> Verdict:
    if value is None:
        return Verdict(target, "-", None)
    return Verdict(target, form(value), reached(value))


def _floor(found: Measurements) -> list[Verdict]:
    verdicts = []
    for connections in (1, 16, 64):
        # By CPU time: the load's core cannot always keep the echo's core busy.
        ratio = found.ratio_for_cpu(
            Key(DEFAULT, "similarity", 1, "warm", connections), Key(ECHO, "similarity", 1, "", connections)
        )
        target = f"single pair, warm: requests/s of CPU at least {TO_ECHO:.0%} of the echo's ({connections} at a time)"
        verdicts.append(_verdict(target, ratio, lambda value: f"{value:.1%}", lambda value: value >= TO_ECHO))
    return verdicts


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


def _tails(found: Measurements) -> list[Verdict]:
    """The worst tail of the default model at 64 connections, for each kind of load."""
    verdicts = []
    keys = [key for key in found if key.app == DEFAULT and key.connections == 64]
    for load in dict.fromkeys(key.load for key in keys) or [CLOSED]:
        tails = {key: found.quotient(key, "p99", "p50") for key in keys if key.load == load}
        worst = max(tails, key=lambda key: tails[key] or 0.0, default=None)
        value = tails[worst] if worst is not None else None
        words = f" ({worst.items:,} pair{'s' if worst.items > 1 else ''}, {worst.cache})" if worst is not None else ""
        target = f"p99 at most {TAIL:.0f} times p50 at 64 connections, load {load}"
        verdicts.append(
            _verdict(target, value, lambda v, words=words: f"{v:.1f} at worst{words}", lambda value: value <= TAIL)  # type: ignore[misc]
        )
    return verdicts


def _rank(found: Measurements) -> Verdict:
    key = Key(DEFAULT, "rank", 1000, "cold", 1)
    p50, p99 = found.median(key, "p50"), found.median(key, "p99")
    target = f"/rank of 1,000 candidates, cold: under {RANK_MS:.0f} ms"
    return _verdict(target, p50, lambda value: f"p50 {value:.1f} ms, p99 {p99:.1f} ms", lambda value: value < RANK_MS)
