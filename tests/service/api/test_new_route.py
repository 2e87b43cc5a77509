"""A route is one record: declared, it is served, described, counted, and refuses in the words of its family."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import ConfigDict
from typing_extensions import TypedDict

from service.api.dialects.own import OURS
from service.api.dialects.tei import TEI
from service.api.operation import Operation, ReadOperation
from service.app import create_app
from service.schemas import OwnRequest
from service.settings import Settings
from tests.harness.requests import GOOD, error_of
from tests.harness.service import Client, let_in

pytestmark = pytest.mark.anyio
KEY = "correct horse battery"


class EchoRequest(OwnRequest):
    """A text to say again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "a man"}]})

    text: str


class OtherRequest(OwnRequest):
    """A number to say again, for clients of TEI."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"number": 3}]})

    number: int


class EchoResponse(TypedDict):
    """The text."""

    said: str


class OtherResponse(TypedDict):
    """The number."""

    number: int


async def echo(request: EchoRequest) -> tuple[str, EchoResponse]:
    return "avg-paraphrase", {"said": request.text}


async def other(request: OtherRequest) -> tuple[str, OtherResponse]:
    return "avg-sick", {"number": request.number}


async def told(name: str, greeting: str = "hello") -> EchoResponse:
    return {"said": f"{greeting} {name}"}


@pytest.fixture
async def client(models: Path) -> AsyncIterator[Client]:
    operations = (
        Operation("/echo", echo, OURS, "Say a text again"),
        Operation("/echo", other, TEI, "Say a number again", key="number"),
        ReadOperation("/told/{name}", told, TEI, "Greet"),
        ReadOperation("/open", told_nobody, OURS, "Greet anybody", open=True),
    )
    settings = Settings(models_dir=models, preload="all", api_keys=let_in(KEY), max_body_bytes=200)
    app = create_app(settings, None, *operations)
    async with Client(app) as client:
        yield client


async def told_nobody() -> EchoResponse:
    return {"said": "hello"}


async def test_it_is_served_by_what_the_body_says(client: Client) -> None:
    client.headers["x-api-key"] = KEY
    said = await client.post("/echo", json={"text": "a man"})
    assert (said.status_code, said.json()) == (200, {"said": "a man"})
    assert (await client.post("/echo", json={"number": 3})).json() == {"number": 3}
    assert (await client.get("/told/ann?greeting=hi")).json() == {"said": "hi ann"}
    assert (await client.get("/told/ann")).json() == {"said": "hello ann"}
    assert (await client.post("/similarity", json=GOOD["/similarity"])).status_code == 200


async def test_it_refuses_in_the_words_of_its_family(client: Client) -> None:
    assert (await client.get("/open")).status_code == 200
    assert error_of(await client.post("/echo", json={}))["code"] == "unauthorized"
    client.headers["x-api-key"] = KEY
    for body, field in ((b'{"text":3}', "text"), (b'{"text":"a","more":1}', "more"), (b"[]", None)):
        refused = await client.post("/echo", content=body)
        assert (refused.status_code, error_of(refused)["field"]) == (422, field)
    tei = await client.post("/echo", json={"number": "three"})
    assert (tei.status_code, set(tei.json())) == (422, {"error", "error_type"})
    assert (await client.post("/echo", content=b" " * 201)).status_code == 413
    assert (await client.get("/echo")).headers["allow"] == "POST"
    assert set((await client.get("/told/a/b")).json()) == {"error"}


async def test_it_is_described(client: Client) -> None:
    client.headers["x-api-key"] = KEY
    described = (await client.get("/openapi.json")).json()
    post = described["paths"]["/echo"]["post"]
    assert post["summary"] == "Say a text again / Say a number again"
    assert post["tags"] == [OURS.name, TEI.name]
    content = post["requestBody"]["content"]["application/json"]
    assert [one["$ref"].rpartition("/")[2] for one in content["schema"]["anyOf"]] == ["EchoRequest", "OtherRequest"]
    assert content["examples"]["OtherRequest 1"] == {"value": {"number": 3}}
    for status in ("400", "401", "422", "503"):
        errors = post["responses"][status]["content"]["application/json"]["schema"]["anyOf"]
        assert [error["$ref"].rpartition("/")[2] for error in errors] == ["ErrorResponse", "TeiError"]
    assert post["security"]
    look = described["paths"]["/told/{name}"]["get"]
    assert {each["name"]: each["in"] for each in look["parameters"]} == {"name": "path", "greeting": "query"}
    assert "security" not in described["paths"]["/open"]["get"]
    assert not {"401", "429"} & set(described["paths"]["/open"]["get"]["responses"])


async def test_it_is_counted(client: Client) -> None:
    client.headers["x-api-key"] = KEY
    await client.post("/echo", json={"text": "a"})
    await client.post("/echo", json={"number": 3})
    await client.get("/told/ann")
    await client.get("/told/bob", headers={"x-api-key": "wrong"})
    for model in ("avg-paraphrase", "avg-sick"):
        assert await client.metric("semblance_request_seconds_count", route="/echo", model=model) == 1
    for route, status, count in (("/echo", 200, 2), ("/told/{name}", 200, 1), ("/told/{name}", 401, 1)):
        assert await client.metric("semblance_requests_total", route=route, status=str(status)) == count
