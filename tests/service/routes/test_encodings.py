"""Bodies in other encodings than UTF-8 are refused by the name of theirs; a byte-order mark before UTF-8 is ignored."""

import json

import pytest

from tests.harness.requests import GOOD
from tests.harness.service import Client

pytestmark = pytest.mark.anyio
TEXT = "Où est ma carte ? 🎸"
BODIES = {
    **GOOD,
    "/v1/embeddings": {"input": TEXT},
    "/tei/rerank": {"query": "a man", "texts": ["a dog"]},
    "/tei": {"inputs": TEXT},
}


async def post(client: Client, path: str, body: bytes) -> tuple[int, str]:
    response = await client.post(path, content=body, headers={"content-type": "application/json"})
    return response.status_code, response.text


@pytest.mark.parametrize("path", BODIES)
async def test_a_byte_order_mark_before_utf8_is_ignored(lasting: Client, path: str) -> None:
    plain = json.dumps(BODIES[path]).encode()
    assert await post(lasting, path, b"\xef\xbb\xbf" + plain) == await post(lasting, path, plain)


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
async def test_utf16_and_utf32_are_named(lasting: Client, path: str, encoding: str) -> None:
    status, said = await post(lasting, path, json.dumps(BODIES[path]).encode(encoding))
    assert status == 400
    assert f"the body is not JSON: it is {encoding[:6].upper()}, and JSON is sent as UTF-8" in said


async def test_a_byte_of_another_encoding_is_named_with_its_place(lasting: Client) -> None:
    body = json.dumps({"sentences": [TEXT[:-2]]}, ensure_ascii=False).encode("cp1252")
    status, said = await post(lasting, "/embed", body)
    assert status == 400
    assert f"byte {body.index(0xF9)} (0xf9) is not UTF-8" in said
    _, broken = await post(lasting, "/embed", b'{"sentences": [')
    assert "not UTF-8" not in broken
