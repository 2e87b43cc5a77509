"""How `dedupe` embeds texts and asks models."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from semblance.cli.options import PATIENCE, Concurrency, ModelName, Overwrite, Patience, QuoteFormulas
from semblance.client.clients import AsyncClient
from semblance.jobs.batch.job import BatchProgress, run_batch
from semblance.jobs.batch.tasks import BatchOptions
from semblance.tables.rows import Say, Step


@dataclass(frozen=True, slots=True)
class CorpusOptions:
    """Options of the command that say which models are asked, and how."""

    rerank: Annotated[
        str | None,
        typer.Option(help="the model that reads near pairs [default: the first main one with paraphrase, entailment]"),
    ] = None
    prefix: Annotated[str, typer.Option(help="put before the names of the new columns")] = ""
    model: ModelName = None
    keep: Annotated[
        Path | None,
        typer.Option(help="folder in which the file's embeddings stay, for the next time [default: they are removed]"),
    ] = None
    quote_formulas: QuoteFormulas = False
    overwrite: Overwrite = False
    concurrency: Concurrency = 4
    patience: Patience = PATIENCE


@dataclass(frozen=True, slots=True)
class CorpusSession:
    """Who is asked, the options, and whom to tell of progress and what is to be known."""

    client: AsyncClient
    asking: CorpusOptions
    step: Step
    say: Say

    async def batch(
        self, source: Path, output: Path, options: BatchOptions, *, overwrite: bool, doing: tuple[str, int, str]
    ) -> None:
        """Run a batch, as the options have it; `doing` is what, of how many, of which things.

        Raises:
            BatchError, SemblanceError: as `run_batch`.
        """
        verb, count, things = doing

        def watch(done: BatchProgress) -> None:
            self.step(f"{verb} {done.rows:,} of {count:,} {things}", done.position / max(1, done.total))

        concurrency = self.asking.concurrency
        await run_batch(
            self.client, source, output, options,
            overwrite=overwrite, concurrency=concurrency, watch=watch, say=self.say,
        )  # fmt: skip
