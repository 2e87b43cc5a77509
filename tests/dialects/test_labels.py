"""Labels of single texts as TEI asks for them."""

from collections.abc import Iterator

import httpx
import pytest

from tests.harness import fakes
from tests.harness.process import running

TEXT = "a man plays the guitar"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("models")
    fakes.cosine_model(folder / "avg-paraphrase")
    fakes.graded_model(folder / "avg-sick")
    fakes.interaction_model(folder / "pair-sick")
    fakes.labelling_model(folder / "sentiment")
    with running(folder) as (_, found):
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


def test_tei_predicts_single_texts_with_a_models_own_labels(url: str) -> None:
    expected = own(url)
    one = answer(url, "/tei/predict", {"inputs": TEXT})
    assert {each["label"]: each["score"] for each in one} == pytest.approx(expected)  # type: ignore[attr-defined]
    assert answer(url, "/tei/predict", {"inputs": [TEXT]}) == one
    assert answer(url, "/tei/predict", {"inputs": [[TEXT], [TEXT]]}) == [one, one]
    mixed = httpx.post(url + "/tei/predict", json={"inputs": [[TEXT], [TEXT, TEXT]]})
    long = httpx.post(url + "/tei/predict", json={"inputs": "dog " * 14, "truncate": False})
    assert (mixed.status_code, long.status_code) == (422, 422)
