"""`POST /dedupe`: which of some texts say the same, through HTTP; its limits."""

from pathlib import Path

import pytest

from tests.harness import fakes
from tests.harness.estimates import costs, pace, unmeasured
from tests.harness.requests import refused
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
TEXTS = ["a man plays 20 guitars", "A man plays twenty guitars!", "a man plays 30 guitars", "the cat sleeps", "a dog"]


async def test_each_text_has_the_first_that_says_the_same_and_what_it_differs_from(client: Client) -> None:
    answer = await client.answer("/dedupe", texts=TEXTS)
    clusters = [result["cluster"] for result in answer["results"]]
    assert clusters[:3] == [0, 0, 2]
    assert [result["cluster_size"] for result in answer["results"]] == [clusters.count(lead) for lead in clusters]
    assert [result.get("kept_apart", {}).get("index") for result in answer["results"][:3]] == [2, 2, 0]
    assert answer["results"][0]["kept_apart"]["why"] == "20 is not 30"
    apart = {(pair["index_1"], pair["index_2"]): pair for pair in answer["apart"]}
    assert apart[0, 2]["why"].startswith("20 is not 30; cosine ")
    assert "score" not in apart[0, 2]
    assert (answer["model"], "pair_model" in answer) == ("avg-paraphrase", False)  # no model here knows paraphrase
    one = await client.answer("/dedupe", texts=TEXTS, guard=False)
    assert (0, 2) not in {(pair["index_1"], pair["index_2"]) for pair in one["apart"] if "is not" in pair["why"]}
    assert not any("kept_apart" in result for result in one["results"])
    assert (await client.answer("/dedupe", texts=["a man"]))["results"][0]["cluster"] == 0


async def test_a_model_that_reads_both_texts_is_asked_about_near_pairs(
    serve: Serve, models: Path, tmp_path: Path
) -> None:
    fakes.tasks_model(tmp_path / "both")
    async with serve(models_dir=(models, tmp_path)) as client:
        answer = await client.answer("/dedupe", texts=TEXTS, pair_model="both", guard=False)
        assert answer["pair_model"] == "both"
        read = [pair for pair in (*answer["review"], *answer["apart"]) if "score" in pair]
        assert read
        assert all("paraphrase " in pair["why"] for pair in read)
        unknown = ["a man plays \U0001f44d", "a man plays \U0001f44e"]
        answer = await client.answer("/dedupe", texts=unknown, pair_model="both")
        assert [each["cluster"] for each in answer["results"]] == [0, 1]
        assert "could not be read" in answer["apart"][0]["why"]


async def test_the_same_text_is_one_work_however_often_it_stands_there(client: Client, serve: Serve) -> None:
    """What is refused is what would take long, and answers are those of each text at its place."""
    async with serve(request_timeout=400, worker_threads=1) as slow:
        unmeasured(slow)
        costs(slow, "avg-sick", 5.0)
        pace(slow, "avg-sick", 1e-3)
        answer = await slow.answer("/dedupe", texts=["a man plays the guitar"] * 2000, model="avg-sick")
        assert [(each["cluster"], each["cluster_size"]) for each in answer["results"]] == [(0, 2000)] * 2000
        many = {"texts": [f"a {i}" for i in range(900)] * 2, "model": "avg-sick"}
        status, error = await refused(slow, "/dedupe", json=many)
        assert (status, error["code"], error["field"]) == (413, "too_slow", "texts")
        assert ", for 900 different texts; " in str(error["message"])
    twice = await client.answer("/dedupe", texts=[*TEXTS, *TEXTS])
    once = await client.answer("/dedupe", texts=TEXTS)
    doubled = [{**each, "cluster_size": 2 * each["cluster_size"]} for each in once["results"]]
    assert twice == {**once, "results": doubled * 2}
    status, error = await refused(client, "/dedupe", json={"texts": ["a man", "a man", " ", " "]})
    assert (status, error["code"], error["field"]) == (422, "empty_text", "texts.2")


async def test_what_is_too_much_is_named(client: Client, serve: Serve) -> None:
    status, error = await refused(client, "/dedupe", json={"texts": ["a"] * 2001})
    assert (status, error["code"], error["field"], error["limit"]) == (413, "too_large", "texts", 2000)
    assert (await client.post("/dedupe", json={"texts": ["a"] * 2000})).status_code == 200
    async with serve(request_timeout=400, worker_threads=1) as slow:
        unmeasured(slow)
        ran = costs(slow, "avg-sick", 5.0)
        status, error = await refused(
            slow, "/dedupe", json={"texts": [f"a {i}" for i in range(900)], "model": "avg-sick"}
        )
        assert (status, error["code"], error["field"]) == (413, "too_slow", "texts")
        assert ran == []
        assert 0 < error["limit"] < 900
