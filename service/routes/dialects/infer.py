"""Open Inference Protocol: `POST /v2/models/{model}/infer`, texts in and numbers out.

The names of the inputs say what is asked, as the fields of our own routes do: `a` and `b`, `query` and `candidates`,
`premise` and `hypothesis`, or `text`. Inputs and outputs may be binary (`service/routes/tensors.py`).
"""

from typing import Annotated, Any, Literal, NamedTuple, NotRequired, cast

import numpy as np
import numpy.typing as npt
import orjson
from pydantic import ConfigDict, Field, JsonValue, PlainValidator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from service.engine.context import RequestContext
from service.errors import InvalidRequest, amount, quote
from service.models.model import ServedModel
from service.routes.body import BodyLimits, Limit
from service.routes.dialects.fields import AllowedValues, Changes, ForeignRequest
from service.routes.dialects.scoring import Comparison, DialectContext
from service.routes.operation import Dialect, Operation, OperationResponse, RequestView, state_of
from service.routes.tensors import JSON_LENGTH, TENSORS, elements, split, texts_of_bytes, write
from service.routes.texts import RequestTexts
from service.schemas import Text
from service.scoring.scorer import Capability

_MOST_DIMENSIONS = 4
_MOST_INPUTS = 8

Array = npt.NDArray[Any]


class Form(NamedTuple):
    """What may be asked: the names of its inputs, what the model must have, and the limit of texts in an input."""

    inputs: tuple[str, ...]
    capability: Capability
    limit: Limit


PAIRS = Form(("a", "b"), "similarity", "max_pairs")
RANKING = Form(("query", "candidates"), "similarity", "max_candidates")
ENTAILMENT = Form(("premise", "hypothesis"), "entailment", "max_pairs")
EMBEDDING = Form(("text",), "embedding", "max_sentences")
FORMS = (PAIRS, RANKING, ENTAILMENT, EMBEDDING)


def _flat(value: object) -> list[str]:
    """The texts of a list, or of lists in it: the protocol allows both."""
    found: list[str] = []
    for item in value if isinstance(value, list) else [None]:
        for text in item if isinstance(item, list) else [item]:
            if not isinstance(text, str):
                raise PydanticCustomError("data", "expected a list of texts")
            found.append(text)
    return found


NoSharedMemory = Annotated[
    str | None, AllowedValues(None, refuses=("region",), says="memory is not shared: send values in the body")
]


class TensorParameters(ForeignRequest):
    """Where the values of a tensor are, or are to be."""

    binary_data_size: int | None = Field(None, ge=0, description="of an input: its bytes after the JSON")
    shared_memory_region: NoSharedMemory = None


class OutputParameters(ForeignRequest):
    """How an output is to be sent."""

    binary_data: Annotated[bool | None, Changes(True)] = Field(
        None, description="after the JSON; without it, as binary_data_output says"
    )
    classification: Annotated[
        int | None, AllowedValues(None, 0, refuses=(3,), says="the best classes are not offered")
    ] = None
    shared_memory_region: NoSharedMemory = None


class RequestParameters(ForeignRequest):
    """How all outputs are to be sent."""

    binary_data_output: Annotated[bool, Changes(True)] = False


class InputTensor(ForeignRequest):
    """A tensor of texts, which is an input of the request."""

    name: str
    datatype: Literal["BYTES"]
    shape: list[Annotated[int, Field(ge=1)]] = Field(min_length=1, max_length=_MOST_DIMENSIONS, fail_fast=True)
    data: Annotated[list[str] | None, PlainValidator(_flat, json_schema_input_type=list[Text] | list[list[Text]])] = (
        None
    )
    parameters: TensorParameters = TensorParameters()


class OutputName(ForeignRequest):
    """An output that is wanted."""

    name: str
    parameters: OutputParameters = OutputParameters()


def _example(**inputs: list[str]) -> JsonValue:
    tensors: list[JsonValue] = [
        {"name": name, "datatype": "BYTES", "shape": [len(texts)], "data": [*texts]} for name, texts in inputs.items()
    ]
    return {"inputs": tensors}


class InferRequest(ForeignRequest):
    """Texts to compare, order, label or embed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _example(a=["A man plays."], b=["Someone plays."]),
                _example(query=["Who plays?"], candidates=["A dog sleeps.", "A man plays a guitar."]),
                _example(text=["A man plays a guitar."]),
            ]
        }
    )

    inputs: list[InputTensor] = Field(min_length=1, max_length=_MOST_INPUTS, fail_fast=True)
    outputs: Annotated[
        Annotated[list[OutputName], Field(max_length=_MOST_INPUTS, fail_fast=True)] | None,
        Changes([{"name": "raw_score"}]),
    ] = Field(None, description="all without it")
    id: str | None = None
    parameters: RequestParameters = RequestParameters()


class OutputTensor(TypedDict):
    """A tensor of numbers by rows, which is an output."""

    name: str
    datatype: Literal["FP32", "FP64", "INT64"]
    shape: list[int]
    data: NotRequired[list[float]]
    parameters: NotRequired[Annotated[dict[str, int], Field(description="binary_data_size, where they follow")]]


class InferResponse(TypedDict):
    """The outputs that were asked for, or all."""

    model_name: str
    id: NotRequired[str]
    outputs: list[OutputTensor]
    parameters: NotRequired[Annotated[dict[str, str], Field(description="`warnings`: what was cut, if anything was")]]


class Tensor(TypedDict):
    """An input or output, as a model's metadata names it."""

    name: str
    datatype: Literal["BYTES", "FP32", "FP64", "INT64"]
    shape: Annotated[list[int], Field(description="-1 where it varies")]


def inputs_of(model: ServedModel) -> list[Tensor]:
    """Every input that a model takes; a request has those of one form."""
    names = [name for form in FORMS if form.capability in model.capabilities for name in form.inputs]
    return [{"name": name, "datatype": "BYTES", "shape": [1 if name == "query" else -1]} for name in names]


def outputs_of(model: ServedModel) -> list[Tensor]:
    """Every output that a model has, each in one form or more."""
    manifest, found = model.manifest, list[Tensor]()
    if "similarity" in model.capabilities:
        found += [{"name": name, "datatype": "FP64", "shape": [-1]} for name in ("score", "raw_score")]
        if manifest.similarity is not None and manifest.similarity.label_scale is not None:
            found.append({"name": "rating", "datatype": "FP64", "shape": [-1]})
        found.append({"name": "order", "datatype": "INT64", "shape": [-1]})
    if manifest.entailment is not None:
        found.append({"name": "probabilities", "datatype": "FP64", "shape": [-1, len(manifest.entailment.labels)]})
    if manifest.dim is not None:
        found.append({"name": "embedding", "datatype": "FP32", "shape": [-1, manifest.dim]})
    return found


class ParsedRequest(NamedTuple):
    """A request, as it was read."""

    model: str
    request: InferRequest
    form: Form
    texts: dict[str, list[str]]


class Infer(Operation):
    """`POST .../infer`, whose path names the model."""

    media = (TENSORS,)

    def __init__(self, path: str, scoring: DialectContext, dialect: Dialect, summary: str) -> None:
        """Create the operation of one path."""
        self._scoring = scoring
        tensors = {"content": {TENSORS.decode(): {"schema": {"type": "string", "format": "binary"}}}}
        super().__init__(path, self._infer, dialect, summary, responses={200: tensors})
        self.name = "infer"

    def read(self, asked: RequestView, most: BodyLimits) -> ParsedRequest:
        """The request in a body: JSON, and the values of tensors after it.

        Raises:
            RequestError: it does not fit.
        """
        head, rest = split(asked.body, state_of(asked.scope).received.get(JSON_LENGTH))
        request: InferRequest = self._reader(head, most)
        form = _form(request)
        return ParsedRequest(asked.scope["path_params"]["model"], request, form, self._texts(form, request, rest))

    async def answer(self, asked: RequestView, request: ParsedRequest) -> OperationResponse:
        """Ask the model; JSON, and the values of binary tensors after it."""
        context = state_of(asked.scope).context
        model, answer, values = await self.call(context, *request)
        payload = orjson.dumps(answer)
        if not values:
            return OperationResponse(payload, model=model)
        length = (JSON_LENGTH, b"%d" % len(payload))
        return OperationResponse(b"".join([payload, *values]), media=TENSORS, model=model, headers=(length,))

    async def _infer(
        self, context: RequestContext, model: str, request: InferRequest, form: Form, texts: dict[str, list[str]]
    ) -> tuple[str, InferResponse, list[bytes]]:
        scorer, warnings, outputs = await self._ask(context, form, model, texts)
        if request.outputs:
            wanted = [(each.name, each.parameters.binary_data) for each in request.outputs]
        else:
            wanted = [(each, None) for each in outputs]
        for i, (each, _) in enumerate(wanted):
            if each not in outputs:
                raise InvalidRequest(
                    f"no output {quote(each)} of these inputs; there are: {', '.join(outputs)}",
                    field=f"outputs.{i}.name",
                )
        otherwise = request.parameters.binary_data_output
        tensors, values = write(
            (each, outputs[each], otherwise if binary is None else binary) for each, binary in wanted
        )
        answer: InferResponse = {"model_name": scorer, "outputs": cast(list[OutputTensor], tensors)}
        if request.id is not None:
            answer["id"] = request.id
        if warnings:
            answer["parameters"] = {"warnings": "; ".join(warnings)}
        return scorer, answer, values

    def _texts(self, form: Form, request: InferRequest, rest: memoryview) -> dict[str, list[str]]:
        """The texts of each input; raises if they are not as long as they say, or too many."""
        found, at = {}, 0
        for i, tensor in enumerate(request.inputs):
            count = elements(tensor.shape, tensor.name)
            self._scoring.limits.check_count(tensor.name, count, form.limit)
            size = tensor.parameters.binary_data_size
            if (tensor.data is None) == (size is None):
                raise InvalidRequest("expected either data, or binary_data_size in parameters", field=f"inputs.{i}")
            if size is not None:
                if size > len(rest) - at:
                    raise InvalidRequest(
                        f"binary_data_size is {size}, and {len(rest) - at} bytes are left after the JSON "
                        "(Inference-Header-Content-Length says where it ends)",
                        field=f"inputs.{i}",
                    )
                found[tensor.name] = texts_of_bytes(rest[at : at + size], count, tensor.name)
                at += size
            elif tensor.data is not None:
                if len(tensor.data) != count:
                    raise InvalidRequest(
                        f"{amount(len(tensor.data), 'texts')} in data, and {count} by the shape",
                        field=f"inputs.{i}.data",
                    )
                found[tensor.name] = tensor.data
        if at != len(rest):
            raise InvalidRequest(f"{amount(len(rest) - at, 'bytes')} after those of the inputs")
        return found

    async def _ask(
        self, context: RequestContext, form: Form, name: str, texts: dict[str, list[str]]
    ) -> tuple[str, list[str], dict[str, Array]]:
        """Who answered, what was cut, and every output."""
        given = [RequestTexts.of(each, texts[each]) for each in form.inputs]
        if form is EMBEDDING:
            found = await self._scoring.embed(context, name, given[0], unit=False, dimensions=None)
            return found.model, found.warnings, {"embedding": found.embeddings}
        a, b = given
        one = form is not ENTAILMENT  # is compared with each
        if len(a.texts) != len(b.texts) and not (one and len(a.texts) == 1):
            expected = "expected one, or as many" if one else "expected as many"
            raise InvalidRequest(
                f"{amount(len(a.texts), 'texts')} in {form.inputs[0]} beside {len(b.texts)} in {form.inputs[1]}: "
                f"{expected}",
                field=form.inputs[0],
            )
        if form is RANKING and len(a.texts) != 1:
            raise InvalidRequest(f"{len(a.texts)} queries, expected one", field="query")
        if form is ENTAILMENT:
            scorer, answers, warnings = await self._scoring.entail(context, name, a, b)
            return scorer, warnings, {"probabilities": np.array([list(each.values()) for each in answers])}
        compared = await self._scoring.compare(context, "/rank" if form is RANKING else "/similarity", name, a, b)
        return compared.model, compared.warnings, _scores(compared, ordered=form is RANKING)


def _scores(found: Comparison, *, ordered: bool) -> dict[str, Array]:
    outputs: dict[str, Array] = {"score": np.array(found.scores), "raw_score": np.array(found.raw)}
    if ordered:
        outputs["order"] = np.array(found.order, np.int64)
    elif found.ratings is not None:
        outputs["rating"] = np.array(found.ratings)
    return outputs


def _form(request: InferRequest) -> Form:
    """What is asked, by the names of the inputs.

    Raises:
        InvalidRequest: the names are of no form, or one is there twice.
    """
    names = [tensor.name for tensor in request.inputs]
    for form in FORMS:
        if sorted(names) == sorted(form.inputs):
            return form
    known = "; ".join(" and ".join(form.inputs) for form in FORMS)
    raise InvalidRequest(f"inputs {', '.join(map(quote, names))}: expected those of one of {known}", field="inputs")
