"""Labels as Hugging Face asks for them: any labels, and a model's own; with the official client where it is there."""

from collections.abc import Iterator
from types import ModuleType

import httpx
import pytest

from tests.harness import fakes
from tests.harness.process import running

TEXT = "a man plays the guitar"
LABELS = ["guitar", "dog", "sofa"]
LIMITS = {"max_pairs": 3, "max_text_chars": 60}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("models")
    fakes.cosine_model(folder / "avg-paraphrase")
    fakes.graded_model(folder / "avg-sick")
    fakes.interaction_model(folder / "pair-sick")
    fakes.labelling_model(folder / "sentiment")
    with running(folder, model_aliases="facebook/bart-large-mnli=pair-sick", **LIMITS) as (_, found):
        yield found


def answer(url: str, path: str, body: object) -> object:
    response = httpx.post(url + path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def own(url: str, **body: object) -> dict[str, float]:
    """The probabilities that our own route gives."""
    found = answer(url, "/classify", {"text": TEXT, **body})
    probabilities: dict[str, float] = found["results"][0]["probabilities"]  # type: ignore[index]
    return probabilities


@pytest.mark.parametrize("multi_label", [False, True])
def test_zero_shot_is_our_classify_sorted(url: str, multi_label: bool) -> None:
    parameters = {"candidate_labels": LABELS, "multi_label": multi_label, "hypothesis_template": "the {} ."}
    body = {"inputs": TEXT, "parameters": parameters, "model": "facebook/bart-large-mnli"}
    expected = own(url, labels=LABELS, template="the {} .", multi_label=multi_label, model="pair-sick")
    found = answer(url, "/classify", body)
    assert found["sequence"] == TEXT  # type: ignore[index]
    assert found["scores"] == sorted(found["scores"], reverse=True)  # type: ignore[index]
    assert dict(zip(found["labels"], found["scores"], strict=True)) == pytest.approx(expected)  # type: ignore[index]
    listed = answer(url, "/", body)
    assert listed == [
        {"label": label, "score": score}
        for label, score in zip(found["labels"], found["scores"], strict=True)  # type: ignore[index]
    ]


def test_a_text_gets_the_labels_of_the_model_that_has_some(url: str) -> None:
    (found,) = answer(url, "/", {"inputs": TEXT, "parameters": {}})  # type: ignore[misc]
    expected = own(url)
    assert {each["label"]: each["score"] for each in found} == pytest.approx(expected)
    assert [each["label"] for each in found] == sorted(expected, key=lambda label: -expected[label])
    named = {"inputs": TEXT, "parameters": {"top_k": 1}, "model": "sentiment"}
    assert answer(url, "/", named) == [found[:1]]


def test_what_a_model_with_labels_of_its_own_refuses(url: str) -> None:
    for more, status, words in (
        ({"inputs": " ", "parameters": {}}, 400, "inputs: the text has no visible"),
        ({"parameters": {"candidate_labels": ["a"]}, "model": "sentiment"}, 422, "no entailment"),
    ):
        response = httpx.post(url, json={"inputs": "a"} | more)
        assert (response.status_code, set(response.json())) == (status, {"error", "error_type"})
        assert words in response.json()["error"]


def test_huggingface_hub_labels_texts(url: str, hub: ModuleType) -> None:
    client = hub.InferenceClient(url)
    found = client.zero_shot_classification(TEXT, LABELS, multi_label=True, hypothesis_template="the {} .")
    expected = own(url, labels=LABELS, template="the {} .", multi_label=True)
    assert {each.label: each.score for each in found} == pytest.approx(expected)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    best, _ = client.text_classification(TEXT)
    own_labels = own(url)
    assert (best.label, best.score) == (max(own_labels, key=own_labels.get), pytest.approx(max(own_labels.values())))  # type: ignore[arg-type]
    pair = client.text_classification([TEXT, "a man plays"])
    assert [each.label for each in pair] == [
        each["label"] for each in answer(url, "/predict", {"inputs": [TEXT, "a man plays"]})
    ]  # type: ignore[union-attr]


def test_tei_predicts_single_texts_with_a_models_own_labels(url: str) -> None:
    expected = own(url)
    one = answer(url, "/predict", {"inputs": TEXT})
    assert {each["label"]: each["score"] for each in one} == pytest.approx(expected)  # type: ignore[attr-defined]
    assert answer(url, "/predict", {"inputs": [TEXT]}) == one
    assert answer(url, "/predict", {"inputs": [[TEXT], [TEXT]]}) == [one, one]
    mixed = httpx.post(url + "/predict", json={"inputs": [[TEXT], [TEXT, TEXT]]})
    long = httpx.post(url + "/predict", json={"inputs": "dog " * 14, "truncate": False})
    assert (mixed.status_code, long.status_code) == (422, 422)


def test_infinity_labels_single_texts(url: str) -> None:
    found = answer(url, "/classify", {"input": [TEXT, TEXT], "model": "sentiment"})
    assert (found["object"], found["model"]) == ("classify", "sentiment")  # type: ignore[index]
    assert found["data"] == answer(url, "/predict", {"inputs": [[TEXT], [TEXT]]})  # type: ignore[index]
    assert found["usage"]["total_tokens"] == 2 * len(TEXT.split())  # type: ignore[index]
