"""The helpers of the trials: what they would overlook, nobody would see."""

import argparse
import asyncio
import itertools
import json
import random
from contextlib import closing

import numpy as np
import pytest

from benchmarks.faults.bodies import Texts, every_route, models_by_task
from benchmarks.faults.load import Ask, Load, difference
from benchmarks.faults.soak import slope
from benchmarks.faults.trial import Kind, Trial
from benchmarks.servers import total

MODELS = models_by_task(
    [
        {"id": "one", "family": "siamese", "tasks": ["similarity", "entailment", "embedding"]},
        {"id": "two", "family": "interaction", "tasks": ["similarity"]},
    ]
)


@pytest.mark.parametrize(
    ("found", "expected", "place"),
    [
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.1]}, ".a.1"),
        ({"a": 1.0}, {"a": 1.0 + 5e-6}, ".a"),
        ({"a": float("nan")}, {"a": 1.0}, ".a"),
        ({"a": 1}, {"a": 1, "b": 2}, ""),
        ([1, 2], [1], ""),
        ({"a": "x"}, {"a": "y"}, ".a"),
        ({"a": None}, {"a": 1.0}, ".a"),
        ({"index": 1}, {"index": 2}, ".index"),
    ],
)
def test_answers_that_differ_are_told_with_the_place(found: object, expected: object, place: str) -> None:
    told = difference(found, expected)
    assert told is not None
    assert told.startswith(f"{place}:")


def test_answers_alike_but_for_rounding_and_time_are_the_same() -> None:
    assert difference({"a": [1.0, {"b": "x"}], "created": 1}, {"a": [1.0 + 5e-7, {"b": "x"}], "created": 9}) is None


def test_a_slope_is_found_and_flat_memory_has_none() -> None:
    rng = np.random.default_rng(1)
    seconds = np.arange(0, 900, 2.0)
    noise = rng.normal(0, 0.5, len(seconds))
    growing = slope(seconds.tolist(), (400 + 60 * seconds / 3600 + noise).tolist())
    assert 50 < growing[1] < 60 < growing[2]
    flat = slope(seconds.tolist(), (400 + noise).tolist())
    assert flat[1] < 0 < flat[2]


def test_texts_are_of_all_lengths_and_some_come_again() -> None:
    texts = Texts(random.Random(1), longest=300)
    asked = [texts.one() for _ in range(2000)]
    words = [len(text.split()) for text in asked]
    assert min(words) == 1
    assert max(words) > 200
    assert len(set(asked)) < len(asked) * 0.9
    assert max(len(texts.some(1000)) for _ in range(200)) > 500


def test_requests_of_all_routes_name_models_that_can_do_it() -> None:
    asks = list(itertools.islice(every_route(MODELS, random.Random(1), 20), 3000))
    assert {ask.path for ask in asks} >= {
        "/similarity", "/rank", "/entailment", "/embed", "/explain", "/tei", "/tei/predict", "/tei/rerank",
        "/v1/rerank", "/v2/rerank", "/openai/v1/score", "/v1/embeddings", "/models", "/metrics", "/nowhere",
    }  # fmt: skip
    bodies = [(ask.path, json.loads(ask.body)) for ask in asks if ask.body and ask.status == 200]
    assert {body["model"] for path, body in bodies if path in ("/entailment", "/embed") and "model" in body} == {"one"}
    assert {body["model"] for path, body in bodies if path == "/similarity" and "pairs" in body} == {"one", "two"}
    assert {ask.status for ask in asks} == {200, 400, 404, 422}


def test_a_metric_is_added_up_and_a_missing_one_is_an_error() -> None:
    scrape = '# TYPE a counter\na_total{k="x",l="1"} 2\na_total{k="x",l="2"} 3\na_total{k="y",l="1"} 4\n'
    assert total(scrape, "a_total") == 9
    with pytest.raises(LookupError, match="no series b"):
        total(scrape, "b")


def test_one_broken_promise_breaks_the_trial(tmp_path) -> None:
    kind = Kind("A trial", "About {what}.", ["what", "figure"], {}, run=None)  # type: ignore[arg-type]
    findings = Trial(kind, argparse.Namespace(trial="trial", what="it"))
    findings.row("this", 1.234)
    findings.promise("it holds", True, 1)
    assert findings.kept
    findings.promise("it holds still", False, "no|more")
    assert not findings.kept
    findings.write(tmp_path)
    text = next(tmp_path.glob("*-faults-trial.md")).read_text()
    assert "About it." in text
    assert "| this | 1.23 |" in text
    assert r"| it holds still | **no** | no\|more |" in text
    assert json.loads(next(tmp_path.glob("*-faults-trial.json")).read_text())["promises"][1]["kept"] is False


def test_a_load_counts_what_is_lost_and_what_is_wrong() -> None:
    """Of three requests in turn: right, another status, no answer."""
    asked: list[bytes] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            while head := await reader.readuntil(b"\r\n\r\n"):
                asked.append(head)
                body = b'{"score": 0.5}'
                status = {b"/right": b"200 OK", b"/refused": b"429 No"}.get(head.split()[1])
                if status is None:
                    return
                writer.write(b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status, len(body), body))

    async def trial():
        server = await asyncio.start_server(speak, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        paths = [("/right", {"score": 0.5}), ("/right", {"score": 0.6}), ("/refused", None), ("/lost", None)]
        asks = [Ask(path, answer=answer) for path, answer in paths]
        async with Load(url, itertools.cycle(asks)).by(callers=1) as load:
            while len(asked) < 40:
                await asyncio.sleep(0.01)
        held = len(asked)
        await asyncio.sleep(0.1)
        assert len(asked) == held
        server.close()
        return load.take()

    tally = asyncio.run(trial())
    held = len(asked)
    assert tally.asked == held
    assert tally.statuses[429] == pytest.approx(held / 4, abs=1)
    assert tally.lost == pytest.approx(held / 4, abs=1)
    assert tally.wrong == pytest.approx(held / 2, abs=2)
    assert tally.failed == tally.lost + tally.wrong
    assert any("0.5, expected 0.6" in example for example in tally.examples)
