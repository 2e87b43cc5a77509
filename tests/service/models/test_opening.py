"""Only the defaults are open when the service is ready; another model is opened by the first request that names it."""

import asyncio
import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.manifest import Manifest
from service.errors import StartupError
from service.models import opener, registry
from service.models.model import OpenModel, ServedModel
from service.models.opener import Opener
from service.scoring.families import InteractionScorer
from service.service import Service
from service.settings import Settings
from tests.harness import fakes
from tests.harness.service import Client, Serve, until
from tests.service.models.replacing import PAIR, READY, readiness

pytestmark = pytest.mark.anyio
OTHER = {**PAIR, "model": "pair-sick"}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of models that were opened, in order."""
    names: list[str] = []
    opens = Opener.open
    monkeypatch.setattr(Opener, "open", lambda self, model: names.append(model.release.id) or opens(self, model))
    return names


async def are_open(client: Client) -> dict[str, bool]:
    return {model["id"]: model["open"] for model in (await client.get("/models")).json()["models"]}


async def test_a_model_is_opened_at_its_first_request(serve: Serve, opened: list[str], caplog) -> None:
    caplog.set_level(logging.INFO)
    async with serve(preload=()) as client:
        assert opened == ["avg-paraphrase"]
        assert await are_open(client) == {"avg-paraphrase": True, "avg-sick": False, "pair-sick": False}
        assert 'model="pair-sick",provider=""' in await client.scrape()
        for result in ("opened", "failed"):  # at 0 from the start, so that the first one is seen as a rise
            assert await client.metric("semblance_model_openings_total", result=result) == 0
        assert (await client.get("/health/ready")).json()["models"] == ["avg-paraphrase", "avg-sick", "pair-sick"]
        answers = [await client.post("/similarity", json=OTHER) for _ in range(2)]
        assert answers[0].json()["results"] == answers[1].json()["results"]
        assert opened == ["avg-paraphrase", "pair-sick"]
        assert (await are_open(client))["pair-sick"]
        assert await client.metric("semblance_model_openings_total", result="opened") == 1
        assert await client.metric("semblance_models_open") == 2
        assert await client.metric("semblance_request_seconds_count", route="/similarity", model="pair-sick") == 2
    assert [r.fields["model"] for r in caplog.records if r.message == "model opened"] == opened


async def test_preload_names_what_else_is_opened_at_the_start(models: Path, opened: list[str]) -> None:
    Service(Settings(models_dir=models, preload="none"))
    assert opened == []
    Service(Settings(models_dir=models, preload="pair-sick", default_entailment="avg-sick"))
    assert opened == ["avg-paraphrase", "avg-sick", "pair-sick"]
    with pytest.raises(StartupError, match="SEMBLANCE_PRELOAD is 'nope', which is not among the models"):
        Service(Settings(models_dir=models, preload="nope"))


async def test_those_who_ask_together_share_one_opening(serve: Serve, opened: list[str]) -> None:
    async with serve(preload=()) as client:
        answers = await asyncio.gather(*(client.post("/similarity", json=OTHER) for _ in range(5)))
        assert {answer.status_code for answer in answers} == {200}
        assert opened.count("pair-sick") == 1


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], threading.Event]]:
    """From its call on an opening waits for the event that it gives."""
    goes_on, opens = threading.Event(), Opener.open

    def begin() -> threading.Event:
        monkeypatch.setattr(Opener, "open", lambda self, model: (goes_on.wait(60), opens(self, model))[1])
        return goes_on

    yield begin
    goes_on.set()


async def test_opening_does_not_count_against_the_time_limit_and_others_do_not_wait(serve: Serve, slow) -> None:
    async with serve(preload=(), request_timeout=3) as client:  # a busy machine may need more than one
        goes_on = slow()
        waits = asyncio.create_task(client.post("/similarity", json=OTHER))
        await asyncio.sleep(3.5)
        assert (await client.post("/similarity", json=PAIR)).status_code == 200
        assert not waits.done()
        goes_on.set()
        assert (await waits).status_code == 200
        assert await client.metric("semblance_model_openings_total", result="opened") == 1


async def test_what_comes_after_the_opening_has_its_time_limit(serve: Serve, slow, monkeypatch) -> None:
    async with serve(preload=(), request_timeout=1) as client:
        goes_on = slow()
        waits = asyncio.create_task(client.post("/similarity", json=OTHER))
        await asyncio.sleep(1.5)
        monkeypatch.setattr(InteractionScorer, "_features", lambda self, *args, **options: asyncio.sleep(60))
        goes_on.set()
        answer = await waits
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "timeout")


async def test_opening_has_a_time_limit_of_its_own_that_the_message_names(serve: Serve, slow, monkeypatch) -> None:
    monkeypatch.setattr(opener, "STEP_SECONDS", 0.2)
    async with serve(preload=()) as client:
        goes_on = slow()
        answer = await client.post("/similarity", json=OTHER)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (503, "model_unavailable")
        assert "not read and opened within 0.2 seconds" in error["message"]
        goes_on.set()


async def test_a_graph_that_never_ends_is_named_by_what_waits_behind_it(serve: Serve, monkeypatch) -> None:
    monkeypatch.setattr(opener, "STEP_SECONDS", 0.2)
    goes_on = threading.Event()
    async with serve(preload=()) as client:
        monkeypatch.setattr(OpenModel, "prove", lambda *_: goes_on.wait(60))
        try:
            assert (await client.post("/similarity", json=OTHER)).status_code == 503
            report = (await client.post("/models/reload")).json()["models"]
        finally:
            goes_on.set()
    assert {each["reason"].partition(",")[0] for each in report} == {"pair-sick"}
    assert "a graph of it never ends" in report[0]["reason"]


async def test_a_model_that_cannot_be_opened_is_told_and_not_tried_at_once_again(
    root: Path, serve: Serve, opened: list[str], monkeypatch, caplog
) -> None:
    fakes.misstate(root / "pair-sick", "raw_score")
    async with serve(models_dir=root, preload=()) as client:
        assert await readiness(client) == READY
        for _ in range(2):
            answer = await client.post("/similarity", json=OTHER)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (503, "model_unavailable")
            expected = "model pair-sick could not be opened: model pair-sick does not answer as published: golden pair"
            assert error["message"].startswith(expected)
            assert 1 <= int(answer.headers["retry-after"]) <= 10
        assert opened.count("pair-sick") == 1
        assert await client.metric("semblance_model_openings_total", result="failed") == 1
        assert await client.metric("semblance_models_refused") == 1
        status, reasons = await readiness(client)
        assert status == "degraded"
        assert reasons[0].startswith("model pair-sick cannot be opened: model pair-sick does not answer as")
        assert [r.message for r in caplog.records if r.levelname == "ERROR"].count("model not opened") == 1
        monkeypatch.setattr(registry, "RETRY_SECONDS", 0.0)
        client.app.service.registry["pair-sick"].failure = None
        assert (await client.post("/similarity", json=OTHER)).status_code == 503
        assert (await client.post("/similarity", json=OTHER)).status_code == 503
        assert opened.count("pair-sick") == 3
        # What was wrong is put right: a reload reads it again, and opens what had failed.
        shutil.rmtree(root / "pair-sick")
        fakes.interaction_model(root / "pair-sick")
        assert (await client.post("/models/reload")).status_code == 200
        assert (await are_open(client))["pair-sick"]
        assert await readiness(client) == READY
        assert (await client.post("/similarity", json=OTHER)).status_code == 200


async def test_a_broken_model_that_no_default_needs_is_told_at_the_start(root: Path, serve: Serve, caplog) -> None:
    graph = root / "pair-sick" / "relatedness.onnx"
    whole = graph.read_bytes()
    graph.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    (root / "half-copied").mkdir()
    (root / "led-astray").symlink_to("x" * 300)  # as into a folder that may not be entered: to look at it fails
    async with serve(models_dir=root, preload=()) as client:
        told = [(r.message, r.fields["model"]) for r in caplog.records if r.levelname == "ERROR"]
        assert told == [("model not served", name) for name in ("half-copied", "led-astray", "pair-sick")]
        status, reasons = await readiness(client)
        assert status == "degraded"
        assert reasons[0].startswith("model half-copied is not served: half-copied/manifest.json: cannot be read")
        assert reasons[1].startswith("model led-astray is not served: ")
        assert reasons[2].startswith("model pair-sick is not served: pair-sick/relatedness.onnx: corrupted or replaced")
        assert await client.metric("semblance_models_refused") == 3
        assert (await client.post("/similarity", json=OTHER)).status_code == 404
        assert (await client.post("/similarity", json=PAIR)).status_code == 200
        graph.write_bytes(whole)
        (root / "half-copied").rmdir()
        report = await client.post("/models/reload")
        assert report.status_code == 409
        assert [each["model"] for each in report.json()["models"] if each["outcome"] == "failed"] == ["led-astray"]
        assert (await client.post("/similarity", json=OTHER)).status_code == 200


async def test_whatever_is_wrong_with_one_model_the_others_are_served(
    root: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a folder that may not be entered, or a number that Python does not write; and what is said of it is cut."""
    verify = Manifest.verify

    def failing(manifest: Manifest, folder: Path, known: Any = None) -> None:
        if folder.name == "pair-sick":
            raise ValueError("9" * 100_000)
        verify(manifest, folder, known)

    monkeypatch.setattr(Manifest, "verify", failing)
    async with serve(models_dir=root, preload=()) as client:
        status, reasons = await readiness(client)
        assert (status, len(reasons)) == ("degraded", 1)
        assert len(reasons[0]) < 1200
        assert (await client.post("/similarity", json=PAIR)).status_code == 200


@pytest.mark.parametrize("name", ["avg-paraphrase", "avg-sick"])
async def test_a_broken_default_stops_the_start(root: Path, name: str) -> None:
    (root / name / "encoder.onnx").unlink()
    with pytest.raises(StartupError, match=r"encoder\.onnx: missing"):
        Service(Settings(models_dir=root))


async def test_a_reload_opens_what_was_open_and_only_reads_the_rest(
    root: Path, serve: Serve, opened: list[str]
) -> None:
    async with serve(models_dir=root, preload=()) as client:
        for name in ("avg-paraphrase", "pair-sick"):
            manifest = Manifest.load(root / name)
            manifest.model_copy(update={"title": "Anew"}).save(root / name)
        report = (await client.post("/models/reload")).json()
        assert {m["model"]: m["outcome"] for m in report["models"]} == {
            "avg-paraphrase": "reloaded",
            "avg-sick": "unchanged",
            "pair-sick": "reloaded",
        }
        assert opened == ["avg-paraphrase", "avg-paraphrase"]
        assert not (await are_open(client))["pair-sick"]
        await client.post("/similarity", json=OTHER)
        Manifest.load(root / "pair-sick").model_copy(update={"title": "Again"}).save(root / "pair-sick")
        await client.post("/models/reload")
        assert opened[2:] == ["pair-sick", "pair-sick"]


async def test_a_closed_model_whose_files_change_is_not_served_before_a_reload(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root, preload=()) as client:
        folder = root / "pair-sick"
        Manifest.load(folder).model_copy(update={"title": "Anew"}).save(folder)
        error = (await client.post("/similarity", json=OTHER)).json()["error"]
        assert error["message"] == (
            "model pair-sick could not be opened: pair-sick: the model has changed "
            "since it was read; a reload takes it up"
        )
        assert (await client.post("/models/reload")).status_code == 200
        assert (await client.post("/similarity", json=OTHER)).status_code == 200


async def test_a_closed_model_that_a_reload_comes_to_is_waited_for(root: Path, serve: Serve, monkeypatch) -> None:
    begun, goes_on, verifies = threading.Event(), threading.Event(), Opener.verify_again

    def verify(self: Opener, model: ServedModel) -> None:
        begun.set()
        goes_on.wait(60)
        verifies(self, model)

    async with serve(models_dir=root, preload=()) as client:
        folder = root / "pair-sick"
        Manifest.load(folder).model_copy(update={"title": "Anew"}).save(folder)
        assert (await client.post("/similarity", json=OTHER)).status_code == 503  # nobody has asked for a reload
        monkeypatch.setattr(Opener, "verify_again", verify)
        reload = asyncio.create_task(client.post("/models/reload"))
        await until(begun.is_set, "it has come to another model")
        questions = [("/similarity", OTHER)] * 2 + [("/cohere/v1/tokenize", {"text": "a", "model": "pair-sick"})]
        asked = [asyncio.create_task(client.post(path, json=body)) for path, body in questions]
        await asyncio.sleep(0.1)
        goes_on.set()
        assert [(await each).status_code for each in (reload, *asked)] == [200] * 4
        assert await readiness(client) == READY


async def test_an_unknown_name_is_answered_with_the_three_closest(root: Path, serve: Serve) -> None:
    for name in ("pwim-sick", "pwim-qa", "gran"):
        fakes.graded_model(root / name, name)
    async with serve(models_dir=root, preload=()) as client:
        error = (await client.post("/similarity", json={**PAIR, "model": "pwim-sik"})).json()["error"]
        assert error["message"] == (
            "no model 'pwim-sik'; the closest for similarity: pwim-sick, pair-sick, pwim-qa and 3 more (GET /models)"
        )
        error = (await client.post("/embed", json={"sentences": ["a"], "model": "pair-sick"})).json()["error"]
        assert error["message"] == (
            "model pair-sick has no embedding; models that have it: avg-paraphrase, avg-sick, gran "
            "and 2 more (GET /models)"
        )
