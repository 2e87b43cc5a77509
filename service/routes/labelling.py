"""`POST /classify`: fields checked, texts read, an answer for each."""

from collections.abc import Sequence

from starlette.responses import Response

from service.errors import InvalidRequest, TooLarge, amount, quote
from service.routes.dialects import OURS
from service.routes.limits import MAX_TEMPLATE_CHARS, RequestTexts, check_fixed
from service.routes.routing import JsonAnswer, ServedRequest, router_for
from service.schemas import ClassifyRequest, ClassifyResponse
from service.scoring.classifying import PLACE, TEMPLATE, zero_shot
from service.scoring.classifying import classify as classified
from service.scoring.scorer import Scorer
from service.scoring.tokenising import check_texts

router = router_for(OURS, "scoring")


@router.post("/classify", summary="Label texts", response_model=ClassifyResponse)
async def classify(request: ClassifyRequest, call: ServedRequest) -> Response:
    """Label texts with the labels of the request, or else with a model's own."""
    service = call.service
    if request.labels is None:
        for field, given in (("template", request.template is not None), ("multi_label", request.multi_label)):
            if given:
                raise InvalidRequest(f"{field} needs labels, and the request has none", field=field)
        texts = RequestTexts.of("text", request.text)
        scorer, answer = await own_labels(call, texts, request.model)
    else:
        name = request.model or service.defaults["/entailment"]
        scorer = await service.registry.pick(call.context, name, "entailment")
        answer = await _with_labels(
            call, scorer, request.text, request.labels, request.template, multi_label=request.multi_label
        )
    return JsonAnswer(answer, scorer.id)


async def own_labels(call: ServedRequest, texts: RequestTexts, model: str | None) -> tuple[Scorer, ClassifyResponse]:
    """Label texts with the labels of the model of this name, or of the default one; who answered, and what.

    Raises:
        RequestError: no such model, or one without the task; a text that does not fit.
    """
    context = call.context
    name = model or call.service.classifier
    if name is None:
        raise InvalidRequest(
            "without labels there is no default model: no model here has labels of its own", field="labels"
        )
    labelling = await call.service.registry.pick(context, name, "classification")
    call.check_count(texts.field, len(texts.texts), "max_sentences")
    check_texts(texts.texts, texts.where)
    sentences = await labelling.tokenise(context, texts.texts, texts.where)
    context.items = texts.field, len(sentences)
    return labelling, await classified(context, labelling, sentences)


async def _with_labels(
    call: ServedRequest,
    scorer: Scorer,
    text: str | Sequence[str],
    labels: Sequence[str],
    template: str | None,
    *,
    multi_label: bool,
) -> ClassifyResponse:
    """Label texts with any labels by a model with entailment."""
    texts, options = RequestTexts.of("text", text), RequestTexts.of("labels", labels)
    context, count, both = call.context, len(texts.texts), texts + options
    pairs = count * len(labels)
    longer = "text" if count >= len(labels) else "labels"
    call.check_count(longer, max(count, len(labels)), "max_pairs", each=min(count, len(labels)))
    check_texts(both.texts, both.where)
    most, of_a_text = call.service.settings.max_body_bytes, sum(map(len, labels))  # the answer names all with each text
    if count * of_a_text > most:
        fit = most // of_a_text
        why = f"with labels of {of_a_text} characters, which the answer has with each, {amount(fit, 'texts')} fit"
        raise TooLarge(f"{count} texts: {why} (SEMBLANCE_MAX_BODY_BYTES)", field="text", limit=fit)
    template = TEMPLATE if template is None else template
    check_fixed("template", len(template), MAX_TEMPLATE_CHARS, "characters of a template")
    if template.count(PLACE) != 1:
        raise InvalidRequest(f"expected one {PLACE} in the template, for the label", field="template")
    with context.before(pairs * scorer.seconds_per_new_pair):
        await scorer.tokenise(context, labels, options.where)  # raises where one is empty: its template has words
    known: set[str] = set()
    for i, label in enumerate(labels):
        if label in known:
            raise InvalidRequest(f"the label {quote(label)} was given before", field=options.where(i))
        known.add(label)
    hypotheses = [template.replace(PLACE, label) for label in labels]
    with context.before(pairs * scorer.seconds_per_new_pair):
        sentences = await scorer.tokenise(context, [*texts.texts, *hypotheses], both.where)
    context.items = ("text", count) if count > 1 else ("labels", len(labels))
    return await zero_shot(context, scorer, sentences[:count], labels, sentences[count:], multi_label=multi_label)
