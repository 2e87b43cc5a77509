"""Every request of every dialect: answered as our own route answers it, and refused in its dialect's words."""

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from tests.harness import fakes
from tests.harness.dialects import LIMITS, MAX_CHARS, OWN, REQUESTS, TEI, Body, DialectRequest, misfits, put
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
LONG = "man " * (fakes.MAX_TOKENS + 1)
ANSWERED = {name: ask for name, ask in REQUESTS.items() if ask.own}
COUNTED = {name: ask for name, ask in ANSWERED.items() if ask.errors is not TEI}


@pytest.fixture(scope="module")
async def aliased(serve: Serve) -> AsyncIterator[Client]:
    async with serve(model_aliases={"rerank-v3.5": "avg-sick", "mine/reranker": "avg-sick"}) as client:
        yield client


def alike(found: Any, expected: Any) -> None:
    """The same numbers, in the same order, beside the same labels or places."""
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, tuple):
            assert one[0] == other[0]
            one, other = one[1], other[1]
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


async def check(
    client: Client, ask: DialectRequest, given: Body, meant: Body | None = None, texts: list[str] | None = None
) -> None:
    """What is answered, or why the model cannot, is what our route says to the same question."""
    body_of, said, _ = OWN[ask.own]
    own = await client.post(ask.own, json=body_of(texts or ask.values) | (given if meant is None else meant))
    response = await client.post(ask.path, json=ask.body | given, headers={"x-request-id": "abc"})
    if own.status_code == 200:
        answer = response.json()
        assert response.status_code == 200, answer
        alike(ask.read(answer), said(own.json()))
        assert not isinstance(answer, dict) or answer.get("model", own.json()["model"]) == own.json()["model"]
    else:
        error = own.json()["error"]
        expected = ask.errors.response(error["code"], "model", error["message"])
        assert (response.status_code, response.json()) == expected


@pytest.mark.parametrize("name", ANSWERED)
async def test_the_answer_is_that_of_our_own_route(aliased: Client, name: str) -> None:
    ask = ANSWERED[name]
    for given, meant in (
        *((each, each) for each in (None, "avg-paraphrase", "avg-sick", "pair-sick")),
        ("", None), ("mine/reranker", "avg-sick"), ("rerank-v3.5", "avg-sick"),
        *([("rerank-v9", "rerank-v9")] if name != "TEI predict" else []),  # which may have meant labels of its own
    ):  # fmt: skip
        await check(aliased, ask, {"model": given}, {"model": meant})
    await check(aliased, ask, {"model": None} if "model" in ask.body else {}, {})
    if ask.errors is TEI:  # TEI ignores names on the hub
        await check(aliased, ask, {"model": "BAAI/bge-reranker-base"}, {})


@pytest.mark.parametrize("name", [name for name, ask in ANSWERED.items() if ask.takes_one and ask.many])
async def test_a_single_text_is_a_list_of_one(lasting: Client, name: str) -> None:
    ask = ANSWERED[name]
    before = len(ask.texts) - 2 if ask.own == "/embed" else 1
    texts = ask.values[: before + 1]
    await check(lasting, ask, {ask.many: texts[-1]}, {}, texts)
    await check(lasting, ask, {ask.many: texts[-1:]}, {}, texts)


async def test_the_default_is_that_of_our_nearest_route(serve: Serve) -> None:
    settings = {"default_rank": "pair-sick", "default_similarity": "avg-sick", "default_entailment": "pair-sick"}
    async with serve(**settings) as client:
        for ask in ANSWERED.values():
            await check(client, ask, {"model": None}, {})
        for path, model in (("/rank", "pair-sick"), ("/embed", "avg-sick"), ("/similarity", "avg-sick")):
            assert (await client.post(path, json=OWN[path][0](["a man", "a dog"]))).json()["model"] == model
        assert (await client.get("/tei/info")).json()["model_id"] == "pair-sick"
        assert await client.metric("semblance_request_seconds_count", route="/tei/predict", model="pair-sick") == 1


@pytest.mark.parametrize("name", COUNTED)
async def test_tokens_are_counted_and_cuts_are_told(lasting: Client, name: str) -> None:
    ask = COUNTED[name]
    for place in (None, *ask.texts):
        body = ask.body if place is None else put(ask.body, place, LONG)
        answer = (await lasting.post(ask.path, json=body)).json()
        texts = [LONG if each == place else text for each, text in zip(ask.texts, ask.values, strict=True)]
        count = sum(len(fakes.tokenizer().encode(text, fakes.MAX_TOKENS).ids) for text in texts)
        meta = answer.get("meta", {})
        counts = [*answer.get("usage", {}).values(), meta.get("tokens", {}).get("input_tokens", count)]
        assert {*counts, meta.get("billed_units", {}).get("input_tokens", count)} == {count}
        assert meta or answer["usage"].keys() == {"prompt_tokens", "total_tokens"}  # somewhere it is said
        said = [] if place is None else [f"{place}: only its first {fakes.MAX_TOKENS} tokens were read"]
        assert (meta or answer).get("warnings", []) == said


async def refuses(client: Client, ask: DialectRequest, body: Body, code: str, field: str, words: str) -> None:
    response = await client.post(ask.path, json=body, headers={"x-request-id": "abc"})
    answer = response.json()
    found = answer.get("message") or answer.get("error")
    message = found["message"] if isinstance(found, dict) else found
    assert (response.status_code, answer) == ask.errors.response(code, field, message), body
    assert words in message
    assert field in message


@pytest.mark.parametrize("name", [name for name, ask in REQUESTS.items() if ask.texts])
async def test_what_does_not_fit_is_told_in_the_words_of_the_dialect(limited: Client, name: str) -> None:
    for misfit in misfits(REQUESTS[name], LIMITS, MAX_CHARS, fakes.MAX_TOKENS):
        await refuses(limited, REQUESTS[name], *misfit)


# What is particular to one request: its name, what is changed (`...` leaves a field out), and how it is refused.
RERANKS = ("Cohere v1", "Cohere v2")
COHERE_EMBEDS = ("Cohere v1 embed", "Cohere v2 embed")
TEI_EMBEDS = ("TEI embed", "TEI embed, bare URL")
INVALID, NO_TASK = "invalid_request", "unsupported_task"


@pytest.mark.parametrize(
    ("names", "change", "code", "field", "words"),
    [
        (RERANKS, {"documents": "a"}, INVALID, "documents", "expected a list"),
        (RERANKS, {"documents": ["a", 3]}, INVALID, "documents.1", "expected a text, or an object"),
        (RERANKS, {"documents": ["a", {}]}, INVALID, "documents.1", "a document without 'text'"),
        (RERANKS, {"documents": ["a", {}], "rank_fields": [""]}, INVALID, "documents.1", "a document without ''"),
        (RERANKS, {"documents": ["a", {"page": 4}]}, INVALID, "documents.1", "a document without 'text'"),
        (RERANKS, {"documents": [{"text": ["a"]}]}, INVALID, "documents.0.text", "expected a text"),
        (RERANKS, {"documents": [{"p": 5}], "rank_fields": ["p"]}, INVALID, "documents.0.p", "expected a text"),
        (RERANKS, {"query": None}, INVALID, "query", "expected a text"),
        (RERANKS, {"top_n": -1}, INVALID, "top_n", "0"),
        (RERANKS, {"top_n": "2"}, INVALID, "top_n", "whole number"),
        (COHERE_EMBEDS, {"texts": ...}, INVALID, "texts", "expected at least one text"),
        (COHERE_EMBEDS, {"output_dimension": 9}, INVALID, "output_dimension", "8 dimensions"),
        (COHERE_EMBEDS, {"output_dimension": 3, "model": "avg-sick"}, INVALID, "output_dimension", "avg-sick are not"),
        ("OpenAI", {"dimensions": 9}, INVALID, "dimensions", "8 dimensions"),
        ("OpenAI", {"late_chunking": True}, "unsupported_field", "late_chunking", "each text is embedded by itself"),
        ("OpenAI", {"truncate": 5}, "unsupported_field", "truncate", "true, false, NONE, END or START"),
        ("OpenAI", {"truncate": "LEFT"}, "unsupported_field", "truncate", "true, false, NONE, END or START"),
        ("OpenAI score", {"text_1": ["a", "b"], "text_2": ["a"] * 3}, INVALID, "text_1", "2 texts beside 3 in text_2"),
        ("OpenAI score", {"text_1": ["a", "b"], "text_2": "a"}, INVALID, "text_1", "2 texts beside 1 in text_2"),
        ("OpenAI score", {"text_1": []}, INVALID, "text_1", "at least one text"),
        ("OpenAI score", {"text_1": [[1, 2]]}, INVALID, "text_1", "token ids"),
        ("OpenAI score", {"text_1": ..., "data_1": ["a", ""]}, "empty_text", "data_1.1", "no visible character"),
        ("OpenAI score", {"text_1": [["a", "b"]]}, INVALID, "text_1", "item 0 is no text"),
        ("OpenAI score", {"text_2": None}, INVALID, "text_2", "expected a text"),
        ("OpenAI score", {"truncate_prompt_tokens": -2}, INVALID, "truncate_prompt_tokens", "-1"),
        ("TEI embed", {"inputs": {"a": 1}}, INVALID, "inputs", "expected a text or a list of texts"),
        (TEI_EMBEDS, {"inputs": 3}, INVALID, "inputs", ""),
        (TEI_EMBEDS, {"dimensions": 9}, INVALID, "dimensions", "8 dimensions"),
        (TEI_EMBEDS, {"prompt_name": "q"}, INVALID, "prompt_name", "no prompts"),
        (TEI_EMBEDS, {"truncation_direction": "up"}, INVALID, "truncation_direction", ""),
        ("TEI similarity", {"inputs": {"sentences": ["a"]}}, INVALID, "inputs.source_sentence", "Field required"),
        ("TEI similarity", {"parameters": {"prompt_name": "q"}}, "unsupported_field", "parameters.prompt_name", ""),
        ("TEI predict", {"inputs": "a", "model": None}, NO_TASK, "", "no model here has labels of its own"),
        ("TEI predict", {"inputs": ["a"], "model": None}, NO_TASK, "", "no model here has labels of its own"),
        ("TEI predict", {"inputs": [["a", "b"], ["c"]]}, INVALID, "inputs", "expected a text, a pair of texts"),
        ("TEI predict", {"model": "rerank-v9"}, "unknown_model", "model", "no model 'rerank-v9'"),
        ("TEI predict", {"inputs": []}, INVALID, "inputs", "expected a text, a pair of texts"),
        ("TEI predict", {"inputs": [["a", "b"]] * 4}, "too_large", "inputs", "(SEMBLANCE_MAX_PAIRS)"),
        ("TEI predict", {"inputs": [["a", "b"], [" ", "b"]]}, "empty_text", "inputs.1.0", "no visible character"),
        (TEI_EMBEDS, {"parameters": {}}, "unsupported_field", "parameters", "POST /tei/predict"),
    ],
)  # fmt: skip
async def test_what_is_particular_to_one_request(limited: Client, names, change, code, field, words) -> None:
    for name in [names] if isinstance(names, str) else names:
        ask = REQUESTS[name]
        body = {name: value for name, value in (ask.body | change).items() if value is not ...}
        await refuses(limited, ask, body, code, field, words)
