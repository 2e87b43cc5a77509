"""Open Inference Protocol: `POST /v2/models/{model}/infer`, texts in and numbers out.

The names of the inputs say what is asked, as the fields of our own routes do: `a` and `b`, `query` and `candidates`,
`premise` and `hypothesis`, or `text`. Inputs and outputs may be binary (`service/api/tensors.py`).
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

import numpy as np
import numpy.typing as npt
import orjson
from fastapi.params import Depends
from fastapi.routing import APIRoute
from pydantic import ConfigDict, Field, JsonValue, PlainValidator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from service.api.body import Body, Reader
from service.api.dialects.family import Family
from service.api.dialects.fields import ForeignRequest
from service.api.dialects.operation import Endpoint
from service.api.dialects.scoring import Comparison, Scoring, Texts
from service.api.limits import Limit
from service.api.tensors import elements, split, texts_of_bytes, write
from service.errors import InvalidRequest, quote
from service.models.model import Capability, Model
from service.parsing import AT
from service.schemas import Text

PATHS = ("/v2/models/{model}/infer", "/v2/models/{model}/versions/{version}/infer")
_NAMED = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?/infer").fullmatch
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


class TensorParameters(ForeignRequest):
    """Where the values of a tensor are, or are to be."""

    binary_data_size: int | None = Field(None, ge=0, description="of an input: its bytes after the JSON")


class OutputParameters(ForeignRequest):
    """How an output is to be sent."""

    binary_data: bool | None = Field(None, description="after the JSON; without it, as binary_data_output says")
    classification: int | None = Field(None, ge=0, le=0, description="not offered")


class RequestParameters(ForeignRequest):
    """How all outputs are to be sent."""

    binary_data_output: bool = False


class InputTensor(ForeignRequest):
    """Texts."""

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
    outputs: Annotated[list[OutputName], Field(max_length=_MOST_INPUTS, fail_fast=True)] | None = Field(
        None, description="all without it"
    )
    id: str | None = None
    parameters: RequestParameters = RequestParameters()


class OutputTensor(TypedDict):
    """Numbers, by rows."""

    name: str
    datatype: Literal["FP32", "FP64", "INT64"]
    shape: list[int]
    data: NotRequired[list[float]]
    parameters: NotRequired[Annotated[dict[str, int], Field(description="binary_data_size, where they follow")]]


class InferResponse(TypedDict):
    """The outputs that were asked for, or all."""

    model_name: str
    model_version: NotRequired[Annotated[str, Field(description="where the model has versions")]]
    id: NotRequired[str]
    outputs: list[OutputTensor]
    parameters: NotRequired[Annotated[dict[str, str], Field(description="`warnings`: what was cut, if anything was")]]


class Tensor(TypedDict):
    """An input or output, as a model's metadata names it."""

    name: str
    datatype: Literal["BYTES", "FP32", "FP64", "INT64"]
    shape: Annotated[list[int], Field(description="-1 where it varies")]


def inputs_of(model: Model) -> list[Tensor]:
    """Every input that a model takes; a request has those of one form."""
    names = [name for form in FORMS if form.capability in model.capabilities for name in form.inputs]
    return [{"name": name, "datatype": "BYTES", "shape": [1 if name == "query" else -1]} for name in names]


def outputs_of(model: Model) -> list[Tensor]:
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


class _OfModel:
    """The answers of one model."""

    def __init__(self, answer: Callable[[Body], Awaitable[tuple[str, bytes]]]) -> None:
        self._answer = answer

    def __call__(self, body: Body) -> Awaitable[tuple[str, bytes]]:
        """See `Endpoint`."""
        return self._answer(body)


class Infer:
    """The routes whose path names the model."""

    def __init__(self, scoring: Scoring, family: Family) -> None:
        """Prepare to read requests."""
        self._scoring = scoring
        self._family = family
        self._read = Reader(InferRequest, scoring.most)

    def find(self, path: str) -> tuple[str, Endpoint] | None:
        """The route of a path and its endpoint, if it is one of these."""
        found = _NAMED(path)
        if found is None:
            return None
        model, version = found.groups()
        name = model if version is None else f"{self._scoring.aliases.get(model, model)}{AT}{version}"
        return PATHS[version is not None], _OfModel(partial(self._answer, name))

    def documented(self, dependencies: Sequence[Depends]) -> list[APIRoute]:
        """The routes, for the documentation only."""

        async def infer(model: str, request: InferRequest) -> None:
            raise AssertionError("http/edge.py calls Infer itself")

        async def infer_version(model: str, version: str, request: InferRequest) -> None:
            raise AssertionError("http/edge.py calls Infer itself")

        binary = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
        calls: list[tuple[str, Callable[..., Any], str]] = [
            (PATHS[0], infer, "Compare, order, label or embed texts"),
            (PATHS[1], infer_version, "The same, by one version of a model"),
        ]
        return [
            APIRoute(
                path,
                call,
                methods=["POST"],
                response_model=InferResponse,
                responses=self._family.responses | {200: binary},
                summary=summary,
                tags=[self._family.name],
                dependencies=dependencies,
            )
            for path, call, summary in calls
        ]

    async def _answer(self, name: str, body: Body) -> tuple[str, bytes]:
        head, rest = split(body.bytes, body.json_length)
        parts = Body(head)
        request: InferRequest = self._read.small(head) if parts.is_small else await self._read.large(parts)
        form = _form(request)
        scorer, warnings, outputs = await self._ask(form, name, self._texts(form, request, rest))
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
        model, _, version = scorer.partition(AT)
        answer: dict[str, object] = {"model_name": model, "outputs": tensors}
        if version:
            answer["model_version"] = version
        if request.id is not None:
            answer["id"] = request.id
        if warnings:
            answer["parameters"] = {"warnings": "; ".join(warnings)}
        payload = orjson.dumps(answer)
        if values:
            body.json_of_answer = len(payload)
        return scorer, b"".join([payload, *values])

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
                        f"{len(tensor.data)} texts in data, and {count} by the shape", field=f"inputs.{i}.data"
                    )
                found[tensor.name] = tensor.data
        if at != len(rest):
            raise InvalidRequest(f"{len(rest) - at} bytes after those of the inputs")
        return found

    async def _ask(self, form: Form, name: str, texts: dict[str, list[str]]) -> tuple[str, list[str], dict[str, Array]]:
        """Who answered, what was cut, and every output."""
        given = [Texts.of(each, texts[each]) for each in form.inputs]
        if form is EMBEDDING:
            found = await self._scoring.embed(name, given[0], unit=False, dimensions=None)
            return found.name, found.warnings, {"embedding": found.embeddings}
        a, b = given
        one = form is not ENTAILMENT  # is compared with each
        if len(a.texts) != len(b.texts) and not (one and len(a.texts) == 1):
            expected = "expected one, or as many" if one else "expected as many"
            raise InvalidRequest(
                f"{len(a.texts)} texts in {form.inputs[0]} beside {len(b.texts)} in {form.inputs[1]}: {expected}",
                field=form.inputs[0],
            )
        if form is RANKING and len(a.texts) != 1:
            raise InvalidRequest(f"{len(a.texts)} queries, expected one", field="query")
        if form is ENTAILMENT:
            scorer, answers, warnings = await self._scoring.entail(name, a, b)
            return scorer, warnings, {"probabilities": np.array([list(each.values()) for each in answers])}
        compared = await self._scoring.compare("/rank" if form is RANKING else "/similarity", name, a, b)
        return compared.name, compared.warnings, _scores(compared, ordered=form is RANKING)


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
