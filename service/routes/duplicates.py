"""`POST /dedupe`: fields checked, models picked, an answer for each text."""

from starlette.responses import Response

from core.manifest import Task
from service.engine.admission import RequestContext
from service.routes.dialects import OURS
from service.routes.limits import check_fixed
from service.routes.routing import ServedRequest, router_for
from service.schemas import DedupeRequest, DuplicatesResponse
from service.scoring.duplicates import FIELD, MAX_TEXTS, MOST_READ, expected_seconds, find_duplicates
from service.scoring.scorer import Scorer
from service.scoring.tokenising import check_texts
from service.service import Service

router = router_for(OURS, "scoring")
_VALUES_OF_AN_ITEM = 7  # of an answer, with itself, at most
_READS: tuple[Task, ...] = ("paraphrase", "entailment")  # what a model must know that reads pairs


@router.post("/dedupe", summary="Which texts say the same", response_model=DuplicatesResponse)
async def dedupe(request: DedupeRequest, call: ServedRequest) -> Response:
    """Say for each text which is the first one that says the same."""
    service, context = call.service, call.context
    encoder = await service.registry.pick(context, request.model or service.defaults["/embed"], "embedding")
    pair = await _pair_model(context, service, request.pair_model)
    check_texts(request.texts, f"{FIELD}.{{}}".format)
    texts, count = list(dict.fromkeys(request.texts)), len(request.texts)  # the same text is one work
    embedding, reading = expected_seconds(encoder, pair, texts)
    most, surely = embedding + MOST_READ * reading, (embedding + reading) / 2
    # Before the count, so that the lesser limit is named.
    if (error := service.queue.admissions.too_slow(context, most, surely)) is not None:
        raise error.of(FIELD, len(texts), "different texts" if len(texts) < count else "")
    check_fixed(FIELD, count, MAX_TEXTS, FIELD)
    context.items = FIELD, len(texts)
    answer = await find_duplicates(context, encoder, pair, service.queue, request.texts, guarded=request.guard)
    values = _VALUES_OF_AN_ITEM * sum(len(answer[each]) for each in ("results", "review", "apart"))
    return await call.answer(encoder.id, values, lambda: answer)


async def _pair_model(context: RequestContext, service: Service, name: str | None) -> Scorer | None:
    """The model that reads pairs; None: none is named, and the default one of /entailment knows no paraphrase."""
    registry = service.registry
    able = [each for each in registry.able("paraphrase") if each in registry.able("entailment")]
    if name is None:
        name = service.defaults.get("/entailment")
        if name not in able:
            return None
    for task in _READS:
        found = await registry.pick(context, name, task, "pair_model")
    return found
