"""One run of `dedupe`: its options, its working files, and the batches by which it asks models."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.duplicates import PairReading
from semblance.client.clients import AsyncClient
from semblance.errors import BatchError
from semblance.jobs.batch.job import BatchProgress, partial_of, run_batch
from semblance.jobs.batch.tasks import DEFAULT_COLUMNS, BatchOptions, Name, find_model
from semblance.tables.delimited import FileFormat
from semblance.tables.formats import AS_FOUND
from semblance.tables.output_file import errors_of, open_alone, write_alone
from semblance.tables.rows import Say, Step

Texts = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DedupeOptions:
    """Options of a deduplication.

    Attributes:
        column: of the texts.
        read_as: encoding and separator of the input.
        cosine: threshold from which texts are duplicates; None: a model judges near pairs.
        reviewed: a file of pairs of rows, answered by a person; whatever their score, they are joined or parted.
        guard: keep texts apart that differ in a fact; `--no-guard` turns it off.
        only_first: write only the first row of each cluster.
        prefix: put before the names of the new columns.
        model: embeds the texts; None: the default of `/embed`.
        pair_model: reads near pairs; None: the first main one with paraphrase and entailment.
        keep: the folder in which the embeddings stay; None: they are removed.
        quote_formulas: in CSV and TSV, put an apostrophe before cells that a spreadsheet would run.
        overwrite: replace an output, and the progress of another run.
        concurrency: requests under way at once.
    """

    column: str = "sentence"
    read_as: FileFormat = AS_FOUND
    cosine: float | None = None
    reviewed: Path | None = None
    guard: bool = True
    only_first: bool = False
    prefix: str = ""
    model: str | None = None
    pair_model: str | None = None
    keep: Path | None = None
    quote_formulas: bool = False
    overwrite: bool = False
    concurrency: int = 4


@dataclass(frozen=True, slots=True)
class DedupeSession:
    """Input and output, the client, the options, and what shows progress (`step`) and notes (`say`)."""

    path: Path
    output: Path
    client: AsyncClient
    options: DedupeOptions
    step: Step
    say: Say

    def working_file(self, name: str) -> Path:
        """A file of this input, in the folder that keeps such files, or beside the output.

        Its name has a digest of the input's path: inputs of one name in other folders have other files.
        """
        keep, digest = self.options.keep, hashlib.sha256(os.fsencode(os.path.abspath(self.path))).hexdigest()[:12]
        if keep is None:
            return self.output.with_name(f"{self.output.name}.{digest}.{name}")
        return keep / f"{self.path.name}.{digest}.{name}"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs from the working files.

        Raises:
            BatchError: another run has them.
        """
        lock = self.working_file("lock")
        handle = open_alone(lock)
        try:
            yield
        finally:
            with suppress(OSError):  # it may be gone with its folder
                lock.unlink()  # before another run may have it
            os.close(handle)

    async def batch(
        self, source: Path, output: Path, options: BatchOptions, *, overwrite: bool, doing: tuple[str, int, str]
    ) -> None:
        """Run a batch, as the options have it; `doing` is what, of how many, of which things.

        Raises:
            BatchError, SemblanceError: as `run_batch`; a BatchError names the input.
        """
        verb, count, things = doing

        def watch(done: BatchProgress) -> None:
            self.step(f"{verb} {done.rows:,} of {count:,} {things}", done.position / max(1, done.total))

        try:
            await run_batch(
                self.client, source, output, options,
                overwrite=overwrite, concurrency=self.options.concurrency, watch=watch, say=self.say,
            )  # fmt: skip
        except BatchError as error:
            raise BatchError(f"{self.path}: {error}") from error

    async def read_pairs(self, pairs: Sequence[Texts], model: str) -> list[PairReading | None]:
        """What a model with paraphrase and entailment says of each pair of texts; None of one that it cannot read.

        Raises:
            BatchError, SemblanceError: as `run_batch`.
        """
        asked = [*pairs, *((b, a) for a, b in pairs)]
        labels_path = await self._asked(asked, "entailment", model)
        scores_path = await self._asked(asked, "paraphrase", model)
        labels, scores = (_answers_in(path, len(asked)) for path in (labels_path, scores_path))
        for path in (labels_path, scores_path):
            path.unlink()
            errors_of(path).unlink(missing_ok=True)
        found: list[PairReading | None] = []
        for i in range(len(pairs)):
            (same, other), (forward, backward) = scores[i :: len(pairs)], labels[i :: len(pairs)]
            if same is None or other is None or forward is None or backward is None:
                found.append(None)
                continue
            entailed = forward["entailment"], backward["entailment"]
            found.append(PairReading.of_both_orders((same["score"], other["score"]), entailed, same["unknown"] > 0))
        return found

    async def _asked(self, pairs: Sequence[Texts], task: Name, model: str) -> Path:
        """The file of a model's answers about these pairs; one that is there already is not asked for again."""
        pairs_path, names = self.working_file("pairs.jsonl"), DEFAULT_COLUMNS[task]
        lines = [json.dumps({"n": n, **dict(zip(names, pair, strict=True))}) + "\n" for n, pair in enumerate(pairs)]
        write_alone(pairs_path, "".join(lines))
        # The name has a digest of the pairs and the model: a run on others does not resume from these answers.
        served = find_model(await self.client.models(), model, task)
        asked = f"{model} {served.fingerprint} {task}\n{''.join(lines)}"
        digest = hashlib.sha256(asked.encode()).hexdigest()[:12]
        scored = self.working_file(f"{digest}.scored.jsonl")
        options = BatchOptions(task, names, model=model, prefix="")
        doing = (f"asking {model} about", len(pairs), "pairs")
        if not scored.exists() or partial_of(scored).exists():
            await self.batch(pairs_path, scored, options, overwrite=self.options.overwrite, doing=doing)
        pairs_path.unlink()
        return scored


def _answers_in(path: Path, count: int) -> list[dict[str, Any] | None]:
    found: list[dict[str, Any] | None] = [None] * count
    with path.open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            found[row["n"]] = row
    return found
