"""`/rank`: with a second model, which decides about the best; and in parts, with turns for other requests between."""

import asyncio
from pathlib import Path

import pytest

from service.engine.admission import RequestContext
from service.scoring.scorer import ScoredPairs, Scorer
from tests.harness import fakes
from tests.harness.requests import error_of
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
QUERY = "a man plays the guitar"
CANDIDATES = [
    "a cat sleeps",
    "a man plays",
    "a dog",
    "the man is playing a guitar .",
    "the woman is not in the park",
    "a man plays",
    "the guitar",
]


async def ranked(client: Client, **body: object) -> dict:
    return await client.answer("/rank", **{"query": QUERY, "candidates": CANDIDATES, **body})


def order(answer: dict) -> list[int]:
    return [result["index"] for result in answer["results"]]


async def test_of_equal_ones_the_earlier_comes_first_and_a_second_stage_without_opinion_moves_none(
    serve: Serve, tmp_path: Path
) -> None:
    """The second model reads two words of each, so all are equal to it."""
    fakes.cosine_model(tmp_path / "wide", "avg-paraphrase")
    fakes.interaction_model(tmp_path / "narrow", "narrow", max_tokens=2)
    ends = ["dog", "guitar", "sofa", "guitar", "cat", "dog", "plays the guitar", "sleeps"]
    candidates = [f"a man {end}" for end in ends]
    async with serve(models_dir=tmp_path) as client:
        once = order(await ranked(client, candidates=candidates))
        assert once.index(1) < once.index(3)
        assert once.index(0) < once.index(5)
        for top in (5, len(candidates)):
            twice = order(await ranked(client, candidates=candidates, rerank_model="narrow", rerank_top=top))
            assert twice == once != sorted(once)


async def test_others_have_the_event_loop_while_many_known_texts_are_found(serve: Serve) -> None:
    texts = [f"a man plays {i}" for i in range(1500)]
    async with serve(cache="memory", cache_bytes=10_000_000) as client:
        scorer = client.app.service.registry["avg-sick"].scorer
        keys = [each.ids for each in await scorer.tokenise(RequestContext(), texts, str)]
        await scorer.embeddings.get(RequestContext(), keys)
        for known in (scorer.tokenise(RequestContext(), texts, str), scorer.embeddings.get(RequestContext(), keys)):
            others: list[str] = []
            asyncio.get_running_loop().call_soon(others.append, "had a turn")
            await known
            assert others


async def test_the_published_reranker_is_the_default_where_it_is_served(
    client: Client, serve: Serve, root: Path
) -> None:
    assert (await client.get("/models")).json()["rerank"]["default_model"] is None
    fakes.interaction_model(root / "minilm-cross", "minilm-cross")
    async with serve(models_dir=root) as client:
        assert (await ranked(client, rerank_top=2))["rerank_model"] == "minilm-cross"
        assert (await client.get("/models")).json()["rerank"]["default_model"] == "minilm-cross"


async def test_fifteen_are_ordered_again_when_nobody_says_how_many(client: Client) -> None:
    candidates = [f"{fakes.WORDS[i % 20]} {fakes.WORDS[i // 20]}" for i in range(60)]
    before = await client.metric("semblance_sentences_total", model="pair-sick")
    answer = await ranked(client, candidates=candidates, rerank_model="pair-sick")
    read = await client.metric("semblance_sentences_total", model="pair-sick") - before
    assert [result["stage"] for result in answer["results"]] == [2] * 15 + [1] * 45
    assert sorted(order(answer)) == list(range(60))
    assert read == 16


async def test_without_a_default_second_model_one_must_be_named(lasting: Client) -> None:
    response = await lasting.post("/rank", json={"query": QUERY, "candidates": CANDIDATES, "rerank_top": 2})
    assert response.status_code == 422
    error = error_of(response)
    assert error["field"] == "rerank_model"
    assert str(error["message"]).endswith("name one of: avg-paraphrase, avg-sick, pair-sick")


async def test_each_stage_says_what_it_cut(serve: Serve, tmp_path) -> None:
    """The second model has its own limit, and its own reading of the best ones only."""
    fakes.cosine_model(tmp_path / "wide", "avg-paraphrase")
    fakes.graded_model(tmp_path / "graded")
    fakes.interaction_model(tmp_path / "narrow", "narrow", max_tokens=3)
    long = "man " * (fakes.MAX_TOKENS + 1)
    candidates = ["a dog sleeps .", "a man", "the man plays the guitar", long]
    async with serve(models_dir=tmp_path) as client:
        answer = await ranked(client, candidates=candidates, rerank_model="narrow", rerank_top=3)
    assert answer["truncated"] == {"query": False, "candidates": [3]}
    reread = [result["index"] for result in answer["results"] if result["stage"] == 2]
    assert answer["rerank_truncated"] == {"query": True, "candidates": sorted(set(reread) & {0, 2, 3})}
    assert 1 < len(answer["rerank_truncated"]["candidates"]) < 4


async def test_rank_tells_raw_scores(lasting: Client) -> None:
    async def raw_by_index(model: str) -> dict[int, float]:
        pairs = [{"a": QUERY, "b": candidate} for candidate in CANDIDATES]
        scored = (await lasting.post("/similarity", json={"pairs": pairs, "model": model})).json()["results"]
        return {i: result["raw_score"] for i, result in enumerate(scored)}

    body = {"query": QUERY, "candidates": CANDIDATES}
    once = (await lasting.post("/rank", json=body)).json()["results"]
    first, second = await raw_by_index("avg-paraphrase"), await raw_by_index("pair-sick")
    assert {result["index"]: result["raw_score"] for result in once} == pytest.approx(first, abs=1e-6)
    twice = (await lasting.post("/rank", json=body | {"rerank_model": "pair-sick", "rerank_top": 2})).json()
    for result in twice["results"]:
        expected = (second if result["stage"] == 2 else first)[result["index"]]
        assert result["raw_score"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("path", ["/rank", "/v1/rerank"])
async def test_the_same_text_comes_first_whatever_the_model_says(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Of a model that scores the later pair higher."""

    async def rising(self: Scorer, context: RequestContext, name: str, pairs: list, **_: object) -> ScoredPairs:
        return ScoredPairs([float(i) for i in range(len(pairs))], None, [i / 100 for i in range(len(pairs))])

    monkeypatch.setattr(Scorer, "_compute_scores", rising)
    of = "candidates" if path == "/rank" else "documents"
    async with serve() as client:
        answer = await client.answer(
            path, query="a man plays", model="pair-sick", **{of: ["a dog", "a man plays", "a cat"]}
        )
    assert [result["index"] for result in answer["results"]] == [1, 2, 0]


@pytest.mark.parametrize("match", ["candidates", "entries"])
async def test_equal_texts_have_one_score_and_stand_in_the_order_of_the_request(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, match: str
) -> None:
    """Also where a run computes each of them, and the rest of the run moves its last digits."""

    async def moved(self: Scorer, context: RequestContext, a: list, b: list, task: str) -> ScoredPairs:
        answer = await similarity(self, context, a, b, task)
        raw = [value + 1e-6 * i for i, value in enumerate(answer.raw)]
        return ScoredPairs(raw, answer.rating, answer.score)

    similarity = Scorer.similarity
    monkeypatch.setattr(Scorer, "similarity", moved)
    texts = ["a cat sleeps", "a man plays", "a dog"] * 20
    async with serve() as client:
        if match == "candidates":
            results = (await ranked(client, candidates=texts))["results"]
        else:
            entries = [{"question": text, "answer": text} for text in texts]
            answer = await client.answer("/rank", query=QUERY, entries=entries, match="either")
            results = answer["results"]
    places = [result["index"] for result in results]
    for text in texts[:3]:
        of_text = [place for place in places if texts[place] == text]
        assert of_text == sorted(of_text)
        assert len({result["raw_score"] for result in results if texts[result["index"]] == text}) == 1
