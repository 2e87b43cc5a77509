"""`POST /classify`: fields checked, texts read, an answer for each."""

from collections.abc import Sequence

from starlette.responses import Response

from service.engine.admission import RequestContext
from service.errors import InvalidRequest, quote
from service.routes.dialects import OURS
from service.routes.limits import RequestLimits, RequestTexts, suggests_limit
from service.routes.routing import JsonAnswer, ServedRequest, router_for
from service.schemas import ClassifyRequest, ClassifyResponse
from service.scoring.classifying import PLACE, TEMPLATE, zero_shot
from service.scoring.classifying import classify as classified
from service.scoring.scorer import Scorer
from service.service import Service

router = router_for(OURS, "scoring")


@router.post("/classify", summary="Label texts", response_model=ClassifyResponse)
async def classify(request: ClassifyRequest, call: ServedRequest) -> Response:
    """Label texts with the labels of the request, or else with a model's own."""
    service, context = call.service, call.context
    limits = RequestLimits(service.settings)
    if request.labels is None:
        for field, given in (("template", request.template is not None), ("multi_label", request.multi_label)):
            if given:
                raise InvalidRequest(f"{field} needs labels, and the request has none", field=field)
        texts = RequestTexts.of("text", request.text)
        scorer, answer = await own_labels(context, service, limits, texts, request.model)
    else:
        name = request.model or service.defaults["/entailment"]
        scorer = await service.registry.pick(context, name, "entailment")
        answer = await _with_labels(
            context, limits, scorer, request.text, request.labels, request.template, multi_label=request.multi_label
        )
    return JsonAnswer(answer, scorer.id)


async def own_labels(
    context: RequestContext, service: Service, limits: RequestLimits, texts: RequestTexts, model: str | None
) -> tuple[Scorer, ClassifyResponse]:
    """Label texts with the labels of the model of this name, or of the default one; who answered, and what.

    Raises:
        RequestError: no such model, or one without the task; a text that does not fit.
    """
    name = model or service.classifier
    if name is None:
        raise InvalidRequest(
            "without labels there is no default model: no model here has labels of its own", field="labels"
        )
    labelling = await service.registry.pick(context, name, "classification")
    limits.check_count(texts.field, len(texts.texts), "max_sentences")
    limits.check_texts(texts)
    sentences = await labelling.tokenise(context, texts.texts, texts.where)
    with suggests_limit(texts.field, len(sentences)):
        return labelling, await classified(context, labelling, sentences)


async def _with_labels(
    context: RequestContext,
    limits: RequestLimits,
    scorer: Scorer,
    text: str | Sequence[str],
    labels: Sequence[str],
    template: str | None,
    *,
    multi_label: bool,
) -> ClassifyResponse:
    """Label texts with any labels by a model with entailment."""
    texts, options = RequestTexts.of("text", text), RequestTexts.of("labels", labels)
    count, both = len(texts.texts), texts + options
    limits.check_product("labels", (count, "texts"), (len(labels), "labels"))
    limits.check_texts(both)
    if template is None:
        template = TEMPLATE
    else:
        limits.check_texts(RequestTexts.of("template", template))
        if PLACE not in template:
            raise InvalidRequest(f"the template has no {PLACE} for the label", field="template")
        limits.check_expanded("template", template, PLACE, labels)
    await scorer.tokenise(context, labels, options.where)  # raises where one is empty: its template has words
    known: set[str] = set()
    for i, label in enumerate(labels):
        if label in known:
            raise InvalidRequest(f"the label {quote(label)} was given before", field=options.where(i))
        known.add(label)
    hypotheses = [template.replace(PLACE, label) for label in labels]
    sentences = await scorer.tokenise(context, [*texts.texts, *hypotheses], both.where)
    with suggests_limit("text", count):
        return await zero_shot(context, scorer, sentences[:count], labels, sentences[count:], multi_label=multi_label)
