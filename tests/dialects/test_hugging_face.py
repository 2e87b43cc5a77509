"""Labels as Hugging Face asks for them: any labels, and a model's own; with the official client where it is there."""

from collections.abc import Iterator
from types import ModuleType

import httpx
import pytest

from tests.dialects.conftest import Server, listening
from tests.harness import fakes

TEXT = "a man plays the guitar"
LABELS = ["guitar", "dog", "sofa"]
LIMITS = {"max_pairs": 3, "max_text_chars": 60}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, no_settings: None) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("models")
    fakes.cosine_model(folder / "avg-paraphrase")
    fakes.graded_model(folder / "avg-sick")
    fakes.interaction_model(folder / "pair-sick")
    fakes.labelling_model(folder / "sentiment")
    with listening(folder, model_aliases={"facebook/bart-large-mnli": "pair-sick"}, **LIMITS) as found:
        yield found


def answer(server: Server, path: str, body: object) -> object:
    response = httpx.post(server.url + path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def own(server: Server, **body: object) -> dict[str, float]:
    """The probabilities that our own route gives."""
    found = answer(server, "/classify", {"text": TEXT, **body})
    probabilities: dict[str, float] = found["results"][0]["probabilities"]  # type: ignore[index]
    return probabilities


@pytest.mark.parametrize("multi_label", [False, True])
def test_zero_shot_is_our_classify_sorted(server: Server, multi_label: bool) -> None:
    parameters = {"candidate_labels": LABELS, "multi_label": multi_label, "hypothesis_template": "the {} ."}
    body = {"inputs": TEXT, "parameters": parameters, "model": "facebook/bart-large-mnli"}
    expected = own(server, labels=LABELS, template="the {} .", multi_label=multi_label, model="pair-sick")
    found = answer(server, "/classify", body)
    assert found["sequence"] == TEXT  # type: ignore[index]
    assert found["scores"] == sorted(found["scores"], reverse=True)  # type: ignore[index]
    assert dict(zip(found["labels"], found["scores"], strict=True)) == pytest.approx(expected)  # type: ignore[index]
    listed = answer(server, "/", body)
    assert listed == [
        {"label": label, "score": score}
        for label, score in zip(found["labels"], found["scores"], strict=True)  # type: ignore[index]
    ]


def test_a_text_gets_the_labels_of_the_model_that_has_some(server: Server) -> None:
    (found,) = answer(server, "/", {"inputs": TEXT, "parameters": {}})  # type: ignore[misc]
    expected = own(server)
    assert {each["label"]: each["score"] for each in found} == pytest.approx(expected)
    assert [each["label"] for each in found] == sorted(expected, key=lambda label: -expected[label])
    named = {"inputs": TEXT, "parameters": {"top_k": 1}, "model": "sentiment"}
    assert answer(server, "/", named) == [found[:1]]


def test_what_a_model_with_labels_of_its_own_refuses(server: Server) -> None:
    for more, status, words in (
        ({"inputs": " ", "parameters": {}}, 400, "inputs: the text has no visible"),
        ({"parameters": {"candidate_labels": ["a"]}, "model": "sentiment"}, 422, "no entailment"),
    ):
        response = httpx.post(server.url, json={"inputs": "a"} | more)
        assert (response.status_code, set(response.json())) == (status, {"error", "error_type"})
        assert words in response.json()["error"]


def test_huggingface_hub_labels_texts(server: Server, hub: ModuleType) -> None:
    client = hub.InferenceClient(server.url)
    found = client.zero_shot_classification(TEXT, LABELS, multi_label=True, hypothesis_template="the {} .")
    expected = own(server, labels=LABELS, template="the {} .", multi_label=True)
    assert {each.label: each.score for each in found} == pytest.approx(expected)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    best, _ = client.text_classification(TEXT)
    own_labels = own(server)
    assert (best.label, best.score) == (max(own_labels, key=own_labels.get), pytest.approx(max(own_labels.values())))  # type: ignore[arg-type]
    pair = client.text_classification([TEXT, "a man plays"])
    assert [each.label for each in pair] == [
        each["label"] for each in answer(server, "/predict", {"inputs": [TEXT, "a man plays"]})
    ]  # type: ignore[union-attr]


def test_tei_predicts_single_texts_with_a_models_own_labels(server: Server) -> None:
    expected = own(server)
    one = answer(server, "/predict", {"inputs": TEXT})
    assert {each["label"]: each["score"] for each in one} == pytest.approx(expected)  # type: ignore[attr-defined]
    assert answer(server, "/predict", {"inputs": [TEXT]}) == one
    assert answer(server, "/predict", {"inputs": [[TEXT], [TEXT]]}) == [one, one]
    mixed = httpx.post(server.url + "/predict", json={"inputs": [[TEXT], [TEXT, TEXT]]})
    long = httpx.post(server.url + "/predict", json={"inputs": "dog " * 14, "truncate": False})
    assert (mixed.status_code, long.status_code) == (422, 422)


def test_infinity_labels_single_texts(server: Server) -> None:
    found = answer(server, "/classify", {"input": [TEXT, TEXT], "model": "sentiment"})
    assert (found["object"], found["model"]) == ("classify", "sentiment")  # type: ignore[index]
    assert found["data"] == answer(server, "/predict", {"inputs": [[TEXT], [TEXT]]})  # type: ignore[index]
    assert found["usage"]["total_tokens"] == 2 * len(TEXT.split())  # type: ignore[index]
