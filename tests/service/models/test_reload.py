"""New models while the service runs: proven before they are served, swapped without a failed request, or refused."""

import asyncio
import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
from anyio import fail_after

from contract.manifest import MANIFEST_NAME, SHARED_NAME, Manifest
from contract.measures import cosine
from service.models import opener, reload
from tests.harness import fakes
from tests.harness.fleet import Service, fleet
from tests.harness.load import Load
from tests.harness.process import ROOT, running
from tests.harness.process import until as fleet_until
from tests.harness.service import NEEDED_SECONDS, Client, Serve, open_terminal, until

pytestmark = pytest.mark.anyio
PAIR = {"pairs": [{"a": "a man plays the guitar", "b": "a woman sleeps"}]}
ID = "avg-paraphrase"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "GONE_SECONDS", 0.0)


@pytest.fixture
async def client(serve: Serve, root: Path) -> AsyncIterator[Client]:
    """A service of models that a test may change."""
    async with serve(models_dir=root) as client:
        yield client


def put(root: Path, seed: int, *, name: str = ID, make: Callable[..., Manifest] = fakes.cosine_model) -> Path:
    """Put a new model in the place of the old one as docs/models.md says: whole, in one step."""
    arriving = root / f".{name}" / name
    make(arriving, name, seed=seed)
    if (arriving.parent / SHARED_NAME).exists():
        shutil.copytree(arriving.parent / SHARED_NAME, root / SHARED_NAME, dirs_exist_ok=True)
    shutil.rmtree(root / name)
    arriving.rename(root / name)
    shutil.rmtree(arriving.parent)
    return root / name


def expected(seed: int) -> float:
    """What a model of `put` says of the pair."""
    ids = [fakes.tokenizer().encode(text, fakes.MAX_TOKENS).ids for text in PAIR["pairs"][0].values()]
    a, b = (fakes.table(seed)[list(each)].mean(axis=0, keepdims=True) for each in ids)
    return pytest.approx(float(cosine(a, b)[0]), abs=1e-5)


async def scored(client: Client) -> float:
    """What is said of the pair."""
    response = await client.post("/similarity", json=PAIR)
    assert response.status_code == 200, response.text
    return response.json()["results"][0]["raw_score"]


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


def break_golden(folder: Path) -> str:
    fakes.misstate(folder)
    return "does not answer as published"


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
        ready = await client.get("/health/ready")
        assert ready.status_code == 200
        assert ready.json()["status"] == "degraded"
        (told,) = ready.json()["reasons"]
        assert told.startswith(f"model {ID} is not reloaded: ")
        assert reason in told
        errors = [record for record in caplog.records if record.levelname == "ERROR"]
        assert [error.message for error in errors] == ["model not reloaded"]
        # What was wrong is put right.
        put(root, 1)
        assert outcomes(await reloaded(client))[ID] == "reloaded"
        assert await scored(client) == expected(1)
        assert (await client.get("/health/ready")).json()["status"] == "ready"
        assert await client.metric("semblance_models_reload_success_timestamp_seconds") > succeeded
        assert await client.metric("semblance_model_reload_failures_total", model=ID) == 1


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


async def test_a_new_model_reads_no_old_embedding(root: Path, client: Client) -> None:
    for _ in range(2):
        assert await scored(client) == expected(0)
    assert await client.metric("semblance_cache_entries") == 2
    put(root, 1)
    await reloaded(client)
    assert await scored(client) == expected(1)
    assert await client.metric("semblance_cache_entries") == 4


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
    assert (await client.get("/health/ready")).json()["status"] == "ready"


async def test_a_default_that_is_gone_is_served_still(root: Path, client: Client, caplog) -> None:
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
    assert (await client.get("/health/ready")).status_code == 200
    assert (await client.get("/metrics")).status_code == 200
    assert await scored(client) == expected(0)


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
    root: Path, client: Client, name: str, break_it: Callable[[Path, str], None], reason: str
) -> None:
    break_it(put(root, 1), name)
    with fail_after(NEEDED_SECONDS):
        report = await reloaded(client, 409)
    assert re.search(reason, str(report[ID]["reason"]))
    assert await scored(client) == expected(0)


async def test_a_model_over_the_limit_is_refused_by_its_sizes(root: Path, client: Client) -> None:
    folder = put(root, 1)
    manifest = Manifest.load(folder)
    files = manifest.files | {"golden.json": manifest.files["golden.json"].model_copy(update={"bytes": 10 << 30})}
    manifest.model_copy(update={"files": files}).save(folder)
    os.truncate(folder / "golden.json", 10 << 30)  # as the manifest says; to hash it would take a minute
    with fail_after(NEEDED_SECONDS):
        report = await reloaded(client, 409)
    assert "bytes, the limit is 1,073,741,824" in str(report[ID]["reason"])


async def test_a_byte_changed_under_the_same_manifest_is_noticed(root: Path, client: Client) -> None:
    path = root / ID / "encoder.onnx"
    right, times = path.read_bytes(), path.stat()
    break_checksum(path.parent)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert outcomes(await reloaded(client, 409))[ID] == "failed"
    ready = (await client.get("/health/ready")).json()
    assert ready["status"] == "degraded"
    assert "encoder.onnx: corrupted or replaced" in ready["reasons"][0]
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
        ready = (await client.get("/health/ready")).json()
        assert ready["status"] == "degraded"
        assert ready["reasons"][0].startswith(f"model {ID} is not reloaded: what was read before this hangs")
        assert await scored(client) == expected(0)
    finally:
        goes_on.set()
    monkeypatch.setattr(opener, "STEP_SECONDS", 60.0)
    given_up = reader._given_up
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


async def comes_to_say(client: Client, score: float) -> None:
    with fail_after(NEEDED_SECONDS):
        while await scored(client) != score:
            await asyncio.sleep(0.005)


async def test_a_folder_that_is_being_copied_is_waited_for(root: Path, client: Client, caplog) -> None:
    """File by file, the manifest early: each look finds it changed, and says nothing but once."""
    reloader = client.app.service.reloader
    whole = put(root, 1)
    copy = root / ".whole"
    whole.rename(copy)
    whole.mkdir()
    for name in (None, MANIFEST_NAME, "golden.json", "tokenizer.json"):
        if name is not None:
            shutil.copy(copy / name, whole / name)
        report = await reloader._reload(patient=True)
        assert report["status"] == "done"
        assert await scored(client) == expected(0)
        assert (await client.get("/health/ready")).json()["status"] == "ready"
    half = (copy / "encoder.onnx").read_bytes()
    (whole / "encoder.onnx").write_bytes(half[:100])
    await reloader._reload(patient=True)
    (whole / "encoder.onnx").write_bytes(half)
    assert await scored(client) == expected(0)
    await reloader._reload(patient=True)
    assert await scored(client) == expected(1)
    assert [r.message for r in caplog.records if r.levelname == "WARNING"] == ["model not whole yet"]
    assert not [r for r in caplog.records if r.levelname == "ERROR"]
    assert await client.metric("semblance_model_reload_failures_total", model=ID) == 0


async def test_what_stays_half_is_refused_once_and_tried_when_it_changes(
    root: Path, client: Client, caplog, monkeypatch
) -> None:
    service = client.app.service
    opened = []
    reads = service.reloader._opener.read
    monkeypatch.setattr(service.reloader._opener, "read", lambda release: opened.append(release) or reads(release))
    graph = put(root, 1) / "encoder.onnx"
    whole = graph.read_bytes()
    graph.write_bytes(whole[:-1])
    for _ in range(4):
        report = await service.reloader._reload(patient=True)
    assert report["status"] == "failed"
    assert len(opened) == 1  # what does not change is not verified again and again
    errors = [r for r in caplog.records if r.levelname == "ERROR"]
    assert [error.message for error in errors] == ["model not reloaded"]
    assert await client.metric("semblance_model_reload_failures_total", model=ID) == 1
    assert (await client.get("/health/ready")).json()["status"] == "degraded"
    graph.write_bytes(whole)
    report = await service.reloader._reload(patient=True)
    assert report["status"] == "done"
    assert len(opened) == 2
    assert (await client.get("/health/ready")).json()["status"] == "ready"


async def test_the_folder_is_looked_at_from_time_to_time_also_after_an_unexpected_error(
    root: Path, serve: Serve, monkeypatch
) -> None:
    async with serve(models_dir=root, models_poll_seconds=0.02) as client:
        service = client.app.service
        opens = service.reloader._opener.open

        def fails(release):
            raise MemoryError

        monkeypatch.setattr(service.reloader._opener, "open", fails)
        put(root, 1)
        await until(lambda: bool(service.reloader.problems), "nobody is told")
        assert service.reloader.problems == [f"model {ID} is not reloaded: MemoryError"]
        monkeypatch.setattr(service.reloader._opener, "open", opens)
        for seed in (2, 3):
            put(root, seed)
            await comes_to_say(client, expected(seed))


def ask(url: str) -> float:
    return httpx.post(f"{url}/similarity", json=PAIR).json()["results"][0]["raw_score"]


def test_sighup_reloads(root: Path) -> None:
    with running(root) as (process, url):
        assert ask(url) == expected(0)
        put(root, 1)
        process.send_signal(signal.SIGHUP)
        fleet_until(lambda: ask(url) == expected(1), "the new model is served")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=NEEDED_SECONDS)
    events = [json.loads(line) for line in errors.splitlines()]
    (event,) = [event for event in events if event["message"] == "model reloaded"]
    assert event["model"] == ID
    assert {event["level"] for event in events} == {"info"}


def test_a_hangup_during_start_up_is_remembered() -> None:
    code = (
        "import signal; from service.process.signals import HangupHandler; "
        "hangup = HangupHandler(); signal.raise_signal(signal.SIGHUP); "
        "print('alive'); hangup.then(lambda: print('reload')); signal.raise_signal(signal.SIGHUP)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["alive", "reload", "reload"]


def test_all_workers_reload_when_one_is_told_to(root: Path, tmp_path: Path) -> None:
    def all_say(service: Service, seed: int) -> bool:
        """Of both workers: each request has a connection of its own, which either may take."""
        return all(ask(service.url) == expected(seed) for _ in range(20))

    with fleet(root, tmp_path) as service:
        before = service.pids()
        assert all_say(service, 0)
        with Load(service.url, "/similarity", PAIR) as load:
            put(root, 1)
            service.process.send_signal(signal.SIGHUP)
            fleet_until(lambda: all_say(service, 1), "both have the second model")
            fleet_until(lambda: len(service.events("model reloaded")) == 2, "both say so")
            put(root, 2)
            assert httpx.post(f"{service.url}/models/reload").status_code == 200
            fleet_until(lambda: all_say(service, 2), "both have the third model")
            break_golden(put(root, 3))
            assert httpx.post(f"{service.url}/models/reload").status_code == 409
            fleet_until(lambda: len(service.events("model not reloaded")) == 2, "both refuse the fourth")
            assert all_say(service, 2)
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
    from service.process.signals import HangupHandler
    HangupHandler().then(lambda: os.write(says, b"L"))
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
