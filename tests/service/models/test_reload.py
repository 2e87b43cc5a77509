"""New models while the service runs: proven before they are served, swapped without a failed request, or refused."""

import asyncio
import gc
import json
import os
import re
import shutil
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from anyio import fail_after

from core.manifest import MANIFEST_NAME, SHARED_NAME, Manifest
from service.models import opener
from tests.harness import fakes
from tests.harness.service import NEEDED_SECONDS, Client, Serve, until
from tests.service.models.replacing import ID, PAIR, READY, break_golden, expected, put, readiness, scored

pytestmark = pytest.mark.anyio


async def reloaded(client: Client, status: int = 200) -> dict[str, dict[str, object]]:
    """A reload, and what it says of each model."""
    response = await client.post("/models/reload")
    assert response.status_code == status, response.text
    body = response.json()
    assert body["status"] == ("done" if status == 200 else "failed")
    return {model["model"]: model for model in body["models"]}


def outcomes(report: dict[str, dict[str, object]]) -> dict[str, object]:
    return {name: model["outcome"] for name, model in report.items()}


def break_checksum(folder: Path) -> str:
    path = folder / "encoder.onnx"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    return "corrupted or replaced"


def break_buckets(folder: Path) -> str:
    """Some bytes, which would take seconds in which nobody is answered."""
    content = {"format": 1, "words": ["a"], "pieces": [], "buckets": 400_000_000}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    fakes.sign(folder, "tokenizer.json")
    return "400,000,000 buckets"


def break_task(folder: Path) -> str:
    """A good model, which cannot do what the settings have it do."""
    shutil.rmtree(folder)
    fakes.graded_model(folder, ID)
    old = Manifest.load(folder)
    (folder / "relatedness.onnx").unlink()
    fakes.publish(folder, ID, encoder=old.encoder, entailment=old.entailment)
    return "SEMBLANCE_DEFAULT_SIMILARITY is 'avg-paraphrase', which has no similarity"


@pytest.mark.parametrize("break_it", [break_checksum, break_golden, break_buckets, break_task])
async def test_a_broken_model_keeps_the_old_one(
    root: Path, serve: Serve, caplog, break_it: Callable[[Path], str]
) -> None:
    async with serve(models_dir=root, default_similarity=ID) as client:
        succeeded = await client.metric("semblance_models_reload_success_timestamp_seconds")
        fingerprint = Manifest.load(root / ID).fingerprint
        reason = break_it(put(root, 1))
        report = await reloaded(client, 409)
        assert outcomes(report) == {ID: "failed", "avg-sick": "unchanged", "pair-sick": "unchanged"}
        assert reason in str(report[ID]["reason"])
        assert str(root) not in str(report[ID]["reason"])
        assert report[ID]["fingerprint"] == fingerprint
        assert await scored(client) == expected(0)
        assert await client.metric("semblance_model_reload_failures_total", model=ID) == 1
        assert await client.metric("semblance_models_reload_success_timestamp_seconds") == succeeded
        status, (told,) = await readiness(client)
        assert status == "degraded"
        assert told.startswith(f"model {ID} is not reloaded: ")
        assert reason in told
        errors = [record for record in caplog.records if record.levelname == "ERROR"]
        assert [error.message for error in errors] == ["model not reloaded"]
        # What was wrong is put right.
        put(root, 1)
        assert outcomes(await reloaded(client))[ID] == "reloaded"
        assert await scored(client) == expected(1)
        assert await readiness(client) == READY
        assert await client.metric("semblance_models_reload_success_timestamp_seconds") > succeeded
        assert await client.metric("semblance_model_reload_failures_total", model=ID) == 1


async def test_requests_under_way_are_answered_by_whom_they_asked(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root, cache_bytes=0) as client:
        scorer = client.app.service.registry[ID].scorer
        begun, swapped = asyncio.Event(), asyncio.Event()
        read = scorer.tokenise

        async def slow(*args):
            begun.set()
            await swapped.wait()
            return await read(*args)

        scorer.tokenise = slow  # type: ignore[method-assign]
        first = asyncio.create_task(scored(client))
        await begun.wait()
        put(root, 1)
        await reloaded(client)
        assert await scored(client) == expected(1)
        swapped.set()
        assert await first == expected(0)
        # It counts for the id, whose next model has taken over.
        assert await client.metric("semblance_request_seconds_count", route="/similarity", model=ID) == 2


async def test_no_request_fails_during_reloads(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root, cache_bytes=0) as client:
        known = [expected(seed) for seed in range(4)]
        seen: set[int] = set()
        stop = asyncio.Event()
        asked = 0

        async def ask() -> None:
            nonlocal asked
            while not stop.is_set():
                seen.add(known.index(await scored(client)))
                asked += 1
                await asyncio.sleep(0)

        callers = [asyncio.create_task(ask()) for _ in range(8)]
        for seed in (1, 2, 3):
            folder = put(root, seed)
            if seed == 2:
                break_checksum(folder)
            await reloaded(client, 409 if seed == 2 else 200)
            begun = asked
            await until(lambda: asked > begun + 8 and (seed == 2 or seed in seen), "nobody is answered")  # noqa: B023
        stop.set()
        await asyncio.gather(*callers)
        assert seen == {0, 1, 3}
        assert asked > 20
        count = await client.metric("semblance_requests_total", route="/similarity", status="200")
        assert count == asked
        # No counter fell when models took over from each other.
        assert await client.metric("semblance_request_seconds_count", route="/similarity", model=ID) == asked
        assert await client.metric("semblance_sentences_total", model=ID) == 2 * asked
        assert await client.metric("semblance_score_count", model=ID) == asked


async def test_what_is_replaced_leaves_memory_without_a_collection(root: Path, client: Client) -> None:
    """A collection of everything would make all requests wait, and never looks at what start-up has frozen."""
    alive = [weakref.ref(client.app.service.registry[name].scorer) for name in (ID, "pair-sick")]
    await scored(client)
    await client.post("/similarity", json={**PAIR, "model": "pair-sick"})
    put(root, 1)
    put(root, 9, name="pair-sick", make=fakes.interaction_model)
    gc.collect()
    gc.disable()
    try:
        report = await reloaded(client)
        assert outcomes(report) == {ID: "reloaded", "avg-sick": "unchanged", "pair-sick": "reloaded"}
        await until(lambda: [scorer() for scorer in alive] == [None, None], "threads hold what they opened")
    finally:
        gc.enable()


async def test_models_come_and_go(root: Path, client: Client) -> None:
    fakes.cosine_model(root / "another", "another", seed=3)
    report = await reloaded(client)
    assert outcomes(report)["another"] == "added"
    body = {**PAIR, "model": "another"}
    assert (await client.post("/similarity", json=body)).status_code == 200
    assert await client.metric("semblance_request_seconds_count", route="/similarity", model="another") == 1
    assert 'sentences_total{model="another"}' in await client.scrape()
    shutil.rmtree(root / "another")
    report = await reloaded(client)
    assert report["another"]["outcome"] == "removed"
    assert report["another"]["fingerprint"] is None
    assert (await client.post("/similarity", json=body)).status_code == 404
    assert 'sentences_total{model="another"}' not in await client.scrape()
    assert "another" not in outcomes(await reloaded(client))
    assert await readiness(client) == READY


async def test_a_default_that_is_gone_is_served_still(root: Path, client: Client, caplog) -> None:
    shutil.move(root / "avg-sick", root / ".avg-sick")
    shutil.move(root / "pair-sick", root / ".pair-sick")
    report = await reloaded(client, 409)
    assert outcomes(report) == {ID: "unchanged", "avg-sick": "failed", "pair-sick": "removed"}
    assert report["avg-sick"]["reason"] == "avg-sick is gone, but SEMBLANCE_DEFAULT_ENTAILMENT needs it"
    assert [r.message for r in caplog.records if r.levelname == "ERROR"] == ["model not reloaded"]
    pair = {"premise": "a man", "hypothesis": "a man"}
    assert (await client.post("/entailment", json={"pairs": [pair]})).status_code == 200
    assert (await readiness(client))[0] == "degraded"
    shutil.move(root / ".avg-sick", root / "avg-sick")
    assert outcomes(await reloaded(client)) == {ID: "unchanged", "avg-sick": "unchanged"}
    assert await readiness(client) == READY


async def test_a_new_model_may_not_have_the_name_of_an_alias(root: Path, serve: Serve) -> None:
    async with serve(models_dir=root, model_aliases={"another": "avg-sick"}) as client:
        fakes.cosine_model(root / "another", "another")
        report = await reloaded(client, 409)
        assert report["another"]["reason"] == "SEMBLANCE_MODEL_ALIASES makes another a name of avg-sick"
        assert "another" not in client.app.service.registry


async def test_a_models_folder_that_is_gone(root: Path, client: Client) -> None:
    root.rename(root.with_name("elsewhere"))
    report = await reloaded(client, 409)
    assert set(outcomes(report).values()) == {"failed"}
    assert "No such file or directory" in str(report[ID]["reason"])
    assert await scored(client) == expected(0)
    root.with_name("elsewhere").rename(root)
    assert set(outcomes(await reloaded(client)).values()) == {"unchanged"}


async def test_a_folder_whose_name_is_not_utf8_is_refused_and_the_rest_answers(root: Path, client: Client) -> None:
    os.mkdir(os.fsencode(root) + b"/caf\xe9")
    report = await reloaded(client, 409)
    assert report["caf\ufffd"]["reason"] == "caf\ufffd: the folder's name is not UTF-8"
    assert (await readiness(client))[0] == "degraded"
    assert (await client.get("/metrics")).status_code == 200
    assert await scored(client) == expected(0)


async def test_a_folder_with_a_link_to_itself_is_refused_by_name_and_the_rest_answers(root: Path, serve: Serve) -> None:
    names = ("circle", "graph", "manifest")
    (root / "circle").symlink_to("circle")
    for name, file in (("graph", "encoder.onnx"), ("manifest", MANIFEST_NAME)):
        fakes.cosine_model(root / name, name)
        (root / name / file).unlink()
        (root / name / file).symlink_to(file)
    async with serve(models_dir=root, preload=()) as client:
        status, reasons = await readiness(client)
        assert status == "degraded"
        assert [any(name in reason for reason in reasons) for name in names] == [True] * 3
        assert await scored(client) == expected(0)
        report = await reloaded(client, 409)
        assert {name for name, outcome in outcomes(report).items() if outcome == "failed"} == set(names)
        assert all("a link that leads nowhere" in str(report[name]["reason"]) for name in names)


async def test_a_new_model_finds_what_it_shares(root: Path, client: Client) -> None:
    body = {**PAIR, "model": "pair-sick"}
    before = (await client.post("/similarity", json=body)).json()
    put(root, 5, name="pair-sick", make=fakes.interaction_model)
    assert outcomes(await reloaded(client))["pair-sick"] == "reloaded"
    after = (await client.post("/similarity", json=body)).json()
    assert before != after
    put(root, 6, name="pair-sick", make=fakes.interaction_model)
    for path in (root / SHARED_NAME).iterdir():
        path.unlink()
    assert "missing" in str((await reloaded(client, 409))["pair-sick"]["reason"])
    assert (await client.post("/similarity", json=body)).json() == after


def as_pipe(path: Path) -> str:
    path.unlink()
    os.mkfifo(path)
    return "no plain file|not a regular file"


def as_huge(path: Path) -> str:
    os.truncate(path, 4 << 30)  # sparse: no block of the disk is used
    return r"4,?294,?967,?296 bytes"


def as_huge_and_said_to_be(path: Path) -> str:
    manifest = Manifest.load(path.parent)
    files = manifest.files | {path.name: manifest.files[path.name].model_copy(update={"bytes": 10 << 30})}
    manifest.model_copy(update={"files": files}).save(path.parent)
    os.truncate(path, 10 << 30)
    return "bytes, the limit is 1,073,741,824"


@pytest.mark.parametrize(
    ("name", "become"),
    [
        *((name, become) for name in (MANIFEST_NAME, "encoder.onnx") for become in (as_pipe, as_huge)),
        ("golden.json", as_huge_and_said_to_be),  # to hash it would take a minute
    ],
)
async def test_a_pipe_or_a_huge_file_is_refused_without_being_read(
    root: Path, client: Client, name: str, become: Callable[[Path], str]
) -> None:
    reason = become(put(root, 1) / name)
    with fail_after(NEEDED_SECONDS):
        report = await reloaded(client, 409)
    assert re.search(reason, str(report[ID]["reason"]))
    assert await scored(client) == expected(0)


async def test_a_byte_changed_under_the_same_manifest_is_noticed(root: Path, client: Client) -> None:
    path = root / ID / "encoder.onnx"
    right, times = path.read_bytes(), path.stat()
    break_checksum(path.parent)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert outcomes(await reloaded(client, 409))[ID] == "failed"
    status, (told,) = await readiness(client)
    assert status == "degraded"
    assert "encoder.onnx: corrupted or replaced" in told
    assert await scored(client) == expected(0)  # what is in memory is as it was
    path.write_bytes(right)
    assert outcomes(await reloaded(client))[ID] == "unchanged"


async def test_storage_that_hangs_is_given_up_and_told(root: Path, client: Client, monkeypatch) -> None:
    goes_on = threading.Event()
    put(root, 1)
    reader = client.app.service.reloader._opener
    reads = reader.read
    monkeypatch.setattr(reader, "read", lambda release: (goes_on.wait(60), reads(release))[1])
    monkeypatch.setattr(opener, "STEP_SECONDS", 2.0)
    try:
        report = await reloaded(client, 409)
        assert report[ID]["reason"] == "not read and opened within 2 seconds, and given up"
        assert "hangs" in str((await reloaded(client, 409))[ID]["reason"])
        status, reasons = await readiness(client)
        assert status == "degraded"
        assert reasons[0].startswith(f"model {ID} is not reloaded: what was read before this hangs")
        assert await scored(client) == expected(0)
    finally:
        goes_on.set()
    monkeypatch.setattr(opener, "STEP_SECONDS", 60.0)
    given_up = reader._timed_out
    await until(given_up.done, "it hangs still")
    assert outcomes(await reloaded(client))[ID] == "reloaded"


async def test_a_manifest_behind_a_link_is_read(root: Path, client: Client) -> None:
    # As a Kubernetes volume has it: every name is a link, through another one, to where the content is.
    folder = put(root, 1)
    (folder / "..2026").mkdir()
    (folder / MANIFEST_NAME).rename(folder / "..2026" / MANIFEST_NAME)
    (folder / "..data").symlink_to("..2026")
    (folder / MANIFEST_NAME).symlink_to(f"..data/{MANIFEST_NAME}")
    await reloaded(client)
    assert await scored(client) == expected(1)


async def test_models_of_several_folders_are_served_and_reloaded(serve: Serve, tmp_path: Path) -> None:
    published, own = tmp_path / "published", tmp_path / "own-models"  # which the first import makes
    fakes.cosine_model(published / "avg-paraphrase")
    async with serve(models_dir=(published, own)) as client:
        fakes.graded_model(own / "avg-sick")
        assert set(await reloaded(client)) == {"avg-paraphrase", "avg-sick"}
        body = {"pairs": [{"a": "a man", "b": "a dog"}], "model": "avg-sick"}
        assert (await client.post("/similarity", json=body)).status_code == 200
        fakes.graded_model(own / "avg-paraphrase", "avg-paraphrase")  # the id is taken
        report = await reloaded(client, 409)
        assert report["avg-paraphrase"]["outcome"] == "unchanged"
        where = (
            "own-models/avg-paraphrase: a second model with the id 'avg-paraphrase', that of published/avg-paraphrase"
        )
        assert report["own-models/avg-paraphrase"]["reason"] == where
        assert (await client.post("/similarity", json={**body, "model": "avg-paraphrase"})).status_code == 200


async def test_a_copy_of_a_folder_takes_no_id_from_the_folder_named_so(client: Client, root: Path) -> None:
    shutil.copytree(root / "avg-paraphrase", root / "a-copy")
    report = await reloaded(client, 409)
    assert report["avg-paraphrase"]["outcome"] == "unchanged"
    reason = "models/a-copy: a second model with the id 'avg-paraphrase', that of models/avg-paraphrase"
    assert report["models/a-copy"]["reason"] == reason
    put(root, 1)  # which is taken all the same
    assert (await reloaded(client, 409))["avg-paraphrase"]["outcome"] == "reloaded"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example", "content-type": "text/plain"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "https://a.example", "sec-fetch-site": "cross-site"}, 200),
        ({"sec-fetch-site": "same-origin"}, 403),
        ({"origin": "http://rebound.example", "host": "rebound.example"}, 403),
        ({"sec-fetch-site": "none"}, 200),
    ],
)
async def test_pages_may_not_reload_unless_their_origin_is_named(
    serve: Serve, headers: dict[str, str], status: int
) -> None:
    async with serve(cors_origins=("https://a.example",)) as client:
        response = await client.post("/models/reload", headers=headers)
        assert response.status_code == status
        if status == 403:
            assert response.json()["error"]["code"] == "foreign_origin"
