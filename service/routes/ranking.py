"""`POST /rank`: candidates or entries of an FAQ checked, models picked, and ranked in one stage or two."""

from collections.abc import Sequence

from starlette.responses import Response

from core.ranking import ConfidenceFit, Match, digest_of, texts_of
from service.engine.admission import RequestContext
from service.errors import EmptyText, InvalidRequest, quote, some
from service.routes.dialects import OURS
from service.routes.routing import ServedRequest, router_for
from service.schemas import Entry, RankRequest, RankResponse
from service.scoring import ranking
from service.scoring.ranking import RERANK_TOP, Candidates, RankOptions
from service.scoring.scorer import Scorer
from service.scoring.tokenising import check_chars, check_texts
from service.service import Service

router = router_for(OURS, "scoring")
_FIELDS: dict[Match, tuple[str, ...]] = {
    "question": (".question",),
    "answer": (".answer",),
    "both": ("",),  # an error of both as one text names the entry
    "either": (".question", ".answer"),
}


@router.post(
    "/rank", summary="Order candidates by their relevance, or similarity, to a query", response_model=RankResponse
)
async def rank(request: RankRequest, call: ServedRequest) -> Response:
    """Order candidates, or say which entry of an FAQ answers, if one does."""
    service, context = call.service, call.context
    if (request.candidates is None) == (request.entries is None):
        raise InvalidRequest("expected either candidates, or entries of an FAQ", field="candidates")
    candidates = _candidates(call, request)
    first = await service.pick(context, "/rank", request.model, "similarity")
    second = await _second_stage(context, service, request)
    check_chars("query", len(request.query))
    check_texts(candidates.texts, candidates.field_of)
    top = min(request.rerank_top or RERANK_TOP, candidates.size)
    if first.manifest.family == "interaction":  # whose pairs with a new query are all new
        count = len(candidates.texts)
        seconds = first.seconds_of(first.ranking_task, [request.query] * count, candidates.texts)
        if (error := service.queue.admissions.too_slow(context, seconds, seconds / 2)) is not None:
            raise error.of(candidates.field, count)
    options = _options(request, _fit(request, first, second, candidates.size), top)
    context.items = candidates.field, candidates.size
    answer = await ranking.rank(context, first, request.query, candidates, second, options)
    if request.entries is not None:
        for result in (*answer["results"], *answer.get("suggestions", ())):
            if (name := request.entries[result["index"]].get("id")) is not None:
                result["id"] = name
    values = sum(map(len, (*answer["results"], *answer.get("suggestions", ()))))
    return await call.answer(first.id, values, lambda: answer)


def _candidates(call: ServedRequest, request: RankRequest) -> Candidates:
    """The texts to order, and where in the request each stands; their number within its limit."""
    if request.candidates is not None:
        if "match" in request.model_fields_set:
            raise InvalidRequest("it says what of entries is compared, and candidates are texts", field="match")
        call.check_count("candidates", len(request.candidates), "max_candidates")
        return Candidates("candidates", request.candidates)
    entries = request.entries or []
    names = _FIELDS[request.match]
    _check_entries(entries)
    call.check_count("entries", len(entries), "max_candidates", each=len(names))
    texts = [text for entry in entries for text in texts_of(entry["question"], entry["answer"], request.match)]
    return Candidates("entries", texts, names)


def _check_entries(entries: Sequence[Entry]) -> None:
    """Refuse what the command refuses in a file: a text that nobody sees, and an id that names two entries."""
    indices: dict[str, int] = {}
    for index, entry in enumerate(entries):
        for name in ("question", "answer"):
            if not entry[name].strip():
                raise EmptyText(f"entries.{index}.{name}")
        if (known := entry.get("id")) is not None and indices.setdefault(known, index) != index:
            message = f"{quote(known)} is the id of entries.{indices[known]} too"
            raise InvalidRequest(message, field=f"entries.{index}.id")


async def _second_stage(context: RequestContext, service: Service, request: RankRequest) -> Scorer | None:
    """The model of the second stage, if the request asks for one."""
    if request.rerank_model is None and request.rerank_top is None:
        return None
    name = request.rerank_model or service.reranker
    if name is None:
        able = some(service.registry.able("similarity"))
        message = f"there is no default model for the second stage; name one of: {able}"
        raise InvalidRequest(message, field="rerank_model")
    return await service.registry.pick(context, name, "similarity", field="rerank_model", ranks=True)


def _fit(request: RankRequest, first: Scorer, second: Scorer | None, count: int) -> ConfidenceFit | None:
    """What makes `confidence` of a ranking: the request's own fit, else that of the first model; None: nothing.

    Raises:
        InvalidRequest: the request's fit is for other models, or there is none and `min_confidence` needs one.
    """
    of_first = first.id, first.manifest.fingerprint
    of_second = None if second is None else (second.id, second.manifest.fingerprint)
    wanted_top = request.rerank_top or RERANK_TOP
    own = request.confidence_fit
    if own is not None and not own.is_for(of_first, of_second, wanted_top):
        message = "it was fitted for other models, other versions of them or another rerank_top: choose again"
        raise InvalidRequest(message, field="confidence_fit")
    if own is not None and request.entries is not None and own.match not in (None, request.match):
        message = f"it was fitted with match {own.match!r}: ask with that, or choose again"
        raise InvalidRequest(message, field="confidence_fit")
    if own is not None and own.entries is not None:
        given = digest_of((entry["question"], entry["answer"]) for entry in request.entries or ())
        if given != own.entries:
            message = "it was fitted on other entries: one was changed, added or left out since; choose again"
            raise InvalidRequest(message, field="confidence_fit")
    published = (fit for fit in first.manifest.confidence if fit.is_for(of_first, of_second, wanted_top))
    fit = own or next(published, None)
    if request.min_confidence is None:
        return fit
    if fit is None:
        names = first.id if second is None else f"{first.id} before {second.id} with rerank_top {wanted_top}"
        message = (
            f"no confidence was fitted for {names}; min_score works with every model, and semblance choose --faq fits"
        )
        raise InvalidRequest(message, field="min_confidence")
    if min(count, wanted_top if second is not None else count) < 2:
        raise InvalidRequest("a confidence needs two candidates or more", field="min_confidence")
    return fit


def _options(request: RankRequest, fit: ConfidenceFit | None, top: int) -> RankOptions:
    """The options of a ranking whose second stage orders `top` candidates."""
    asks_least = request.min_score is not None or request.min_confidence is not None
    own_threshold = None if fit is None or asks_least else fit.threshold
    return RankOptions(
        top_k=request.top_k,
        rerank_top=top,
        fit=fit,
        min_score=request.min_score,
        threshold=own_threshold if request.min_confidence is None else request.min_confidence,
        suggest_if_unanswered=asks_least or request.entries is not None,
    )
