"""`infer` of the Open Inference Protocol: the same answers as our own routes, in tensors of JSON or of bytes."""

import json
from typing import Any

import httpx
import numpy as np
import pytest

from tests.harness import fakes
from tests.harness.service import Client, Serve, let_in

pytestmark = pytest.mark.anyio
PATH = "/v2/models/avg-sick/infer"
DTYPES = {"FP32": "<f4", "FP64": "<f8", "INT64": "<i8"}


def tensor(name: str, texts: list[str], **more: object) -> dict[str, Any]:
    return {"name": name, "datatype": "BYTES", "shape": [len(texts)], "data": texts} | more


def asked(**inputs: list[str]) -> dict[str, Any]:
    return {"inputs": [tensor(name, texts) for name, texts in inputs.items()]}


def arrays(answer: dict[str, Any], rest: bytes = b"") -> dict[str, np.ndarray]:
    """The outputs, each in its shape, from JSON or from the bytes after it."""
    found, at = {}, 0
    for output in answer["outputs"]:
        dtype = DTYPES[output["datatype"]]
        size = output.get("parameters", {}).get("binary_data_size")
        values = np.array(output["data"], dtype) if size is None else np.frombuffer(rest[at : at + size], dtype)
        at += size or 0
        found[output["name"]] = values.reshape(output["shape"])
    assert at == len(rest)
    return found


def written(*texts: bytes) -> bytes:
    return b"".join(len(text).to_bytes(4, "little") + text for text in texts)


async def send(client: Client, body: dict[str, Any], rest: bytes = b"", **headers: str) -> httpx.Response:
    """A body with bytes after its JSON."""
    head = json.dumps(body).encode()
    lengths = {"inference-header-content-length": str(len(head)), "content-type": "application/octet-stream"}
    return await client.post(PATH, content=head + rest, headers=lengths | headers)


async def test_pairs(lasting: Client) -> None:
    pairs = [{"a": "a man", "b": b} for b in ("a dog", "a man", "the cat")]
    own = (await lasting.post("/similarity", json={"model": "avg-sick", "pairs": pairs})).json()["results"]
    one = await lasting.post(PATH, json=asked(a=["a man"], b=["a dog", "a man", "the cat"]))
    many = await lasting.post(PATH, json=asked(b=["a dog", "a man", "the cat"], a=["a man"] * 3))
    for response in (one, many):
        assert response.json()["model_name"] == "avg-sick"
        found = arrays(response.json())
        assert set(found) == {"score", "raw_score", "rating"}
        for name, values in found.items():
            np.testing.assert_allclose(values, [result[name] for result in own], rtol=0, atol=1e-6)


async def test_candidates_keep_their_places_and_are_ordered(lasting: Client) -> None:
    texts = ["a dog", "a man", "the cat"]
    own = (await lasting.post("/rank", json={"model": "avg-sick", "query": "a man", "candidates": texts})).json()
    found = arrays((await lasting.post(PATH, json=asked(query=["a man"], candidates=texts))).json())
    assert found["order"].tolist() == [result["index"] for result in own["results"]]
    for result in own["results"]:
        assert found["score"][result["index"]] == pytest.approx(result["score"], abs=1e-6)
        assert found["raw_score"][result["index"]] == pytest.approx(result["raw_score"], abs=1e-6)


async def test_entailment_and_embeddings(lasting: Client) -> None:
    pairs = [{"premise": "a man", "hypothesis": "a dog"}, {"premise": "the cat", "hypothesis": "the cat"}]
    own = (await lasting.post("/entailment", json={"model": "avg-sick", "pairs": pairs})).json()["results"]
    labels = await lasting.post(PATH, json=asked(premise=["a man", "the cat"], hypothesis=["a dog", "the cat"]))
    vectors = (await lasting.post("/embed", json={"model": "avg-sick", "sentences": ["a man", "a dog"]})).json()
    embedded = await lasting.post(PATH, json=asked(text=["a man", "a dog"]) | {"id": "mine"})
    expected = [list(result["probabilities"].values()) for result in own]
    np.testing.assert_allclose(arrays(labels.json())["probabilities"], expected, atol=1e-6)
    assert embedded.json()["id"] == "mine"
    np.testing.assert_allclose(arrays(embedded.json())["embedding"], vectors["embeddings"], atol=1e-6)


@pytest.mark.parametrize("shape", [[2], [2, 1], [1, 2], [1, 1, 2]])
async def test_one_dimension_of_texts_may_be_said_in_several_ways(lasting: Client, shape: list[int]) -> None:
    for data in (["a man", "a dog"], [["a man"], ["a dog"]]):
        body = {"inputs": [tensor("text", [], shape=shape, data=data)]}
        response = await lasting.post(PATH, json=body)
        assert arrays(response.json())["embedding"].shape == (2, fakes.DIM)


async def test_bytes_in_and_bytes_out_are_the_same_numbers(client: Client) -> None:
    plain = (await client.post(PATH, json=asked(a=["a män", "a man"], b=["a dog", "the cat"]))).json()
    rest = [written("a män".encode(), b"a man"), written(b"a dog", b"the cat")]
    inputs = [
        {"name": name, "datatype": "BYTES", "shape": [2], "parameters": {"binary_data_size": len(values)}}
        for name, values in zip("ab", rest, strict=True)
    ]
    mixed = [inputs[0], tensor("b", ["a dog", "the cat"])]
    for given, after in ((inputs, b"".join(rest)), (mixed, rest[0])):
        response = await send(client, {"inputs": given}, after)
        assert (response.status_code, response.json()) == (200, plain)
    binary = await send(client, {"inputs": inputs, "parameters": {"binary_data_output": True}}, b"".join(rest))
    # Without binary inputs there is no such header; an output says for itself how it is to be sent.
    body = asked(a=["a män", "a man"], b=["a dog", "the cat"])
    body["outputs"] = [{"name": "raw_score", "parameters": {"binary_data": True}}, {"name": "score"}]
    chosen = await client.post(PATH, json=body)
    counted = await client.metric("semblance_requests_total", route="/v2/models/{model}/infer", status="200")
    assert counted == 5
    for response in (binary, chosen):
        assert response.headers["content-type"] == "application/octet-stream"
        length = int(response.headers["inference-header-content-length"])
        answer, after = json.loads(response.content[:length]), response.content[length:]
        for name, values in arrays(answer, after).items():
            assert values.tolist() == arrays(plain)[name].tolist()
    assert [output["name"] for output in answer["outputs"]] == ["raw_score", "score"]
    assert len(after) == 2 * 8


async def test_what_is_cut_is_said(lasting: Client) -> None:
    long = "man " * (fakes.MAX_TOKENS + 1)
    for inputs in ({"a": ["a man"], "b": [long]}, {"premise": ["a man"], "hypothesis": [long]}):
        answer = (await lasting.post(PATH, json=asked(**inputs))).json()
        field = list(inputs)[1]
        assert answer["parameters"]["warnings"].startswith(f"{field}.0: only its first {fakes.MAX_TOKENS} tokens")


BYTES = {"name": "text", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 6}}


@pytest.mark.parametrize(
    ("inputs", "rest", "words"),
    [
        ([tensor("a", ["x"])], b"", "inputs 'a': expected those of one of a and b; query and candidates"),
        ([tensor("text", ["x"]), tensor("text", ["x"])], b"", "inputs 'text', 'text'"),
        ([tensor("a", ["x"] * 3), tensor("b", ["x", "y"])], b"", "3 texts in a beside 2 in b: expected one"),
        ([tensor("query", ["x"] * 2), tensor("candidates", ["x"] * 2)], b"", "query: 2 queries, expected one"),
        ([tensor("premise", ["x"]), tensor("hypothesis", ["x"] * 2)], b"", "1 text in premise beside 2 in"),
        ([tensor("text", ["x"], datatype="FP32")], b"", "inputs.0.datatype"),
        ([tensor("text", ["x"], shape=[2])], b"", "inputs.0.data: 1 text in data, and 2 by the shape"),
        ([tensor("text", ["x"] * 4, shape=[2, 2])], b"", "input text has the shape [2, 2]: expected one dimension"),
        ([tensor("text", ["x"], shape=[0])], b"", "inputs.0.shape.0"),
        ([tensor("text", ["x"], shape=[10**30])], b"", "the limit is 2048 (SEMBLANCE_MAX_SENTENCES)"),
        ([tensor("text", [1])], b"", "inputs.0.data: expected a list of texts"),
        ([tensor("text", [" "])], b"", "text.0: the text has no visible character"),
        ([tensor("text", ["x"], data=None)], b"", "inputs.0.data"),
        ([tensor("text", ["x"], parameters={"binary_data_size": 5})], written(b"x"), "expected either data, or"),
        ([BYTES], written(b"x"), "binary_data_size is 6, and 5 bytes are left after the JSON"),
        ([BYTES], written(b"xy") + b"z", "1 byte after those of the inputs"),
        ([BYTES], written(b"x", b"")[:6], "input text: 1 byte after its 1 text"),
        ([BYTES | {"shape": [2]}], written(b"xy"), "input text: its 6 bytes end within text 1 of 2"),
        ([BYTES], written(b"\xff\xfe"), "text.0: the text is not UTF-8"),
        ([BYTES], b"\xff\xff\xff\xff\x00\x00", "input text: its 6 bytes end within text 0 of 1"),
    ],
)  # fmt: skip
async def test_what_does_not_fit_is_refused(lasting: Client, inputs: list[Any], rest: bytes, words: str) -> None:
    response = await send(lasting, {"inputs": inputs}, rest)
    assert response.status_code == 400
    assert set(response.json()) == {"error"}
    assert words in response.json()["error"]


async def test_outputs_that_are_not_there_and_headers_that_do_not_fit(serve: Serve) -> None:
    async with serve(api_keys=let_in("correct horse")) as client:
        client.headers["x-api-key"] = "correct horse"
        body = asked(text=["a man"])
        unknown = await client.post(PATH, json=body | {"outputs": [{"name": "score"}]})
        classes = {"outputs": [{"name": "embedding", "parameters": {"classification": 2}}]}
        assert (await client.post(PATH, json=body | classes)).status_code == 422
        assert "outputs.0.name: no output 'score' of these inputs; there are: embedding" in unknown.json()["error"]
        for length in ("x", "-1", "99999", "9" * 5000):
            response = await send(client, body, **{"inference-header-content-length": length})
            assert response.status_code == 400
            assert "Inference-Header-Content-Length is no number from 0 to" in response.json()["error"]
        assert (await send(client, body, **{"content-type": "text/plain"})).status_code == 415
        assert (await send(client, body, **{"content-encoding": "gzip"})).status_code == 415
        # Our own routes take no such bodies.
        own = await client.post("/embed", content=b"{}", headers={"content-type": "application/octet-stream"})
        assert own.status_code == 415
        assert (await client.post("/v2/models/pair-sick/infer", json=body)).status_code == 400  # it embeds nothing
        assert (await client.post("/v2/models/no/infer", json=body)).status_code == 404
        assert (await client.post("/v2/models/avg-sick/versions/1/infer", json=body)).status_code == 404
        client.headers["x-api-key"] = "wrong"
        refused = await client.post(PATH, json=body)
    assert (refused.status_code, set(refused.json())) == (401, {"error"})
