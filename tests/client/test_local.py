"""The service inside the client's process: how it starts, fails to, and ends."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from semblance import AsyncClient, Client, local
from semblance.errors import CannotStart, MissingExtra
from semblance.extras import install_command
from service.settings import Settings

ROOT = Path(__file__).parents[2]


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CannotStart) as caught:
        Client.local(tmp_path / "nowhere")
    assert str(caught.value) == (
        f"no folder of models at {tmp_path}/nowhere: name one that is there (--models-dir, SEMBLANCE_MODELS_DIR), or a "
        "service to ask instead (--url, SEMBLANCE_URL)"
    )


def test_settings_that_do_not_fit_are_one_line(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMBLANCE_PORT", "http")
    monkeypatch.setenv("SEMBLANCE_MAX_PAIRS", "none")
    with pytest.raises(CannotStart, match=r"SEMBLANCE_PORT: .*; SEMBLANCE_MAX_PAIRS: "):
        Client.local(models)


def test_the_environment_names_the_models(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMBLANCE_MODELS_DIR", str(models))
    with Client.local() as client:
        assert [model.id for model in client.models().models] == ["avg-paraphrase", "avg-sick", "pair-sick"]


def test_nothing_guards_a_service_that_nobody_else_can_reach(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMBLANCE_API_KEYS", "tests:" + "0" * 64)
    monkeypatch.setenv("SEMBLANCE_RATE_LIMIT", "1/hour")
    with Client.local(models) as client:
        for _ in range(2):
            assert client.similarity([("a man", "a dog")]).results


def test_a_process_that_answers_only_itself_refuses_nothing_for_being_busy(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty large requests at once, of a model that is slow beside what its settings would let wait."""
    for name, value in {"MAX_QUEUE_SECONDS": "0.00001", "MAX_WAITING": "0", "REQUEST_TIMEOUT": "0.001"}.items():
        monkeypatch.setenv(f"SEMBLANCE_{name}", value)
    monkeypatch.setenv("SEMBLANCE_CACHE", "off")

    async def ask() -> list[int]:
        async with AsyncClient.local(models) as client:
            pairs = [[(f"a man {i} plays {j}", "the guitar") for j in range(100)] for i in range(40)]
            answers = await asyncio.gather(*(client.similarity(each, model="pair-sick") for each in pairs))
            return [len(answer.results) for answer in answers]

    assert asyncio.run(ask()) == [100] * 40


def test_what_a_process_of_its_own_leaves_out_are_settings() -> None:
    """A setting renamed in the service would not be lifted here."""
    assert set(local._NO_LIMITS) <= set(Settings.model_fields)


def test_closing_twice_and_without_a_request(models: Path) -> None:
    client = Client.local(models)
    client.close()
    client.close()

    async def never_asked() -> None:
        await AsyncClient.local(models).aclose()

    asyncio.run(never_asked())


def test_many_first_requests_start_it_once(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = local.open_service(models)
    events: list[str] = []
    start = opened.service.start

    async def starting() -> None:
        events.append("start")
        await asyncio.sleep(0.01)
        await start()

    opened.service.start = starting
    monkeypatch.setattr(local, "open_service", lambda _: opened)

    async def ask() -> None:
        async with AsyncClient.local() as client:
            await asyncio.gather(*(client.similarity([("a man", "a dog")]) for _ in range(5)))

    asyncio.run(ask())
    assert events == ["start"]


def test_an_application_that_does_not_start_says_why(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = local.open_service(models)

    async def starting() -> None:
        raise RuntimeError("the disk is gone")

    opened.service.start = starting
    monkeypatch.setattr(local, "open_service", lambda _: opened)
    with Client.local() as client:
        for _ in range(2):
            with pytest.raises(CannotStart, match="the service does not start: the disk is gone"):
                client.health()


def test_a_client_nobody_closed_lets_the_interpreter_end(models: Path) -> None:
    code = f"from semblance import Client; c = Client.local({str(models)!r}); print(c.health().status)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ready\n", "")


def test_without_the_service_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "service"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(MissingExtra) as caught:
        Client.local()
    assert str(caught.value) == (
        "opening models here, without --url or SEMBLANCE_URL, needs fastapi, which is not installed: "
        f"{install_command('service')}"
    )
