"""Who is let in, and in which turn: by caller, in expected seconds.

**Turn.** That of a request is the work after which it would end if callers had equal shares of the threads, a caller's
requests equal shares of his, and nobody else came. The lowest turn is served first (`service/engine/queue.py`). So
small requests come before large ones, who asks for much waits for himself alone, and nobody waits for ever: the fair
sojourn protocol (Friedman & Henderson, SIGMETRICS 2003), by caller. Work of a request that becomes known later takes
the turn of a new request.

**Admission.** A request is let in if it waits no longer than the settings say, unless its caller has nothing else
there, and if it and those behind it end in time in this order. Those behind it do not count where their caller has more
work there than its own: they may be dropped for it. What was let in and cannot end in time any more, since others came
or the machine became slower, is dropped as soon as that is known.
"""

from asyncio import Timeout, get_running_loop, sleep
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import exp, inf
from time import perf_counter

from service.errors import Overloaded, TooSlow
from service.observe.metrics import PHASES, QUEUE

PIECE_SECONDS = 0.05  # of a piece or a batch at most: whoever comes next waits so long for its thread
SHORT_SECONDS = 0.02  # expected: work that is let in whatever large work waits, and has a thread more
# The share of its remaining time in which a new request must end, and in which those must that it overtakes. The room
# between the two is for small requests.
NEW_TIME_SHARE, OVERTAKEN_TIME_SHARE = 0.8, 0.9
_MIN_OF_GUESS = 0.5  # of a guess by the length of texts, that they take at least
_ITEMS_AT_ONCE = 1000  # that one request reads in the event loop before others have their turn
# Of a measured pace:
_DECAY_SECONDS = 5.0  # seconds in which a measurement loses most of its weight
_PRIOR_SECONDS = 0.25  # expected seconds that the guess weighs, which holds while little was measured
_CAUTIOUS_FACTOR = 2.0  # the guess for what is promised: a machine that others use as much
_MAX_FACTOR = 30.0  # times the expected seconds: what takes longer is a stopped process, not slow work


async def give_way(items: int) -> None:
    """Let others have the event loop, where a request has read so many items in it."""
    if items > _ITEMS_AT_ONCE:
        await sleep(0)


@dataclass(slots=True, eq=False)
class RequestContext:
    """What is known of one request; passed from its endpoint down to the engine. Times are those of `perf_counter`.

    Attributes:
        caller: `key:` and the name of the key, else `address:` and the client's; callers share the threads.
        deadline: when its time is over.
        phase_seconds: that it has spent in each of `PHASES`.
        spans: phase, begin and end of each of its intervals; None: nobody traces it.
        share: of its work from here on, that is asked of the engine now; see `part`.
        later: expected seconds of its work that follows what is asked now, and not a share of it; see `before`.
        expected: seconds of all its work, as far as the queue knows; 0 while none needs a thread.
        items: the field of the request whose items it works on now, and their number: an error that this takes too long
            says how many would not.
        ended: whether it is answered or given up.
        timer: ends it when its time is over.
    """

    caller: str = ""
    deadline: float = inf
    phase_seconds: list[float] = field(default_factory=([0.0] * len(PHASES)).copy)
    spans: list[tuple[int, float, float]] | None = None
    share: float = 1.0
    later: float = 0.0
    expected: float = 0.0
    items: tuple[str, int] | None = None
    ended: bool = False
    timer: Timeout | None = None
    _paused_since: float | None = None

    @property
    def left(self) -> float:
        """Seconds until its time is over."""
        return self.deadline - (perf_counter() if self._paused_since is None else self._paused_since)

    def spent(self, phase: int, began: float, ended: float) -> None:
        """Add an interval to the seconds of a phase."""
        self.phase_seconds[phase] += ended - began
        if self.spans is not None:
            self.spans.append((phase, began, ended))

    def spent_in_thread(self, phase: int, since: float, began: float, ended: float) -> float:
        """Add a piece of work in a thread, and the wait before it; pieces that overlap count once.

        Args:
            phase: of the work.
            since: end of the time that is already added.
            began: begin of the work.
            ended: end of the work.

        Returns:
            The new end of the time that is added.
        """
        if began > since:
            self.spent(QUEUE, since, began)
        if ended > since:
            self.spent(phase, max(began, since), ended)
        return max(since, ended)

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """What the block asks of the engine is this share of the work from here on: all of it decides who is let in."""
        whole = self.share
        self.share = whole * share
        try:
            yield
        finally:
            self.share = whole

    @contextmanager
    def before(self, seconds: float) -> Iterator[None]:
        """After what the block asks of the engine so much work is expected: it decides who is let in, and the turn.

        It is a guess: part of it may be in a cache. So nothing is refused as too slow for it.
        """
        later = self.later
        self.later = seconds
        try:
            yield
        finally:
            self.later = later

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The block counts as waiting, and not against the time limit: what it waits for has its own."""
        began = self._paused_since = perf_counter()
        self._set_timer(None)
        try:
            yield
        finally:
            ended = perf_counter()
            self._paused_since = None
            self.deadline += ended - began
            self.spent(QUEUE, began, ended)
            self._set_timer(self.left)

    def _set_timer(self, seconds: float | None) -> None:
        if self.timer is not None and not self.timer.expired():
            self.timer.reschedule(None if seconds is None else get_running_loop().time() + seconds)


class Pace:
    """Seconds that pass in a thread for each second of expected work, at least 1; a moving average over batches.

    Expected times are CPU seconds, measured while nothing else ran. Other processes on the same cores, contention
    between threads and an event loop that hands work over late make real times longer by this factor. A measurement
    that is old says nothing of the machine now: then a guess counts again.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with nothing measured."""
        self._clock = clock
        self._measured_seconds = self._expected_seconds = 0.0
        self._measured_at = clock()  # of the last measurement

    def record(self, expected_seconds: float, seconds: float) -> None:
        """Work was done that was expected to take `expected_seconds`; both more than 0."""
        decay = self._decay()
        self._measured_seconds = decay * self._measured_seconds + min(seconds, _MAX_FACTOR * expected_seconds)
        self._expected_seconds = decay * self._expected_seconds + expected_seconds
        self._measured_at = self._clock()

    @property
    def recent(self) -> float:
        """The factor; while nothing was measured, that of an idle machine."""
        return self._factor(1.0)

    @property
    def cautious(self) -> float:
        """The factor to promise an end by; while nothing was measured, that of a machine that others use too."""
        return self._factor(_CAUTIOUS_FACTOR)

    def _factor(self, guess: float) -> float:
        decay = self._decay()
        measured, expected = decay * self._measured_seconds, decay * self._expected_seconds
        return max(1.0, (_PRIOR_SECONDS * guess + measured) / (_PRIOR_SECONDS + expected))

    def _decay(self) -> float:
        return exp((self._measured_at - self._clock()) / _DECAY_SECONDS)


@dataclass(slots=True, eq=False)
class Admission:
    """A request that is let in.

    Attributes:
        context: of the request.
        left: expected seconds of its work that is not done.
        turn: the lowest is served first.
        failure: why it cannot end in time any more.
    """

    context: RequestContext
    left: float
    turn: float
    failure: Overloaded | None = None


class Admissions:
    """The requests that are let in."""

    def __init__(self, threads: int, max_queue_seconds: float, max_seconds: float, clock: Callable[[], float]) -> None:
        """Start with none; arguments as of `Queue`."""
        self.pace = Pace(clock)
        self._threads = threads
        self._max_queue_seconds = max_queue_seconds
        self._max_seconds = max_seconds
        self._all: dict[RequestContext, Admission] = {}
        self._served = 0.0  # expected seconds that each caller has got by equal shares

    def __len__(self) -> int:
        """The number of requests."""
        return len(self._all)

    @property
    def seconds(self) -> float:
        """Seconds until all their work is done, at the recent pace."""
        return sum(admission.left for admission in self._all.values()) * self.pace.recent / self._threads

    def possible(self, context: RequestContext) -> float:
        """Expected seconds of work that would surely end in the time that a request has left, were it alone."""
        return self._feasible_within(self._time_left(context))

    def too_slow(self, context: RequestContext, seconds: float, surely: float) -> TooSlow | None:
        """Why so much work, and `surely` so much, would not end in time even if it were alone; None if it would."""
        if min(seconds, surely) <= self.possible(context):
            return None
        # What is named must be possible later too, when the pace that was measured is forgotten.
        return TooSlow(seconds, self._feasible_within(self._time_left(context), _CAUTIOUS_FACTOR))

    def refusal(self, context: RequestContext, seconds: float) -> Overloaded | None:
        """Why a request of so many expected seconds would not be let in now; None if it would."""
        return self._refusal(self._admission_of(context, seconds))

    def admit(self, context: RequestContext, seconds: float, total_seconds: float = 0.0) -> Admission:
        """Let a request in at the first stage of its work; at a later stage note what is left.

        Args:
            context: of the request.
            seconds: expected, of this stage.
            total_seconds: expected, of this and all later stages, as guessed by the length of texts; 0: no later one.

        Raises:
            Overloaded: too much is waiting already.
            TooSlow: it would not end in time if it were alone.
        """
        stages = max(seconds, total_seconds) / context.share
        known = self._all.get(context)
        surely = max(seconds / context.share, _MIN_OF_GUESS * stages)
        if (too_slow := self.too_slow(context, stages, surely)) is not None:
            context.expected = max(context.expected, stages)
            late = known is not None and surely <= self._feasible_within(self._max_seconds)
            raise self._late(known) if known is not None and late else too_slow
        whole = max(stages, min(stages + context.later, self.possible(context)))
        context.expected = max(context.expected, whole)
        if known is not None:
            more = whole - known.left
            known.turn = max(known.turn + more, self._turn_of(context, max(0.0, more)))
            known.left = whole
            return known
        admission = self._admission_of(context, whole)
        if (refusal := self._refusal(admission)) is not None:
            raise refusal
        self._all[context] = admission
        return admission

    def leave(self, context: RequestContext) -> None:
        """A request has ended; no effect if it was not let in."""
        self._all.pop(context, None)

    def done(self, parts: Sequence[tuple[Admission, float]], expected: float, seconds: float | None = None) -> None:
        """A batch is done.

        Args:
            parts: of it, each with who asked for it and its expected seconds.
            expected: seconds of all of it.
            seconds: that it took a thread; None: it was done in the event loop, which says nothing of the pace.
        """
        if seconds is not None:
            self.pace.record(expected, seconds)
        self._served += expected / max(1, len({context.caller for context in self._all}))
        for admission, each in parts:
            admission.left = max(0.0, admission.left - each)

    def mark_late(self) -> None:
        """Mark those who cannot end in time any more in their turn."""
        pace, ahead = self.pace.recent, 0.0
        for each in sorted(self._all.values(), key=lambda each: each.turn):
            if each.failure is None and each.left:
                others = ahead if each.left > SHORT_SECONDS else 0.0
                # Only one thread does the last piece.
                needed = max((others + each.left) / self._threads, min(each.left, PIECE_SECONDS)) * pace
                if needed > self._time_left(each.context):
                    each.failure = self._late(each)
                else:
                    ahead += each.left

    def _admission_of(self, context: RequestContext, seconds: float) -> Admission:
        return Admission(context, seconds, self._turn_of(context, seconds))

    def _late(self, known: Admission) -> Overloaded:
        """The refusal of a request that was let in and cannot end in time any more; alone, less of it would."""
        others = sum(each.left for each in self._all.values()) - known.left
        share = self._feasible_within(self._max_seconds, _CAUTIOUS_FACTOR) / known.context.expected
        return Overloaded(
            "this was let in, but takes longer than was expected, and too little time is left",
            seconds=others * self.pace.recent / self._threads,
            share=0.0 if others > 0 else min(1.0, share),
        )

    def _turn_of(self, context: RequestContext, seconds: float) -> float:
        """The turn of so many expected seconds of work that are new now."""
        others = (each for each in self._all.values() if each.context is not context)
        own = (min(each.left, seconds) for each in others if each.context.caller == context.caller)
        return self._served + seconds + sum(own)

    def _refusal(self, new: Admission) -> Overloaded | None:
        recent, pace = self.pace.recent / self._threads, self.pace.cautious / self._threads
        caller = new.context.caller
        work: defaultdict[str, float] = defaultdict(float)
        for each in self._all.values():
            work[each.context.caller] += each.left
        ahead = sum(each.left for each in self._all.values() if each.turn <= new.turn)
        if ahead * recent > self._max_queue_seconds and work[caller]:
            message = f"the wait would be more than {self._max_queue_seconds:g} seconds"
            return Overloaded(message, seconds=ahead * recent - self._max_queue_seconds)
        done = ahead + new.left
        if ahead and (late := done * pace - NEW_TIME_SHARE * self._time_left(new.context)) > 0:
            message = f"with what is being done it would take more than {self._max_seconds:g} seconds"
            return self._late_refusal(new, message, late, ahead)
        if new.left <= SHORT_SECONDS:
            return None
        for each in sorted(self._all.values(), key=lambda each: each.turn):
            if each.turn > new.turn:
                done += each.left
                late = done * pace - OVERTAKEN_TIME_SHARE * self._time_left(each.context)
                if late > 0 and work[each.context.caller] <= work[caller] + new.left:
                    message = "others, who came before, would wait too long"
                    return self._late_refusal(new, message, late, done - new.left)
        return None

    def _late_refusal(self, new: Admission, message: str, late: float, others: float) -> Overloaded:
        """The refusal of a request by which somebody would be late; it may come again when the others' work is done."""
        pace = self.pace.cautious / self._threads
        return Overloaded(message, seconds=min(late, others * pace), share=1.0 - late / (new.left * pace))

    def _feasible_within(self, seconds: float, least_pace: float = 1.0) -> float:
        return NEW_TIME_SHARE * seconds * self._threads / max(self.pace.cautious, least_pace)

    def _time_left(self, context: RequestContext) -> float:
        return min(self._max_seconds, context.left)
