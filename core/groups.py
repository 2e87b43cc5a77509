"""Groups of texts from scores of pairs, in which no two texts differ in a fact.

Average linkage (Sokal and Michener 1958) over the pairs that have a score: the two groups whose pairs score highest on
average become one, and again, down to a least mean. So a chain of near texts, each a little further from the first,
does not become one group.
"""

import heapq
from collections.abc import Mapping, Sequence

from core.facts import Difference, Facts, difference, facts_of

Pair = tuple[int, int]  # two texts, the earlier one first
_EQUAL = 1e-12  # below that two means differ by rounding only


class ContradictoryAnswers(ValueError):
    """A person's answers say of two texts that they are the same, directly or through others, and that they are not."""

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self.pair = pair


class KeptApart:
    """Which texts differ in a fact; facts that are equal are compared once."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Read the facts of N texts."""
        kinds: dict[object, int] = {}
        self._facts: list[Facts] = []
        self.kind_of: list[int] = []  # of each text, a number for its facts
        for each in map(facts_of, texts):
            kind = kinds.setdefault((frozenset(each.said), each.negated, each.affirmed), len(kinds))
            if kind == len(self._facts):
                self._facts.append(each)
            self.kind_of.append(kind)
        self._known: dict[tuple[int, int], Difference | None] = {}

    def between(self, pair: Pair) -> Difference | None:
        """A fact in which two texts differ; None: there is none."""
        return self.of_kinds(self.kind_of[pair[0]], self.kind_of[pair[1]])

    def of_kinds(self, a: int, b: int) -> Difference | None:
        """The same, by the numbers of their facts."""
        if a == b:
            return None
        if (a, b) not in self._known:
            self._known[a, b] = difference(self._facts[a], self._facts[b])
        return self._known[a, b]


def group(
    size: int, scores: Mapping[Pair, float], least: float, kept_apart: KeptApart | None, answers: Mapping[Pair, bool]
) -> list[int]:
    """For each of `size` texts the first one of its group.

    Args:
        size: number of texts.
        scores: of pairs; others have none, and do not count.
        least: mean score of the pairs of two groups that become one.
        kept_apart: by their facts; None: no text is.
        answers: of pairs, whether they are the same, whatever their score and facts.

    Raises:
        ContradictoryAnswers: answers join two texts that another answer parts.
    """
    groups = _Groups(size, kept_apart, [pair for pair, same in answers.items() if not same])
    for pair, same in answers.items():
        if same:
            groups.join(groups.of(pair[0]), groups.of(pair[1]))
    for a, b in (pair for pair, same in answers.items() if not same):
        if groups.of(a) == groups.of(b):
            raise ContradictoryAnswers((a, b))
    for pair, score in scores.items():
        if pair not in answers:
            groups.link(groups.of(pair[0]), groups.of(pair[1]), score, 1)
    waiting = [(-total / count, a, b) for a in range(size) for b, (total, count) in groups.links[a].items() if a < b]
    heapq.heapify(waiting)
    while waiting:
        mean, a, b = heapq.heappop(waiting)
        if -mean < least:
            break
        link = groups.links[a].get(b)
        if link is None or abs(link[0] / link[1] + mean) > _EQUAL:
            continue  # one of the two has grown since
        if not groups.may_join(a, b):
            groups.unlink(a, b)
            continue
        groups.join(a, b)
        own = groups.of(a)
        for other, (total, count) in groups.links[own].items():
            heapq.heappush(waiting, (-total / count, min(own, other), max(own, other)))
    return groups.first()


class _Groups:
    """Groups by the number of one of their texts, and the sums of scores between them."""

    def __init__(self, size: int, kept_apart: KeptApart | None, parted: Sequence[Pair]) -> None:
        self._of = list(range(size))
        self._members = [[text] for text in range(size)]
        self._kept_apart = kept_apart
        self._kinds = [{kept_apart.kind_of[text]} if kept_apart else set() for text in range(size)]
        self._parted: list[set[int]] = [set() for _ in range(size)]  # texts that a person says are others
        for a, b in parted:
            self._parted[a].add(b)
            self._parted[b].add(a)
        self.links: list[dict[int, tuple[float, int]]] = [{} for _ in range(size)]

    def of(self, text: int) -> int:
        """The group of a text."""
        return self._of[text]

    def first(self) -> list[int]:
        """For each text the first one of its group."""
        least = [min(members, default=-1) for members in self._members]
        return [least[group] for group in self._of]

    def link(self, a: int, b: int, total: float, count: int) -> None:
        """Add scores of pairs between two groups; within one they do not matter."""
        if a == b:
            return
        old_total, old_count = self.links[a].get(b, (0.0, 0))
        self.links[a][b] = self.links[b][a] = (old_total + total, old_count + count)

    def unlink(self, a: int, b: int) -> None:
        """Forget the scores between two groups."""
        del self.links[a][b], self.links[b][a]

    def may_join(self, a: int, b: int) -> bool:
        """Whether no fact and no answer parts a text of one group from a text of the other."""
        if not self._parted[a].isdisjoint(self._members[b]):
            return False
        apart = self._kept_apart
        return apart is None or not any(apart.of_kinds(x, y) for x in self._kinds[a] for y in self._kinds[b])

    def join(self, a: int, b: int) -> None:
        """Make two groups one; the larger one keeps its number."""
        if a == b:
            return
        if len(self._members[a]) < len(self._members[b]):
            a, b = b, a
        for text in self._members[b]:
            self._of[text] = a
        self._members[a] += self._members[b]
        self._kinds[a] |= self._kinds[b]
        self._parted[a] |= self._parted[b]
        self._members[b], self._kinds[b], self._parted[b] = [], set(), set()
        for other, (total, count) in self.links[b].items():
            del self.links[other][b]
            self.link(a, other, total, count)
        self.links[b] = {}
