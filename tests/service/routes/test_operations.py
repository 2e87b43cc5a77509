"""What operators ask: models, health, metrics, documentation, logs."""

import json
import logging
import re
import threading

import pytest

from core.manifest import Manifest
from service.models import checks
from service.observe import logs
from tests.harness import fakes
from tests.harness.requests import GOOD
from tests.harness.service import NEEDED_SECONDS, Client, Serve, let_in, until

pytestmark = pytest.mark.anyio


async def test_models_says_what_is_served(serve: Serve, models) -> None:
    async with serve(max_pairs=7) as client:
        answer = (await client.get("/models", params={"full": "true"})).json()
        told = client.app.service.told_models[True]  # which those share who do not read it
        await client.get("/models", params={"full": "true"})
        assert client.app.service.told_models[True] is told
        short = (await client.get("/models")).json()
    assert [set(full) - set(few) for full, few in zip(answer["models"], short["models"], strict=True)] == [
        {"confidence", "figures", "domain"}
    ] * 3
    described = {model["id"]: model for model in answer["models"]}
    assert list(described) == ["avg-paraphrase", "avg-sick", "pair-sick"]
    assert [(model["main"], model["open"]) for model in described.values()] == [(True, True)] + [(False, True)] * 2
    assert [model["tasks"] for model in described.values()] == [
        ["similarity", "embedding", "explanation"],
        ["similarity", "entailment", "embedding", "explanation"],
        ["similarity", "entailment", "explanation"],
    ]
    cosine = described["avg-paraphrase"]
    assert cosine["fingerprint"] == Manifest.load(models / "avg-paraphrase").fingerprint
    assert cosine["provider"] == "cpu"
    assert (cosine["dim"], cosine["max_tokens"], cosine["rating_scale"]) == (fakes.DIM, fakes.MAX_TOKENS, None)
    assert cosine["default_for"] == ["/similarity", "/rank", "/embed", "/explain"]
    assert [model["explanations"] for model in described.values()] == [
        {"matrices": ["contributions"], "vectors": ["contributions", "deletion"]},
        {"matrices": [], "vectors": ["deletion"]},
        {"matrices": ["cosine", "alike"], "vectors": ["deletion"]},
    ]
    assert answer["rerank"] == {"default_model": None, "default_top": 15}
    assert described["avg-sick"]["rating_scale"] == [1.0, 5.0]
    assert described["pair-sick"]["dim"] is None
    assert cosine["figures"] == [
        {"task": "similarity", "corpus": "none", "split": "test", "metric": "pearson", "value": 0.5, "rows": 2}
    ]
    assert cosine["domain"] == [{"task": "similarity", "learnt_from": [], "elsewhere": "good", "measured_on": ["none"]}]
    assert answer["defaults"]["/entailment"] == "avg-sick"
    assert answer["limits"]["max_pairs"] == 7


async def test_alive_and_ready(lasting: Client) -> None:
    assert (await lasting.get("/health/live")).json() == {"status": "alive"}
    response = await lasting.get("/health/ready")
    assert response.status_code == 200
    assert response.json() == {
        "status": "ready",
        "reasons": [],
        "models": ["avg-paraphrase", "avg-sick", "pair-sick"],
        "redis": "off",
    }


async def test_readiness_runs_no_graph_however_often_it_is_asked(serve: Serve, monkeypatch) -> None:
    monkeypatch.setattr(checks, "CHECK_SECONDS", 1000.0)  # a busy machine may need longer than the usual ones
    async with serve() as client:
        model = client.app.service.registry["avg-paraphrase"]
        encoder, runs = model.scorer.graphs["encoder.onnx"], 0
        right = encoder.run

        def counted(feeds):
            nonlocal runs
            runs += 1
            return right(feeds)

        encoder.run = counted
        for _ in range(50):
            assert (await client.get("/health/ready")).status_code == 200
        assert runs == 0
        model.opened.check()
        assert runs == 1  # both texts of a golden pair in one batch


async def test_the_models_are_asked_in_a_thread_every_few_seconds(serve: Serve, monkeypatch) -> None:
    monkeypatch.setattr(checks, "CHECK_SECONDS", 0.01)
    async with serve() as client:
        encoder = client.app.service.registry["avg-paraphrase"].scorer.graphs["encoder.onnx"]
        threads = set()

        def fails(feeds):
            threads.add(threading.current_thread().name)
            raise RuntimeError("no memory at /srv/secret")

        encoder.run = fails
        await until(lambda: client.app.service.readiness()["status"] == "unready")
        response = await client.get("/health/ready")
        assert response.json()["reasons"] == [
            "model avg-paraphrase: model avg-paraphrase failed: encoder.onnx raised RuntimeError"
        ]
        assert threads == {"checks"}


async def test_a_graph_that_hangs_makes_unready_and_stops_nobody(serve: Serve, monkeypatch) -> None:
    monkeypatch.setattr(checks, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(checks, "STALE_SECONDS", 0.3)
    goes_on = threading.Event()
    async with serve() as client:
        encoder = client.app.service.registry["avg-paraphrase"].scorer.graphs["encoder.onnx"]
        right = encoder.run

        def hangs(feeds):
            goes_on.wait(NEEDED_SECONDS)
            return right(feeds)

        encoder.run = hangs
        await until(lambda: client.app.service.readiness()["status"] == "unready")
        response = await client.get("/health/ready")
        assert response.status_code == 503
        assert response.json()["reasons"][0].startswith("the models were last found to answer ")
        assert (await client.get("/health/live")).status_code == 200
        encoder.run = right
        goes_on.set()
        await until(lambda: client.app.service.readiness()["status"] == "ready")


async def test_the_documentation_needs_no_internet(lasting: Client) -> None:
    page = (await lasting.get("/docs")).text
    assets = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert assets
    for asset in assets:
        assert not asset.startswith("/")  # it also works under a path prefix
        assert (await lasting.get(f"/{asset}")).status_code == 200
    assert "https://" not in page


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-1.2_Z", True), ("a" * 64, True), ("a" * 65, False), ("a b", False), ("", False), ("\u00e9", False)],
)
async def test_a_sane_request_id_is_kept(lasting: Client, given: str, kept: bool) -> None:
    for method, path in (("POST", "/similarity"), ("GET", "/models")):
        response = await lasting.request(method, path, headers={"x-request-id": given.encode()})
        assert (response.headers["x-request-id"] == given) is kept
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", response.headers["x-request-id"])


async def test_the_access_log_has_what_is_needed(serve: Serve, caplog) -> None:
    """Neither texts nor keys are: `tests/service/http/test_secrecy.py`."""
    caplog.set_level(logging.DEBUG)
    async with serve(access_log=True, api_keys=let_in("correct horse")) as client:
        headers = {"x-request-id": "abc", "x-api-key": "correct horse"}
        await client.post("/similarity", json=GOOD["/similarity"], headers=headers)
        await client.get("/nowhere?q=x", headers=headers)
    formatter = logs.JsonFormatter()
    events = [formatter.format(record) for record in caplog.records if record.name == "service.http.middleware"]
    first, second = map(json.loads, events)
    assert first["message"] == "request"
    assert (first["route"], first["status"], first["model"]) == ("/similarity", 200, "avg-paraphrase")
    assert first["milliseconds"] > 0
    assert (second["route"], second["status"], second["model"]) == ("other", 404, "none")


async def test_without_the_access_log_a_request_is_not_logged(client: Client, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    await client.post("/similarity", json=GOOD["/similarity"])
    assert [record for record in caplog.records if record.name == "service.http.middleware"] == []
