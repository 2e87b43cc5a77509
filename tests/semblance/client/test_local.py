"""The service inside the client's process: how it starts and fails to; how it ends: test_ends.py."""

import asyncio
from pathlib import Path

import pytest

from semblance import AsyncClient, Client
from semblance.client import clients
from semblance.errors import CannotStart


def test_settings_that_do_not_fit_are_one_line(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMBLANCE_PORT", "http")
    monkeypatch.setenv("SEMBLANCE_MAX_PAIRS", "none")
    with pytest.raises(CannotStart, match=r"SEMBLANCE_PORT: .*; SEMBLANCE_MAX_PAIRS: "):
        Client.local(models)


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
    for name, value in {"MAX_QUEUE_SECONDS": "0.00001", "REQUEST_TIMEOUT": "0.001"}.items():
        monkeypatch.setenv(f"SEMBLANCE_{name}", value)
    monkeypatch.setenv("SEMBLANCE_CACHE", "off")

    async def ask() -> list[int]:
        async with AsyncClient.local(models) as client:
            pairs = [[(f"a man {i} plays {j}", "the guitar") for j in range(100)] for i in range(40)]
            answers = await asyncio.gather(*(client.similarity(each, model="pair-sick") for each in pairs))
            return [len(answer.results) for answer in answers]

    assert asyncio.run(ask()) == [100] * 40


def test_an_answer_in_this_process_may_take_longer_than_one_of_a_service(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a service nothing comes within these 30 ns."""
    monkeypatch.setattr(clients, "WAITS_OF_AN_ANSWER", 1e-9)
    monkeypatch.setattr(clients, "LONGEST_TIMEOUT", 1e12)

    async def ask() -> int:
        async with AsyncClient.local(models) as client:
            return len((await client.similarity([("a man", "a dog")])).results)

    assert asyncio.run(ask()) == 1
    with Client.local(models) as client:
        assert len(client.similarity([("a man", "a dog")]).results) == 1


def test_closing_twice_and_without_a_request(models: Path) -> None:
    client = Client.local(models)
    client.close()
    client.close()

    async def never_asked() -> None:
        await AsyncClient.local(models).aclose()

    asyncio.run(never_asked())


def test_a_folder_of_ones_own_models_need_not_be_there(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").symlink_to(models)
    with Client.local() as client:
        assert client.models().models
