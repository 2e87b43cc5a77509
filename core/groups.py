"""Groups of texts from scores of pairs, in which no two texts differ in a fact.

Average linkage (Sokal and Michener 1958) over the pairs that have a score: the two groups whose pairs score highest on
average become one, and again, down to a least mean. So a chain of near texts, each a little further from the first,
does not become one group.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence

from core.attributes import stem
from core.facts import Difference, Facts, compared_with, differences, negation
from core.units import Fact

Pair = tuple[int, int]  # two texts, the earlier one first
_EQUAL = 1e-12  # below that two means differ by rounding only


class ContradictoryAnswers(ValueError):
    """A person's answers say of two texts that they are the same, directly or through others, and that they are not."""

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self.pair = pair


MAX_WAYS = 16  # of a group: how many different sets of facts of one kind its texts may have


class KeptApart:
    """Which texts differ in a fact, told by a few sets: their facts of each kind."""

    def __init__(self, facts: Sequence[Facts]) -> None:
        """Of the facts of N texts."""
        self._facts = facts
        self._numbers: dict[frozenset[Fact], int] = {}
        self._sets: list[Facts] = []
        self._known: dict[Pair, bool] = {}
        # Of each text: for each kind the number of its set of facts.
        self.facts: list[dict[str, int]] = [self._sets_of(each) for each in self._facts]

    def between(self, pair: Pair) -> Difference | None:
        """A fact in which two texts differ, or a word that one of two like texts negates; None: there is none."""
        a, b = (self._facts[text] for text in pair)
        if found := next(differences(a, b), None):
            return found
        negated = negation(a, b)
        return negated if negated and _are_alike(a, b) else None

    def sets_differ(self, a: int, b: int) -> bool:
        """Whether two sets of facts of one kind do, by their numbers."""
        pair = (min(a, b), max(a, b))
        if a != b and pair not in self._known:
            self._known[pair] = next(differences(self._sets[a], self._sets[b]), None) is not None
        return a != b and self._known[pair]

    def agreements_of_a_pair(self) -> float:
        """How often, on average, two facts are compared to tell two like texts apart."""
        loose = [sum(fact.loose for fact in each.spellings) for each in self._facts]
        return 2 * sum(len(each.spellings) * some for each, some in zip(self._facts, loose, strict=True)) / len(loose)

    def _sets_of(self, facts: Facts) -> dict[str, int]:
        by_kind: dict[str, dict[Fact, str]] = {}
        for fact, written in facts.spellings.items():
            by_kind.setdefault(compared_with(fact), {})[fact] = written
        found = {}
        for kind, said in by_kind.items():
            number = found[kind] = self._numbers.setdefault(frozenset(said), len(self._sets))
            if number == len(self._sets):
                self._sets.append(Facts(said, frozenset(), frozenset()))
        return found


# Share of the words of two texts that both have, from which on a negation in one parts them. Of texts with less in
# common "no screws in the box" and "the screws are missing" may be the same: there a model judges.
ALIKE = 0.5


def _are_alike(a: Facts, b: Facts) -> bool:
    own, other = ({stem(word) for word in each.negated | each.affirmed} for each in (a, b))
    return len(own & other) >= ALIKE * len(own | other)


def group(
    size: int,
    scores: Mapping[Pair, float],
    least: float,
    kept_apart: KeptApart | None,
    answers: Mapping[Pair, bool],
    parted: Iterable[Pair] = (),
) -> list[int]:
    """For each of `size` texts the first one of its group.

    Args:
        size: number of texts.
        scores: of pairs; others have none, and do not count.
        least: mean score of the pairs of two groups that become one.
        kept_apart: by their facts; None: no text is.
        answers: of pairs, whether they are the same, whatever their score and facts.
        parted: pairs that are in no group together, unless they or others that join them were answered so.

    Raises:
        ContradictoryAnswers: answers join two texts that another answer parts.
    """
    groups = _Groups(size, kept_apart, [*(pair for pair, same in answers.items() if not same), *parted])
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
        self._apart = kept_apart
        self._facts: list[dict[str, set[int]]] = [{} for _ in range(size)]
        if kept_apart is not None:
            self._facts = [{kind: {number} for kind, number in sets.items()} for sets in kept_apart.facts]
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
        """Whether no fact and no answer parts a text of one group from a text of the other.

        Groups whose facts of a kind would be of more than `MAX_WAYS` sets stay two, whatever these are.
        """
        if not self._parted[a].isdisjoint(self._members[b]):
            return False
        if self._apart is None:
            return True
        shared = [(self._facts[a][kind], self._facts[b][kind]) for kind in self._facts[a].keys() & self._facts[b]]
        if any(len(one | other) > MAX_WAYS for one, other in shared):
            return False
        return not any(self._apart.sets_differ(x, y) for one, other in shared for x in one for y in other)

    def join(self, a: int, b: int) -> None:
        """Make two groups one; the larger one keeps its number."""
        if a == b:
            return
        if len(self._members[a]) < len(self._members[b]):
            a, b = b, a
        for text in self._members[b]:
            self._of[text] = a
        self._members[a] += self._members[b]
        for kind, sets in self._facts[b].items():
            self._facts[a].setdefault(kind, set()).update(sets)
        self._parted[a] |= self._parted[b]
        self._members[b], self._parted[b] = [], set()
        self._facts[b] = {}
        for other, (total, count) in self.links[b].items():
            del self.links[other][b]
            self.link(a, other, total, count)
        self.links[b] = {}
