"""Open Inference Protocol (KServe, Triton): health, readiness and metadata of models, for probes and routers.

`infer` is in `infer.py`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from fastapi import APIRouter, Request, Response
from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from service.api.dialects.family import Family, full_message
from service.api.dialects.infer import Tensor, inputs_of, outputs_of
from service.api.dialects.scoring import Scoring
from service.errors import InvalidRequest, RequestError, TooLarge
from service.parsing import AT

HEALTH = ("/v2/health/live", "/v2/health/ready")


class OpenInferenceError(TypedDict):
    """The protocol's error body."""

    error: str


def _body(error: RequestError, _: int, __: str) -> Mapping[str, object]:
    return {"error": full_message(error)}


OPEN_INFERENCE = Family("Open Inference Protocol", _body, OpenInferenceError, {InvalidRequest: 400, TooLarge: 400})


class ServerMetadata(TypedDict):
    """The server."""

    name: Literal["semblance"]
    version: str
    extensions: list[str]


class ServerLive(TypedDict):
    """The process answers."""

    live: Literal[True]


class ServerReady(TypedDict):
    """Whether requests should be sent here."""

    ready: bool


class ModelReady(TypedDict):
    """Whether a model answers as published."""

    name: str
    ready: bool


class ModelMetadata(TypedDict):
    """A model."""

    name: str
    versions: NotRequired[Annotated[list[str], Field(description="those served here, where the model has versions")]]
    platform: Literal["onnx_onnxv1"]
    inputs: Annotated[
        list[Tensor],
        Field(description="a and b, query and candidates, premise and hypothesis, or text: a request has one of these"),
    ]
    outputs: Annotated[list[Tensor], Field(description="each is of some of these requests")]


def routes(scoring: Scoring) -> APIRouter:
    """The GET routes of this family."""
    router = APIRouter(tags=[OPEN_INFERENCE.name], responses=OPEN_INFERENCE.responses)
    live, ready = HEALTH

    @router.get("/v2", summary="What serves here")
    async def server_metadata(request: Request) -> ServerMetadata:
        return {"name": "semblance", "version": request.app.version, "extensions": ["binary_tensor_data"]}

    @router.get(live, summary="Does the process answer?")
    async def server_live() -> ServerLive:
        return {"live": True}

    @router.get(ready, summary="Should requests be sent here?", responses={503: {"model": ServerReady}})
    async def server_ready(response: Response) -> ServerReady:
        is_ready = scoring.service.readiness()["status"] != "unready"
        response.status_code = 200 if is_ready else 503
        return {"ready": is_ready}

    def versioned(model: str, version: str) -> str:
        return f"{scoring.aliases.get(model, model)}{AT}{version}"

    def metadata(name: str) -> ModelMetadata:
        found = scoring.find(name)
        answer: ModelMetadata = {
            "name": found.manifest.id,
            "platform": "onnx_onnxv1",
            "inputs": inputs_of(found),
            "outputs": outputs_of(found),
        }
        releases = [model.release for model in scoring.service.registry.values()]
        if versions := sorted(r.version for r in releases if r.id == found.manifest.id and r.version is not None):
            answer["versions"] = [str(version) for version in versions]
        return answer

    def readiness(name: str, response: Response) -> ModelReady:
        found = scoring.find(name)
        is_ready = found.problem is None
        response.status_code = 200 if is_ready else 503
        return {"name": found.manifest.id, "ready": is_ready}

    @router.get("/v2/models/{model}", summary="What is served under a name")
    async def model_metadata(model: str) -> ModelMetadata:
        return metadata(model)

    @router.get("/v2/models/{model}/versions/{version}", summary="One version of it")
    async def version_metadata(model: str, version: str) -> ModelMetadata:
        return metadata(versioned(model, version))

    unready: dict[int | str, dict[str, Any]] = {503: {"model": ModelReady}}

    @router.get("/v2/models/{model}/ready", summary="Does a model answer as published?", responses=unready)
    async def model_ready(model: str, response: Response) -> ModelReady:
        return readiness(model, response)

    @router.get(
        "/v2/models/{model}/versions/{version}/ready",
        summary="Does one version of a model answer as published?",
        responses=unready,
    )
    async def version_ready(model: str, version: str, response: Response) -> ModelReady:
        return readiness(versioned(model, version), response)

    return router
