"""Answers to small bodies that are asked again, byte for byte: neither parsed nor scored a second time.

An answer is kept once all scores in it came from the cache of scores, so bodies that are asked once cost nothing more.
It counts in the metrics as if its texts had been read and its scores found. It ends with its model: after a reload the
same body is scored by the model that is served then.
"""

from collections.abc import Sequence
from sys import getsizeof
from typing import NamedTuple
from weakref import ref

from contract.manifest import ScoreTask
from service.compute.lru import ENTRY_BYTES, MemoryBudget
from service.models.registry import Registry
from service.scoring.reading import Counted
from service.scoring.scorer import Scorer

MOST_BYTES = 2048  # of a body: some pairs; larger ones are rarely the same
_OBJECT_BYTES = 500  # of an entry's tuples and numbers


class _Noted(NamedTuple):
    """How an answer came to be."""

    asked: str  # name of the model
    scorer: "ref[Scorer]"
    task: ScoreTask
    counted: Counted
    scores: Sequence[float]


class _Kept(NamedTuple):
    noted: _Noted
    model: str  # as answers name it
    payload: bytes


class Repeats:
    """Kept answers, within the budget of all caches."""

    def __init__(self, registry: Registry, memory: MemoryBudget) -> None:
        """Start empty."""
        self._registry = registry
        self._answers = memory.lru(_bytes)
        self._noted: _Noted | None = None

    def find(self, body: bytes) -> tuple[str, bytes] | None:
        """The answer to this body, with the name of its model, if it is kept and its model still served; counted."""
        kept = self._answers.get(body)
        if kept is None:
            return None
        noted, scorer = kept.noted, kept.noted.scorer()
        model = self._registry.get(noted.asked)
        if scorer is None or model is None or model.scorer is not scorer:
            self._answers.discard(body)
            return None
        scorer.count(noted.task, noted.counted, noted.scores)
        return kept.model, kept.payload

    def note(self, asked: str, scorer: Scorer, task: ScoreTask, counted: Counted, scores: Sequence[float]) -> None:
        """Say that the answer that is being built can be kept; `keep` follows without an await in between."""
        self._noted = _Noted(asked, ref(scorer), task, counted, scores)

    def keep(self, body: bytes, model: str, payload: bytes) -> None:
        """Keep this answer if it was noted."""
        noted, self._noted = self._noted, None
        if noted is not None and len(body) <= MOST_BYTES:
            self._answers.keep([(body, _Kept(noted, model, payload))])


def _bytes(body: bytes, kept: _Kept) -> int:
    return ENTRY_BYTES + _OBJECT_BYTES + getsizeof(body) + getsizeof(kept.payload)
