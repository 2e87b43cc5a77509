"""What answers say of texts in another language than the model's; the sentences are of `tests/service/scoring`."""

import pytest

from contract.manifest import Manifest
from tests.harness import fakes
from tests.harness.languages import ENGLISH_TEXTS, OTHER
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
ENGLISH, GERMAN, FRENCH = "where is my card ?", "Wo ist meine Karte?", "Où est ma carte ?"
LANGUAGES = "x-text-language"
EACH = {
    "/similarity": {"pairs": [{"a": ENGLISH, "b": ENGLISH}]},
    "/rank": {"query": ENGLISH, "candidates": [ENGLISH]},
    "/entailment": {"pairs": [{"premise": ENGLISH, "hypothesis": ENGLISH}]},
    "/classify": {"text": [ENGLISH], "labels": ["cards"]},
    "/embed": {"sentences": [ENGLISH]},
    "/explain": {"a": ENGLISH, "b": ENGLISH},
}


async def asked(client: Client, path: str, **body: object) -> tuple[dict, str | None]:
    """The answer, and its header about languages."""
    answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json(), answer.headers.get(LANGUAGES)


async def test_nine_of_ten_sentences_in_six_languages_are_flagged_and_one_of_a_hundred_english_ones(
    lasting: Client,
) -> None:
    answer, header = await asked(lasting, "/embed", sentences=[text for _, text in OTHER])
    assert sum(each is not None for each in answer["language"]) >= 0.9 * len(OTHER)
    assert {"de?", "fr?", "es?", "it?", "nl?", "pt?"} <= set((header or "").split(", "))
    answer, _ = await asked(lasting, "/embed", sentences=ENGLISH_TEXTS)
    assert sum(each is not None for each in answer.get("language", [])) <= 0.01 * len(ENGLISH_TEXTS)


async def test_similarity_says_it_of_each_text_of_a_pair(lasting: Client) -> None:
    pairs = [{"a": ENGLISH, "b": GERMAN}, {"a": FRENCH, "b": GERMAN}, {"a": ENGLISH, "b": ENGLISH}]
    answer, header = await asked(lasting, "/similarity", pairs=pairs)
    assert [result.get("language") for result in answer["results"]] == [[None, "de?"], ["fr?", "de?"], None]
    assert header == "de?, fr?"


async def test_rank_says_it_of_the_query_and_of_candidates(lasting: Client) -> None:
    answer, _ = await asked(lasting, "/rank", query=GERMAN, candidates=[ENGLISH, FRENCH, GERMAN])
    assert answer["language"] == "de?"
    found = {result["index"]: result.get("language") for result in answer["results"]}
    assert found == {0: None, 1: "fr?", 2: "de?"}


async def test_both_stages_of_rank_say_it(lasting: Client) -> None:
    candidates = [ENGLISH, FRENCH, GERMAN, "a dog"]
    answer, _ = await asked(
        lasting, "/rank", query=FRENCH, candidates=candidates, rerank_model="pair-sick", rerank_top=2
    )
    assert answer["language"] == "fr?"
    found = {result["index"]: result.get("language") for result in answer["results"]}
    assert found == {0: None, 1: "fr?", 2: "de?", 3: None}


async def test_entailment_says_it_of_pairs_and_of_claims(lasting: Client) -> None:
    pair = {"premise": GERMAN, "hypothesis": ENGLISH}
    answer, _ = await asked(lasting, "/entailment", model="avg-sick", pairs=[pair])
    assert answer["results"][0]["language"] == ["de?", None]
    answer, _ = await asked(lasting, "/entailment", model="avg-sick", premise=[ENGLISH], hypotheses=[FRENCH, ENGLISH])
    assert [result.get("language") for result in answer["results"]] == [[None, "fr?"], None]


async def test_classify_and_explain_say_it_of_each_text(lasting: Client) -> None:
    answer, _ = await asked(lasting, "/classify", text=[GERMAN, ENGLISH], labels=["cards", "dogs"], model="avg-sick")
    assert [result.get("language") for result in answer["results"]] == ["de?", None]
    answer, _ = await asked(lasting, "/explain", a=ENGLISH, b=GERMAN)
    assert ("language" in answer["a"], answer["b"]["language"]) == (False, "de?")


async def test_a_models_own_labels_say_it(serve: Serve, root) -> None:
    fakes.labelling_model(root / "sentiment")
    async with serve(models_dir=root) as client:
        answer, _ = await asked(client, "/classify", text=[GERMAN, ENGLISH])
        assert [result.get("language") for result in answer["results"]] == ["de?", None]


@pytest.mark.parametrize("path", EACH)
async def test_an_answer_about_english_texts_has_no_such_field_and_no_header(lasting: Client, path: str) -> None:
    model = {"model": "avg-sick"} if path in ("/entailment", "/classify") else {}
    answer, header = await asked(lasting, path, **EACH[path], **model)
    assert header is None
    assert "'language'" not in repr(answer)


async def test_answers_of_other_services_formats_stay_as_they_are_and_have_the_header(lasting: Client) -> None:
    answer, header = await asked(lasting, "/v1/embeddings", input=[ENGLISH, GERMAN], model="avg-paraphrase")
    assert header == "de?"
    assert "'language'" not in repr(answer)
    answer, header = await asked(lasting, "/rerank", query=ENGLISH, documents=[FRENCH], model="avg-paraphrase")
    assert header == "fr?"
    assert "'language'" not in repr(answer)


async def test_a_text_from_the_cache_says_it_too(client: Client) -> None:
    found = [(await asked(client, "/embed", sentences=[GERMAN]))[0]["language"] for _ in range(4)]
    assert found == [["de?"]] * 4


async def test_flagged_texts_are_counted(client: Client) -> None:
    before = await client.metric("semblance_sentences_foreign_total", model="avg-paraphrase")
    await asked(client, "/embed", sentences=[GERMAN, ENGLISH, FRENCH, GERMAN])
    assert await client.metric("semblance_sentences_foreign_total", model="avg-paraphrase") - before == 3


async def test_a_setting_turns_it_off(serve: Serve) -> None:
    async with serve(language_hints=False) as client:
        answer, header = await asked(client, "/similarity", pairs=[{"a": GERMAN, "b": FRENCH}])
    assert header is None
    assert "language" not in answer["results"][0]


async def test_models_says_for_which_languages_each_is(serve: Serve, root) -> None:
    fakes.sign(root / "avg-sick", languages=("de", "en"))
    fakes.sign(root / "pair-sick", languages=None)
    async with serve(models_dir=root) as client:
        models = (await client.get("/models")).json()["models"]
        assert {model["id"]: model["languages"] for model in models} == {
            "avg-paraphrase": ["en"],
            "avg-sick": ["de", "en"],
            "pair-sick": None,
        }
        pairs = [{"a": GERMAN, "b": FRENCH}]
        answer, _ = await asked(client, "/similarity", pairs=pairs, model="avg-sick")
        assert answer["results"][0]["language"] == [None, "fr?"]
        answer, header = await asked(client, "/similarity", pairs=pairs, model="pair-sick")
        assert "language" not in answer["results"][0]
        assert header is None


async def test_a_served_model_for_the_languages_of_the_texts_is_suggested(serve: Serve, root) -> None:
    fakes.sign(root / "avg-sick", languages=("de", "en", "fr"))
    async with serve(models_dir=root) as client:

        async def suggested(path: str, **body: object) -> str | None:
            answer = await client.post(path, json=body)
            assert answer.status_code == 200, answer.text
            return answer.headers.get("x-suggested-model")

        assert await suggested("/embed", sentences=[GERMAN, FRENCH]) == "avg-sick"
        assert await suggested("/rank", query=FRENCH, candidates=[ENGLISH]) == "avg-sick"
        assert await suggested("/v1/embeddings", input=[GERMAN], model="avg-paraphrase") == "avg-sick"
        assert await suggested("/embed", sentences=[ENGLISH]) is None
        assert await suggested("/embed", sentences=[GERMAN, "¿Dónde está mi tarjeta de crédito?"]) is None  # not all
        assert await suggested("/embed", sentences=[GERMAN], model="avg-sick") is None
    fakes.sign(root / "avg-sick", languages=("en",))
    fakes.sign(root / "pair-sick", languages=("de", "en"))
    async with serve(models_dir=root) as client:  # pair-sick scores pairs and embeds nothing
        assert await suggested("/similarity", pairs=[{"a": GERMAN, "b": ENGLISH}]) == "pair-sick"
        assert await suggested("/embed", sentences=[GERMAN]) is None


async def test_a_manifest_of_before_is_read_and_its_model_gets_no_hints(serve: Serve, root) -> None:
    path = root / "avg-paraphrase" / "manifest.json"
    text = path.read_text()
    path.write_text(text.replace(' "languages": [\n  "en"\n ],\n', ""))
    assert path.read_text() != text
    assert Manifest.load(path.parent).languages is None
    async with serve(models_dir=root) as client:
        answer, _ = await asked(client, "/embed", sentences=[GERMAN])
        assert "language" not in answer
