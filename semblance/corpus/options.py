"""What `dedupe` and `search` have in common: how texts are embedded, and which second model reads what is near."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from semblance.batch.job import BatchProgress, run_batch
from semblance.batch.rows import Say, Step
from semblance.batch.tasks import DEFAULT_COLUMNS, BatchOptions, make_task
from semblance.client import AsyncClient
from semblance.options import PATIENCE, Concurrency, ModelName, Overwrite, Patience

SCORE = "semblance_score"


@dataclass(frozen=True, slots=True)
class CorpusOptions:
    """The options of both commands."""

    rerank: Annotated[
        str | None,
        typer.Option(help="a second model, which reads the pairs that are near and decides, as minilm-cross"),
    ] = None
    task: Annotated[
        Literal["similarity", "paraphrase", "relevance"], typer.Option("--task", help="what its score says")
    ] = "paraphrase"
    prefix: Annotated[str, typer.Option(help="put before the names of the new columns")] = ""
    model: ModelName = None
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--approximate", help="compare all texts, or only likely ones [default: all, up to 100,000 texts]"
        ),
    ] = None
    keep: Annotated[
        Path | None,
        typer.Option(help="folder in which the file's embeddings stay, for the next time [default: they are removed]"),
    ] = None
    overwrite: Overwrite = False
    concurrency: Concurrency = 4
    patience: Patience = PATIENCE

    def of_pairs(self) -> BatchOptions:
        """Of the batch that asks the second model."""
        prefix = SCORE.removesuffix("score")
        return BatchOptions(self.task, DEFAULT_COLUMNS[self.task], model=self.rerank, prefix=prefix)


@dataclass(frozen=True, slots=True)
class CorpusSession:
    """What both commands work with: who is asked, the options, and whom to tell of progress and what is to be known."""

    client: AsyncClient
    asking: CorpusOptions
    step: Step
    say: Say

    async def check(self) -> None:
        """Raise BatchError if the second model is not served or lacks the task: before a corpus is embedded."""
        if self.asking.rerank is not None:
            make_task(self.asking.of_pairs(), await self.client.models())

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
