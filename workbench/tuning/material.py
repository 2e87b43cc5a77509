"""What a model is tuned on: a file of labelled pairs, or texts whose near neighbours a published model rates."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from contract.scoring import similarity
from contract.subwords import AnyTokenizer
from semblance.threshold.own_pairs import Fault, Kind, OwnPairs, PairsError
from training.objectives.parts.batches import Indices
from training.objectives.parts.nearest import near_neighbours
from training.pairs import Pair
from training.progress import tracked
from training.publishing.runtime import PublishedModel
from training.records import replacing
from workbench.tuning.read_back import TuneRefused
from workbench.tuning.split import SHARE, Split, sentence_of, split

NEIGHBOURS, TREES = 3, 2  # of each text in each tree of the search
FEWEST_TEXTS = 200
_CHUNK = 512  # texts embedded at a time


@dataclass(frozen=True)
class Material:
    """Labelled pairs and their parts."""

    name: str  # of the file
    digest: str  # of its content
    kind: Kind
    pairs: Sequence[Pair]
    parts: Split
    scale: tuple[float, float]
    rows: int  # that the file has
    faults: Sequence[Fault]  # rows that are left out
    place: str  # what their numbers count: line or row
    teacher: str | None = None  # who rated the pairs; None: the file did

    def part(self, name: str) -> list[Pair]:
        """The pairs of `train`, `dev` or `held_out`."""
        return [self.pairs[i] for i in getattr(self.parts, name)]


def digest_of(path: Path) -> str:
    """sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def from_pairs(path: Path, read: OwnPairs, tokenizer: AnyTokenizer, seed: int) -> Material:
    """The pairs of a file, without those that the model cannot read.

    Raises:
        PairsError: more rows do not fit than do, or the pairs cannot be split.
    """
    pairs: list[Pair] = []
    faults = list(read.faults)
    for line, pair in zip(read.lines, read.pairs, strict=True):
        empty = [side for side in (pair.a, pair.b) if not tokenizer.encode(side, 1).ids]
        if empty:
            faults.append(Fault(line, f"the model has no token for {empty[0][:40]!r}"))
        else:
            pairs.append(Pair(*pair))
    faults.sort()
    rows = len(pairs) + len(faults)
    if len(faults) > len(pairs):
        raise PairsError(f"{path}: of {rows:,} rows {len(faults):,} do not fit: {read.said(faults)}")
    parts = split(pairs, read.kind, seed)
    return Material(path.name, digest_of(path), read.kind, pairs, parts, read.scale, rows, faults, read.place)


def from_texts(path: Path, teacher: PublishedModel, tokenizer: AnyTokenizer, seed: int, kept: Path) -> Material:
    """Texts, one a line, paired with their near neighbours, and each pair rated 0..1 by a published model.

    The texts are split first and paired within their part, so that no sentence is in two parts.

    Args:
        path: the file, UTF-8.
        teacher: compares embeddings.
        tokenizer: of the model to be tuned.
        seed: of the split, the search and the random partners.
        kept: where the teacher's embeddings are kept, for a run that goes on.

    Raises:
        TuneRefused: the teacher does not compare embeddings.
        PairsError: too few texts.
    """
    manifest = teacher.manifest
    if manifest.encoder is None or manifest.similarity is None or manifest.similarity.comparison is None:
        raise TuneRefused(f"--teacher {manifest.id}: it does not compare embeddings, which the neighbours are found by")
    texts, faults, rows = _texts(path, tokenizer)
    if len(texts) < FEWEST_TEXTS:
        raise PairsError(f"{path}: {len(texts)} different texts, at least {FEWEST_TEXTS} are needed")
    digest = digest_of(path)
    vectors = _embedded(teacher, texts, kept, f"{digest} {manifest.fingerprint}")
    order = np.random.default_rng(seed).permutation(len(texts))
    apart = int(SHARE * len(texts))
    pairs: list[Pair] = []
    ends = [0]
    for members in (order[2 * apart :], order[:apart], order[apart : 2 * apart]):
        rows_of = members[_partners(vectors[members], seed)]
        scores = similarity(manifest.similarity, None, vectors[rows_of[:, 0]], vectors[rows_of[:, 1]]).score
        pairs += [Pair(texts[i], texts[j], float(score)) for (i, j), score in zip(rows_of, scores, strict=True)]
        ends.append(len(pairs))
    parts = Split(*(np.arange(low, high) for low, high in pairwise(ends)))
    return Material(path.name, digest, "score", pairs, parts, (0.0, 1.0), rows, faults, "line", manifest.id)


def _texts(path: Path, tokenizer: AnyTokenizer) -> tuple[list[str], list[Fault], int]:
    """The different texts of a file, the lines that are left out, and the lines that are not empty."""
    found: dict[str, str] = {}
    faults: list[Fault] = []
    rows = 0
    for number, line in _lines(path):
        rows += 1
        if line is None:
            faults.append(Fault(number, "not UTF-8: save the file as UTF-8"))
        elif not tokenizer.encode(line, 1).ids:
            faults.append(Fault(number, f"the model has no token for {line[:40]!r}"))
        elif (key := sentence_of(line)) in found:
            faults.append(Fault(number, "its sentence stands further up"))
        else:
            found[key] = line
    return list(found.values()), faults, rows


def _lines(path: Path) -> Iterator[tuple[int, str | None]]:
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                except UnicodeDecodeError:
                    yield number, None
                    continue
                if line:
                    yield number, line
    except OSError as error:
        raise PairsError(f"{path}: {error.strerror or error}") from error


def _embedded(teacher: PublishedModel, texts: Sequence[str], kept: Path, what: str) -> npt.NDArray[np.float32]:
    """The teacher's embeddings of the texts [n, D], from the file `kept` if it is of `what`."""
    if kept.is_file():
        with np.load(kept, allow_pickle=False) as saved:
            if str(saved["what"]) == what:
                return np.asarray(saved["vectors"])
    starts = range(0, len(texts), _CHUNK)
    label = f"{teacher.manifest.id} reads the texts, chunks of {_CHUNK}"
    vectors = np.concatenate([teacher.embed(texts[start : start + _CHUNK]) for start in tracked(starts, label)])
    kept.parent.mkdir(parents=True, exist_ok=True)
    with replacing(kept) as partial, partial.open("wb") as file:
        np.savez(file, vectors=vectors, what=np.array(what))
    return vectors


def _partners(vectors: npt.NDArray[np.float32], seed: int) -> Indices:
    """Pairs of rows [m, 2], each once: near neighbours, and a random partner of each, so that low scores occur."""
    near = near_neighbours(vectors, each=NEIGHBOURS, trees=TREES, seed=seed)
    anyone = np.random.default_rng((seed, 1)).permutation(len(vectors))
    own = np.arange(len(vectors))
    pairs = np.concatenate(
        [np.stack([np.repeat(own, near.shape[1]), near.ravel()], axis=1), np.stack([own, anyone], axis=1)]
    )
    pairs = np.sort(pairs, axis=1)
    return np.asarray(np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0))
