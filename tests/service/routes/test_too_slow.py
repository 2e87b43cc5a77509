"""Requests that cannot end within the time limit are refused at once, with the number of items that can."""

import re
from collections.abc import AsyncIterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

from service.engine.admission import Admission, Admissions
from service.engine.batcher import Cost
from tests.harness import fakes
from tests.harness.dialects import REQUESTS, put
from tests.harness.estimates import costs, pace, unmeasured
from tests.harness.requests import refused
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
# In 400 seconds, of work of five: eight tenths, half of them since nothing was measured before, of these nine tenths.
FITS = 28
READ_SECONDS = 400 / 10_000  # of a character, expected: LONG has some 8,000
WORDS = [" ".join(words) for words in islice(product(fakes.WORDS, repeat=3), 400)]
PAIRS = [{"a": "a man", "b": text} for text in WORDS[:100]]
CLAIMS = [{"premise": "a man", "hypothesis": text} for text in WORDS[:100]]
TWO_STAGES = {"query": "a man", "candidates": WORDS, "rerank_model": "pair-sick", "rerank_top": 100}


@pytest.fixture
async def client(serve: Serve) -> AsyncIterator[Client]:
    """One that has 400 seconds for an answer, so that those in which it is asked do not count."""
    async with serve(request_timeout=400, worker_threads=1) as client:
        unmeasured(client)
        yield client


@pytest.mark.parametrize(
    ("path", "body", "field", "limit"),
    [
        ("/similarity", {"model": "pair-sick", "pairs": PAIRS}, "pairs", FITS),
        ("/entailment", {"model": "avg-sick", "pairs": CLAIMS}, "pairs", FITS),
        ("/embed", {"model": "avg-sick", "sentences": WORDS[:100]}, "sentences", FITS),
        ("/rank", {"model": "avg-sick", "query": "a man", "candidates": WORDS}, "candidates", FITS),
        ("/rank", {"model": "pair-sick", "query": "a man", "candidates": WORDS}, "candidates", FITS),
        ("/rank", TWO_STAGES, "rerank_top", FITS),
        ("/claims", {"model": "pair-sick", "documents": "a man", "claims": WORDS[:100]}, "claims", FITS),
        ("/classify", {"model": "avg-sick", "text": WORDS[:100], "labels": ["a", "dog"]}, "text", FITS),
    ],
)  # fmt: skip
async def test_it_is_refused_before_any_work_with_what_would_fit(client: Client, path, body, field, limit) -> None:
    ran = costs(client, body.get("rerank_model") or body["model"], 5.0)
    status, error = await refused(client, path, json=body)
    assert (status, error["code"], error["field"]) == (413, "too_slow", field)
    assert limit - 1 <= error["limit"] <= limit
    assert ran == []
    if field != "rerank_top":
        assert (await client.post(path, json=body | {field: body[field][: error["limit"]]})).status_code == 200


async def test_what_is_known_costs_nothing(serve: Serve) -> None:
    async with serve(request_timeout=400, worker_threads=1, cache="memory") as client:
        unmeasured(client)
        costs(client, "avg-sick", 5.0)
        for part in (WORDS[i : i + FITS - 1] for i in range(0, 90, FITS - 1)):
            assert (await client.post("/embed", json={"model": "avg-sick", "sentences": part})).status_code == 200
        body = {"model": "avg-sick", "query": WORDS[0], "candidates": WORDS[:90]}
        assert (await client.post("/rank", json=body)).status_code == 200


# Of nine words, where golden pairs have four: how much each takes is known once its length is.
LONGER = [" ".join(words) for words in islice(product(fakes.WORDS, repeat=9), 2001)]


@pytest.mark.parametrize(
    ("path", "body", "field", "most"),
    [
        ("/rank", {"query": LONGER[0], "candidates": LONGER[:300]}, "candidates", 300),
        ("/similarity", {"pairs": [{"a": LONGER[0], "b": text} for text in LONGER[:100]]}, "pairs", 100),
        ("/openai/v1/score", {"text_1": LONGER[0], "text_2": LONGER[:100]}, "text_2", 100),
        ("/cohere/v2/rerank", {"query": LONGER[0], "documents": LONGER[:100]}, "documents", 100),
        ("/claims", {"documents": [f"{text}." for text in LONGER[:50]], "claims": LONGER[:100]}, "claims", 100),
        ("/dedupe", {"texts": LONGER}, "texts", 2000),
    ],
)
async def test_the_number_that_is_named_fits_however_long_texts_are(
    serve: Serve, tmp_path: Path, models: Path, path: str, body: dict[str, Any], field: str, most: int
) -> None:
    fakes.tasks_model(tmp_path / "both")
    async with serve(models_dir=(models, tmp_path), request_timeout=400, worker_threads=1, max_pairs=5000) as client:
        unmeasured(client)
        ran = costs(client, "both", 0.0)
        scorer = client.app.service.registry["both"].scorer
        for vectors in scorer.outputs.values():
            vectors.batcher.cost = Cost(0.0, 0.02 if path in ("/claims", "/dedupe") else 0.2)
        model = "pair_model" if path == "/dedupe" else "model"
        answer = await client.post(path, json={model: "both", **body})
        assert answer.status_code == 413, answer.text
        found = re.search(r"(\d+) at most", answer.text)
        assert found is not None, answer.text
        assert 1 < int(found[1]) < most
        assert ran == []
        part = {model: "both", **body, field: body[field][: int(found[1])]}
        answer = await client.post(path, json=part)
        assert answer.status_code == 200, answer.text


async def test_both_graphs_of_a_blend_count_before_either_runs(serve: Serve, tmp_path: Path, models: Path) -> None:
    """Each alone would end in time: what was let in by the first was refused when it had run."""
    fakes.blended_model(tmp_path / "blended")
    async with serve(models_dir=(models, tmp_path), request_timeout=400, worker_threads=1) as client:
        unmeasured(client)
        ran = costs(client, "blended", 8.0)
        client.app.service.registry["blended"].scorer.embeddings.batcher.cost = Cost(0.0, 0.0, per_item=8.0)
        body = {"model": "blended", "query": "a man", "candidates": WORDS[:14]}  # 29 rows, and 160 seconds
        status, error = await refused(client, "/rank", json=body)
        assert (status, error["code"], error["field"], ran) == (413, "too_slow", "candidates", [])
        fits = {**body, "candidates": WORDS[: error["limit"]]}
        assert (await client.post("/rank", json=fits)).status_code == 200


LONG = [" ".join(words) for words in islice(product(fakes.WORDS, repeat=20), 100)]


def foreign(texts: list[str]) -> list[tuple[str, dict[str, Any], str]]:
    """Of each dialect's request with a list: path, its body with these texts, and the list's field."""
    lists = [each for each in REQUESTS.values() if each.many and each.own not in ("", "/classify")]
    return [(each.path, put(each.body, each.many, texts), each.many) for each in lists]


async def told(client: Client, path: str, body: dict[str, Any], field: str) -> int:
    """How many are said to fit, of the field that is named, of 100 or more."""
    answer = await client.post(path, json={"model": "avg-sick", **body})
    assert answer.status_code == 413, answer.text
    found = re.search(r"seconds of work, as far as is known, .*, for (\d+) ([\w.]+); (\d+) at most", answer.text)
    assert found is not None, answer.text
    assert found[2] == field
    assert int(found[3]) < 100 <= int(found[1])
    return int(found[3])


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/similarity", {"pairs": [{"a": text, "b": text} for text in LONG]}, "pairs"),
        ("/entailment", {"pairs": [{"premise": text, "hypothesis": text} for text in LONG]}, "pairs"),
        ("/embed", {"sentences": LONG}, "sentences"),
        ("/rank", {"query": LONG[0], "candidates": LONG}, "candidates"),
        ("/classify", {"text": LONG, "labels": ["a"]}, "text"),
        ("/dedupe", {"texts": LONG}, "texts"),
        *foreign(LONG),
    ],
)
async def test_reading_says_which_field_and_how_many_fit(client: Client, path, body, field) -> None:
    """What is refused before a word is read, by the lengths of texts, is refused in the same words."""
    pace(client, "avg-sick", READ_SECONDS)
    most = await told(client, path, body, field)
    if field in body and path in ("/similarity", "/entailment", "/embed"):
        part = {**body, field: body[field][:most]}
        assert (await client.post(path, json={"model": "avg-sick", **part})).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "seconds"),
    [
        ("/dedupe", {"texts": WORDS[:100], "pair_model": "both"}, 100 * 0.7 * 2),
        ("/rank", {"query": "a man", "candidates": WORDS, "rerank_model": "both", "rerank_top": 100}, 100),
        ("/classify", {"text": LONG[:40], "labels": ["a", "dog", "cat"], "model": "both"}, 120),
        ("/claims", {"documents": "A man. A dog runs. " * 100, "claims": WORDS[:10], "model": "pair-sick"}, 10),
    ],
)
async def test_who_is_let_in_is_decided_by_the_work_of_all_stages(
    serve: Serve, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path, body, seconds: float
) -> None:
    fakes.tasks_model(tmp_path / "both")
    first: list[float] = []
    admit = Admissions.admit

    def noted(*arguments: Any) -> Admission:
        admission = admit(*arguments)
        first.append(admission.left)
        return admission

    async with serve(models_dir=(models, tmp_path), request_timeout=1000, worker_threads=1) as client:
        unmeasured(client)
        pace(client, "avg-paraphrase", 1e-6)  # so that reading is admitted, as long texts are
        pace(client, "both", 1e-6)
        costs(client, "both", 1.0)
        costs(client, "pair-sick", 1.0)
        monkeypatch.setattr(Admissions, "admit", noted)
        assert (await client.post(path, json=body)).status_code == 200
    assert first[0] >= 0.95 * seconds  # by a sample of the texts


async def test_of_a_single_text_it_says_how_many_characters_fit(client: Client) -> None:
    pace(client, "avg-sick", READ_SECONDS)
    text = "man " * 20_000
    status, error = await refused(client, "/rank", json={"model": "avg-sick", "query": text, "candidates": ["a"]})
    assert (status, error["code"], error["field"]) == (413, "too_slow", "query")
    assert "characters" in str(error["message"])
    fits = text[: error["limit"]]  # type: ignore[index]
    body = {"model": "avg-sick", "query": fits, "candidates": ["a"]}
    assert (await client.post("/rank", json=body)).status_code == 200


async def test_an_explanation_is_refused_too(client: Client) -> None:
    ran = costs(client, "pair-sick", 10.0)
    texts = {"a": " ".join(fakes.WORDS[:12]), "b": " ".join(fakes.WORDS[12::-1])}
    status, error = await refused(client, "/explain", json={"model": "pair-sick", **texts})
    assert (status, error["code"], error["field"]) == (413, "too_slow", "a")
    assert 0 < error["limit"] < 12  # type: ignore[operator]
    assert ran == []


async def test_one_is_not_many(client: Client) -> None:
    costs(client, "pair-sick", 500.0)
    _, error = await refused(client, "/similarity", json={"model": "pair-sick", "pairs": PAIRS[:1]})
    assert str(error["message"]).endswith(", for 1 pair")


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        *foreign(WORDS[:100]),
        ("/tei/predict", {"inputs": [["a man", text] for text in WORDS[:100]]}, "inputs"),
        ("/openai/v1/score", {"text_1": WORDS[:100], "text_2": WORDS[100:200]}, "text_2"),
    ],
)
async def test_other_families_say_which_field_and_how_many_fit(client: Client, path, body, field) -> None:
    ran = costs(client, "avg-sick", 5.0)
    await told(client, path, body, field)
    assert ran == []
