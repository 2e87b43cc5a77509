"""`POST /rank` with entries of an FAQ, and whether what comes first is an answer."""

from typing import Any

import pytest

from core.manifest import Manifest
from core.ranking import ONE_STAGE, TWO_STAGES, ConfidenceFit, digest_of, of_stage, shared_words, texts_of
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
QUERY = "a man plays the guitar"
ENTRIES = [
    {"id": "sleep", "question": "a cat sleeps", "answer": "the dog is on the sofa"},
    {"id": "play", "question": "a man plays", "answer": "the woman is playing the flute"},
    {"question": "a dog", "answer": "a man plays the guitar in the park"},
]


def fit_of(models, first: str = "avg-paraphrase", second: str | None = None, **changes: Any) -> dict[str, Any]:
    """A fit for models of the folder."""
    names = ONE_STAGE if second is None else TWO_STAGES
    found: dict[str, Any] = {
        "model": first, "fingerprint": Manifest.load(models / first).fingerprint, "intercept": -2.0,
        "weights": {name: 0.1 * (n + 1) for n, name in enumerate(names)}, "threshold": 0.0, "rows": 30,
        "calibration_error": 0.1, "fitted_by": "semblance choose --faq faq.csv questions.csv --seed 1",
    }  # fmt: skip
    if second is not None:
        found |= {"rerank_model": second, "rerank_fingerprint": Manifest.load(models / second).fingerprint}
        found["rerank_top"] = 2
    return found | changes


async def ranked(client: Client, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = await client.post("/rank", json={"query": QUERY} | body)
    assert answer.status_code == status, answer.text
    return answer.json() if status == 200 else answer.json()["error"]


@pytest.mark.parametrize("match", ["question", "answer", "both"])
async def test_entries_are_ordered_by_their_text(lasting: Client, match: Any) -> None:
    texts = [texts_of(entry["question"], entry["answer"], match)[0] for entry in ENTRIES]
    plain = await ranked(lasting, candidates=texts)
    found = await ranked(lasting, entries=ENTRIES, match=match)
    assert [each["index"] for each in found["results"]] == [each["index"] for each in plain["results"]]
    assert [each["score"] for each in found["results"]] == [each["score"] for each in plain["results"]]
    assert {each["index"]: each.get("id") for each in found["results"]} == {0: "sleep", 1: "play", 2: None}


async def test_of_either_text_the_better_one_counts(lasting: Client) -> None:
    by = {match: await ranked(lasting, entries=ENTRIES, match=match) for match in ("question", "answer", "either")}
    raw = {match: {each["index"]: each["raw_score"] for each in answer["results"]} for match, answer in by.items()}
    assert raw["either"] == {i: max(raw["question"][i], raw["answer"][i]) for i in range(len(ENTRIES))}
    twice = await ranked(lasting, entries=ENTRIES, match="either", rerank_model="pair-sick", rerank_top=2)
    assert [each["stage"] for each in twice["results"]] == [2, 2, 1]
    assert {each["index"] for each in twice["results"]} == {0, 1, 2}


@pytest.mark.parametrize("second", [None, "pair-sick"])
async def test_the_confidence_is_that_of_the_fit(lasting: Client, models, second: str | None) -> None:
    fit = fit_of(models, second=second)
    stages = {} if second is None else {"rerank_model": second, "rerank_top": 2}
    found = await ranked(lasting, entries=ENTRIES, confidence_fit=fit, **stages)
    coarse = {each["index"]: each["raw_score"] for each in (await ranked(lasting, entries=ENTRIES))["results"]}
    first = found["results"][0]["index"]
    raw = [coarse[i] for i in range(len(ENTRIES))]
    text = f"{ENTRIES[first]['question']} {ENTRIES[first]['answer']}"
    features = [*of_stage(raw, first), shared_words(QUERY, text)]
    if second is not None:
        features += of_stage([each["raw_score"] for each in found["results"] if each["stage"] == 2], 0)
    assert found["confidence"] == pytest.approx(ConfidenceFit(**fit).probability(features), abs=1e-6)
    assert found["answered"] is True
    for least, answered in ((found["confidence"], True), ((found["confidence"] + 1) / 2, False)):
        again = await ranked(lasting, entries=ENTRIES, confidence_fit=fit, min_confidence=least, **stages)
        assert (again["answered"], bool(again["results"])) == (answered, answered)
        assert again["confidence"] == found["confidence"]


async def test_an_faq_is_declined_below_the_fits_own_threshold_with_suggestions(lasting: Client, models) -> None:
    fit = fit_of(models)
    found = await ranked(lasting, entries=ENTRIES, confidence_fit=fit)
    assert (found["answered"], found["threshold"], "suggestions" in found) == (True, 0.0, False)
    strict = fit | {"threshold": 1.0}
    declined = await ranked(lasting, entries=ENTRIES, confidence_fit=strict, top_k=1)
    assert (declined["answered"], declined["threshold"], declined["results"]) == (False, 1.0, [])
    assert declined["confidence"] == found["confidence"]
    assert declined["suggestions"] == found["results"][:3]
    assert {each["index"]: each.get("id") for each in declined["suggestions"]} == {0: "sleep", 1: "play", 2: None}
    own = await ranked(lasting, entries=ENTRIES, confidence_fit=strict, min_confidence=0.0)
    assert (own["answered"], own["threshold"]) == (True, 0.0)
    by_score = await ranked(lasting, entries=ENTRIES, confidence_fit=strict, min_score=0.0)
    assert (by_score["answered"], by_score["threshold"]) == (True, None)
    # A ranking of candidates is still one: it says that its first is no answer.
    plain = await ranked(lasting, candidates=["a man plays", "a dog"], confidence_fit=strict)
    assert (plain["answered"], len(plain["results"]), "suggestions" in plain) == (False, 2, False)


async def test_min_score_is_of_the_second_stage_where_there_is_one(lasting: Client) -> None:
    stages = {"rerank_model": "pair-sick", "rerank_top": 2}
    found = await ranked(lasting, entries=ENTRIES, **stages)
    first = found["results"][0]
    by_first = {each["index"]: each["score"] for each in (await ranked(lasting, entries=ENTRIES))["results"]}
    assert first["score"] != pytest.approx(by_first[first["index"]], abs=0.01)
    between = (first["score"] + by_first[first["index"]]) / 2
    above = await ranked(lasting, entries=ENTRIES, min_score=between, **stages)
    assert above["answered"] == (first["score"] > between)
    declined = await ranked(lasting, entries=ENTRIES, min_score=min(1.0, first["score"] + 0.001), **stages)
    assert (declined["answered"], declined["results"]) == (False, [])
    assert declined["suggestions"] == found["results"]  # of both stages


async def test_below_min_score_nothing_is_answered(lasting: Client) -> None:
    found = await ranked(lasting, candidates=["a man plays", "a dog"])
    best = found["results"][0]["score"]
    assert (found["answered"], found["confidence"]) == (True, None)  # these models have no fit of their own
    kept = await ranked(lasting, candidates=["a man plays", "a dog"], min_score=best)
    assert kept["results"] == found["results"]
    none = await ranked(lasting, candidates=["a man plays", "a dog"], min_score=min(1.0, best + 0.001))
    assert (none["answered"], none["results"]) == (False, [])


async def test_a_published_fit_answers_until_the_model_is_another(serve: Serve, root) -> None:
    manifest = Manifest.load(root / "avg-paraphrase")
    published = ConfidenceFit(**fit_of(root))
    manifest.model_copy(update={"confidence": (published,)}).save(root / "avg-paraphrase")
    assert Manifest.load(root / "avg-paraphrase").fingerprint == manifest.fingerprint
    body = {"candidates": ["a man plays", "a dog"]}
    async with serve(models_dir=root) as client:
        found = await ranked(client, **body)
        assert 0 < found["confidence"] < 1
        assert (await ranked(client, **body, confidence_fit=fit_of(root)))["confidence"] == found["confidence"]
        assert (await ranked(client, **body, min_confidence=1.0))["answered"] is False
        assert (await ranked(client, **body, rerank_model="pair-sick"))["confidence"] is None  # it was not fitted so
        assert (await ranked(client, candidates=["a dog"]))["confidence"] is None  # beside no other
        full = (await client.get("/models?full=true")).json()["models"]
        assert {each["id"]: len(each["confidence"]) for each in full}["avg-paraphrase"] == 1
    stale = published.model_copy(update={"fingerprint": "0" * 64})
    manifest.model_copy(update={"confidence": (stale,)}).save(root / "avg-paraphrase")
    async with serve(models_dir=root) as client:
        assert (await ranked(client, **body))["confidence"] is None


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({}, "candidates", "either candidates, or entries"),
        ({"candidates": ["a"], "entries": ENTRIES}, "candidates", "either candidates, or entries"),
        ({"entries": []}, "entries", "at least 1"),
        ({"entries": [{"question": "a"}]}, "entries.0.answer", "Field required"),
        ({"entries": [*ENTRIES, {"question": " ", "answer": "a"}], "match": "either"}, "entries.3.question", "visible"),
        ({"candidates": ["a man"], "match": "either"}, "match", "candidates are texts"),
        ({"entries": [{"question": "a", "answer": ""}]}, "entries.0.answer", "no visible"),
        ({"entries": [{"question": "a", "answer": "b", "id": name} for name in ("x", "y", "x")]}, "entries.2.id",
         "'x' is the id of entries.0 too"),
        ({"entries": ENTRIES, "match": "title"}, "match", "expected"),
        ({"entries": ENTRIES, "min_confidence": 0.5}, "min_confidence", "confidence was fitted for avg-paraphrase; "),
        ({"entries": ENTRIES, "min_confidence": 0.5, "rerank_model": "pair-sick", "rerank_top": 2}, "min_confidence",
         "fitted for avg-paraphrase before pair-sick with rerank_top 2; "),
    ],
)  # fmt: skip
async def test_what_does_not_fit_is_named(lasting: Client, body: dict[str, Any], field: str, words: str) -> None:
    error = await ranked(lasting, 422, **body)
    assert error["field"] == field
    assert words in error["message"]


async def test_what_is_said_of_a_long_id_is_short(lasting: Client) -> None:
    entries = [{"question": "a", "answer": "b", "id": "\x7f" * 100_000}] * 2
    assert len((await ranked(lasting, 422, entries=entries))["message"]) < 1000


async def test_a_fit_for_other_models_is_refused(lasting: Client, models) -> None:
    for change in ({"fingerprint": "0" * 64}, {"model": "avg-sick"}):
        error = await ranked(lasting, 422, entries=ENTRIES, confidence_fit=fit_of(models) | change)
        assert error["field"] == "confidence_fit"
    error = await ranked(lasting, 422, entries=ENTRIES, confidence_fit=fit_of(models), rerank_model="pair-sick")
    assert error["field"] == "confidence_fit"
    error = await ranked(lasting, 422, entries=ENTRIES[:1], confidence_fit=fit_of(models), min_confidence=0.1)
    assert (error["field"], "two candidates" in error["message"]) == ("min_confidence", True)


async def test_a_fit_is_for_the_texts_that_it_was_fitted_with(lasting: Client, root) -> None:
    fitted = {**fit_of(root), "match": "question"}
    assert (await ranked(lasting, entries=ENTRIES, confidence_fit=fitted, match="question"))["confidence"] > 0
    error = await ranked(lasting, 422, entries=ENTRIES, confidence_fit=fitted, match="answer")
    assert (error["field"], "match 'question'" in error["message"]) == ("confidence_fit", True)


async def test_a_fit_is_for_the_entries_that_it_was_fitted_on(lasting: Client, models) -> None:
    fitted = fit_of(models, entries=digest_of((entry["question"], entry["answer"]) for entry in ENTRIES))
    assert (await ranked(lasting, entries=ENTRIES[::-1], confidence_fit=fitted))["confidence"] > 0
    changed = [{**ENTRIES[0], "answer": "the dog is in the park"}, *ENTRIES[1:]]
    for other in ({"entries": changed}, {"entries": ENTRIES[1:]}, {"candidates": ["a dog", "a cat"]}):
        error = await ranked(lasting, 422, confidence_fit=fitted, **other)
        assert (error["field"], "choose again" in error["message"]) == ("confidence_fit", True)
