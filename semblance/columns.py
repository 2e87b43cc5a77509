"""A model as a function of columns of texts, for engines that run Python: Ray, Spark, DuckDB, a process pool.

    from semblance import scorer

    score = scorer("avg-paraphrase")
    print(score(["A man plays guitar."], ["A man plays flute."])["score"])

A scorer is a few names: it can be pickled, and opens its model on its first call in a process, once for all scorers of
that model there. The copy in another process refuses a model with another fingerprint.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from semblance.batch.rows import Kind, Row
from semblance.batch.tasks import DEFAULT_COLUMNS, Name, Options, Task, make_task
from semblance.errors import InvalidRequest, ServiceFailed
from semblance.extras import needs
from semblance.local import local_settings, starting
from semblance.types import ExplanationNames, LimitsInfo, ModelInfo, Models, RerankInfo

T = TypeVar("T")
Column = npt.NDArray[Any]


def _best_first(raw: npt.NDArray[Any]) -> list[int]:
    """Positions by raw score, the highest first; of equal ones the earlier first."""
    order: list[int] = np.argsort(-raw, kind="stable").tolist()
    return order


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model is, and which one."""

    root: str  # the models folder that it is in
    folder: str  # of the release
    id: str
    version: int | None
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Scorer:
    """See `scorer`.

    Attributes:
        task: as in `semblance batch`.
        model: which one.
        second: that of a ranking's second stage.
        kinds: the columns of an answer, in order, and what they hold.
        top_k: how many of the best a ranking gives; None: all.
        rerank_top: how many the second stage orders.
        nulls: whether a row without an answer is null; otherwise it is an error.
    """

    task: Name
    model: Source
    second: Source | None
    kinds: Mapping[str, Kind]
    top_k: int | None
    rerank_top: int
    nulls: bool

    def __call__(self, *columns: Sequence[Any]) -> dict[str, Column]:
        """Answer n rows.

        Args:
            columns: as many as the task reads (`similarity`: a and b), each a list or an array of n texts; for `rank`
                the second has lists of texts.

        Returns:
            A column for each of `kinds`: [n], and for embeddings [n, dim]. With `nulls` a row in which a text is
            missing, empty or too long has NaN, None and False.

        Raises:
            ValueError: another number of columns, or columns of different lengths.
            InvalidRequest: a text is missing, empty or too long, unless `nulls`; `field` names row and column.
            CannotStart: the model cannot be opened here.
        """
        names = DEFAULT_COLUMNS[self.task]
        if len(columns) != len(names) or len({len(column) for column in columns}) != 1:
            found = ", ".join(str(len(column)) for column in columns)
            raise ValueError(f"{self.task} reads {len(names)} columns of one length ({', '.join(names)}), got {found}")
        # A second stage reads the texts with a tokenizer of its own.
        cores = [_opened(model) for model in (self.model, self.second) if model is not None]
        read = [_read(core, column, name) for core in cores for column, name in zip(columns, names, strict=True)]
        rows = list(zip(*read, strict=True))
        kept = [i for i, row in enumerate(rows) if not any(map(_is_unfit, row))]
        if len(kept) < len(rows) and not self.nulls:
            raise _refusal(rows, names)
        answer = _asking(lambda: self._answer(cores, [[side[i] for i in kept] for side in read])) if kept else {}
        if len(kept) == len(rows) > 0:
            return answer
        return {name: _spread(answer.get(name), kind, kept, len(rows)) for name, kind in self.kinds.items()}

    def _answer(self, cores: Sequence[Any], sides: Sequence[list[Any]]) -> dict[str, Column]:
        if self.task == "rank":
            return self._rank(cores, sides)
        if self.task == "entailment":
            return dict(cores[0].entailment(*sides))
        return dict(cores[0].embed(*sides) if self.task == "embed" else cores[0].score(self.task, *sides))

    def _rank(self, cores: Sequence[Any], sides: Sequence[list[Any]]) -> dict[str, Column]:
        """The order of each row's candidates: by the first model, and that of the best again by the second."""
        queries, candidates = sides[:2]
        orders: list[list[int]] = []
        scores: list[list[float]] = []
        cut = [any(text.truncated for text in (query, *of)) for query, of in zip(queries, candidates, strict=True)]
        for score, raw in cores[0].relevances(queries, candidates):
            orders.append(_best_first(raw))
            scores.append(score.tolist())
        if self.second is not None:
            heads = [order[: self.rerank_top] for order in orders]
            best = [[of[i] for i in head] for of, head in zip(sides[3], heads, strict=True)]
            for row, (score, raw) in enumerate(cores[1].relevances(sides[2], best)):
                again = [heads[row][i] for i in _best_first(raw)]
                orders[row][: len(again)] = again
                for place, value in zip(heads[row], score.tolist(), strict=True):
                    scores[row][place] = value
                cut[row] |= any(text.truncated for text in (sides[2][row], *best[row]))
        orders = [order[: self.top_k] for order in orders]
        return {
            "ranking": _objects(orders),
            "scores": _objects([[of[i] for i in order] for of, order in zip(scores, orders, strict=True)]),
            "truncated": np.array(cut),
        }


def scorer(
    model: str | None = None,
    task: Name = "similarity",
    *,
    models_dir: str | Path | None = None,
    top_k: int | None = None,
    rerank_model: str | None = None,
    rerank_top: int | None = None,
    nulls: bool = False,
) -> Scorer:
    """A function of columns of texts; see the module. Reads manifests, and opens no model.

    Args:
        model: id of a model with the task; the service's default without it.
        task: similarity, paraphrase, relevance, entailment, rank or embed.
        models_dir: folder of models, as all workers see it; SEMBLANCE_MODELS_DIR, or the usual one, by default.
        top_k: of a ranking: how many of the best; None: all.
        rerank_model: of a ranking: a second model, which orders the best again.
        rerank_top: how many.
        nulls: give null for a row with a missing, empty or too long text, instead of an error.

    Raises:
        BatchError: there is no such model, or it does not have the task.
        CannotStart: the models folder cannot be read.
        MissingExtra: the extra `service` is not installed.
    """
    options = Options(task, DEFAULT_COLUMNS[task], model, top_k=top_k, rerank_model=rerank_model, rerank_top=rerank_top)
    found = LocalModels(models_dir)
    return found.scorer(make_task(options, found.listed), nulls=nulls)


class LocalModels:
    """The models of a folder: what a batch asks instead of a client. Only manifests are read until a task is asked."""

    def __init__(self, models_dir: str | Path | None = None) -> None:
        """List the models; raises as `scorer`."""
        settings = local_settings(models_dir)
        with needs("opening models here", extra="service"):
            from service.columns import listed
            from service.models.defaults import ROUTES, chosen, main_models, usual_reranker
            from service.scoring.ranking import RERANK_TOP
        self._folders = starting(lambda: listed(settings))
        main = {each.manifest.id for each in self._folders.values()} & set(main_models(settings))
        infos = [
            _described(name, each, main=not main or each.manifest.id in main) for name, each in self._folders.items()
        ]
        defaults: dict[str, str] = {}
        for route, (setting, capability) in ROUTES.items():
            able = [info.id for info in infos if capability in info.tasks]
            if name := getattr(settings, setting) or chosen(capability, list(dict.fromkeys(able))):
                defaults[route] = name
        limits = {name: getattr(settings, name, settings.request_timeout) for name in LimitsInfo.__dataclass_fields__}
        rerank = RerankInfo(usual_reranker(settings, self._folders), RERANK_TOP)
        self.listed = Models(infos, defaults, rerank, LimitsInfo(**limits))

    async def models(self) -> Models:
        """The models of the folder, the defaults and the limits."""
        return self.listed

    async def ask(self, task: Task, items: Sequence[Any]) -> list[Row]:
        """The new cells for each item, as `Task.ask` gives them; each request has a thread.

        Raises:
            RequestFailed: an item is refused, or a graph failed.
            CannotStart: a model cannot be opened.
        """
        columns = await asyncio.to_thread(self.scorer(task), *zip(*items, strict=True))
        return [
            dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)
        ]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is to be closed: opened models stay for the next batch of this process."""

    def scorer(self, task: Task, *, nulls: bool = False) -> Scorer:
        """The scorer of a task of `semblance batch`."""
        options = task.options
        return Scorer(
            options.task,
            self._source(task.model),
            None if task.second is None else self._source(task.second),
            dict(task.adds),
            options.top_k,
            options.rerank_top or self.listed.rerank.default_top,
            nulls,
        )

    def _source(self, model: ModelInfo) -> Source:
        release = self._folders[model.name].release
        root, folder = (str(Path(path).absolute()) for path in (release.root, release.folder))
        return Source(root, folder, release.id, release.version, model.fingerprint)


def _described(name: str, each: Any, *, main: bool) -> ModelInfo:
    manifest = each.manifest
    return ModelInfo(
        id=manifest.id,
        name=name,
        version=each.release.version,
        versions=list(each.versions),
        title=manifest.title,
        architecture=manifest.architecture,
        family=manifest.family,
        tasks=[*manifest.tasks, *(["embedding"] if manifest.encoder else [])],
        default_for=[],
        dim=manifest.dim,
        max_tokens=manifest.limits.max_tokens,
        rating_scale=manifest.similarity.label_scale if manifest.similarity else None,
        labels=None,
        explanations=ExplanationNames([], []),
        provider="cpu",
        cache=[],
        fingerprint=manifest.fingerprint,
        main=main,
    )


_OPENED: dict[Source, Any] = {}  # in this process
_OPENING = threading.Lock()


def _opened(source: Source) -> Any:
    """The open model, a `service.columns.Columns`."""
    found = _OPENED.get(source)
    if found is None:
        with _OPENING:
            found = _OPENED.get(source)
            if found is None:
                found = _OPENED[source] = starting(lambda: _open(source))
    return found


def _open(source: Source) -> Any:
    settings = local_settings(source.root)
    from service.columns import Columns
    from service.models.repository import Release

    return Columns(settings, Release(source.id, source.version, Path(source.folder)), source.fingerprint)


def _asking(answer: Callable[[], T]) -> T:
    """What a function of the service answers, its errors translated."""
    from service.errors import RequestError

    try:
        return answer()
    except RequestError as error:
        raise ServiceFailed(error.status, error.code, error.message) from None


def _read(core: Any, column: Sequence[Any], name: str) -> list[Any]:
    """What the model reads of each row, or why nothing; of candidates a list."""
    if name != "candidates":
        return list(core.read(list(column), "query" if name == "query" else "text"))
    lists = [list(each) if isinstance(each, list | tuple | np.ndarray) else [None] for each in column]
    flat = iter(core.read([text for texts in lists for text in texts], "passage"))
    read = [[next(flat) for _ in texts] for texts in lists]
    # Without candidates there is nothing to order: as if the one there is were missing.
    return [next(filter(_is_unfit, texts), texts) if texts else core.read([None])[0] for texts in read]


def _is_unfit(found: Any) -> bool:
    return hasattr(found, "reason")


def _refusal(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> InvalidRequest:
    """The error for the first row without an answer."""
    row, place, unfit = next(
        (i, j, each) for i, row in enumerate(rows) for j, each in enumerate(row) if _is_unfit(each)
    )
    name = names[place % len(names)]
    of_pair = {"query": name, "candidates": name, "sentence": f"sentences.{row}"}
    return InvalidRequest(422, unfit.code, unfit.reason, field=of_pair.get(name, f"pairs.{row}.{name}"))


def _spread(column: Column | None, kind: Kind, kept: Sequence[int], n: int) -> Column:
    """The column with nulls in the rows that have no answer."""
    if kind in ("number", "flag", "vector"):
        width = () if kind != "vector" else ((0,) if column is None else column.shape[1:])
        dtype = {"number": np.float64, "flag": np.bool_, "vector": np.float32}[kind]
        spread: Column = np.full((n, *width), False if kind == "flag" else np.nan, dtype)
    else:
        spread = np.full(n, None, dtype=object)
    if column is not None:
        spread[list(kept)] = column
    return spread


def _objects(values: Sequence[Any]) -> Column:
    found = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # an assignment of all would make a matrix of lists of one length
        found[i] = value
    return found
