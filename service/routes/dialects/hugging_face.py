"""Hugging Face's labels: `text_classification` and `zero_shot_classification` of `huggingface_hub.InferenceClient`.

A text gets the labels of the model that has some of its own, a pair those of entailment; with `candidate_labels` a text
gets any labels. Errors are TEI's.
"""

from typing import Annotated

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from service.engine.context import RequestContext
from service.routes.dialects.fields import AllowedValues, Changes, ForeignRequest, ModelName, OneTextOrPair
from service.routes.dialects.scoring import DialectContext
from service.routes.dialects.tei import TEI, TeiPrediction, predictions_of
from service.routes.labelling import Fields, with_labels
from service.routes.operation import Operation
from service.routes.texts import RequestTexts
from service.schemas import Text, TextList

_ZERO_SHOT = Fields("inputs", "parameters.candidate_labels", "parameters.hypothesis_template", "This example is {}.")


class TextClassificationParameters(ForeignRequest):
    """How many labels, and what their scores are."""

    top_k: Annotated[int | None, Changes(1)] = Field(None, ge=1)
    function_to_apply: Annotated[
        str | None,
        AllowedValues(None, "softmax", refuses=("sigmoid", "none"), says="scores are probabilities that sum to 1"),
    ] = None


class TextClassificationRequest(ForeignRequest):
    """A text or a pair to label: the task `text-classification` of Hugging Face."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"inputs": ["Two dogs run.", "Animals run."], "parameters": {}}]}
    )

    inputs: OneTextOrPair
    parameters: TextClassificationParameters
    model: ModelName = None


class ZeroShotParameters(ForeignRequest):
    """The labels, and how they are judged."""

    candidate_labels: TextList
    hypothesis_template: Annotated[str | None, Changes("the {} .")] = Field(
        None, description='"This example is {}." without it'
    )
    multi_label: Annotated[bool | None, Changes(True)] = Field(
        None, description="whether each label is judged by itself"
    )


class ZeroShotRequest(ForeignRequest):
    """A text to label with any labels: the task `zero-shot-classification` of Hugging Face."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"inputs": "The striker scored.", "parameters": {"candidate_labels": ["sports", "business"]}}]
        }
    )

    inputs: Text
    parameters: ZeroShotParameters
    model: ModelName = None


class ZeroShotLabels(TypedDict):
    """The labels, the most probable first, as the `transformers` pipeline gives them."""

    sequence: str
    labels: list[str]
    scores: list[float]


def operations(scoring: DialectContext) -> list[Operation]:
    """The POST requests of this dialect; on shared paths they are asked before TEI's."""

    async def classify(
        request: TextClassificationRequest, context: RequestContext
    ) -> tuple[str, list[list[TeiPrediction]]]:
        if isinstance(request.inputs, str):
            found = await scoring.label(context, request.model, RequestTexts.of("inputs", request.inputs))
            model, (probabilities,) = found.model, found.probabilities
        else:
            premise, hypothesis = request.inputs
            texts = (RequestTexts.of("inputs.0", premise), RequestTexts.of("inputs.1", hypothesis))
            model, (probabilities,), _ = await scoring.entail(context, request.model, *texts)
        return model, [predictions_of(probabilities)[: request.parameters.top_k]]

    async def zero_shot(request: ZeroShotRequest, context: RequestContext) -> tuple[str, list[TeiPrediction]]:
        asked = request.parameters
        scorer = await scoring.service.registry.pick(
            context, scoring.resolve(request.model, "/entailment"), "entailment"
        )
        answer = await with_labels(
            context,
            scoring.limits,
            scorer,
            request.inputs,
            asked.candidate_labels,
            asked.hypothesis_template,
            multi_label=asked.multi_label is True,
            fields=_ZERO_SHOT,
        )
        return scorer.id, predictions_of(answer["results"][0]["probabilities"])

    async def zero_shot_labels(request: ZeroShotRequest, context: RequestContext) -> tuple[str, ZeroShotLabels]:
        model, predictions = await zero_shot(request, context)
        labels, scores = [each["label"] for each in predictions], [each["score"] for each in predictions]
        return model, {"sequence": request.inputs, "labels": labels, "scores": scores}

    any_labels, labels = "Label a text with any labels", "parameters.candidate_labels"
    return [
        Operation("/classify", zero_shot_labels, TEI, any_labels, fields={"inputs": object}),
        # `huggingface_hub` posts to the base URL, and sends `parameters` with a text or a pair for labels alone.
        Operation("/", zero_shot, TEI, any_labels, fields={labels: object, "inputs": object}),
        Operation("/", classify, TEI, "Label a text or a pair", fields={"parameters": dict, "inputs": (str, list)}),
    ]
