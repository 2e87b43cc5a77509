"""Rank, Entailment and Batch."""

import csv
import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from tests.service.playground.conftest import PATIENCE_MS, Open

sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install .[dev]")

pytestmark = pytest.mark.artifacts

QUERY = "Who wrote the book?"
CANDIDATES = ["It rains.", "The book was written by Jane.", "A book lies on the table.", "Jane sleeps."]


def test_two_stages_show_who_moved(open_page: Open, service: str) -> None:
    fields = {"tab": "rank", "query": QUERY, "candidates": "\n".join(CANDIDATES), "rerank_model": "pwim-sick"}
    page = open_page().open(f"?{urlencode(fields | {'rerank_top': '3'})}")
    page.wait_for_selector("#rank-results table")
    body = {"query": QUERY, "candidates": CANDIDATES}
    first = httpx.post(f"{service}/rank", json=body).json()["results"]
    final = httpx.post(f"{service}/rank", json=body | {"rerank_model": "pwim-sick", "rerank_top": 3}).json()["results"]
    rows = page.locator("#rank-results tbody tr")
    assert rows.locator("th").all_inner_texts() == [CANDIDATES[result["index"]] for result in final]
    before = [result["index"] for result in first]
    for place, (row, result) in enumerate(zip(rows.all(), final, strict=True)):
        came = before.index(result["index"])
        moved = "stays" if came == place else "\u25b2" if came > place else "\u25bc"
        assert row.locator("td").last.inner_text().startswith(moved)
        scores = row.locator(".bar b").all_inner_texts()
        assert scores[0] == f"{first[came]['score']:.2f}"
        assert scores[1:] == ([f"{result['score']:.2f}"] if result["stage"] == 2 else [])


def test_the_threshold_says_what_it_keeps(open_page: Open, service: str) -> None:
    watched = open_page()
    page = watched.open(f"?{urlencode({'tab': 'rank', 'query': QUERY, 'candidates': chr(10).join(CANDIDATES)})}")
    page.wait_for_selector("#rank-results table")
    scores = [
        result["score"]
        for result in httpx.post(f"{service}/rank", json={"query": QUERY, "candidates": CANDIDATES}).json()["results"]
    ]
    assert page.locator("#rank-results thead th").count() == 3  # one stage: nobody moves
    page.focus("#rank-threshold")
    page.keyboard.press("Home")
    assert page.inner_text("output") == "0.00 keeps 4 of 4"
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    kept = sum(score >= 0.05 for score in scores)
    assert 0 < kept < 4
    assert page.inner_text("output") == f"0.05 keeps {kept} of 4"
    assert page.locator("#rank-results tr.dropped").count() == 4 - kept
    assert "threshold=0.05" in page.url


def test_entailment_goes_both_ways(open_page: Open, service: str) -> None:
    premise, hypothesis = "A woman is slicing an onion.", "A woman is cutting a vegetable."
    page = open_page().open(f"?{urlencode({'tab': 'entailment', 'premise': premise, 'hypothesis': hypothesis})}")
    page.wait_for_selector(".directions")
    pairs = [{"premise": premise, "hypothesis": hypothesis}, {"premise": hypothesis, "hypothesis": premise}]
    expected = httpx.post(f"{service}/entailment", json={"pairs": pairs}).json()["results"]
    for card, result in zip(page.locator(".directions .card").all(), expected, strict=True):
        labels = card.locator("dt").all_inner_texts()
        assert labels == ["entailment", "neutral", "contradiction"]
        assert card.locator("dd b").all_inner_texts() == [f"{result['probabilities'][label]:.2f}" for label in labels]
        assert card.locator(".top-label").inner_text() == result["label"]
    page.click("#entailment-swap")
    page.wait_for_selector(f".directions .card:first-child:has-text('{hypothesis} \u2192 {premise}')")


def test_a_claim_shows_its_evidence_in_the_document(open_page: Open, service: str) -> None:
    document = "\U0001f600 Rules\n\nA woman is cutting a vegetable.\n\nDogs must stay outside."
    claims = ["A woman is slicing an onion.", "Dogs may come in."]
    page = open_page().open(f"?{urlencode({'tab': 'claims', 'document': document, 'claims': chr(10).join(claims)})}")
    page.wait_for_selector("#claims-results table")
    expected = httpx.post(f"{service}/claims", json={"documents": document, "claims": claims}).json()["results"]
    rows = page.locator("#claims-results tbody tr").all()
    for i, (row, result) in enumerate(zip(rows, expected, strict=True)):
        assert row.locator("th").inner_text() == claims[i]
        assert row.locator("td").first.inner_text().lower().replace(" ", "_") == result["label"]
        page.click(f"#claim-{i}")
        passage = result.get("evidence", result["runner_up"])
        assert page.inner_text("#claims-results mark") == document[passage["start"] : passage["end"]]
        assert page.inner_text("#claims-results .document").replace("\n", "") == document.replace("\n", "")


def give(page: Any, content: str | bytes, name: str = "pairs.csv") -> None:
    buffer = content.encode() if isinstance(content, str) else content
    page.set_input_files("#batch-file", {"name": name, "mimeType": "text/csv", "buffer": buffer})


def test_a_file_comes_back_with_scores(open_page: Open, service: str, tmp_path: Path) -> None:
    watched = open_page()
    watched.refusals_expected = True  # for the row that is refused
    page = watched.open("?tab=batch")
    rows = [["score", "left", "right"]]
    rows += [[str(i), f'{i} men, "loud",\nplay guitars', "Somebody plays an instrument"] for i in range(130)]
    rows[8][2] = "  "
    content = io.StringIO()
    csv.writer(content).writerows(rows)
    give(page, content.getvalue())
    page.select_option("#batch-a", "1")
    page.select_option("#batch-b", "2")
    page.click("#batch-run")
    with page.expect_download() as download:
        page.click("a[download]")
    assert download.value.suggested_filename == "pairs.scored.csv"
    download.value.save_as(tmp_path / "scored.csv")
    with (tmp_path / "scored.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [[row["score"], row["left"].replace("\r\n", "\n"), row["right"]] for row in found] == rows[1:]
    good = [i for i in range(130) if i != 7]
    pairs = [{"a": rows[i + 1][1], "b": rows[i + 1][2]} for i in good]
    expected = httpx.post(f"{service}/similarity", json={"pairs": pairs}).json()["results"]
    assert [float(found[i]["semblance_score"]) for i in good] == pytest.approx([r["score"] for r in expected])
    assert [float(found[i]["rating"]) for i in good] == pytest.approx([r["rating"] for r in expected])
    assert (found[7]["semblance_score"], found[7]["error"]) == ("", "the text has no visible character")
    assert "129 pairs scored" in page.inner_text("#batch-results")
    counts = [int(text or 0) for text in page.locator(".histogram-table td").all_inner_texts()]
    assert sum(counts) == 129
    assert watched.asked.count("/similarity") >= 2  # in parts, so that the bar moves


@pytest.fixture
def batch(open_page: Open) -> Any:
    """The tab for files, ready to be given one."""
    page = open_page().open("?tab=batch")
    page.wait_for_selector("#batch-model option", state="attached")
    return page


def test_a_large_file_is_told_the_command_line(open_page: Open) -> None:
    watched = open_page()
    page = watched.open("?tab=batch")
    give(page, "text1,text2\n" + "A dog runs.,A cat sleeps.\n" * 1001, "my pairs.csv")
    page.wait_for_selector("#panel-batch .alert")
    command = f"semblance batch 'my pairs.csv' scored.csv --column text1 --column text2 --url {watched.base}/"
    assert command in page.inner_text(".alert")
    assert page.is_disabled("#batch-run")
    assert "/similarity" not in watched.asked


def test_a_file_that_is_no_table_is_refused(batch: Any) -> None:
    for content, message in (
        ("", "has no header with two columns"),
        ("a,b\n", "has a header and no pairs"),
        ('a,b\nx,"open\ny,z\n', "Line 2: the quote that opens b is not closed."),
        ('a;b\nx;"open\ny;"z"\n', "Line 2: the quote that opens b is not closed: the next one, in line 3, has text"),
        ('a,b\nx,"say "hi" now"\n', "Line 2: b has text behind its closing quote"),
        ('a,b\n"x\ny",z\n\none\n', "Line 5: 1 field, the header has 2."),
        ("a,b\nx,y,z\n", "Line 2: 3 fields, the header has 2."),
        ("a,b;c\nx,y;z\n", "Line 1: the header has as many of one separator as of another"),
    ):
        give(batch, content)
        batch.wait_for_selector(f"#panel-batch .alert:has-text({json.dumps(message)})")
        assert batch.is_disabled("#batch-run"), content


@pytest.mark.parametrize(
    ("name", "content", "first"),
    [
        ("excel.csv", "\ufeffsep=;\r\na;b\r\nOne, or two;Three\r\n", ["One, or two", "Three"]),
        ("old.csv", "a|b\rOne|Two\r", ["One", "Two"]),
        ("pipes.tsv", '5" pipe\ttube\n"One"\tTwo "three\n', ['"One"', 'Two "three']),
    ],
)
def test_a_file_is_read_as_its_program_wrote_it(batch: Any, name: str, content: str, first: list[str]) -> None:
    give(batch, content, name)
    batch.click("#batch-run")
    batch.wait_for_selector("#batch-results .scroll tbody tr")
    assert batch.locator("#batch-results .scroll tbody tr:first-child td").all_inner_texts()[:2] == first


@pytest.mark.parametrize(
    ("encoding", "named", "line"),
    [("cp1252", "Windows-1252", 3), ("utf-16", "UTF-16", 1), ("utf-16-be", "UTF-16, big-endian", 1)],
)
def test_a_file_of_another_encoding_is_asked_about(batch: Any, encoding: str, named: str, line: int) -> None:
    give(batch, "a,b\nOne,Two\nWhere is the café?,Über there\n".encode(encoding), "old.csv")
    batch.wait_for_selector("#batch-encoding")
    assert f"old.csv is not UTF-8: line {line}." in batch.inner_text("#batch-encoding")
    assert batch.is_disabled("#batch-run")
    batch.click(f"#batch-encoding button:has-text('Read it as {named}')")
    batch.click("#batch-run")
    batch.wait_for_selector("#batch-results .scroll tbody tr")
    shown = batch.locator("#batch-results .scroll tbody tr:nth-child(2) td").all_inner_texts()[:2]
    assert shown == ["Where is the café?", "Über there"]


FAQ = """When are you open?
From nine to five, but not on Sunday.

Who wrote the book?
The book was written by Jane.

Do you lend films?
Yes, for one week."""


def test_an_faq_is_answered_or_not_as_the_slider_says(open_page: Open, service: str) -> None:
    page = open_page().open(f"?{urlencode({'tab': 'faq', 'list': FAQ, 'question': 'Who is the author of the book?'})}")
    page.wait_for_selector("#faq-results table")
    lines = [block.split("\n") for block in FAQ.split("\n\n")]
    entries = [{"question": question, "answer": answer} for question, answer in lines]
    body = {"query": "Who is the author of the book?", "entries": entries, "top_k": 3}
    answer = httpx.post(f"{service}/rank", json=body).json()
    first, second = (entries[result["index"]] for result in (answer["results"] or answer["suggestions"])[:2])
    rows = page.locator("#faq-results tbody tr")
    assert [row.splitlines()[0] for row in rows.locator("th").all_inner_texts()] == [
        first["question"], second["question"],
    ]  # fmt: skip
    assert f"right with a probability of {answer['confidence']:.2f}" in page.inner_text("#faq-results")
    assert float(page.input_value("#faq-least")) == pytest.approx(answer["threshold"], abs=0.006)
    page.focus("#faq-least")
    page.keyboard.press("Home")
    assert page.inner_text("#faq-results h2") == "The answer"
    assert page.inner_text("#faq-results .given") == first["answer"]
    page.keyboard.press("End")
    assert page.inner_text("#faq-results h2") == "No answer in this list"
    assert page.locator("#faq-results .given").count() == 0
    ranked = answer["results"] or answer["suggestions"]
    suggested = [entries[result["index"]]["question"] for result in ranked]
    assert page.locator("#faq-results .suggestions li").all_inner_texts() == suggested


def test_an_faq_comes_from_a_file_with_what_was_chosen(open_page: Open, service: str) -> None:
    watched = open_page()
    page = watched.open("?tab=faq")
    page.wait_for_selector("#faq-results table")
    table = 'id,question,answer\n1,When are you open?,"From nine to five,\nnot on Sunday."\n2,Do you lend films?,Yes.\n'
    page.set_input_files("#faq-file", {"name": "faq.csv", "mimeType": "text/csv", "buffer": table.encode()})
    read = "When are you open?\nFrom nine to five, not on Sunday.\n\nDo you lend films?\nYes."
    sync_api.expect(page.locator("#faq-list")).to_have_value(read, timeout=PATIENCE_MS)
    chosen = {
        "model": "avg-paraphrase", "match": "either", "min_confidence": 1.0,
        "entries": [{"id": "a", "question": "Who?", "answer": "Jane."}, {"question": "When?", "answer": "Now."}],
    }  # fmt: skip
    buffer = json.dumps(chosen).encode()
    page.set_input_files("#faq-file", {"name": "faq.json", "mimeType": "application/json", "buffer": buffer})
    read = "Who?\nJane.\n\nWhen?\nNow."
    sync_api.expect(page.locator("#faq-list")).to_have_value(read, timeout=PATIENCE_MS)
    assert page.input_value("#faq-match") == "either"
    page.click("#faq-form .main")
    page.wait_for_selector("#faq-results output:has-text('1.00')")
    assert page.inner_text("#faq-results h2") == "No answer in this list"
    page.set_input_files("#faq-file", {"name": "faq.json", "mimeType": "application/json", "buffer": b"{}"})
    page.wait_for_selector("#panel-faq .alert")
    assert "is no file that semblance choose --faq writes" in page.inner_text("#panel-faq .alert")
    page.fill("#faq-list", "Only a question?\n\nAnother?\nYes.")
    page.click("#faq-form .main")
    page.wait_for_selector("#panel-faq .alert:has-text('has no answer below it')")


def test_texts_that_say_the_same_stand_in_one_cluster(open_page: Open, service: str) -> None:
    texts = [
        "a man plays 20 guitars",
        "A man plays twenty guitars!",
        "a man plays 30 guitars",
        "Do you ship to Norway?",
    ]
    page = open_page().open(f"?{urlencode({'tab': 'duplicates', 'texts': chr(10).join(texts)})}")
    page.wait_for_selector("#duplicates-results table")
    answer = httpx.post(f"{service}/dedupe", json={"texts": texts}).json()
    order = sorted(range(len(texts)), key=lambda i: (answer["results"][i]["cluster"], i))
    rows = page.locator("#duplicates-results table").first.locator("tbody tr")
    assert rows.locator("th").all_inner_texts() == [texts[i] for i in order]
    assert rows.first.locator("td").first.inner_text() == "1 (2)"
    assert rows.first.locator("td").last.inner_text() == f"{texts[2]} (20 is not 30)"
    assert "Near, and left apart" in page.inner_text("#duplicates-results")
    page.click("label:has(#duplicates-guard)")
    page.click("#duplicates-form .main")
    page.wait_for_url("**guard=no**")
    sync_api.expect(page.locator("#duplicates-results")).not_to_contain_text("is not 30", timeout=PATIENCE_MS)
    page.wait_for_selector("#duplicates-results table")
