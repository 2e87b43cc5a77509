"""Values of a load test by server, load and round; medians of values, and of ratios within a round."""

import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

CLOSED = "closed"


class Key(NamedTuple):
    """One load on one server."""

    app: str
    route: str  # similarity, rank
    items: int  # pairs, or candidates, a request
    cache: str  # warm, cold or redis; empty: no cache
    connections: int
    load: str = CLOSED  # or the share of saturation that was sent in the open loop

    @property
    def words(self) -> str:
        """As text."""
        what = f"{self.items:,} candidate" if self.route == "rank" else f"{self.items:,} pair"
        plural = "s" if self.items != 1 else ""
        cache = f", {self.cache}" if self.cache else ""
        connections = f"{self.connections} connection{'s' if self.connections != 1 else ''}"
        return f"{self.app}: {what}{plural}{cache}, {connections}, {self.load}"


class Measurements:
    """Values of every round, by key."""

    def __init__(self) -> None:
        self._found: dict[Key, dict[int, Mapping[str, Any]]] = {}

    def add(self, round_: int, key: Key, values: Mapping[str, Any]) -> None:
        """Add the values of a round."""
        self._found.setdefault(key, {})[round_] = values

    def __contains__(self, key: Key) -> bool:
        return key in self._found

    def __iter__(self) -> Iterator[Key]:
        return iter(self._found)

    def rounds(self, key: Key) -> Mapping[int, Mapping[str, Any]]:
        """The values of each round."""
        return self._found[key]

    def median(self, key: Key, name: str) -> float | None:
        """The median over the rounds that have this value."""
        values = [found[name] for found in self._found.get(key, {}).values() if found.get(name) is not None]
        return statistics.median(values) if values else None

    def ratio(self, key: Key, base: Key) -> float | None:
        """The median over the rounds of the ratio of their rates."""
        return self._ratio(key, base, lambda values: values["rate"])

    def ratio_for_cpu(self, key: Key, base: Key) -> float | None:
        """Likewise of requests per CPU second, so that a server that is not saturated does not count as slow."""
        return self._ratio(key, base, lambda values: values["rate"] / values["busy_cores"])

    def _ratio(self, key: Key, base: Key, of: Callable[[Mapping[str, Any]], float]) -> float | None:
        ours, theirs = self._found.get(key, {}), self._found.get(base, {})
        ratios = [of(ours[i]) / of(theirs[i]) for i in ours.keys() & theirs.keys() if theirs[i]["rate"]]
        return statistics.median(ratios) if ratios else None

    def quotient(self, key: Key, name: str, by: str) -> float | None:
        """The median over the rounds of the ratio of two values of one load."""
        found = self._found.get(key, {}).values()
        ratios = [values[name] / values[by] for values in found if values.get(name) is not None and values.get(by)]
        return statistics.median(ratios) if ratios else None

    def shares(self, key: Key) -> dict[str, float]:
        """The median hit rate of each cache tier, and the median share computed."""
        rounds = [values.get("found", {}) for values in self._found[key].values()]
        names = dict.fromkeys(name for found in rounds for name in found)
        return {name: statistics.median(found[name] for found in rounds if name in found) for name in names}
