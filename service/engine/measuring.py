"""What the runs of a graph cost, measured when its model is opened, and the cache tiers that pay at that cost."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import thread_time

from service.engine.batcher import Cost
from service.engine.cache import CacheTiers, VectorCache, Vectors
from service.engine.graph import Shape, TextGraph
from service.engine.queue import MIN_THREAD_SECONDS
from service.engine.vector_codec import K
from service.settings import CachePolicy

_MAX_TIMED_RUNS = 3
_LONG_SECONDS = 0.05  # of all runs together, after which there is no further one
_CHEAP_SECONDS = 0.002  # a run of less is timed with a larger batch
_SHORT_TOKENS, _LONG_TOKENS, _SEVERAL, _MANY = 4, 64, 8, 32  # what is measured: tokens of a text, items of a batch
# Models that need less time for a key do not use it with `auto`: measurements are in docs/caching.md.
REMOTE_PAYS_SECONDS = 250e-6
# To find a vector in memory, or to add one, takes some 8 us. With `auto`, a model that computes one in less is not
# cached: averaging models take 2 to 4 us, the next fastest 30.
LOOKUP_SECONDS = 10e-6


def measure(vectors: Vectors[K], keys: Sequence[K], policy: CachePolicy, max_tokens: int) -> None:
    """Measure the cost of a graph's runs, and choose its cache tiers by it; warms the graph up.

    Args:
        vectors: of the graph; they get the cost and the tiers.
        keys: at least one, whose tokens are taken.
        policy: of the service.
        max_tokens: of a text.
    """
    batcher = vectors.batcher
    batcher.cost = measured_cost(batcher.graph, keys, max_tokens)
    alone = batcher.expected_seconds(keys[:1])
    costs = sorted(map(batcher.cost.of_item, batcher.graph.shapes(keys)))
    one_more = costs[len(costs) // 2]  # of the median one, in a batch
    vectors.cheaper_than_lookup = one_more < LOOKUP_SECONDS
    vectors.tiers = choose_tiers(vectors.cache, policy, alone, one_more)


def choose_tiers(
    cache: VectorCache, policy: CachePolicy, first_key_seconds: float, next_key_seconds: float
) -> CacheTiers:
    """The tiers by a policy, and by the seconds that a graph needs for one key alone and for one key more."""
    wanted = policy in ("memory", "redis") or (policy == "auto" and next_key_seconds >= LOOKUP_SECONDS)
    memory = cache.memory.max_bytes > 0 and wanted
    pays = policy == "redis" or (policy == "auto" and first_key_seconds >= REMOTE_PAYS_SECONDS)
    return CacheTiers(memory, cache.remote.name if cache.remote is not None and pays else "")


def measured_cost(graph: TextGraph[K], keys: Sequence[K], max_tokens: int) -> Cost:
    """The cost of a graph's runs, with tokens of these keys, at most `max_tokens` of a text; warms the graph up."""
    key, shape = max(zip(keys, graph.shapes(keys), strict=True), key=lambda pair: sum(pair[1]))

    def seconds(items: int, shape: Shape) -> float:
        return best_time(partial(graph.rows, [graph.resized(key, shape)] * items))

    cost = _cost_by(seconds, len(shape), max_tokens)
    return replace(cost, fixed=max(cost.fixed, MIN_THREAD_SECONDS)) if graph.has_loop else cost


def best_time(work: Callable[[], object]) -> float:
    """Seconds of the fastest of a few runs, the first of which warm up; long work runs once.

    It is the CPU time of this thread, which other processes do not make longer; what they take of the CPUs is
    the factor of `Pace`.
    """
    times: list[float] = []
    while len(times) < _MAX_TIMED_RUNS and sum(times) < _LONG_SECONDS:
        started = thread_time()
        work()
        times.append(thread_time() - started)
    return min(times)


def _cost_by(seconds: Callable[[int, Shape], float], axes: int, max_tokens: int) -> Cost:
    """The cost that timed runs give.

    Args:
        seconds: number of items, their shape -> seconds of a run.
        axes: 1 for sentences, 2 for pairs.
        max_tokens: of a sentence.
    """
    long = min(_LONG_TOKENS, max_tokens)
    short = max(1, min(_SHORT_TOKENS, long // 2))
    extra_tokens = max(1, long - short)
    one_short = seconds(1, (short,) * axes)
    items, several = _SEVERAL, seconds(_SEVERAL, (short,) * axes)
    if several < _CHEAP_SECONDS:  # too fast to time well: a larger batch
        items, several = _MANY, seconds(_MANY, (short,) * axes)
    per_extra_item = max(0.0, several - one_short) / (items - 1)
    one_long = seconds(1, (long,) * axes)
    per_cell = 0.0
    if axes > 1:  # how much more than twice one long sentence two of them take
        per_cell = max(0.0, one_long + one_short - 2 * seconds(1, (long, short))) / extra_tokens**2
    of_length = one_long - one_short
    if one_long < _CHEAP_SECONDS:
        of_length = (seconds(items, (long,) * axes) - several) / items
    if axes > 1:
        of_length -= per_cell * (long**2 - short**2)
    per_token = max(0.0, of_length) / (axes * extra_tokens)
    of_short = per_token * axes * short + (per_cell * short**2 if axes > 1 else 0.0)
    fixed = max(0.0, one_short - max(per_extra_item, of_short))
    return Cost(fixed, per_token, max(0.0, per_extra_item - of_short), per_cell)
