"""What `dedupe` and `search` have in common: how texts are embedded, and which second model reads what is near."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from semblance.batch.tasks import DEFAULT_COLUMNS, Options, make_task
from semblance.client import AsyncClient
from semblance.options import PATIENCE, Concurrency, ModelName, Overwrite, Patience

SCORE = "semblance_score"


class PairTask(StrEnum):
    """The tasks that give a pair a score."""

    similarity = "similarity"
    paraphrase = "paraphrase"
    relevance = "relevance"


@dataclass(frozen=True, slots=True)
class Asking:
    """The options of both commands."""

    rerank: Annotated[
        str | None,
        typer.Option(help="a second model, which reads the pairs that are near and decides, as minilm-cross"),
    ] = None
    task: Annotated[PairTask, typer.Option("--task", help="what its score says")] = PairTask.paraphrase
    prefix: Annotated[str, typer.Option(help="put before the names of the new columns")] = ""
    model: ModelName = None
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--approximate",
            help="compare all texts, or only likely ones [default: all, up to 100,000 texts]",
        ),
    ] = None
    keep: Annotated[
        Path | None,
        typer.Option(help="folder in which the file's embeddings stay, for the next time [default: they are removed]"),
    ] = None
    overwrite: Overwrite = False
    concurrency: Concurrency = 4
    patience: Patience = PATIENCE

    def of_pairs(self) -> Options:
        """Of the batch that asks the second model."""
        columns = DEFAULT_COLUMNS[self.task.value]
        return Options(self.task.value, columns, model=self.rerank, prefix=SCORE.removesuffix("score"))

    async def check(self, client: AsyncClient) -> None:
        """Raise BatchError if the second model is not served or lacks the task: before a corpus is embedded."""
        if self.rerank is not None:
            make_task(self.of_pairs(), await client.models())
