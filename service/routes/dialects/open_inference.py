"""Open Inference Protocol (KServe, Triton): health, readiness and metadata of models, and `infer` (`infer.py`)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from service.errors import InvalidRequest, RequestError, TooLarge, UnsupportedField
from service.routes.dialects.infer import Infer, Tensor, inputs_of, outputs_of
from service.routes.dialects.scoring import DialectContext
from service.routes.operation import Dialect, Operation, OperationResponse, ReadOperation, full_message
from service.version import version as our_version


class OpenInferenceError(TypedDict):
    """The protocol's error body."""

    error: str


def _body(error: RequestError, _: int, __: str) -> Mapping[str, object]:
    return {"error": full_message(error)}


OPEN_INFERENCE = Dialect(
    "Open Inference Protocol",
    _body,
    OpenInferenceError,
    {InvalidRequest: 400, TooLarge: 400, UnsupportedField: 422},
)


class ServerMetadata(TypedDict):
    """Name, version and extensions of the server."""

    name: Literal["semblance"]
    version: str
    extensions: list[str]


class ServerLive(TypedDict):
    """The answer of a process that runs."""

    live: Literal[True]


class ServerReady(TypedDict):
    """Whether requests should be sent here."""

    ready: bool


class ModelReady(TypedDict):
    """Whether a model answers as published."""

    name: str
    ready: bool


class ModelMetadata(TypedDict):
    """Name, inputs and outputs of a model."""

    name: str
    platform: Literal["onnx_onnxv1"]
    inputs: Annotated[
        list[Tensor],
        Field(description="a and b, query and candidates, premise and hypothesis, or text: a request has one of these"),
    ]
    outputs: Annotated[list[Tensor], Field(description="each is of some of these requests")]


def operations(scoring: DialectContext) -> list[Operation]:
    """The requests of this dialect."""

    async def server_metadata() -> ServerMetadata:
        return {"name": "semblance", "version": our_version(), "extensions": ["binary_tensor_data"]}

    async def server_live() -> ServerLive:
        return {"live": True}

    async def server_ready() -> OperationResponse:
        is_ready = scoring.service.readiness()["status"] != "unready"
        return OperationResponse({"ready": is_ready}, 200 if is_ready else 503)

    async def model_metadata(model: str) -> ModelMetadata:
        found = scoring.find(model)
        return {
            "name": found.manifest.id,
            "platform": "onnx_onnxv1",
            "inputs": inputs_of(found),
            "outputs": outputs_of(found),
        }

    async def model_ready(model: str) -> OperationResponse:
        found = scoring.find(model)
        is_ready = found.problem is None
        return OperationResponse({"name": found.manifest.id, "ready": is_ready}, 200 if is_ready else 503)

    def look(path: str, call: Callable[..., Awaitable[Any]], summary: str, **more: Any) -> ReadOperation:
        return ReadOperation(path, call, OPEN_INFERENCE, summary, **more)

    model = "/v2/models/{model}"
    server: dict[str, Any] = {"answer": ServerReady, "responses": {503: {"model": ServerReady}}, "open": True}
    of_model: dict[str, Any] = {"answer": ModelReady, "responses": {503: {"model": ModelReady}}}
    return [
        look("/v2", server_metadata, "What serves here"),
        look("/v2/health/live", server_live, "Does the process answer?", open=True),
        look("/v2/health/ready", server_ready, "Should requests be sent here?", **server),
        look(model, model_metadata, "What is served under a name"),
        look(f"{model}/ready", model_ready, "Does a model answer as published?", **of_model),
        Infer(f"{model}/infer", scoring, OPEN_INFERENCE, "Compare, order, label or embed texts"),
    ]
