"""`POST /classify`: fields checked, texts read, an answer for each."""

from collections.abc import Sequence

from service.engine.context import RequestContext
from service.errors import InvalidRequest, quote
from service.routes.body import RequestLimits, counted
from service.routes.texts import RequestTexts
from service.schemas import ClassifyRequest, ClassifyResponse
from service.scoring.classifying import PLACE, TEMPLATE, classify, zero_shot
from service.scoring.scorer import Scorer
from service.service import Service


async def answer_classify(
    context: RequestContext, service: Service, limits: RequestLimits, request: ClassifyRequest
) -> tuple[str, ClassifyResponse]:
    """Label texts with the labels of the request, or else with a model's own: the model that answered, and the answer.

    Raises:
        RequestError: no such model, or one without the task; a field or a text that does not fit.
    """
    if request.labels is not None:
        scorer = await service.registry.pick(context, request.model or service.defaults["/entailment"], "entailment")
        answer = await with_labels(
            context, limits, scorer, request.text, request.labels, request.template, multi_label=request.multi_label
        )
        return scorer.id, answer
    for field, given in (("template", request.template is not None), ("multi_label", request.multi_label)):
        if given:
            raise InvalidRequest(f"{field} needs labels, and the request has none", field=field)
    scorer, answer = await own_labels(context, service, limits, RequestTexts.of("text", request.text), request.model)
    return scorer.id, answer


async def own_labels(
    context: RequestContext, service: Service, limits: RequestLimits, texts: RequestTexts, model: str | None
) -> tuple[Scorer, ClassifyResponse]:
    """Label texts with the labels of the model of this name, or of the default one; who answered, and what.

    Raises:
        RequestError: as `answer_classify`.
    """
    name = model or service.classifier
    if name is None:
        raise InvalidRequest(
            "without labels there is no default model: no model here has labels of its own", field="labels"
        )
    labelling = await service.registry.pick(context, name, "classification")
    limits.check_count(texts.field, len(texts.texts), "max_sentences")
    limits.check_texts(texts)
    read = await labelling.read(context, texts.texts, texts.where)
    with counted(texts.field, len(read)):
        return labelling, await classify(context, labelling, read)


async def with_labels(
    context: RequestContext,
    limits: RequestLimits,
    scorer: Scorer,
    text: str | Sequence[str],
    labels: Sequence[str],
    template: str | None,
    *,
    multi_label: bool,
) -> ClassifyResponse:
    """Label texts with any labels by a model with entailment; raises as `answer_classify`."""
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
    await scorer.read(context, labels, options.where)  # raises where one is empty: its template has words
    known: set[str] = set()
    for i, label in enumerate(labels):
        if label in known:
            raise InvalidRequest(f"the label {quote(label)} was given before", field=options.where(i))
        known.add(label)
    hypotheses = [template.replace(PLACE, label) for label in labels]
    sentences = await scorer.read(context, [*texts.texts, *hypotheses], both.where)
    with counted("text", count):
        return await zero_shot(context, scorer, sentences[:count], labels, sentences[count:], multi_label=multi_label)
