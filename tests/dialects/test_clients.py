"""The unmodified official clients, as `docs/dialects.md` points them at the service, against a real port."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import numpy as np
import pytest

from core.tokenizer import Tokenizer
from service.settings import hash_key
from tests.dialects.conftest import ALIASES, unit
from tests.harness import fakes
from tests.harness.process import ROOT, running

pytestmark = pytest.mark.clients
DOCS = (ROOT / "docs/dialects.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"^### (\w+)\n\n```python\n(.*?)^```$", DOCS, flags=re.DOTALL | re.MULTILINE))
GUITAR, DOG = "a man plays the guitar", "a dog sleeps on the sofa"
KEY = "correct-horse-battery-staple"


def client_package(name: str) -> ModuleType:
    """An official client, or a skipped test with a line that says why."""
    found: ModuleType = pytest.importorskip(name, reason=f"no {name}: pip install '.[clients]'")
    return found


def run_snippet(client: str, url: str) -> dict[str, Any]:
    """Run the documented lines, word for word but for the port; what they leave."""
    code = SNIPPETS[client].replace("http://127.0.0.1:8000", url)
    assert url in code
    names: dict[str, Any] = {}
    exec(compile(code, f"docs/dialects.md, {client}", "exec"), names)
    return names


def own(url: str, path: str, body: dict[str, object]) -> dict[str, Any]:
    """What our own route answers to the same question."""
    response = httpx.post(url + path, json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def tokens(*texts: str) -> int:
    """How many tokens the fakes read of these."""
    tokenizer: Tokenizer = fakes.tokenizer()
    return sum(len(tokenizer.encode(text, fakes.MAX_TOKENS).ids) for text in texts)


def test_the_documentation_shows_each_client() -> None:
    assert set(SNIPPETS) == {"cohere", "openai", "huggingface_hub", "LangChain"}
    # The service of these tests has aliases; what is shown needs none, nor any other setting.
    named = {name for code in SNIPPETS.values() for name in re.findall(r'model="([^"]+)"', code)}
    assert named
    assert all((ROOT / "models" / name / "manifest.json").is_file() for name in named)


@pytest.fixture(scope="module")
def locked(models: Path) -> Iterator[str]:
    """Where a service listens that lets one key in."""
    with running(models, api_keys=hash_key("me", KEY)) as (_, found):
        yield found


# cohere


def test_cohere_as_documented(url: str) -> None:
    client_package("cohere")
    left = run_snippet("cohere", url)
    documents = ["A dog sleeps on the sofa.", "A man is playing a guitar."]
    expected = own(url, "/rank", {"query": "Who plays the guitar?", "candidates": documents})["results"][0]
    assert left["best"] == expected["index"]
    assert len(left["answer"].results) == 1
    assert left["answer"].results[0].relevance_score == expected["score"]
    assert left["answer"].id


def test_cohere_v1_returns_documents(url: str) -> None:
    cohere = client_package("cohere")
    with cohere.Client(api_key="any", base_url=f"{url}/cohere") as client:
        answer = client.rerank(
            query=GUITAR,
            documents=[{"text": DOG}, {"text": GUITAR, "title": "t"}, "a man"],
            rank_fields=["text"],
            return_documents=True,
            top_n=2,
        )
        plain = client.rerank(query=GUITAR, documents=[DOG])
    assert [result.index for result in answer.results] == [1, 2]
    assert answer.results[0].relevance_score == pytest.approx(1.0)
    assert [result.document.text for result in answer.results] == [GUITAR, "a man"]
    assert answer.results[0].document.title == "t"
    assert answer.meta.api_version.version == "1"
    assert plain.results[0].document is None


def test_cohere_raises_its_own_errors(url: str, locked: str) -> None:
    cohere = client_package("cohere")
    ask = {"query": GUITAR, "documents": [DOG]}
    for make in (cohere.ClientV2, cohere.Client):
        with make(api_key="any", base_url=f"{url}/cohere") as client:
            with pytest.raises(cohere.NotFoundError) as unknown:
                client.rerank(**ask, model="rerank-v9")
            with pytest.raises(cohere.BadRequestError) as empty:
                client.rerank(**(ask | {"documents": [DOG, " "]}), model="avg-paraphrase")
        assert "rerank-v9" in unknown.value.body["message"]
        assert unknown.value.body["id"] == unknown.value.headers["x-request-id"]
        assert empty.value.body["message"] == "documents.1: the text has no visible character"
    with (
        cohere.ClientV2(api_key="wrong", base_url=f"{locked}/cohere") as client,
        pytest.raises(cohere.UnauthorizedError),
    ):
        client.rerank(**ask, model="avg-paraphrase")
    with cohere.ClientV2(api_key=KEY, base_url=f"{locked}/cohere") as client:
        assert client.rerank(**ask, model="avg-paraphrase").results


# openai


def test_openai_as_documented(url: str) -> None:
    client_package("openai")
    left = run_snippet("openai", url)
    assert left["names"] == ["avg-paraphrase", "avg-sick", "pair-sick", *ALIASES]
    expected = unit(url, "A man is playing a guitar.", "A dog sleeps.")
    np.testing.assert_allclose([left["guitar"], left["dog"]], expected, atol=1e-6)


def test_openai_default_is_base64_of_the_same_numbers(url: str) -> None:
    openai = client_package("openai")
    ask = {"model": "text-embedding-3-small", "input": [GUITAR, DOG]}
    with openai.OpenAI(api_key="any", base_url=f"{url}/openai/v1") as client:
        raw = client.embeddings.with_raw_response.create(**ask)
        numbers = client.embeddings.create(**ask, encoding_format="float")
        coded = client.embeddings.create(**ask, encoding_format="base64")
        one = client.embeddings.create(model="avg-sick", input=GUITAR, dimensions=fakes.DIM, user="me")
    assert b'"base64"' in raw.http_request.content  # the client's own choice
    asked = [item.embedding for item in raw.parse().data]
    decoded = [np.frombuffer(base64.b64decode(item.embedding), "<f4").tolist() for item in coded.data]
    assert asked == decoded == np.array([item.embedding for item in numbers.data], np.float32).tolist()
    np.testing.assert_allclose(np.linalg.norm(asked, axis=1), 1, atol=1e-6)
    assert numbers.usage.prompt_tokens == numbers.usage.total_tokens == tokens(GUITAR, DOG)
    assert numbers.model == "avg-paraphrase"
    assert (one.model, len(one.data), len(one.data[0].embedding)) == ("avg-sick", 1, fakes.DIM)


def test_openai_knows_the_models(url: str) -> None:
    openai = client_package("openai")
    with openai.OpenAI(api_key="any", base_url=f"{url}/openai/v1") as client:
        alias = client.models.retrieve("text-embedding-3-small")
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("gpt-9")
    assert (alias.id, alias.object, alias.owned_by, alias.root) == (
        "text-embedding-3-small", "model", "semblance", "avg-paraphrase"
    )  # fmt: skip
    assert alias.created == 1735776000  # the day on which the fakes say they were made


def test_openai_raises_its_own_errors(url: str) -> None:
    openai = client_package("openai")
    with openai.OpenAI(api_key="any", base_url=f"{url}/openai/v1") as client:
        for ask, kind, param, code, words in (
            ({"model": "text-embedding-9"}, openai.NotFoundError, "model", "model_not_found", "'text-embedding-9'"),
            ({"input": [GUITAR, " "]}, openai.BadRequestError, "input.1", "empty_text", "no visible character"),
        ):
            with pytest.raises(kind) as refused:
                client.embeddings.create(**({"model": "avg-paraphrase", "input": GUITAR} | ask))
            assert (refused.value.param, refused.value.code) == (param, code)
            assert refused.value.type == "invalid_request_error"
            assert words in refused.value.message
            assert refused.value.request_id


def test_openai_sends_its_key(locked: str) -> None:
    openai = client_package("openai")
    base = f"{locked}/openai/v1"
    with openai.OpenAI(api_key="wrong", base_url=base) as client, pytest.raises(openai.AuthenticationError) as who:
        client.models.list()
    assert who.value.code == "invalid_api_key"
    with openai.OpenAI(api_key=KEY, base_url=base) as client:
        assert client.models.list().data


# huggingface_hub


def test_huggingface_hub_as_documented(url: str, hub: ModuleType) -> None:
    left = run_snippet("huggingface_hub", url)
    pairs = [{"a": "A man is playing a guitar.", "b": b} for b in ("A man plays.", "A dog sleeps.")]
    expected = own(url, "/similarity", {"pairs": pairs})["results"]
    assert left["scores"] == [result["score"] for result in expected]
    assert left["embeddings"].dtype == np.float32
    rows = unit(url, "A man is playing a guitar.", "A dog sleeps.")
    np.testing.assert_allclose(left["embeddings"], rows, atol=1e-6)


def test_huggingface_hub_shows_what_is_refused(url: str, locked: str, hub: ModuleType) -> None:
    client = hub.InferenceClient(f"{url}/tei")
    with pytest.raises(hub.errors.HfHubHTTPError, match=r"inputs: the text has no visible character"):
        client.feature_extraction(" ")
    with pytest.raises(hub.errors.HfHubHTTPError, match=r"inputs\.1: a text of more than 12 tokens") as long:
        client.feature_extraction([GUITAR, "man " * 13], truncate=False)
    assert long.value.response.status_code == 422
    with pytest.raises(hub.errors.HfHubHTTPError) as who:
        hub.InferenceClient(f"{locked}/tei", token="wrong").feature_extraction(GUITAR)
    assert who.value.response.status_code == 401
    assert hub.InferenceClient(f"{locked}/tei", token=KEY).feature_extraction(GUITAR).shape == (1, fakes.DIM)


# LangChain


def test_langchain_as_documented(url: str) -> None:
    client_package("langchain_openai")
    left = run_snippet("LangChain", url)
    expected = unit(url, "A man is playing a guitar.", "A man plays.", "A dog sleeps.")
    np.testing.assert_allclose([left["vector"], *left["vectors"]], expected, atol=1e-6)
