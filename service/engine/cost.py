"""What a run of a graph costs, measured when its model is opened."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from time import thread_time

from service.engine.graph import Padding, Shape

_TRIES = 3
_LONG_SECONDS, _CHEAP_SECONDS = 0.05, 0.002
_FEW_TOKENS, _MORE_TOKENS, _SEVERAL, _MANY = 4, 64, 8, 32  # what is measured: tokens of a text, items of a batch


@dataclass(frozen=True)
class Cost:
    """Seconds of a run: `fixed`, and for each item `per_item`, and more for the tokens that it is padded to.

    These are `per_token` for each, of both sentences of a pair, and `per_cell` for each pair of a token of one and a
    token of the other. What a graph computes decides which of these counts: a transformer reads both sentences as
    one row of tokens, others compare each token with each.
    """

    fixed: float
    per_token: float
    per_item: float = 0.0
    per_cell: float = 0.0

    def of_item(self, shape: Shape) -> float:
        """Seconds of one item more of this shape."""
        seconds = self.per_item + self.per_token * sum(shape)
        return seconds + self.per_cell * prod(shape) if self.per_cell else seconds

    def of_batch(self, padding: Padding) -> float:
        """Seconds of one batch."""
        return self.fixed + padding.items * self.of_item(padding.longest)

    @classmethod
    def measured(cls, seconds: Callable[[int, Shape], float], axes: int, max_tokens: int) -> "Cost":
        """The cost that timed runs give.

        Args:
            seconds: number of items, their shape -> seconds of a run.
            axes: 1 for sentences, 2 for pairs.
            max_tokens: of a sentence.
        """
        more = min(_MORE_TOKENS, max_tokens)
        few = max(1, min(_FEW_TOKENS, more // 2))
        longer = max(1, more - few)
        alone = seconds(1, (few,) * axes)
        number, several = _SEVERAL, seconds(_SEVERAL, (few,) * axes)
        if several < _CHEAP_SECONDS:  # more of them tell it more exactly
            number, several = _MANY, seconds(_MANY, (few,) * axes)
        each = max(0.0, several - alone) / (number - 1)
        longest = seconds(1, (more,) * axes)
        per_cell = 0.0
        if axes > 1:  # how much more than twice one long sentence two of them take
            per_cell = max(0.0, longest + alone - 2 * seconds(1, (more, few))) / longer**2
        grown = longest - alone
        if longest < _CHEAP_SECONDS:
            grown = (seconds(number, (more,) * axes) - several) / number
        if axes > 1:
            grown -= per_cell * (more**2 - few**2)
        per_token = max(0.0, grown) / (axes * longer)
        of_few = per_token * axes * few + (per_cell * few**2 if axes > 1 else 0.0)
        return cls(max(0.0, alone - max(each, of_few)), per_token, max(0.0, each - of_few), per_cell)


# Before a graph is measured: large, so that nothing runs in the event loop.
UNKNOWN = Cost(2e-3, 1e-5)


def best_time(work: Callable[[], object]) -> float:
    """Seconds of the fastest of a few runs, the first of which warm up; long work runs once.

    It is the CPU time of this thread, which other processes do not make longer; what they take of the CPUs shows in
    the pace of the pool.
    """
    times: list[float] = []
    while len(times) < _TRIES and sum(times) < _LONG_SECONDS:
        started = thread_time()
        work()
        times.append(thread_time() - started)
    return min(times)
