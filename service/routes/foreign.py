"""What requests of other services' clients share: model names, limits, texts that are cut, scores and tokens.

They use the same registry, scorers, limits and metrics as our own routes.
"""

import base64
from collections.abc import Sequence
from functools import reduce
from itertools import chain
from operator import add
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from core.manifest import Manifest, Role
from core.scoring import Embeddings, best_first
from core.tokenizer import Encoded
from service.engine.admission import RequestContext
from service.errors import InvalidRequest, ModelError
from service.models.model import ServedModel
from service.routes.limits import RequestTexts
from service.routes.routing import ServedRequest
from service.scoring.scorer import Scorer
from service.scoring.tokenising import check_texts
from service.service import Service

Route = Literal["/similarity", "/rank", "/entailment", "/embed"]  # our route whose default model is used

_VALUES_OF_A_ROW = 5  # besides its numbers


class TokenisedTexts(NamedTuple):
    """Tokenised texts of one request, in groups."""

    groups: list[Sequence[Encoded]]  # two are both sides of pairs
    tokens: int  # of all texts, as cut
    warnings: list[str]  # one for each text that was cut


class Comparison(NamedTuple):
    """Scores of the pairs of one request."""

    model: str
    scores: list[float]  # of each pair
    order: list[int]  # positions of the pairs, best first; of equal ones the earlier first
    tokens: int
    warnings: list[str]


class Embedded(NamedTuple):
    """Embeddings of the texts of one request."""

    model: str
    embeddings: Embeddings
    tokens: int
    warnings: list[str]


def check_aliases(service: Service) -> None:
    """Check the aliases in the settings.

    Raises:
        ModelError: an alias is a model's own name, or names no model.
    """
    for alias, name in service.settings.model_aliases.items():
        if alias in service.registry:
            raise ModelError(f"SEMBLANCE_MODEL_ALIASES: {alias!r} is a model's own name")
        if name not in service.registry:
            known = ", ".join(service.registry)
            raise ModelError(f"SEMBLANCE_MODEL_ALIASES: {alias!r} stands for {name!r}, which is not among {known}")


def resolve(service: Service, name: str | None, route: Route) -> str:
    """The model name for a client's name; without one the default of a route of ours."""
    return meant(service, name) or service.defaults[route]


def meant(service: Service, name: str | None) -> str | None:
    """The model name for a client's name, if there is one."""
    return service.settings.model_aliases.get(name, name) if name else None


def find_model(service: Service, name: str) -> ServedModel:
    """The model for a client's name.

    Raises:
        UnknownModel: there is none.
    """
    return service.registry.find(resolve(service, name, "/embed"), "similarity")


async def compare(
    context: RequestContext,
    service: Service,
    route: Route,
    model: str | None,
    a: RequestTexts,
    b: RequestTexts,
    *,
    raw: bool = False,
) -> Comparison:
    """Score pairs of texts with one model.

    Args:
        route: whose default model is used if none is named.
        model: the client's name for it.
        a: as many texts as `b`, or one that is compared with each.
        b: at least one text.
        raw: whether to return raw scores instead of calibrated ones in 0..1.

    Raises:
        RequestError: an unknown model, one without the task, an invalid text, and errors of scorers.
    """
    scorer, ranks = await service.pick(context, route, meant(service, model), "similarity"), route == "/rank"
    reading = await _read(context, service, scorer, a, b, roles=("query", "passage") if ranks else ("text", "text"))
    left, right = reading.groups
    task = scorer.ranking_task if ranks else "similarity"
    context.items = (b if len(b.texts) > 1 else a).field, len(left)
    answer = await scorer.similarity(context, left, right, task)
    scores, order = answer.raw if raw else answer.score, best_first(answer.raw, answer.score)
    return Comparison(scorer.id, scores, order, reading.tokens, reading.warnings)


async def entail(
    context: RequestContext, service: Service, model: str | None, premises: RequestTexts, hypotheses: RequestTexts
) -> tuple[str, list[dict[str, float]], list[str]]:
    """Label pairs: the name of the model, the probabilities of each pair, and a warning for each text that was cut.

    Raises:
        RequestError: as `compare`.
    """
    scorer = await service.pick(context, "/entailment", meant(service, model), "entailment")
    reading = await _read(context, service, scorer, premises, hypotheses)
    context.items = premises.field, len(premises.texts)
    answers = await scorer.entailment_or_neutral(context, *reading.groups)
    return scorer.id, answers, reading.warnings


async def embed(
    context: RequestContext,
    service: Service,
    model: str | None,
    texts: RequestTexts,
    *,
    unit: bool,
    dimensions: int | None,
    role: Role = "text",
    dimensions_field: str = "dimensions",
) -> Embedded:
    """Embed texts with one model.

    Args:
        model: the client's name for it.
        texts: at least one.
        unit: whether to divide each embedding by its length.
        dimensions: how many numbers of each to keep: the first, divided by their length where `unit` says so.
        role: what the texts are for.
        dimensions_field: as the request calls it.

    Raises:
        InvalidRequest: the model has fewer, or compares embeddings by more than their direction.
        RequestError: as `compare`.
    """
    scorer = await service.pick(context, "/embed", meant(service, model), "embedding")
    if dimensions is not None:
        _check_dimensions(scorer.manifest, dimensions, dimensions_field)
    reading = await _read(context, service, scorer, texts, roles=(role,))
    context.items = texts.field, len(texts.texts)
    embeddings = await scorer.embed(context, reading.groups[0])
    embeddings = embeddings[:, :dimensions]
    if unit:
        lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
        lengths[lengths == 0] = 1  # zeros stay zeros
        embeddings = np.asarray(embeddings / lengths, np.float32)
    return Embedded(scorer.id, embeddings, reading.tokens, reading.warnings)


async def tokenise(
    call: ServedRequest, model: str | None, texts: RequestTexts
) -> tuple[Scorer, Sequence[Encoded], list[str]]:
    """The model that a client names, whatever it can do, its token ids of each text, and a warning for each that was
    cut; raises as `compare`."""
    context, service, registry = call.context, call.service, call.service.registry
    while (found := registry.find(resolve(service, model, "/similarity"), "similarity")).opened is None:
        await registry.open(context, found)
    scorer = found.scorer
    call.check_count(texts.field, len(texts.texts), "max_sentences")
    reading = await _read(context, service, scorer, texts)
    return scorer, reading.groups[0], reading.warnings


async def _read(
    context: RequestContext,
    service: Service,
    scorer: Scorer,
    *groups: RequestTexts,
    roles: Sequence[Role] = ("text", "text"),
) -> TokenisedTexts:
    """Tokenise one group of texts, or two that are compared, cut as the client and the model want.

    Raises:
        TooLarge: a text may not be cut.
        UnsupportedField: one would have to be cut in another way.
    """
    for group in groups:
        check_texts(group.texts, group.where)
    every = reduce(add, groups)
    if scorer.manifest.prompts is None or len(set(roles)) == 1:
        found = iter(await scorer.tokenise(context, every.texts, every.where, role=roles[0]))
    else:
        each = [
            await scorer.tokenise(context, g.texts, g.where, role=role) for g, role in zip(groups, roles, strict=False)
        ]
        found = chain.from_iterable(each)
    prompts = [scorer.prompt_tokens(role) for role in roles[: len(groups)]]
    read: list[Sequence[Encoded]] = [
        [group.cut(next(found), prompt) for _ in group.texts] for group, prompt in zip(groups, prompts, strict=True)
    ]
    if len(read) > 1:
        a, b = read
        read = list(scorer.fit([*a] * len(b) if len(a) == 1 else a, b))
    tokens, warnings = 0, []
    for group, prompt, sentences in zip(groups, prompts, read, strict=True):
        # One text of all pairs: as it was cut most.
        once = sentences if len(group.texts) == len(sentences) else [min(sentences, key=lambda each: len(each.ids))]
        tokens += sum(len(sentence.ids) for sentence in once)
        for i, own in ((i, len(each.ids) - prompt) for i, each in enumerate(once) if each.truncated):
            if (refusal := group.cutting.refusal(own, group.where(i))) is not None:
                raise refusal
            warnings.append(f"{group.where(i)}: only its first {_tokens(own)} read")
    return TokenisedTexts(read, tokens, warnings)


def _tokens(count: int) -> str:
    return "token was" if count == 1 else f"{count} tokens were"


def _check_dimensions(manifest: Manifest, dimensions: int, field: str) -> None:
    task, dim, shorter = manifest.similarity, manifest.dim or 0, manifest.dimensions
    if shorter and dimensions not in (dim, *shorter):
        others = ", ".join(map(str, shorter))
        raise InvalidRequest(f"model {manifest.id} has {dim} dimensions, also {others}", field=field, limit=dim)
    if dimensions > dim:
        raise InvalidRequest(f"model {manifest.id} has {dim} dimensions", field=field, limit=dim)
    if dimensions < dim and (task is None or task.comparison != "cosine"):
        message = f"only embeddings that are compared by their cosine can be cut, and those of {manifest.id} are not"
        raise InvalidRequest(message, field=field, limit=dim)


def values_of(matrix: Embeddings) -> int:
    """What its rows cost in an answer, as `ServedRequest.answer` counts."""
    return matrix.size // 2 + _VALUES_OF_A_ROW * len(matrix)


def base64_of(matrix: Embeddings) -> list[str]:
    """The rows for an answer, as base64 of little-endian float32."""
    return [base64.b64encode(row.tobytes()).decode() for row in matrix.astype("<f4")]


def rows_of(matrix: npt.NDArray[Any]) -> list[list[float]]:
    """The rows for an answer: arrays, which orjson writes in a third of the time of lists, and with fewer digits."""
    return cast(list[list[float]], list(np.ascontiguousarray(matrix)))
