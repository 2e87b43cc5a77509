"""`POST /dedupe`: fields checked, models picked, an answer for each text."""

from starlette.responses import Response

from core.manifest import Task
from service.engine.admission import RequestContext
from service.errors import TooLarge, TooSlow
from service.routes.dialects import OURS
from service.routes.routing import JsonAnswer, ServedRequest, router_for
from service.schemas import DedupeRequest, DuplicatesResponse
from service.scoring.duplicates import FIELD, MAX_TEXTS, expected_seconds, find_duplicates
from service.scoring.scorer import Scorer
from service.scoring.tokenising import check_texts
from service.service import Service

router = router_for(OURS, "scoring")
_READS: tuple[Task, ...] = ("paraphrase", "entailment")  # what a model must know that reads pairs


@router.post("/dedupe", summary="Which texts say the same", response_model=DuplicatesResponse)
async def dedupe(request: DedupeRequest, call: ServedRequest) -> Response:
    """Say for each text which is the first one that says the same."""
    service, context = call.service, call.context
    count = len(request.texts)
    if count > MAX_TEXTS:
        raise TooLarge(f"{count} texts, the limit is {MAX_TEXTS}", field=FIELD, limit=MAX_TEXTS)
    encoder = await service.registry.pick(context, request.model or service.defaults["/embed"], "embedding")
    pair = await _pair_model(context, service, request.pair_model)
    check_texts(request.texts, f"{FIELD}.{{}}".format)
    distinct = len(set(request.texts))  # the same text is one work, however often it stands there
    seconds, possible = sum(expected_seconds(encoder, pair, distinct)), service.queue.admissions.possible(context)
    if seconds / 2 > possible:
        raise TooSlow(seconds, possible).of(FIELD, distinct, "different texts" if distinct < count else "")
    context.items = FIELD, distinct
    answer = await find_duplicates(context, encoder, pair, service.queue, request.texts, guarded=request.guard)
    return JsonAnswer(answer, encoder.id)


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
