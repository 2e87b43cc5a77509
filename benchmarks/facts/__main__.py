"""How often `core.facts` says rightly whether two short texts agree: amounts, dates, bounds, codes, negations.

    python -m benchmarks.facts                         # the cases of development, those that are wrong, and a second
    python -m benchmarks.facts --part kept_back        # those kept back, without showing any, for a published figure

Where two texts differ, the difference must be told in both orders, with words that the other text does not have. The
cases were written by hand; those kept back before anything was mended by the others.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import figures
from core.facts import difference, facts_of

HERE = Path(__file__).parent
PARTS = ("development", "kept_back")


class FactCase(NamedTuple):
    """Two texts, and whether what they say agrees; `kind`: what they are about."""

    kind: str
    same: bool
    a: str
    b: str

    @property
    def right(self) -> bool:
        """Whether the facts of the two say so."""
        one, other = facts_of(self.a), facts_of(self.b)
        there, back = difference(one, other), difference(other, one)
        if there is None or back is None:
            return self.same and there is back
        return not self.same and (there.a not in self.b or there.b not in self.a)


def cases(part: str) -> list[FactCase]:
    """The cases of a part."""
    with (HERE / f"{part}.jsonl").open(encoding="utf-8") as file:
        return [FactCase(**json.loads(line)) for line in file]


def main() -> None:
    """Print the share that is right, by kind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.facts", description=__doc__)
    parser.add_argument("--part", choices=PARTS, default=PARTS[0])
    options = parser.parse_args()
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for case in cases(options.part):
        right = case.right
        by_kind[case.kind].append(right)
        if not right and options.part == PARTS[0]:
            print("wrong:", "same" if case.same else "differ", "|", case.a, "|", case.b)
    rows = [{"kind": kind, "cases": len(each), "right": sum(each) / len(each)} for kind, each in by_kind.items()]
    every = [right for each in by_kind.values() for right in each]
    print(figures([*rows, {"kind": "all", "cases": len(every), "right": sum(every) / len(every)}]))


if __name__ == "__main__":
    main()
