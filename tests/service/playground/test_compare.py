"""Compare: every model's score, what it says, and why."""

import contextlib
import io
import json
import shlex
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from tests.harness.process import running
from tests.service.playground.conftest import MODELS, ROOT, Open

A, B = "A man is playing a guitar.", "Someone plays an instrument."
DONE = "#panel-compare[aria-busy=false]"

pytestmark = pytest.mark.artifacts


def ask(service: str, path: str, body: object) -> Any:
    answer = httpx.post(f"{service}/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def link(**fields: str) -> str:
    return f"?{urlencode(fields)}"


def numbers(cells: list[str]) -> list[float]:
    return [float(cell.replace("\u2212", "-").replace("\u25cf", "")) for cell in cells]


def test_ones_own_sentences_are_scored_by_every_model(open_page: Open, service: str) -> None:
    page = open_page().open()
    page.fill("#compare-a", "Two dogs run.")
    page.fill("#compare-b", "Two animals are running.")
    page.press("#compare-b", "Enter")
    page.wait_for_selector("#models-table tr:last-child .bar")
    page.wait_for_selector(DONE)
    rows = page.locator("#models-table tbody tr")
    names = rows.locator("th button").all_inner_texts()
    assert sorted(names) == sorted(MODELS)
    assert names[0] == "avg-paraphrase"
    for name, shown in zip(names, rows.locator(".bar b").all_inner_texts(), strict=True):
        pairs = [{"a": "Two dogs run.", "b": "Two animals are running."}]
        (expected,) = ask(service, "similarity", {"pairs": pairs, "model": name})["results"]
        assert shown == f"{expected['score']:.2f}"
    assert "a=Two+dogs+run." in page.url


def test_a_link_runs_without_a_click(open_page: Open, service: str) -> None:
    page = open_page().open(link(a=A, b=B, model="avg-sick"))
    page.wait_for_selector(DONE)
    (expected,) = ask(service, "similarity", {"pairs": [{"a": A, "b": B}], "model": "avg-sick"})["results"]
    assert page.inner_text("#score") == f"{expected['score']:.2f}"
    assert page.input_value("#compare-a") == A
    assert f"{expected['rating']:.2f} on a scale of 1 to 5" in page.inner_text("#compare-meaning")
    assert page.locator("[aria-pressed=true]").inner_text() == "avg-sick"


def test_a_score_of_likeness_is_not_called_the_same_and_paraphrase_stands_beside_it(open_page: Open) -> None:
    pair = {"a": "Raise the temperature.", "b": "Lower the temperature."}
    with running(ROOT / "models", models="minilm,minilm-cross") as (_, url):
        page = open_page(url).open(link(**pair, model="minilm"))
        page.wait_for_selector(DONE)
        body = {"pairs": [pair], "model": "minilm-cross", "task": "paraphrase"}
        (expected,) = ask(url, "similarity", body)["results"]
        assert page.inner_text(".meaning .big span").endswith("close in topic and words")
        verdict = page.inner_text("#verdict")
    assert verdict.startswith("Do they say the same? ")
    assert f"({expected['score']:.2f}, minilm-cross)" in verdict


def test_shares_of_words_add_up(open_page: Open, service: str) -> None:
    page = open_page().open(link(a=A, b=B))
    page.wait_for_selector(DONE)
    explained = ask(service, "explain", {"a": A, "b": B})
    sums = numbers(page.locator(".heat tbody tr:last-child .sum:not(th)").all_inner_texts())
    shares, deletion = explained["vectors"]
    assert sums == pytest.approx([*shares["b"], explained["raw_score"]], abs=0.0051)
    cells = numbers(page.locator(".heat [data-place]").all_inner_texts())
    assert cells == pytest.approx([value for row in explained["matrices"][0]["values"] for value in row], abs=0.0051)
    first = page.locator(".words table").first
    assert numbers(first.locator("td:nth-child(2) b").all_inner_texts()) == pytest.approx(shares["a"], abs=0.0051)
    assert numbers(first.locator("td:nth-child(3) b").all_inner_texts()) == pytest.approx(deletion["a"], abs=0.0051)
    assert first.locator("tbody th").all_inner_texts() == explained["a"]["tokens"]


def test_matches_are_framed_and_values_are_shown(open_page: Open, service: str) -> None:
    page = open_page().open(link(a=A, b=B))
    page.wait_for_selector(DONE)
    page.click("text=pwim-sick")
    page.wait_for_selector(".heat .picked")
    cosine, focus = ask(service, "explain", {"a": A, "b": B, "model": "pwim-sick"})["matrices"]
    chosen = [f"{i},{j}" for i, row in enumerate(focus["values"]) for j, weight in enumerate(row) if weight == 1]
    assert page.locator(".picked").evaluate_all("cells => cells.map(cell => cell.dataset.place)") == chosen
    assert "model=pwim-sick" in page.url

    page.hover('[data-place="3,1"]')
    assert f"playing \u00d7 plays +{cosine['values'][3][1]:.3f}" in page.inner_text(".reading")
    page.focus('[data-place="0,0"]')
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert f"man \u00d7 plays +{cosine['values'][1][1]:.3f}" in page.inner_text(".reading")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("man and plays: +")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")  # the edge holds
    assert page.evaluate("document.activeElement.dataset.place") == "0,1"


def test_what_was_cut_and_unknown_is_said(open_page: Open) -> None:
    page = open_page().open(link(a="A man plays a xzzqyv.", b="A dog runs in the park. " * 9))
    page.wait_for_selector(DONE)
    assert "Unknown words: xzzqyv." in page.inner_text("#unknown")
    row = page.locator("#models-table tr", has_text="pwim-sick")
    assert "second cut after 32 tokens" in row.inner_text()
    assert "cut" not in page.locator("#models-table tr", has_text="avg-paraphrase").inner_text()


@pytest.mark.parametrize(
    ("fields", "message", "marked"),
    [
        ({"a": " ", "b": B}, "the text has no visible character", "compare-a"),
        ({"a": A, "b": ""}, "the text has no visible character", "compare-b"),
    ],
)
def test_a_bad_input_has_the_services_message(
    open_page: Open, fields: dict[str, str], message: str, marked: str
) -> None:
    watched = open_page()
    watched.refusals_expected = True
    page = watched.open(link(**fields))
    page.wait_for_selector("#panel-compare .alert")
    assert message in page.inner_text(".alert")
    assert page.locator("[aria-invalid=true]").get_attribute("id") == marked
    page.fill(f"#{marked}", "A child sleeps.")
    page.click("#panel-compare button[type=submit]")
    page.wait_for_selector("#score")
    assert page.locator(".alert, [aria-invalid]").count() == 0


def test_a_model_that_fails_does_not_hide_the_others(open_page: Open) -> None:
    watched = open_page()
    watched.refusals_expected = True
    error = {"code": "inference_failed", "message": "model mgim-sick failed: it broke", "field": None, "limit": None}

    def answer(route: Any) -> None:
        if "mgim-sick" in route.request.post_data:
            route.fulfill(status=500, json={"error": error | {"request_id": "x"}})
        else:
            route.continue_()

    watched.page.route("**/similarity", answer)
    page = watched.open(link(a=A, b=B))
    page.wait_for_selector(DONE)
    row = page.locator("#models-table tr", has_text="mgim-sick")
    assert "model mgim-sick failed: it broke (inference_failed)" in row.inner_text()
    assert page.locator("#models-table .bar").count() == len(MODELS) - 1


def test_copies_ask_the_same(open_page: Open, service: str) -> None:
    watched = open_page(permissions=["clipboard-read", "clipboard-write"])
    page = watched.open(link(a="It's a man's guitar.", b='He said "hello" \U0001f3b8.', model="avg-sick"))
    page.wait_for_selector(DONE)
    score = page.inner_text("#score")

    def copied(name: str) -> str:
        page.click(f".copy button:text-is('{name}')")
        page.wait_for_selector(f"#said:has-text('Copied as {name}')", state="attached")
        return str(page.evaluate("navigator.clipboard.readText()"))

    program, url, flag, body = shlex.split(copied("curl"))
    assert (program, flag) == ("curl", "--json")
    assert f"{httpx.post(url, json=json.loads(body)).json()['results'][0]['score']:.2f}" == score
    _, url, _, body = shlex.split(copied("curl of the explanation"))
    assert f"{httpx.post(url, json=json.loads(body)).json()['score']:.2f}" == score
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(copied("Python"), "copied", "exec"), {})
    assert f"{float(printed.getvalue()):.2f}" == score
    page.goto(copied("link"))
    page.wait_for_selector(DONE)
    assert page.inner_text("#score") == score
