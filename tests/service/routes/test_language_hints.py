"""What answers say of texts in another language than the model's; the sentences are of `tests/service/scoring`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.manifest import Manifest
from tests.harness import fakes
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
ENGLISH, GERMAN, FRENCH = "where is my card ?", "Wo ist meine Karte?", "Où est ma carte ?"
LANGUAGES = "x-text-language"
SICK = {"model": "avg-sick"}
TWO_STAGES = {"rerank_model": "pair-sick", "rerank_top": 2}
# What is asked, and every hint in its answer, in order: of the whole, then of each result.
ASKED = [
    ("/similarity", {"pairs": [{"a": a, "b": b} for a, b in ((ENGLISH, GERMAN), (FRENCH, GERMAN), (ENGLISH, ENGLISH))]},
     [[None, "de?"], ["fr?", "de?"], None]),
    ("/rank", {"query": GERMAN, "candidates": [ENGLISH, FRENCH, GERMAN]}, ["de?", None, "fr?", "de?"]),
    ("/rank", {"query": FRENCH, "candidates": [ENGLISH, FRENCH, GERMAN, "a dog"], **TWO_STAGES},
     ["fr?", None, "fr?", "de?", None]),
    ("/entailment", {"pairs": [{"premise": GERMAN, "hypothesis": ENGLISH}], **SICK}, [["de?", None]]),
    ("/classify", {"text": [GERMAN, ENGLISH], "labels": ["cards", "dogs"], **SICK}, ["de?", None]),
    ("/classify", {"text": [GERMAN, ENGLISH]}, ["de?", None]),
    ("/embed", {"sentences": [ENGLISH, GERMAN]}, [[None, "de?"]]),
    ("/explain", {"a": ENGLISH, "b": GERMAN}, [None, "de?"]),
    ("/explain", {"a": ENGLISH, "b": ENGLISH}, [None, None]),
    ("/embed", {"sentences": [ENGLISH]}, []),
    ("/similarity", {"pairs": [{"a": ENGLISH, "b": ENGLISH}]}, [None]),
    ("/rank", {"query": ENGLISH, "candidates": [ENGLISH]}, [None]),
]  # fmt: skip


async def asked(client: Client, path: str, **body: object) -> tuple[dict, str | None]:
    """The answer, and its header about languages."""
    answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json(), answer.headers.get(LANGUAGES)


@pytest.fixture(scope="module")
async def labelling(serve: Serve, models: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """A service that has a model with labels of its own too."""
    more: Path = tmp_path_factory.mktemp("more")
    fakes.labelling_model(more / "sentiment")
    async with serve(models_dir=(models, more)) as found:
        yield found


@pytest.mark.parametrize(("path", "body", "hints"), ASKED)
async def test_each_text_in_another_language_is_named_and_no_english_one(
    labelling: Client, path: str, body: dict[str, object], hints: list[object]
) -> None:
    answer, header = await asked(labelling, path, **body)
    results = answer.get("results", [answer[side] for side in "ab" if side in answer])
    if path == "/rank":
        results = sorted(results, key=lambda result: result["index"])
    of_all = [answer["language"]] if "language" in answer else []
    assert [*of_all, *(result.get("language") for result in results)] == hints
    said = [each for hint in hints for each in (hint if isinstance(hint, list) else [hint]) if each]
    assert header == (", ".join(dict.fromkeys(said)) or None)


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
