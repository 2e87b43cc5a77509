"""A second model, which reads the pairs that embeddings found near: filter by likeness, decide by paraphrase."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from semblance.batch.outputs import errors_of
from semblance.corpus.asking import SCORE, Work
from semblance.corpus.neighbours import Near
from semblance.corpus.work import Corpus


async def scores(work: Work, pairs: Iterable[tuple[str, str]], beside: Path) -> npt.NDArray[np.float64]:
    """The second model's score of each pair, NaN for one that it cannot read; interrupted, it goes on where it stopped.

    Raises:
        BatchError, SemblanceError: as `run_batch`.
    """
    asking = work.asking
    given = beside.with_name(f"{beside.name}.pairs.jsonl")
    digest, count = hashlib.sha256(f"{asking.rerank} {asking.task}".encode()), 0
    with given.open("w", encoding="utf-8", newline="\n") as file:
        for count, (a, b) in enumerate(pairs, 1):
            line = json.dumps({"n": count - 1, "a": a, "b": b}) + "\n"
            digest.update(line.encode())
            file.write(line)
    scored = beside.with_name(f"{beside.name}.{digest.hexdigest()[:12]}.scored.jsonl")  # of others the progress differs
    found = np.full(count, np.nan)
    overwrite, doing = asking.overwrite or scored.exists(), (f"asking {asking.rerank} about", count, "pairs")
    await work.batch(given, scored, asking.of_pairs(), overwrite=overwrite, doing=doing)
    with scored.open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            found[row["n"]] = row[SCORE]
    for path in (given, scored, errors_of(scored)):
        path.unlink(missing_ok=True)
    return found


async def decided(work: Work, near: Iterable[Near], corpus: Corpus, beside: Path, least: float) -> Near:
    """Of the near pairs of a corpus, each once, those to which the second model gives at least this score."""
    found = [(pairs.queries[kept], pairs.rows[kept]) for pairs in near for kept in [pairs.queries < pairs.rows]]
    queries, rows = (np.concatenate(side) for side in zip(*found, strict=True))
    numbers = corpus.vectors.texts
    text_of = corpus.texts.read(numbers[np.union1d(queries, rows)].tolist())

    def texts() -> Iterator[tuple[str, str]]:
        for a, b in zip(numbers[queries].tolist(), numbers[rows].tolist(), strict=True):
            yield text_of[a], text_of[b]

    kept = await scores(work, texts(), beside) >= least
    return Near(queries[kept], rows[kept], np.ones(int(kept.sum()), np.float32))
