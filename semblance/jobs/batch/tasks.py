"""The tasks: the columns that each reads, the requests that it makes, the columns that it adds."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from core.answers import EntailmentLabel
from semblance.client.clients import AsyncClient
from semblance.client.retries import TIMEOUT
from semblance.errors import BatchError, RequestFailed
from semblance.tables.rows import BadRow, Kind, Row, Unreadable, readable, text_of
from semblance.types import LimitsInfo, ModelInfo, Models

Name = Literal["similarity", "paraphrase", "relevance", "entailment", "rank", "embed"]

DEFAULT_COLUMNS: Mapping[Name, tuple[str, ...]] = {
    "similarity": ("a", "b"),
    "paraphrase": ("a", "b"),
    "relevance": ("a", "b"),
    "entailment": ("premise", "hypothesis"),
    "rank": ("query", "candidates"),
    "embed": ("sentence",),
}
# Names of the columns in a request's fields, to find the column that an error is about.
_FIELDS: Mapping[Name, tuple[str, ...]] = {**DEFAULT_COLUMNS, "embed": ("sentences",)}
_ROUTES: Mapping[Name, str] = {"paraphrase": "similarity", "relevance": "similarity"}  # others: as the task
_ABLE: Mapping[Name, str] = {"rank": "similarity", "embed": "embedding"}  # what a model must have; others: as the task
_OF_ONE_ROW = frozenset({"inference_failed", TIMEOUT})  # one row of a request may be the cause
TRIES = 3  # of a single row that exceeds the service's time limit


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """The options of a batch."""

    task: Name
    columns: tuple[str, ...]
    model: str | None = None
    prefix: str = ""  # of the new columns
    top_k: int | None = None
    rerank_model: str | None = None
    rerank_top: int | None = None

    def __post_init__(self) -> None:
        """Look that no option of a ranking is given to another task; raises BatchError."""
        for name in ("top_k", "rerank_model", "rerank_top"):
            if self.task != "rank" and getattr(self, name) is not None:
                raise BatchError(f"--{name.replace('_', '-')} is for the task rank, not for {self.task}")


class Task(ABC):
    """One kind of request to one model; a ranking in two stages has two models.

    Attributes:
        adds: columns of the answers, without the prefix.
        rows_at_once: most rows of one request.
    """

    adds: Mapping[str, Kind]
    second: ModelInfo | None = None

    def __init__(self, options: BatchOptions, models: Models) -> None:
        """Select the model for all rows.

        Raises:
            BatchError: there is no such model, it lacks the task, or the number of columns is wrong.
        """
        wanted = DEFAULT_COLUMNS[options.task]
        if len(options.columns) != len(wanted):
            raise BatchError(
                f"{options.task} reads {len(wanted)} columns ({', '.join(wanted)}), found {len(options.columns)}"
            )
        self.options = options
        self.columns = options.columns
        self.limits: LimitsInfo = models.limits
        self.rows_at_once = models.limits.max_pairs
        route, able = f"/{_ROUTES.get(options.task, options.task)}", _ABLE.get(options.task, options.task)
        self.model = find_model(models, options.model or default_of(models, route), able)

    @property
    def used(self) -> list[ModelInfo]:
        """The model, and that of a second stage."""
        return [model for model in (self.model, self.second) if model]

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Of the models used."""
        return tuple(model.fingerprint for model in self.used)

    def item(self, row: Row) -> Any:
        """The request's item for a row: the text of each column; raises BadRow."""
        return tuple(self.check_text(row.get(column), column) for column in self.columns)

    @abstractmethod
    async def ask(self, client: AsyncClient, items: Sequence[Any]) -> list[Row]:
        """The new cells for each item."""

    def check_text(self, value: object, column: str) -> str:
        """A value that must be a text within the service's limits; raises BadRow."""
        text, limit = text_of(value, column), self.limits.max_text_chars
        if len(text) > limit:
            raise BadRow("too_large", f"a text of {len(text)} characters, the limit is {limit}", column)
        return text

    def blamed(self, error: RequestFailed) -> BadRow | None:
        """The bad row that an error reports; None where the error is about something else, such as the model."""
        parts = (error.field or "").split(".")
        fields = _FIELDS[self.options.task]
        about_items = parts[0] in ("pairs", *fields) or (error.status == 413 and error.field is None)
        if not about_items and error.code not in _OF_ONE_ROW:
            return None
        column = next((self.columns[fields.index(part)] for part in parts if part in fields), None)
        return BadRow(error.code, error.message.removeprefix(f"{error.field}: "), column)


class ScoreTask(Task):
    """Columns a and b -> score, raw_score, rating where the model has one, truncated, unknown.

    For similarity, and for the tasks whose score is a probability.
    """

    def __init__(self, options: BatchOptions, models: Models) -> None:
        super().__init__(options, models)
        self._rated = options.task == "similarity" and bool(self.model.rating_scale)
        rating: dict[str, Kind] = {"rating": "number"} if self._rated else {}
        self.adds = {"score": "number", "raw_score": "number", **rating, "truncated": "flag", "unknown": "number"}

    async def ask(self, client: AsyncClient, items: Sequence[tuple[str, str]]) -> list[Row]:
        """Scores of pairs, as in `Task.ask`."""
        answer = await client.similarity(items, model=self.model.id, task=cast(Any, self.options.task))
        return [
            {
                "score": result.score,
                "raw_score": result.raw_score,
                **({"rating": result.rating} if self._rated else {}),
                "truncated": any(result.truncated),
                "unknown": max(result.unknown),
            }
            for result in answer.results
        ]


class Entailment(Task):
    """Columns premise and hypothesis -> label, the probability of each of the model's labels, truncated."""

    def __init__(self, options: BatchOptions, models: Models) -> None:
        super().__init__(options, models)
        given = self.model.entailment_labels or ()
        self._labels = [label for label in get_args(EntailmentLabel) if label in given]
        numbers: dict[str, Kind] = dict.fromkeys(self._labels, "number")
        self.adds = {"label": "text", **numbers, "truncated": "flag"}

    async def ask(self, client: AsyncClient, items: Sequence[tuple[str, str]]) -> list[Row]:
        """Labels of pairs, as in `Task.ask`."""
        answer = await client.entailment(items, model=self.model.id)
        return [
            {
                "label": result.label,
                **{name: getattr(result.probabilities, name) for name in self._labels},
                "truncated": any(result.truncated),
            }
            for result in answer.results
        ]


class Embed(Task):
    """Column sentence -> embedding, truncated."""

    adds: Mapping[str, Kind] = {"embedding": "vector", "truncated": "flag"}

    async def ask(self, client: AsyncClient, items: Sequence[tuple[str]]) -> list[Row]:
        """Embeddings of texts, as in `Task.ask`."""
        answer = await client.embed([sentence for (sentence,) in items], model=self.model.id)
        return [
            {"embedding": embedding, "truncated": truncated}
            for embedding, truncated in zip(answer.embeddings, answer.truncated, strict=True)
        ]


class Rank(Task):
    """Columns query and candidates, a list of texts or its JSON -> ranking, their positions best first, and scores."""

    adds: Mapping[str, Kind] = {"ranking": "integers", "scores": "numbers", "truncated": "flag"}

    def __init__(self, options: BatchOptions, models: Models) -> None:
        super().__init__(options, models)
        self.rows_at_once = 1  # each row is a request of its own
        if options.rerank_model is not None or options.rerank_top is not None:
            name = options.rerank_model or models.rerank.default_model
            if name is None:
                raise BatchError("there is no default model for the second stage: name one with --rerank-model")
            self.second = find_model(models, name, "similarity")

    def item(self, row: Row) -> tuple[str, list[str]]:
        """The query and the candidates of a row."""
        query, column = self.columns
        candidates = row.get(column)
        if isinstance(candidates, str):  # CSV has no lists
            try:
                candidates = json.loads(candidates)
            except (ValueError, RecursionError):  # also of 100,000 brackets
                raise BadRow("not_a_list", "expected a list of texts as JSON", column) from None
        if not isinstance(candidates, list) or not candidates:
            raise BadRow("not_a_list", "expected a list of texts, with at least one", column)
        return self.check_text(row.get(query), query), [self.check_text(candidate, column) for candidate in candidates]

    async def ask(self, client: AsyncClient, items: Sequence[tuple[str, list[str]]]) -> list[Row]:
        """Rankings of candidates, as in `Task.ask`."""
        rows: list[Row] = []
        for query, candidates in items:
            answer = await client.rank(
                query,
                candidates,
                top_k=self.options.top_k,
                model=self.model.id,
                rerank_model=self.second.id if self.second else None,
                rerank_top=self.options.rerank_top,
            )
            cut = [answer.truncated, *([answer.rerank_truncated] if answer.rerank_truncated else [])]
            rows.append(
                {
                    "ranking": [result.index for result in answer.results],
                    "scores": [result.score for result in answer.results],
                    "truncated": any(each.query or each.candidates for each in cut),
                }
            )
        return rows


_TASKS: Mapping[Name, type[Task]] = {"entailment": Entailment, "rank": Rank, "embed": Embed}  # others: ScoreTask


def make_task(options: BatchOptions, models: Models) -> Task:
    """The task that the options select; raises BatchError."""
    return _TASKS.get(options.task, ScoreTask)(options, models)


async def ask_rows(
    client: AsyncClient, task: Task, rows: Iterable[tuple[int, Row | Unreadable]]
) -> tuple[dict[int, Row], dict[int, BadRow]]:
    """The new cells of each row by its number, and why others have none.

    As many rows go into a request as it may have; a failed request is bisected to find the bad rows.

    Raises:
        SemblanceError: a request fails for a reason that is not of a row.
    """
    items: list[tuple[int, Any]] = []
    cells: dict[int, Row] = {}
    bad: dict[int, BadRow] = {}
    for number, row in rows:
        try:
            items.append((number, task.item(readable(row))))
        except BadRow as why:
            bad[number] = why
    size = task.rows_at_once
    waiting = [items[start : start + size] for start in range(0, len(items), size)][::-1]
    slow = 0  # times that a row alone took longer than the service's time limit
    while waiting:
        part = waiting.pop()
        alone = len(part) == 1
        try:
            answers = await task.ask(client, [item for _, item in part])
        except RequestFailed as error:
            if (reason := task.blamed(error)) is None or (not alone and (error.index or 0) >= len(part)):
                raise
            if error.code == TIMEOUT and alone and (slow := slow + 1) < TRIES:
                waiting.append(part)
                await asyncio.sleep(error.retry_after or 0.0)
                continue
            guilty = 0 if alone else error.index
            if guilty is None:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
                continue
            number, _ = part.pop(guilty)
            bad[number] = reason
            slow = 0
            if part:
                waiting.append(part)
        else:
            cells.update({number: answer for (number, _), answer in zip(part, answers, strict=True)})
    return cells, bad


def default_of(models: Models, route: str) -> str:
    """The model of a route when none is named; raises BatchError if there is none."""
    if (name := models.defaults.get(route)) is None:
        raise BatchError(f"there is no default model of {route}: name one with --model (`semblance models` lists them)")
    return name


def changed(before: Models, after: Models, used: Iterable[str]) -> bool:
    """Whether one of the models used is another one than before, as after a rolling change of a service."""
    one, other = ({model.id: model.fingerprint for model in served.models} for served in (before, after))
    return any(one.get(each) != other.get(each) for each in used)


def find_model(models: Models, name: str, able: str) -> ModelInfo:
    """The model of that name; raises BatchError if there is none, or it lacks the task `able`."""
    found = next((model for model in models.models if name == model.id), None)
    if found is None or able not in found.tasks:
        those = ", ".join(model.id for model in models.models if able in model.tasks) or "none"
        raise BatchError(f"model {name!r} {'is not served' if found is None else f'has no {able}'}; for this: {those}")
    return found
