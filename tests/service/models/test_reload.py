"""New models while the service runs: proven before they are served, swapped without a failed request, or refused."""

import asyncio
import gc
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest
from anyio import fail_after

from contract.golden import GoldenPair
from contract.manifest import MANIFEST_NAME, SHARED_NAME, Manifest
from contract.tokenizer import Tokenizer
from service.models import opener, reload
from tests import fakes
from tests.service.conftest import NEEDED_SECONDS, Client, Serve, open_terminal
from tests.service.load import Load
from tests.service.process.test_fleet import Service, fleet
from tests.service.process.test_fleet import until as fleet_until
from tests.service.process.test_process import ROOT, running

pytestmark = pytest.mark.anyio
PAIR = {"pairs": [{"a": "a man plays the guitar", "b": "a woman sleeps"}]}
ID = "avg-paraphrase"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "GONE_SECONDS", 0.0)


@pytest.fixture
def root(models: Path, tmp_path: Path) -> Path:
    """The first version of one model, and two models without versions."""
    folder = tmp_path / "models"
    shutil.copytree(models, folder, ignore=shutil.ignore_patterns(ID))
    add(folder, 1)
    return folder


def add(root: Path, version: int, *, name: str = ID, make: Callable[..., Manifest] = fakes.cosine_model) -> Path:
    """Put a version there as docs/models.md says: whole, in one step."""
    arriving = root / f".{name}-{version}" / name / str(version)
    make(arriving, name, seed=version)
    (root / name).mkdir(exist_ok=True)
    if (arriving.parent.parent / SHARED_NAME).exists():
        shutil.copytree(arriving.parent.parent / SHARED_NAME, root / SHARED_NAME, dirs_exist_ok=True)
    arriving.rename(root / name / str(version))
    shutil.rmtree(arriving.parent.parent)
    return root / name / str(version)


def expected(root: Path, version: int) -> float:
    """What a version says of the pair."""
    folder = root / ID / str(version)
    manifest = Manifest.load(folder)
    pair = PAIR["pairs"][0]
    runs = fakes.runs_of(folder)
    found = fakes.answer(pair["a"], pair["b"], runs, manifest.encoder, manifest.similarity, manifest.entailment)
    assert found.raw_score is not None
    return found.raw_score


async def scored(client: Client, model: str | None = None) -> tuple[float, int | None]:
    """What is said of the pair, and by which version."""
    response = await client.post("/similarity", json=PAIR if model is None else {**PAIR, "model": model})
    assert response.status_code == 200, response.text
    body = response.json()
    assert body["model"] == ID
    assert response.headers.get("x-model-version") == (str(body["model_version"]) if "model_version" in body else None)
    return body["results"][0]["raw_score"], body.get("model_version")


async def reloaded(client: Client, status: int = 200) -> dict[str, dict[str, object]]:
    """A reload, and what it says of each model."""
    response = await client.post("/models/reload")
    assert response.status_code == status, response.text
    body = response.json()
    assert body["status"] == ("done" if status == 200 else "failed")
    return {model["model"]: model for model in body["models"]}


def outcomes(report: dict[str, dict[str, object]]) -> dict[str, object]:
    return {name: model["outcome"] for name, model in report.items()}


async def test_the_latest_version_is_swapped_in(root: Path, serve: Serve, caplog) -> None:
    caplog.set_level(logging.INFO)
    async with serve(models_dir=root) as client:
        assert await scored(client) == (pytest.approx(expected(root, 1)), 1)
        add(root, 2)
        assert await scored(client) == (pytest.approx(expected(root, 1)), 1)
        report = await reloaded(client)
        assert outcomes(report) == {ID: "reloaded", "avg-sick": "unchanged", "pair-sick": "unchanged"}
        assert report[ID]["version"] == 2
        assert report[ID]["fingerprint"] == Manifest.load(root / ID / "2").fingerprint
        assert await scored(client) == (pytest.approx(expected(root, 2)), 2)
        assert expected(root, 1) != pytest.approx(expected(root, 2))
        add(root, 10)  # a number, not a text that would come before 2
        await reloaded(client)
        assert (await scored(client))[1] == 10
    assert [r.message for r in caplog.records if r.name == "service.models.reload"] == ["model reloaded"] * 2


async def test_a_version_taken_away_gives_way_to_the_one_before(root: Path, serve: Serve) -> None:
    add(root, 2)
    async with serve(models_dir=root) as client:
        assert (await scored(client))[1] == 2
        (root / ID / "2").rename(root / ID / ".2")
        assert outcomes(await reloaded(client))[ID] == "reloaded"
        assert await scored(client) == (pytest.approx(expected(root, 1)), 1)


def republish(folder: Path, **changes: object) -> None:
    old = Manifest.load(folder)
    parts = {"encoder": old.encoder, "similarity": old.similarity, "additive": old.additive}
    fakes.publish(folder, old.id, **(parts | changes))  # type: ignore[arg-type]


def break_checksum(folder: Path) -> str:
    path = folder / "encoder.onnx"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    return "corrupted or replaced"


def break_golden(folder: Path) -> str:
    pairs = json.loads((folder / "golden.json").read_text())["pairs"]
    pairs[1]["score"] += 0.01
    republish(folder, golden=[GoldenPair(**pair) for pair in pairs])
    return "does not answer as published"


def break_missing(folder: Path) -> str:
    (folder / "golden.json").unlink()
    return "golden.json: missing"


def break_tokenizer(folder: Path) -> str:
    manifest = Manifest.load(folder)
    Tokenizer(fakes.WORDS[::-1], fakes.PIECES, fakes.BUCKETS).save(folder / "tokenizer.json")
    files = manifest.files | {"tokenizer.json": fakes.describe_file(folder / "tokenizer.json")}
    new = manifest.model_copy(update={"files": files})
    new.model_copy(update={"fingerprint": new.expected_fingerprint()}).save(folder)
    return "does not answer as published"


def break_buckets(folder: Path) -> str:
    """Some bytes, which would take seconds in which nobody is answered."""
    manifest = Manifest.load(folder)
    content = {"format": 1, "words": ["a"], "pieces": [], "buckets": 400_000_000}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    files = manifest.files | {"tokenizer.json": fakes.describe_file(folder / "tokenizer.json")}
    new = manifest.model_copy(update={"files": files})
    new.model_copy(update={"fingerprint": new.expected_fingerprint()}).save(folder)
    return "400,000,000 buckets"


def break_fingerprint(folder: Path) -> str:
    path = folder / MANIFEST_NAME
    content = json.loads(path.read_text())
    content["limits"]["max_tokens"] += 1
    path.write_text(json.dumps(content))
    return "fingerprint is"


def break_id(folder: Path) -> str:
    manifest = Manifest.load(folder)
    manifest.model_copy(update={"id": "another"}).save(folder)
    return "the id is 'another', its folder's 'avg-paraphrase'"


def break_task(folder: Path) -> str:
    """A good model, which cannot do what the settings have it do."""
    shutil.rmtree(folder)
    fakes.graded_model(folder, ID)
    old = Manifest.load(folder)
    (folder / "relatedness.onnx").unlink()
    fakes.publish(folder, ID, encoder=old.encoder, entailment=old.entailment)
    return "SEMBLANCE_DEFAULT_SIMILARITY is 'avg-paraphrase', which has no similarity"


BREAKS = [
    break_checksum,
    break_golden,
    break_missing,
    break_tokenizer,
    break_buckets,
    break_fingerprint,
    break_id,
    break_task,
]


@pytest.mark.parametrize("break_it", BREAKS, ids=lambda b: b.__name__.removeprefix("break_"))
async def test_a_broken_version_keeps_the_old_one(
    root: Path, serve: Serve, caplog, break_it: Callable[[Path], str]
) -> None:
    async with serve(models_dir=root) as client:
        succeeded = await client.metric("semblance_models_reload_success_timestamp_seconds")
        reason = break_it(add(root, 2))
        report = await reloaded(client, 409)
        assert outcomes(report) == {ID: "failed", "avg-sick": "unchanged", "pair-sick": "unchanged"}
        assert reason in str(report[ID]["reason"])
        assert str(root) not in str(report[ID]["reason"])
        assert report[ID]["version"] == 1
        assert await scored(client) == (pytest.approx(expected(root, 1)), 1)
        assert await scored(client, f"{ID}@latest") == (pytest.approx(expected(root, 1)), 1)
        assert await client.metric("semblance_model_reload_failures_total", model=ID) == 1
        assert await client.metric("semblance_models_reload_success_timestamp_seconds") == succeeded
        ready = await client.get("/health/ready")
        assert ready.status_code == 200
        assert ready.json()["status"] == "degraded"
        (told,) = ready.json()["reasons"]
        assert told.startswith(f"model {ID} is not reloaded: ")
        assert reason in told
        errors = [record for record in caplog.records if record.levelname == "ERROR"]
        assert [error.message for error in errors] == ["model not reloaded"]
        # What was wrong is put right.
        shutil.rmtree(root / ID / "2")
        add(root, 2)
        assert outcomes(await reloaded(client))[ID] == "reloaded"
        assert (await scored(client))[1] == 2
        assert (await client.get("/health/ready")).json()["status"] == "ready"
        assert await client.metric("semblance_models_reload_success_timestamp_seconds") > succeeded
        assert await client.metric("semblance_model_reload_failures_total", model=ID) == 1


async def test_a_model_without_versions_is_replaced_in_its_place(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root) as client:
        body = {**PAIR, "model": "avg-sick"}
        before = (await client.post("/similarity", json=body)).json()
        assert "model_version" not in before
        folder = root / "avg-sick"
        folder.rename(root / ".avg-sick.old")
        fakes.graded_model(folder, seed=5)
        break_checksum(folder)
        report = await reloaded(client, 409)
        assert outcomes(report)["avg-sick"] == "failed"
        assert (await client.post("/similarity", json=body)).json() == before
        shutil.rmtree(folder)
        fakes.graded_model(folder, seed=5)
        assert outcomes(await reloaded(client))["avg-sick"] == "reloaded"
        assert (await client.post("/similarity", json=body)).json() != before


async def test_a_pinned_version_stays(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root, model_versions={ID: 1}) as client:
        add(root, 2)
        assert outcomes(await reloaded(client))[ID] == "unchanged"
        assert (await scored(client))[1] == 1
        unknown = await client.post("/similarity", json={**PAIR, "model": f"{ID}@2"})
        assert unknown.status_code == 404
        error = unknown.json()["error"]
        assert (error["code"], error["field"]) == ("unknown_version", "model")
        assert error["message"] == (f"no model '{ID}@2'; {ID} has versions 1, 2; served are {ID}@1")
        assert (await client.post("/similarity", json={**PAIR, "model": f"{ID}@latest"})).status_code == 404
        shutil.rmtree(root / ID / "1")
        report = await reloaded(client, 409)
        assert report[ID]["reason"] == f"{ID}@1 is gone, but SEMBLANCE_MODEL_VERSIONS needs it"
        assert (await scored(client))[1] == 1


async def test_a_canary_is_asked_by_its_version(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root, model_versions={ID: 1}, model_versions_also={ID: ("latest",)}) as client:
        assert await scored(client, f"{ID}@latest") == await scored(client)
        add(root, 2)
        assert outcomes(await reloaded(client))[ID] == "reloaded"
        first, second = (pytest.approx(expected(root, version)) for version in (1, 2))
        assert await scored(client) == await scored(client, f"{ID}@1") == (first, 1)
        assert await scored(client, f"{ID}@2") == await scored(client, f"{ID}@latest") == (second, 2)
        described = {model["name"]: model for model in (await client.get("/models")).json()["models"]}
        assert list(described) == [f"{ID}@1", f"{ID}@2", "avg-sick", "pair-sick"]
        assert [described[name]["id"] for name in described] == [ID, ID, "avg-sick", "pair-sick"]
        assert [described[name]["version"] for name in described] == [1, 2, None, None]
        assert [described[name]["versions"] for name in described] == [[1, 2], [1, 2], [], []]
        assert described[f"{ID}@1"]["default_for"] == ["/similarity", "/rank", "/embed", "/explain"]
        assert described[f"{ID}@2"]["default_for"] == []
        assert (await client.get("/health/ready")).json()["models"] == [ID, f"{ID}@2", "avg-sick", "pair-sick"]
        add(root, 3)
        await reloaded(client)
        assert (await scored(client, f"{ID}@latest"))[1] == 3
        gone = await client.post("/similarity", json={**PAIR, "model": f"{ID}@2"})
        assert gone.status_code == 404


async def test_every_route_tells_the_version(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root) as client:
        bodies = {
            "/similarity": PAIR,
            "/rank": {"query": "a man", "candidates": ["a dog", "a man"]},
            "/embed": {"sentences": ["a man"]},
            "/explain": {"a": "a man", "b": "a dog"},
        }
        for path, body in bodies.items():
            assert (await client.post(path, json=body)).json()["model_version"] == 1
        twice = bodies["/rank"] | {"model": "avg-sick", "rerank_model": ID}
        answer = (await client.post("/rank", json=twice)).json()
        assert "model_version" not in answer
        assert answer["rerank_model_version"] == 1
        dialects = {
            "/rerank": {"query": "a man", "texts": ["a dog"]},
            "/v2/rerank": {"query": "a man", "documents": ["a dog"], "model": f"{ID}@1"},
            "/v1/embeddings": {"input": "a man"},
            "/score": {"text_1": "a man", "text_2": "a dog"},
        }
        for path, body in dialects.items():
            response = await client.post(path, json=body)
            assert response.status_code == 200
            assert response.headers["x-model-version"] == "1"
            assert await client.metric("semblance_request_seconds_count", route=path, model=ID) == 1


async def test_dialects_know_versions(root: Path, serve: Serve) -> None:
    add(root, 2)
    settings = {"model_versions_also": {ID: (1,)}, "model_aliases": {"rerank-v3.5": f"{ID}@1"}}
    async with serve(models_dir=root, **settings) as client:
        listed = (await client.get("/v1/models")).json()["data"]
        assert {model["id"]: model["root"] for model in listed} == {
            ID: f"{ID}@2",
            f"{ID}@1": f"{ID}@1",
            f"{ID}@2": f"{ID}@2",
            f"{ID}@latest": f"{ID}@2",
            "avg-sick": "avg-sick",
            "pair-sick": "pair-sick",
            "rerank-v3.5": f"{ID}@1",
        }
        assert (await client.get(f"/v1/models/{ID}@1")).status_code == 200
        missing = await client.get(f"/v1/models/{ID}@7")
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")
        body = {"query": "a man", "documents": ["a dog"], "model": "rerank-v3.5"}
        assert (await client.post("/v2/rerank", json=body)).headers["x-model-version"] == "1"
        first = Manifest.load(root / ID / "1").fingerprint
        assert (await client.get("/info", params={"model": f"{ID}@1"})).json()["model_sha"] == first
        assert (await client.get(f"/v2/models/{ID}")).json()["versions"] == ["1", "2"]
        assert "versions" not in (await client.get("/v2/models/avg-sick")).json()
        for version, status in (("1", 200), ("2", 200), ("latest", 200), ("3", 404), ("x", 404)):
            assert (await client.get(f"/v2/models/{ID}/versions/{version}")).status_code == status
            assert (await client.get(f"/v2/models/{ID}/versions/{version}/ready")).status_code == status
        # An alias holds on to its version, as other settings do.
        shutil.rmtree(root / ID / "1")
        assert "SEMBLANCE_MODEL_VERSIONS_ALSO" in str((await reloaded(client, 409))[ID]["reason"])
        assert (await client.post("/v2/rerank", json=body)).headers["x-model-version"] == "1"


async def test_requests_under_way_are_answered_by_whom_they_asked(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root, cache_bytes=0) as client:
        scorer = client.app.service.registry[ID].scorer
        begun, swapped = asyncio.Event(), asyncio.Event()
        read = scorer.read

        async def slow(*args):
            begun.set()
            await swapped.wait()
            return await read(*args)

        scorer.read = slow  # type: ignore[method-assign]
        first = asyncio.create_task(scored(client))
        await begun.wait()
        add(root, 2)
        await reloaded(client)
        assert (await scored(client))[1] == 2
        swapped.set()
        assert await first == (pytest.approx(expected(root, 1)), 1)
        # It counts for the id, whose next version has taken over.
        assert await client.metric("semblance_request_seconds_count", route="/similarity", model=ID) == 2


async def test_no_request_fails_during_reloads(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root, cache_bytes=0) as client:
        known = {1: pytest.approx(expected(root, 1))}
        seen: set[int | None] = set()
        stop = asyncio.Event()
        asked = 0

        async def ask() -> None:
            nonlocal asked
            while not stop.is_set():
                score, version = await scored(client)
                assert version is not None
                assert score == known[version]
                seen.add(version)
                asked += 1
                await asyncio.sleep(0)

        callers = [asyncio.create_task(ask()) for _ in range(8)]
        for version in (2, 3, 4):
            known[version] = pytest.approx(0)  # not yet served
            folder = add(root, version)
            known[version] = pytest.approx(expected(root, version))
            if version == 3:
                break_checksum(folder)
            await reloaded(client, 409 if version == 3 else 200)
            begun = asked
            await until(lambda: asked > begun + 8 and (version == 3 or version in seen), "nobody is answered")  # noqa: B023
        stop.set()
        await asyncio.gather(*callers)
        assert seen == {1, 2, 4}
        assert asked > 20
        count = await client.metric("semblance_requests_total", route="/similarity", status="200")
        assert count == asked
        # No counter fell when versions took over from each other.
        assert await client.metric("semblance_request_seconds_count", route="/similarity", model=ID) == asked
        assert await client.metric("semblance_sentences_total", model=ID) == 2 * asked
        assert await client.metric("semblance_score_count", model=ID) == asked


async def test_series_follow_what_is_served(root: Path, serve: Serve) -> None:
    add(root, 2)
    async with serve(models_dir=root, model_versions={ID: 1}, model_versions_also={ID: ("latest",)}) as client:
        for name in (ID, f"{ID}@2", f"{ID}@2"):
            await scored(client, name)
        assert await client.metric("semblance_sentences_total", model=ID) == 2
        assert await client.metric("semblance_sentences_total", model=f"{ID}@2") == 4
        assert await client.metric("semblance_request_seconds_count", route="/similarity", model=f"{ID}@2") == 2
        assert await client.metric("semblance_phase_seconds_count", phase="cache", model=f"{ID}@2") == 2
        info = f'model="{ID}@2",provider="cpu",version="2"'
        assert info in await client.scrape()
        add(root, 3)
        await reloaded(client)
        text = await client.scrape()
        assert f'model="{ID}@2"' not in text
        assert await client.metric("semblance_sentences_total", model=f"{ID}@3") == 0
        assert await client.metric("semblance_sentences_total", model=ID) == 2


async def test_a_new_version_reads_no_old_embedding(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root) as client:
        await scored(client)
        await scored(client)
        entries = await client.metric("semblance_cache_entries")
        assert entries == 2
        add(root, 2)
        await reloaded(client)
        assert await scored(client) == (pytest.approx(expected(root, 2)), 2)
        assert await client.metric("semblance_cache_entries") == 4
        embedded = (await client.post("/embed", json={"sentences": ["a man plays the guitar"]})).json()["embeddings"]
        ids = fakes.tokenizer().encode("a man plays the guitar", fakes.MAX_TOKENS).ids
        np.testing.assert_allclose(embedded[0], fakes.table(2)[list(ids)].mean(axis=0), rtol=1e-5, atol=1e-6)


async def test_what_is_replaced_leaves_memory_without_a_collection(root: Path, serve: Serve) -> None:
    """A collection of everything would make all requests wait, and never looks at what start-up has frozen."""
    async with serve(models_dir=root) as client:
        names = client.app.service.registry.names
        alive = [weakref.ref(names[name].scorer) for name in (ID, "pair-sick")]
        del names
        await scored(client)
        await client.post("/similarity", json={**PAIR, "model": "pair-sick"})
        add(root, 2)
        folder = root / "pair-sick"
        shutil.rmtree(folder)
        fakes.interaction_model(folder, seed=9)
        gc.collect()
        gc.disable()
        try:
            report = await reloaded(client)
            assert outcomes(report) == {ID: "reloaded", "avg-sick": "unchanged", "pair-sick": "reloaded"}
            await until(lambda: [scorer() for scorer in alive] == [None, None], "threads hold what they opened")
        finally:
            gc.enable()


async def test_models_come_and_go(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root) as client:
        fakes.cosine_model(root / "another", "another", seed=3)
        report = await reloaded(client)
        assert outcomes(report)["another"] == "added"
        body = {**PAIR, "model": "another"}
        assert (await client.post("/similarity", json=body)).status_code == 200
        assert await client.metric("semblance_request_seconds_count", route="/similarity", model="another") == 1
        shutil.rmtree(root / "another")
        report = await reloaded(client)
        assert report["another"]["outcome"] == "removed"
        assert report["another"]["fingerprint"] is None
        assert (await client.post("/similarity", json=body)).status_code == 404
        assert "another" not in outcomes(await reloaded(client))
        assert (await client.get("/health/ready")).json()["status"] == "ready"


async def test_a_default_that_is_gone_is_served_still(root: Path, serve: Serve, caplog) -> None:
    async with serve(models_dir=root) as client:
        shutil.move(root / "avg-sick", root / ".avg-sick")
        shutil.move(root / "pair-sick", root / ".pair-sick")
        report = await reloaded(client, 409)
        assert outcomes(report) == {ID: "unchanged", "avg-sick": "failed", "pair-sick": "removed"}
        assert report["avg-sick"]["reason"] == "avg-sick is gone, but SEMBLANCE_DEFAULT_ENTAILMENT needs it"
        assert [r.message for r in caplog.records if r.levelname == "ERROR"] == ["model not reloaded"]
        pair = {"premise": "a man", "hypothesis": "a man"}
        assert (await client.post("/entailment", json={"pairs": [pair]})).status_code == 200
        assert (await client.get("/health/ready")).json()["status"] == "degraded"
        shutil.move(root / ".avg-sick", root / "avg-sick")
        assert outcomes(await reloaded(client)) == {ID: "unchanged", "avg-sick": "unchanged"}
        assert (await client.get("/health/ready")).json()["status"] == "ready"


async def test_a_new_model_may_not_have_the_name_of_an_alias(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root, model_aliases={"another": "avg-sick"}) as client:
        fakes.cosine_model(root / "another", "another")
        report = await reloaded(client, 409)
        assert report["another"]["reason"] == "SEMBLANCE_MODEL_ALIASES makes another a name of avg-sick"
        assert "another" not in client.app.service.registry


async def test_a_models_folder_that_is_gone(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root) as client:
        root.rename(root.with_name("elsewhere"))
        report = await reloaded(client, 409)
        assert set(outcomes(report).values()) == {"failed"}
        assert "No such file or directory" in str(report[ID]["reason"])
        assert (await scored(client))[1] == 1
        root.with_name("elsewhere").rename(root)
        assert set(outcomes(await reloaded(client)).values()) == {"unchanged"}


async def test_a_folder_whose_name_is_not_utf8_is_refused_and_the_rest_answers(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root) as client:
        os.mkdir(os.fsencode(root) + b"/caf\xe9")
        report = await reloaded(client, 409)
        assert report["caf\ufffd"]["reason"] == "caf\ufffd: the folder's name is not UTF-8"
        assert (await client.get("/health/ready")).status_code == 200
        assert (await client.get("/metrics")).status_code == 200
        assert (await scored(client))[1] == 1


async def test_versions_find_what_they_share(root: Path, serve: Serve) -> None:
    shutil.rmtree(root / "pair-sick")
    shutil.rmtree(root / SHARED_NAME)
    folder = add(root, 1, name="pair-sick", make=fakes.interaction_model)
    manifest = Manifest.load(folder)
    assert manifest.path_of(folder, fakes.OUTSIDE).parent == root / SHARED_NAME
    async with serve(models_dir=root) as client:
        body = {**PAIR, "model": "pair-sick"}
        before = (await client.post("/similarity", json=body)).json()
        add(root, 2, name="pair-sick", make=fakes.interaction_model)
        assert outcomes(await reloaded(client))["pair-sick"] == "reloaded"
        after = (await client.post("/similarity", json=body)).json()
        assert (before["model_version"], after["model_version"]) == (1, 2)
        assert before["results"] != after["results"]
        add(root, 3, name="pair-sick", make=fakes.interaction_model)
        for path in (root / SHARED_NAME).iterdir():
            path.unlink()
        assert "missing" in str((await reloaded(client, 409))["pair-sick"]["reason"])
        assert (await client.post("/similarity", json=body)).json() == after


async def test_a_version_may_not_lead_out_of_the_folder(root: Path, serve: Serve, tmp_path: Path, caplog) -> None:
    async with serve(models_dir=root) as client:
        outside = tmp_path / "outside"
        shutil.move(add(root, 2), outside)
        (root / ID / "2").symlink_to(outside)
        report = await reloaded(client, 409)
        assert str(report[ID]["reason"]).endswith("leads out of SEMBLANCE_MODELS_DIR, to ...")
        (told,) = (await client.get("/health/ready")).json()["reasons"]
        assert str(tmp_path) not in told  # readiness is open to everybody
        assert str(outside) in str(caplog.records[-1].__dict__)
        assert (await scored(client))[1] == 1


def break_pipe(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)


def break_size(folder: Path, name: str) -> None:
    os.truncate(folder / name, 4 << 30)  # sparse: no block of the disk is used


@pytest.mark.parametrize("name", [MANIFEST_NAME, "encoder.onnx"])
@pytest.mark.parametrize(
    ("break_it", "reason"), [(break_pipe, "not a (plain|regular) file"), (break_size, r"4,?294,?967,?296 bytes")]
)
async def test_a_pipe_or_a_huge_file_is_refused_without_being_read(
    root: Path, serve: Serve, name: str, break_it: Callable[[Path, str], None], reason: str
) -> None:
    async with serve(models_dir=root) as client:
        break_it(add(root, 2), name)
        with fail_after(NEEDED_SECONDS):
            report = await reloaded(client, 409)
        assert re.search(reason, str(report[ID]["reason"]))
        assert (await scored(client))[1] == 1
        shutil.rmtree(root / ID / "2")
        assert (await reloaded(client))[ID]["outcome"] == "unchanged"


async def test_a_model_over_the_limit_is_refused_by_its_sizes(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root) as client:
        folder = add(root, 2)
        manifest = Manifest.load(folder)
        files = manifest.files | {"golden.json": manifest.files["golden.json"].model_copy(update={"bytes": 10 << 30})}
        manifest.model_copy(update={"files": files}).save(folder)
        os.truncate(folder / "golden.json", 10 << 30)  # as the manifest says; to hash it would take a minute
        with fail_after(NEEDED_SECONDS):
            report = await reloaded(client, 409)
        assert "bytes, the limit is 1,073,741,824" in str(report[ID]["reason"])


@pytest.mark.parametrize("poll", [False, True])
async def test_a_byte_changed_under_the_same_manifest_is_noticed(root: Path, serve: Serve, poll: bool) -> None:
    async with serve(models_dir=root, models_poll_seconds=0.02 if poll else 0) as client:
        path = root / ID / "1" / "encoder.onnx"
        before, right, times = expected(root, 1), path.read_bytes(), path.stat()
        break_checksum(path.parent)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if poll:
            await until(lambda: bool(client.app.service.reloader.problems), "nobody is told")
        else:
            assert outcomes(await reloaded(client, 409)) == {
                ID: "failed",
                "avg-sick": "unchanged",
                "pair-sick": "unchanged",
            }
        ready = (await client.get("/health/ready")).json()
        assert ready["status"] == "degraded"
        assert "encoder.onnx: corrupted or replaced" in ready["reasons"][0]
        assert await scored(client) == (pytest.approx(before), 1)  # what is in memory is as it was
        path.write_bytes(right)
        if poll:
            await until(lambda: not client.app.service.reloader.problems, "it stays refused")
        else:
            assert outcomes(await reloaded(client))[ID] == "unchanged"


async def test_storage_that_hangs_is_given_up_and_told(root: Path, serve: Serve, monkeypatch) -> None:
    goes_on = threading.Event()
    async with serve(models_dir=root) as client:
        add(root, 2)
        reader = client.app.service.reloader._opener
        reads = reader.read
        monkeypatch.setattr(reader, "read", lambda release: (goes_on.wait(60), reads(release))[1])
        monkeypatch.setattr(opener, "STEP_SECONDS", 2.0)
        try:
            report = await reloaded(client, 409)
            assert report[ID]["reason"] == "not read and opened within 2 seconds, and given up"
            assert "hangs" in str((await reloaded(client, 409))[ID]["reason"])
            ready = (await client.get("/health/ready")).json()
            assert ready["status"] == "degraded"
            assert ready["reasons"][0].startswith(f"model {ID} is not reloaded: what was read before this hangs")
            assert (await scored(client))[1] == 1
        finally:
            goes_on.set()
        monkeypatch.setattr(opener, "STEP_SECONDS", 60.0)
        given_up = reader._given_up
        await until(given_up.done, "it hangs still")
        assert outcomes(await reloaded(client))[ID] == "reloaded"


async def test_a_manifest_behind_a_link_is_read(root: Path, serve: Serve) -> None:
    # As a Kubernetes volume has it: every name is a link, through another one, to where the content is.
    async with serve(models_dir=root) as client:
        folder = add(root, 2)
        (folder / "..2026").mkdir()
        (folder / MANIFEST_NAME).rename(folder / "..2026" / MANIFEST_NAME)
        (folder / "..data").symlink_to("..2026")
        (folder / MANIFEST_NAME).symlink_to(f"..data/{MANIFEST_NAME}")
        assert (await reloaded(client))[ID]["version"] == 2


async def test_who_asks_during_a_reload_gets_the_next_one(root: Path, serve: Serve, monkeypatch) -> None:
    async with serve(models_dir=root) as client:
        reloader = client.app.service.reloader
        at_once = most = looks = 0
        all_wait = threading.Event()
        look = reloader._look

        def counted(*args):
            nonlocal at_once, most, looks
            at_once, looks = at_once + 1, looks + 1
            most = max(most, at_once)
            all_wait.wait(60)
            at_once -= 1
            return look(*args)

        monkeypatch.setattr(reloader, "_look", counted)
        first = asyncio.create_task(reloaded(client))
        while not looks:
            await asyncio.sleep(0.005)
        add(root, 2)
        others = [asyncio.create_task(reloaded(client)) for _ in range(5)]
        await until(lambda: reloader._next is not None, "the next one is asked for")
        for _ in range(50):  # turns, in which the other four come
            await asyncio.sleep(0)
        all_wait.set()
        assert outcomes(await first)[ID] in ("unchanged", "reloaded")
        assert {report[ID]["version"] for report in await asyncio.gather(*others)} == {2}
        assert (most, looks) == (1, 2)


async def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + NEEDED_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.005)


async def test_the_folder_is_looked_at_from_time_to_time(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root, models_poll_seconds=0.02) as client:
        registry = client.app.service.registry
        add(root, 2)
        await until(lambda: registry[ID].release.version == 2, "the second version is not served")
        add(root, 3)
        await until(lambda: registry[ID].release.version == 3, "the third version is not served")


async def test_a_folder_that_is_being_copied_is_waited_for(root: Path, serve: Serve, caplog) -> None:
    """File by file, the manifest early: each look finds it changed, and says nothing but once."""
    async with serve(models_dir=root) as client:
        reloader, registry = client.app.service.reloader, client.app.service.registry
        whole = add(root, 2)
        copy = root / ".whole"
        whole.rename(copy)
        whole.mkdir()
        for name in (None, MANIFEST_NAME, "golden.json", "tokenizer.json"):
            if name is not None:
                shutil.copy(copy / name, whole / name)
            report = await reloader._reload(patient=True)
            assert report["status"] == "done"
            assert registry[ID].release.version == 1
            assert (await client.get("/health/ready")).json()["status"] == "ready"
        half = (copy / "encoder.onnx").read_bytes()
        (whole / "encoder.onnx").write_bytes(half[:100])
        await reloader._reload(patient=True)
        (whole / "encoder.onnx").write_bytes(half)
        assert registry[ID].release.version == 1
        report = await reloader._reload(patient=True)
        assert registry[ID].release.version == 2
        assert [r.message for r in caplog.records if r.levelname == "WARNING"] == ["model not whole yet"]
        assert not [r for r in caplog.records if r.levelname == "ERROR"]
        assert await client.metric("semblance_model_reload_failures_total", model=ID) == 0


@pytest.mark.parametrize("flat", [False, True])
async def test_what_stays_half_is_refused_once_and_tried_when_it_changes(
    root: Path, serve: Serve, caplog, monkeypatch, flat: bool
) -> None:
    async with serve(models_dir=root) as client:
        service = client.app.service
        opened = []
        reads = service.reloader._opener.read
        monkeypatch.setattr(service.reloader._opener, "read", lambda release: opened.append(release) or reads(release))
        name = "avg-sick" if flat else ID
        folder = root / name if flat else add(root, 2)
        if flat:
            Manifest.load(folder).model_copy(update={"title": "Anew"}).save(folder)
        graph = folder / "encoder.onnx"
        whole = graph.read_bytes()
        graph.write_bytes(whole[:-1])
        for _ in range(4):
            report = await service.reloader._reload(patient=True)
        assert report["status"] == "failed"
        assert len(opened) == 1  # what does not change is not verified again and again
        errors = [r for r in caplog.records if r.levelname == "ERROR"]
        assert [error.message for error in errors] == ["model not reloaded"]
        assert await client.metric("semblance_model_reload_failures_total", model=name) == 1
        assert (await client.get("/health/ready")).json()["status"] == "degraded"
        graph.write_bytes(whole)
        report = await service.reloader._reload(patient=True)
        assert report["status"] == "done"
        assert len(opened) == 2
        assert (await client.get("/health/ready")).json()["status"] == "ready"


async def test_a_folder_without_manifest_is_waited_for_and_then_refused(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root) as client:
        reloader = client.app.service.reloader
        (root / "half-copied").mkdir()
        assert (await reloader._reload(patient=True))["status"] == "done"
        report = await reloader._reload(patient=True)
        assert report["status"] == "failed"
        (told,) = (await client.get("/health/ready")).json()["reasons"]
        assert told.startswith("model half-copied is not served: half-copied/manifest.json: cannot be read")
        (root / "half-copied").rmdir()
        assert (await reloader._reload(patient=True))["status"] == "done"
        assert (await client.get("/health/ready")).json()["status"] == "ready"


async def test_an_unexpected_error_leaves_the_old_model_and_later_polls(root: Path, serve: Serve, monkeypatch) -> None:
    async with serve(models_dir=root, models_poll_seconds=0.02) as client:
        service = client.app.service
        opens = service.reloader._opener.open

        def fails(release):
            raise MemoryError

        monkeypatch.setattr(service.reloader._opener, "open", fails)
        add(root, 2)
        await until(lambda: bool(service.reloader.problems), "nobody is told")
        assert service.reloader.problems == [f"model {ID} is not reloaded: MemoryError"]
        monkeypatch.setattr(service.reloader._opener, "open", opens)
        add(root, 3)
        await until(lambda: service.registry[ID].release.version == 3, "the third version is not served")


def ask(url: str) -> tuple[int, float]:
    answer = httpx.post(f"{url}/similarity", json=PAIR).json()
    return answer["model_version"], answer["results"][0]["raw_score"]


def wait_for(url: str, version: int) -> float:
    deadline = time.monotonic() + NEEDED_SECONDS
    while time.monotonic() < deadline:
        found, score = ask(url)
        if found == version:
            return score
        time.sleep(0.02)
    raise AssertionError(f"version {version} is not served")


def test_sighup_reloads(root: Path) -> None:
    with running(root) as (process, url):
        assert ask(url) == (1, pytest.approx(expected(root, 1)))
        add(root, 2)
        process.send_signal(signal.SIGHUP)
        assert wait_for(url, 2) == pytest.approx(expected(root, 2))
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=NEEDED_SECONDS)
    events = [json.loads(line) for line in errors.splitlines()]
    (event,) = [event for event in events if event["message"] == "model reloaded"]
    assert (event["model"], event["version"]) == (ID, 2)
    assert {event["level"] for event in events} == {"info"}


def test_a_hangup_during_start_up_is_remembered() -> None:
    code = (
        "import signal; from service.process.signals import Hangup; "
        "hangup = Hangup(); signal.raise_signal(signal.SIGHUP); "
        "print('alive'); hangup.then(lambda: print('reload')); signal.raise_signal(signal.SIGHUP)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["alive", "reload", "reload"]


def test_all_workers_reload_when_one_is_told_to(root: Path, tmp_path: Path) -> None:
    def versions(service: Service) -> set[int]:
        """Of both workers: each request has a connection of its own, which either may take."""
        return {ask(service.url)[0] for _ in range(20)}

    with fleet(root, tmp_path) as service:
        before = service.pids()
        assert versions(service) == {1}
        with Load(service.url, "/similarity", PAIR) as load:
            add(root, 2)
            service.process.send_signal(signal.SIGHUP)
            fleet_until(lambda: versions(service) == {2}, "both have the second version")
            fleet_until(lambda: len(service.events("model reloaded")) == 2, "both say so")
            add(root, 3)
            assert httpx.post(f"{service.url}/models/reload").status_code == 200
            fleet_until(lambda: versions(service) == {3}, "both have the third version")
            break_golden(add(root, 4))
            assert httpx.post(f"{service.url}/models/reload").status_code == 409
            fleet_until(lambda: len(service.events("model not reloaded")) == 2, "both refuse the fourth version")
            assert versions(service) == {3}
        assert load.failures == []
        assert set(load.statuses) == {200}
        service.shows(2, "semblance_model_reload_failures_total", model=ID)
        assert service.pids() == before


_IN_TERMINAL = """
import fcntl, os, pty, signal, termios, time
terminal, child_end = pty.openpty()
heard, says = os.pipe()
if (pid := os.fork()) == 0:
    os.setsid()
    fcntl.ioctl(child_end, termios.TIOCSCTTY, 0)
    os.close(terminal)
    from service.process.signals import Hangup
    Hangup().then(lambda: os.write(says, b"L"))
    os.write(says, b"R")
    time.sleep(60)
    os._exit(1)
os.close(child_end)
assert os.read(heard, 1) == b"R"
os.kill(pid, signal.SIGHUP)
assert os.read(heard, 1) == b"L"
os.close(terminal)
_, status = os.waitpid(pid, 0)
print(os.WTERMSIG(status))
"""


def test_a_closed_terminal_ends_what_was_started_from_it() -> None:
    """While it is open the signal reloads; when it closes, the kernel sends the same signal."""
    for end in open_terminal():
        os.close(end)
    done = subprocess.run(
        [sys.executable, "-c", _IN_TERMINAL], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == str(int(signal.SIGTERM)), done.stderr


async def test_models_of_several_folders_are_served_and_reloaded(serve: Serve, tmp_path: Path) -> None:
    published, own = tmp_path / "published", tmp_path / "own"
    fakes.cosine_model(published / "avg-paraphrase")
    own.mkdir()
    async with serve(models_dir=(published, own)) as client:
        fakes.graded_model(own / "avg-sick")
        assert set(await reloaded(client)) == {"avg-paraphrase", "avg-sick"}
        body = {"pairs": [{"a": "a man", "b": "a dog"}], "model": "avg-sick"}
        assert (await client.post("/similarity", json=body)).status_code == 200
        fakes.graded_model(own / "avg-paraphrase", "avg-paraphrase")  # the id is taken
        report = await reloaded(client, 409)
        assert report["avg-paraphrase"]["outcome"] == "failed"
        assert "a second model with the id" in report["avg-paraphrase"]["reason"]
        assert (await client.post("/similarity", json={**body, "model": "avg-paraphrase"})).status_code == 200
