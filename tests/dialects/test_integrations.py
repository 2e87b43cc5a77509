"""The unmodified libraries, by the lines of `docs/integrations.md`, on a real port; what cannot be run is replayed."""

import importlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import Any

import httpx
import numpy as np
import pytest

from tests.dialects.conftest import unit

pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings("default")]
DOCS = (Path(__file__).parents[2] / "docs/integrations.md").read_text(encoding="utf-8")
PYTHON = dict(re.findall(r"^### ([\w-]+)\n\n```python\n(.*?)^```$", DOCS, flags=re.DOTALL | re.MULTILINE))
JSON = {
    title: re.findall(r"^```json\n(.*?)^```$", section, flags=re.DOTALL | re.MULTILINE)
    for title, section in re.findall(r"^### ([\w ]+)\n(.*?)(?=^##|\Z)", DOCS, flags=re.DOTALL | re.MULTILINE)
}
QUERY = "Who plays the guitar?"
DOG, GUITAR = DOCUMENTS = ["A dog sleeps on the sofa.", "A man is playing a guitar."]
NEEDED = {
    "Haystack": ("haystack", "haystack_integrations.components.rankers.jina"),
    "LlamaIndex": ("llama_index.core", "llama_index.postprocessor.tei_rerank"),
    "LiteLLM": ("litellm",),
    "langchain-cohere": ("langchain_cohere",),
    "txtai": ("txtai",),
    "rerankers": ("rerankers",),
}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No reports to the makers of these libraries, and nothing from the hub."""
    for name in ("HAYSTACK_TELEMETRY_ENABLED", "LITELLM_TELEMETRY"):
        monkeypatch.setenv(name, "False")
    # Read at its import, which may be here: other tests of the process would be offline too.
    with suppress(ImportError):
        monkeypatch.setattr(importlib.import_module("huggingface_hub.constants"), "HF_HUB_OFFLINE", True)
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "LITELLM_LOCAL_MODEL_COST_MAP"):
        monkeypatch.setenv(name, "True")


def run(library: str, url: str) -> dict[str, Any]:
    """Run the documented lines, word for word but for the port; what they leave."""
    for module in NEEDED[library]:
        try:
            importlib.import_module(module)
        except ImportError as missing:
            pytest.skip(f"no {module} ({missing}): docs/integrations.md says what to install")
    code = PYTHON[library].replace("127.0.0.1:8000", url.removeprefix("http://"))
    assert url.removeprefix("http://") in code
    names: dict[str, Any] = {}
    exec(compile(code, f"docs/integrations.md, {library}", "exec"), names)
    return names


def ranked(url: str, texts: list[str]) -> list[tuple[int, Any]]:
    """Our own order of these texts: places with scores, best first."""
    body = {"model": "avg-paraphrase", "query": QUERY, "candidates": texts}
    results = httpx.post(f"{url}/rank", json=body).raise_for_status().json()["results"]
    assert results[0]["score"] > results[1]["score"]  # or else any order would do
    return [(result["index"], pytest.approx(result["score"], abs=1e-6)) for result in results]


def test_every_line_of_the_page_is_run_or_replayed() -> None:
    assert PYTHON.keys() == NEEDED.keys()
    assert {title for title, blocks in JSON.items() if blocks} == {"Elasticsearch", "OpenSearch"}


@pytest.mark.parametrize(
    ("library", "text_of"),
    [
        ("Haystack", lambda one: one.content),
        ("LlamaIndex", lambda one: one.node.text),
        ("rerankers", lambda one: one.document.text),
    ],
    ids=["Haystack", "LlamaIndex", "rerankers"],
)
def test_a_library_ranks_as_we_do(url: str, library: str, text_of: Callable[[Any], str]) -> None:
    left = run(library, url)
    expected = [(DOCUMENTS[place], score) for place, score in ranked(url, DOCUMENTS)]
    assert (text_of(left["best"]), left["best"].score) == expected[0]
    found = left["ranked"].results if library == "rerankers" else left["ranked"]
    assert [(text_of(one), one.score) for one in found] == expected
    assert ("vectors" in left) == (library == "LlamaIndex")
    for vector in left.get("vectors", []):
        np.testing.assert_allclose(vector, unit(url, GUITAR)[0], atol=1e-6)


def test_litellm(url: str) -> None:
    left = run("LiteLLM", url)
    assert len(left["ranked"]) == 3
    for name, answer in left["ranked"].items():
        found = [(result["index"], result["relevance_score"]) for result in answer.results]
        assert found == ranked(url, DOCUMENTS), name
    assert len(left["embedded"]) == 3
    for name, answer in left["embedded"].items():
        vectors = [item["embedding"] for item in answer.data]
        np.testing.assert_allclose(vectors, unit(url, DOG, GUITAR), atol=1e-6, err_msg=name)
        assert answer.usage.prompt_tokens > 0, name


def test_litellm_by_huggingface_asks_the_hub_for_a_price(url: str) -> None:
    litellm = pytest.importorskip("litellm", reason="no litellm: pip install '.[frameworks]'")
    asked: list[str] = []
    # Never undone: LiteLLM asks once more from a thread of its own, after it has answered.
    litellm.utils._get_max_position_embeddings = lambda model_name: asked.append(model_name)
    answer = litellm.rerank(
        model="huggingface/avg-paraphrase", query=QUERY, documents=DOCUMENTS, api_base=f"{url}/tei", api_key="any"
    )
    assert [(result["index"], result["relevance_score"]) for result in answer.results] == ranked(url, DOCUMENTS)
    assert set(asked) == {"huggingface/avg-paraphrase"}  # as the page warns


def test_langchain_cohere(url: str) -> None:
    left = run("langchain-cohere", url)
    found = [(one.page_content, one.metadata["relevance_score"]) for one in left["ranked"]]
    assert found == [(DOCUMENTS[place], score) for place, score in ranked(url, DOCUMENTS)]
    np.testing.assert_allclose(left["vector"], unit(url, GUITAR)[0], atol=1e-6)


@pytest.mark.timeout(300)  # its imports alone take long
def test_txtai(url: str) -> None:
    left = run("txtai", url)
    asked, *found = unit(url, "A man plays a guitar.", *DOCUMENTS)
    cosines = [float(asked @ each) for each in found]
    assert left["best"]["text"] == DOCUMENTS[int(np.argmax(cosines))]
    assert left["best"]["score"] == pytest.approx(max(cosines), abs=1e-5)


def posted(url: str, path: str, body: str) -> Any:
    """What is answered to a request, with the headers of a client that sends a key."""
    headers = {"content-type": "application/json", "authorization": "Bearer any"}
    return httpx.post(url + path, content=body, headers=headers).raise_for_status().json()


def test_open_webui_as_it_asks_and_reads(url: str) -> None:
    asked = {"model": "avg-paraphrase", "query": QUERY, "documents": DOCUMENTS, "top_n": 2}
    answer = posted(url, "/v1/rerank", json.dumps(asked))
    by_place = sorted(answer["results"], key=lambda result: result["index"])  # as its ExternalReranker does
    scores = [result["relevance_score"] for result in by_place]
    assert list(enumerate(scores)) == sorted(ranked(url, DOCUMENTS), key=lambda one: one[0])


def test_elasticsearch_as_it_asks_and_reads(url: str) -> None:
    (setting,) = JSON["Elasticsearch"]
    asks = json.loads(setting.partition("\n")[2])["service_settings"]["url"]
    asked = {"texts": DOCUMENTS, "query": QUERY, "return_text": True, "top_n": 2}
    answer = posted(url, asks.removeprefix("http://127.0.0.1:8000"), json.dumps(asked))
    expected = ranked(url, DOCUMENTS)
    assert [(item["index"], item["score"]) for item in answer] == expected
    assert [item["text"] for item in answer] == [DOCUMENTS[place] for place, _ in expected]
    # Its service `custom`, by the paths of the page.
    body = json.dumps({"model": "avg-paraphrase", "query": QUERY, "documents": DOCUMENTS})
    results = posted(url, "/v1/rerank", body)["results"]
    assert [(result["index"], result["relevance_score"]) for result in results] == expected


def test_opensearch_fills_its_blueprint_in_and_reads_the_answer(url: str) -> None:
    (setting,) = JSON["OpenSearch"]
    connector = json.loads(setting.partition("\n")[2])
    (action,) = connector["actions"]

    class Parameters(Template):
        idpattern = r"[a-z_.]+"

    given = connector["parameters"] | {"query": QUERY, "documents": json.dumps(DOCUMENTS)}
    values = {
        f"parameters.{name}": json.dumps(value) if isinstance(value, bool) else value for name, value in given.items()
    }
    body = Parameters(action["request_body"]).substitute(values)
    answer = posted(url, action["url"].removeprefix("http://127.0.0.1:8000"), body)
    # connector.post_process.cohere.rerank reads these, and puts scores back at the places of the documents.
    expected = ranked(url, DOCUMENTS)
    assert [(one["index"], one["relevance_score"]) for one in answer["results"]] == expected
    assert answer["results"][0]["document"] == {"text": DOCUMENTS[expected[0][0]]}
    embedding = json.dumps(
        {"texts": [DOG], "truncate": "END", "model": "avg-paraphrase", "input_type": "search_document"}
    )
    embedded = posted(url, "/cohere/v1/embed", embedding)
    np.testing.assert_allclose(embedded["embeddings"], unit(url, DOG), atol=1e-6)
