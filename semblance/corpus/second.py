"""A second model, which reads the pairs that embeddings found near: filter by likeness, decide by paraphrase."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from semblance.batch.job import Progress, run_batch
from semblance.batch.outputs import errors_of
from semblance.batch.rows import Say, Step
from semblance.batch.tasks import DEFAULT_COLUMNS, Options, make_task
from semblance.client import AsyncClient
from semblance.corpus.neighbours import Near
from semblance.corpus.work import Asking, Corpus

PairTask = Literal["similarity", "paraphrase", "relevance"]
SCORE = "semblance_score"


@dataclass(frozen=True)
class Second:
    """Which model, the task of its score, and the score from which on a pair is kept."""

    model: str
    task: PairTask = "paraphrase"
    least: float = 0.5

    def options(self) -> Options:
        """Of the batch that asks it."""
        prefix = SCORE.removesuffix("score")
        return Options(self.task, DEFAULT_COLUMNS[self.task], model=self.model, prefix=prefix)

    async def check(self, client: AsyncClient) -> None:
        """Raise BatchError if the model is not served or lacks the task: before a corpus is embedded."""
        make_task(self.options(), await client.models())


async def scores(
    client: AsyncClient,
    pairs: Iterable[tuple[str, str]],
    beside: Path,
    second: Second,
    asking: Asking,
    step: Step,
    say: Say,
) -> npt.NDArray[np.float64]:
    """The second model's score of each pair, NaN for one that it cannot read; interrupted, it goes on where it stopped.

    Raises:
        BatchError, SemblanceError: as `run_batch`.
    """
    given = beside.with_name(f"{beside.name}.pairs.jsonl")
    digest, count = hashlib.sha256(f"{second.model} {second.task}".encode()), 0
    with given.open("w", encoding="utf-8", newline="\n") as file:
        for count, (a, b) in enumerate(pairs, 1):
            line = json.dumps({"n": count - 1, "a": a, "b": b}) + "\n"
            digest.update(line.encode())
            file.write(line)
    scored = beside.with_name(f"{beside.name}.{digest.hexdigest()[:12]}.scored.jsonl")  # of others the progress differs
    found = np.full(count, np.nan)

    def watch(done: Progress) -> None:
        step(f"asking {second.model} about {done.rows:,} of {count:,} pairs", done.position / max(1, done.total))

    await run_batch(
        client,
        given,
        scored,
        second.options(),
        overwrite=asking.overwrite or scored.exists(),
        concurrency=asking.concurrency,
        watch=watch,
        say=say,
    )
    with scored.open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            found[row["n"]] = row[SCORE]
    for path in (given, scored, errors_of(scored)):
        path.unlink(missing_ok=True)
    return found


async def decided(
    client: AsyncClient,
    near: Iterable[Near],
    corpus: Corpus,
    beside: Path,
    second: Second,
    asking: Asking,
    step: Step,
    say: Say,
) -> Near:
    """Of the near pairs of a corpus, each once, those that the second model keeps; arguments as for `scores`."""
    found = [(pairs.queries[kept], pairs.rows[kept]) for pairs in near for kept in [pairs.queries < pairs.rows]]
    queries, rows = (np.concatenate(side) for side in zip(*found, strict=True))
    numbers = corpus.vectors.texts
    text_of = corpus.texts.read(numbers[np.union1d(queries, rows)].tolist())

    def texts() -> Iterator[tuple[str, str]]:
        for a, b in zip(numbers[queries].tolist(), numbers[rows].tolist(), strict=True):
            yield text_of[a], text_of[b]

    kept = await scores(client, texts(), beside, second, asking, step, say) >= second.least
    return Near(queries[kept], rows[kept], np.ones(int(kept.sum()), np.float32))
