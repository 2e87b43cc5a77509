"""What a model is tuned on: a file of labelled pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.manifest import describe_file
from core.subwords import AnyTokenizer
from semblance.tables.labelled_pairs import Kind, OwnPairs, PairsError, RowFault
from training.data.pairs import Pair
from workbench.tuning.split import Split, split


@dataclass(frozen=True)
class TuningData:
    """Labelled pairs and their parts."""

    name: str  # of the file
    digest: str  # of its content
    kind: Kind
    pairs: Sequence[Pair]
    parts: Split
    scale: tuple[float, float]
    rows: int  # that the file has
    faults: Sequence[RowFault]  # rows that are left out
    place: str  # what their numbers count: line or row

    def part(self, name: str) -> list[Pair]:
        """The pairs of `train`, `dev` or `held_out`."""
        return [self.pairs[i] for i in getattr(self.parts, name)]


def from_pairs(path: Path, read: OwnPairs, tokenizer: AnyTokenizer, seed: int) -> TuningData:
    """The pairs of a file, without those that the model cannot read.

    Raises:
        PairsError: more rows do not fit than do, or the pairs cannot be split.
    """
    pairs: list[Pair] = []
    faults = list(read.faults)
    for line, pair in zip(read.lines, read.pairs, strict=True):
        empty = [side for side in (pair.a, pair.b) if not tokenizer.encode(side, 1).ids]
        if empty:
            faults.append(RowFault(line, f"the model has no token for {empty[0][:40]!r}"))
        else:
            pairs.append(Pair(*pair))
    faults.sort()
    rows = len(pairs) + len(faults)
    if len(faults) > len(pairs):
        raise PairsError(f"{path}: of {rows:,} rows {len(faults):,} do not fit: {read.describe(faults)}")
    parts = split(pairs, read.kind, seed)
    return TuningData(
        path.name, describe_file(path).sha256, read.kind, pairs, parts, read.scale, rows, faults, read.place
    )
