"""The requests that are let in, in the order in which they are served, and whether one more would end in time.

Each has the turn that it would end in if all were served at once, in equal shares: so nobody ends later than by fair
shares (the fair sojourn protocol; Friedman & Henderson, SIGMETRICS 2003), and most end earlier. Small requests overtake
large ones, but a large one does not wait for ever. A request is let in if in this order it, and all behind it, end in
time, and wait no longer than `PATIENCE` times their own work, or `max_queue_seconds` where that is longer.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from math import exp

from service.errors import Overloaded, RequestError, TooSlow
from service.observe.metrics import Timings

PATIENCE = 8.0  # times as long as its own work takes alone, that a request waits at most
# The share of its remaining time in which a new request must end, and in which those must that it overtakes. The room
# between the two is for small requests.
SURE, _STILL_SURE = 0.8, 0.9
_SURELY = 0.5  # of a guess by the length of texts, that they take at least
_NOTHING = 1e-6  # seconds
_LAST_PIECE = 0.05  # expected seconds; batches are made as long (`service/engine/batcher.py`)
SHORT_SECONDS = 0.02  # expected: work that is let in whatever large work waits, and has a thread more
# Of a measured pace:
_LASTS = 5.0  # seconds in which a measurement loses most of its weight
_UNMEASURED = 0.25  # expected seconds that the guess weighs, which holds while little was measured
_CAUTIOUS = 2.0  # the guess for what has a time limit: a machine that others use as much
_SLOWEST = 30.0  # times the expected seconds: what takes longer is a stopped process, not slow work


class Pace:
    """Seconds that pass in a thread for each second of expected work; a moving average over batches.

    Expected times are CPU seconds, measured while nothing else ran. Other processes on the same cores, contention
    between threads and an event loop that hands work over late make real times longer by this factor. A measurement
    that is old says nothing of the machine now: then the guess counts again.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with nothing measured."""
        self._clock = clock
        self._passed = self._expected = 0.0
        self._at = clock()  # of the last measurement

    def ran(self, expected_seconds: float, seconds: float) -> None:
        """Work was done that was expected to take `expected_seconds`; both more than 0."""
        kept = self._kept()
        self._passed = kept * self._passed + min(seconds, _SLOWEST * expected_seconds)
        self._expected = kept * self._expected + expected_seconds
        self._at = self._clock()

    @property
    def recent(self) -> float:
        """The factor, at least 1; that of an idle machine while nothing was measured."""
        return self._with(1.0)

    @property
    def cautious(self) -> float:
        """The factor to promise an end by: while little was measured, that of a machine that others use too."""
        return self._with(_CAUTIOUS)

    def _with(self, guess: float) -> float:
        kept = self._kept()
        passed, expected = kept * self._passed, kept * self._expected
        return max(1.0, (_UNMEASURED * guess + passed) / (_UNMEASURED + expected))

    def _kept(self) -> float:
        return exp((self._at - self._clock()) / _LASTS)


class AdmittedWork:
    """A request that is let in, with the expected seconds of its work; times are those of the pool's clock."""

    __slots__ = ("_declared", "_done", "_expected", "deadline", "failure", "promised_end", "timings", "turn")

    def __init__(
        self, timings: Timings, declared: float, announced: float, *, turn: float, promised_end: float, deadline: float
    ) -> None:
        self.timings = timings
        self.turn = turn  # the lowest is served first
        self.promised_end = promised_end  # when it has ended, at the pace at which it came
        self.deadline = deadline  # when its time is over
        self.failure: RequestError | None = None  # why it cannot end in time any more
        self._declared = declared  # of the stages that have begun
        self._expected = announced
        self._done = 0.0

    @property
    def left(self) -> float:
        """Expected seconds of what is not done."""
        return max(0.0, self._expected - self._done)

    def declare(self, seconds: float, whole: float, *, guessed: bool) -> None:
        """Add the work of a stage that begins.

        Args:
            seconds: expected, of what begins.
            whole: with all later stages of its kind.
            guessed: whether what follows is still only guessed; otherwise its texts are read, and this is most of it.
        """
        self._declared += seconds
        self._expected = max(self._declared, whole, self._expected if guessed else 0.0)

    def did(self, seconds: float) -> None:
        """So many expected seconds of it are done."""
        self._done += seconds


class ConcurrencyLimit:
    """Decides who is let in, by the work of those who are."""

    def __init__(self, pace: Pace, threads: int, *, max_queue_seconds: float, max_seconds: float) -> None:
        """Start with no admitted request.

        Args:
            pace: of the threads.
            threads: that work is shared by.
            max_queue_seconds: how long a request may be expected to wait.
            max_seconds: that a request may take.
        """
        self._pace = pace
        self._threads = threads
        self._max_queue_seconds = max_queue_seconds
        self._max_seconds = max_seconds
        # By equal shares: expected seconds that each has got since nobody waited, and the turns that are not over.
        self._share = 0.0
        self._turns: list[float] = []

    def enter(self, admission: AdmittedWork) -> None:
        """Let a request in."""
        insort(self._turns, admission.turn)

    def did(self, seconds: float) -> None:
        """So many expected seconds of work are done, of whomever."""
        while self._turns:
            needed = (self._turns[0] - self._share) * len(self._turns)
            if needed > seconds:
                self._share += seconds / len(self._turns)
                return
            seconds -= needed
            self._share = self._turns.pop(0)

    def declare(self, admission: AdmittedWork, seconds: float, whole: float, *, guessed: bool) -> None:
        """Another stage of a request begins, which may give it another turn; see `AdmittedWork.declare`."""
        before = admission.left
        admission.declare(seconds, whole, guessed=guessed)
        self._forget(admission.turn)
        admission.turn += admission.left - before
        if admission.turn > self._share:
            insort(self._turns, admission.turn)

    def leave(self, admission: AdmittedWork, *, last: bool) -> None:
        """A request has ended; `last`: nobody else is there."""
        if last:
            self._share, self._turns = 0.0, []
        elif admission.left > _NOTHING:  # what was done before its turn still is of its share
            self._forget(admission.turn)

    def _forget(self, turn: float) -> None:
        place = bisect_left(self._turns, turn)
        if place < len(self._turns) and self._turns[place] == turn:
            del self._turns[place]

    def possible(self, timings: Timings) -> float:
        """Expected seconds of work that would surely end in the time that a request has left, were it alone."""
        return SURE * self._time_left(timings) * self._threads / self._pace.cautious

    def check_possible(self, timings: Timings, seconds: float, *, longest: float = 0.0, guessed: float = 0.0) -> None:
        """Check that a request's work would end in time if it were alone.

        Args:
            timings: of the request.
            seconds: of all its work of the kind that begins, expected.
            longest: of that, what only one thread can do.
            guessed: seconds of all work, by the length of texts that are not read.

        Raises:
            TooSlow: it would not.
        """
        possible = self.possible(timings)
        if max(seconds, longest * self._threads) > possible:
            raise TooSlow(seconds, possible)
        if _SURELY * guessed > possible:
            raise TooSlow(guessed, possible)

    def admission(self, timings: Timings, declared: float, announced: float, now: float) -> AdmittedWork:
        """The place that a request of so many expected seconds has, if it is let in at the time `now`."""
        left, alone = self._time_left(timings), announced * self._pace.recent / self._threads
        promised_end = now + max(PATIENCE * alone, self._max_queue_seconds) + alone
        turn = self._share + announced
        return AdmittedWork(timings, declared, announced, turn=turn, promised_end=promised_end, deadline=now + left)

    def refusal(self, new: AdmittedWork, others: Iterable[AdmittedWork], now: float) -> Overloaded | None:
        """Why a request is not let in beside others; None if it is."""
        pace, cautious = self._pace.recent / self._threads, self._pace.cautious / self._threads
        ahead, behind = 0.0, []
        for other in others:
            if other.turn <= new.turn:
                ahead += other.left
            else:
                behind.append(other)
        if ahead * pace > self._max_queue_seconds:
            message = f"the wait would be more than {self._max_queue_seconds:g} seconds"
            return Overloaded(message, seconds=ahead * pace - self._max_queue_seconds)
        done = ahead + new.left
        if ahead and (late := done * cautious - SURE * (new.deadline - now)) > 0:
            message = f"with what is being done it would take more than {self._max_seconds:g} seconds"
            return self._late(new, message, late, ahead)
        if new.left <= SHORT_SECONDS:
            return None
        for other in sorted(behind, key=lambda each: each.turn):
            done += other.left
            late = max(done * cautious - _STILL_SURE * (other.deadline - now), done * pace - (other.promised_end - now))
            if late > 0:
                message = "others, who came before, would wait too long"
                return self._late(new, message, late, done - new.left)
        return None

    def _late(self, new: AdmittedWork, message: str, late: float, others: float) -> Overloaded:
        """The refusal of a request by which somebody would be late; it may come again when the others' work is done."""
        pace = self._pace.cautious / self._threads
        return Overloaded(message, seconds=min(late, others * pace), share=1.0 - late / (new.left * pace))

    def give_up(self, admitted: Iterable[AdmittedWork]) -> None:
        """Mark those who were let in and cannot end in time any more in their turn: the machine became slower."""
        pace, ahead = self._pace.recent, 0.0
        for each in sorted(admitted, key=lambda each: each.turn):
            timings, time_left = each.timings, self._time_left(each.timings)
            if each.failure is None and not timings.ended and each.left > _NOTHING:
                if self._least(each.left) * pace > time_left:
                    message = "the machine became slower since this was let in, and it would not end in time"
                    each.failure = Overloaded(message, seconds=each.left * pace / self._threads)
                elif each.left > SHORT_SECONDS and self._least(ahead + each.left) * pace > time_left:
                    message = "others are served first, and the machine became slower since this was let in"
                    each.failure = Overloaded(message, seconds=ahead * pace / self._threads)
            if each.failure is None:
                ahead += each.left

    def _least(self, seconds: float) -> float:
        """How long work of so many expected seconds takes all threads; only one of them does the last piece."""
        return max(seconds / self._threads, min(seconds, _LAST_PIECE))

    def seconds_of(self, admitted: Iterable[AdmittedWork]) -> float:
        """Seconds until all of this work is done, at the recent pace."""
        return sum(each.left for each in admitted) * self._pace.recent / self._threads

    def _time_left(self, timings: Timings) -> float:
        return min(self._max_seconds, timings.left())
