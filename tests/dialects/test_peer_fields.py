"""Fields that change another service's answer: each is honoured, or refused by name, on every route that may get it."""

import copy
import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.manifest import Prompts
from scripts.peer_fields import FieldSupport, fields_of, requests_of, served
from service.routes.fields import ChangesAnswer
from tests.harness import fakes
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
SHORT, OTHER = "a dog sleeps", "the woman is playing the guitar"
LONG = "the man plays a guitar and a dog runs in the park a cat sleeps"  # more words than the models read
DOCUMENTS = [{"text": SHORT, "title": OTHER}, {"text": LONG, "title": SHORT}, OTHER]
EMBEDDINGS = {"input": [SHORT, LONG]}
# For each type of request a body to which each of its fields makes a difference.
BODIES: dict[str, dict[str, Any]] = {
    "RerankRequest": {"query": "a man plays", "documents": DOCUMENTS, "rank_fields": ["text"]},
    "EmbeddingsRequest": EMBEDDINGS,
    "ScoreRequest": {"text_1": SHORT, "text_2": [LONG, OTHER]},
    "CohereEmbedV1Request": {"texts": [SHORT, LONG]},
    "CohereEmbedV2Request": {"texts": [SHORT, LONG]},
    "TeiRerankRequest": {"query": "a man plays", "texts": [SHORT, LONG]},
    "TeiPredictRequest": {"inputs": [SHORT, LONG], "model": "avg-sick"},
    "TeiEmbedRequest": {"inputs": [SHORT, LONG]},
    "TeiTokenizeRequest": {"inputs": SHORT},
    "TeiSimilarityRequest": {"inputs": {"source_sentence": SHORT, "sentences": [LONG]}},
}
# What is asked, and what says nothing about how.
INPUTS = {
    "input", "inputs", "texts", "text", "query", "documents", "text_1", "data_1", "queries", "text_2", "data_2",
    "items", "model", "id", "parameters.model", "inputs.source_sentence",
    "inputs.sentences", "inputs.0.content", "inputs.0.content.0.type", "inputs.0.content.0.text",
}  # fmt: skip
CELLS = served()


@pytest.fixture(scope="module")
async def client(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """A service with every task; the default model has a prompt for queries."""
    root: Path = tmp_path_factory.mktemp("models")
    fakes.cosine_model(root / "avg-paraphrase")
    fakes.sign(root / "avg-paraphrase", prompts=Prompts(query="cat "))
    fakes.graded_model(root / "avg-sick")
    fakes.labelling_model(root / "sentiment")
    async with serve(models_dir=root) as found:
        yield found


async def ask(client: Client, cell: FieldSupport, body: object) -> tuple[int, object]:
    response = await client.post(cell.path, json=body, headers={"x-request-id": "same"})
    if response.headers["content-type"] != "application/json":
        return response.status_code, response.content
    found = response.json()
    if isinstance(found, dict):
        found.pop("created", None)
    return response.status_code, found


def body_of(cell: FieldSupport) -> dict[str, Any]:
    """The body of a cell's request without its field."""
    return copy.deepcopy(BODIES[cell.request])


def with_field(cell: FieldSupport, value: object) -> dict[str, Any]:
    """The same with this value."""
    body = body_of(cell)
    *above, last = cell.field.split(".")
    place: Any = body
    for name in above:
        place = place[int(name)] if name.isdigit() else place.setdefault(name, {})
    place[last] = value
    return body


def name_of(cell: FieldSupport) -> str:
    return f"{cell.path} {cell.request} {cell.field}"


@pytest.mark.parametrize("cell", CELLS, ids=name_of)
async def test_a_value_changes_the_answer_or_is_refused_by_name(client: Client, cell: FieldSupport) -> None:
    status, usual = await ask(client, cell, body_of(cell))
    assert status == 200
    assert cell.honoured or cell.refused
    for value in cell.honoured:
        status, found = await ask(client, cell, with_field(cell, value))
        assert status == 200 or ("tokens" in str(found) and status in (400, 422)), found  # a text may not be cut so
        assert found != usual, value
    for value in cell.refused:
        status, found = await ask(client, cell, with_field(cell, value))
        assert status == 422, (value, found)
        assert cell.field in str(found)
    for value in cell.same:
        assert await ask(client, cell, with_field(cell, value)) == (200, usual), value


async def test_single_texts_get_a_models_own_labels(client: Client) -> None:
    expected = (await client.answer("/classify", text=SHORT))["results"][0]["probabilities"]
    one = await client.answer("/tei/predict", inputs=SHORT)
    assert {each["label"]: each["score"] for each in one} == pytest.approx(expected)
    assert await client.answer("/tei/predict", inputs=[SHORT]) == one
    assert await client.answer("/tei/predict", inputs=[[SHORT], [SHORT]]) == [one, one]
    mixed = await client.post("/tei/predict", json={"inputs": [[SHORT], [SHORT, SHORT]]})
    assert mixed.status_code == 422


async def test_a_single_text_to_label_is_cut_as_is_asked(client: Client) -> None:
    for more, code in (({}, 200), ({"truncate": False}, 422), ({"truncation_direction": "left"}, 422)):
        response = await client.post("/tei/predict", json={"inputs": [[SHORT], [LONG]], **more})
        assert response.status_code == code
        assert code == 200 or response.json()["error"].startswith("inputs.1.0: a text of more than 12 tokens")


async def test_no_field_of_a_foreign_request_is_neither_asked_nor_in_the_table(client: Client) -> None:
    found = list(requests_of(client.app))
    assert {(cell.path, cell.request) for cell in CELLS} <= {(path, request.__name__) for path, request in found}
    for path, request in found:
        fields = list(fields_of(request))
        names = [field for field, _ in fields]
        for field, info in fields:
            marked = any(isinstance(mark, ChangesAnswer) for mark in info.metadata)
            holds_fields = any(name.startswith(f"{field}.") for name in names)
            assert marked != (field in INPUTS or holds_fields), (path, field)


@pytest.mark.parametrize(
    ("package", "call", "path", "prefix", "others"),
    [
        ("cohere", "Client.embed", "/cohere/v1/embed", "", {"batching"}),
        ("cohere", "ClientV2.embed", "/v2/embed", "", set()),
        ("cohere", "Client.rerank", "/v1/rerank", "", set()),
        ("cohere", "ClientV2.rerank", "/v2/rerank", "", set()),
        ("openai.resources", "Embeddings.create", "/v1/embeddings", "", {"user"}),
        ("huggingface_hub", "InferenceClient.feature_extraction", "/tei/embed", "", set()),
    ],
)
def test_what_the_official_clients_send_is_in_the_table(package, call, path, prefix, others) -> None:
    owner, _, method = call.partition(".")
    module = pytest.importorskip(package, reason=f"no {package}: pip install '.[clients]'")
    sent = set(inspect.signature(getattr(getattr(module, owner), method)).parameters)
    sent -= {"self", "request_options", "priority", "extra_headers", "extra_query", "extra_body", "timeout", *others}
    known = {cell.field.removeprefix(prefix) for cell in CELLS if cell.path == path}
    assert sent - known <= INPUTS
