"""No text and no key is written down: not in a log line, not in a metric, whatever becomes of the request."""

import asyncio
import logging
from collections.abc import Iterator

import numpy as np
import pytest

from service.errors import Overloaded
from service.http.rate_limit import RateLimit
from service.observe import logs
from tests.harness import fakes
from tests.harness.dialects import REQUESTS, slow
from tests.harness.requests import GOOD
from tests.harness.service import Client, Serve, expect, let_in

pytestmark = pytest.mark.anyio
TEXT, KEY, GUESS = "zanzibar", "quagmire-quagmire", "xylophone-xylophone"
SECRETS = (TEXT, KEY, GUESS)
ALL = [(path, body) for path, body in GOOD.items()] + [(each.path, each.body) for each in REQUESTS.values()]


class Log(logging.Handler):
    """Every line that the service would write, in both forms."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(("httpx", "httpcore", "asyncio")):  # of this process' client
            self.lines += logs.JsonFormatter().format(record), logs.TextFormatter().format(record)


@pytest.fixture
def log() -> Iterator[Log]:
    root, handler = logging.getLogger(), Log()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


def with_secrets(value: object) -> object:
    """The body with the secret in the place of every text, names of models and of types aside."""
    if isinstance(value, dict):
        return {key: item if key in ("model", "type") else with_secrets(item) for key, item in value.items()}
    if isinstance(value, list):
        # Labels may not be repeated, so texts of a list differ.
        return [f"{TEXT} {i}" if isinstance(item, str) else with_secrets(item) for i, item in enumerate(value)]
    if isinstance(value, str) and "{}" in value:  # a template
        return f"{TEXT} {{}}"
    return f"a {TEXT}" if isinstance(value, str) else value


async def ask_all(client: Client, key: str = KEY) -> set[int]:
    """Every request of every family with secrets for texts: the statuses."""
    headers = {"authorization": f"Bearer {key}"}
    return {(await client.post(path, json=with_secrets(body), headers=headers)).status_code for path, body in ALL}


async def ask_badly(client: Client) -> set[int]:
    """Requests of every family with secrets where they do not belong: the statuses, 200 where fields are ignored."""
    found = set()
    for path, body in ALL:
        for wrong in (
            {"json": {**body, "model": TEXT}},
            {"json": {**body, TEXT: 1, "query": {TEXT: TEXT}, "pairs": TEXT, "inputs": 3, "input": {}}},
            {"content": f'{{"{TEXT}": "{TEXT}'},
            {"content": f'{{"model": "{TEXT} \\ud800"}}'},
            {"content": TEXT, "headers": {"content-type": TEXT}},
            {"content": TEXT * 1000},
        ):
            headers = {"x-api-key": KEY, **wrong.pop("headers", {})}
            found.add((await client.post(path, headers=headers, **wrong)).status_code)
        found.add((await client.request(TEXT.upper(), path, headers={"x-api-key": KEY})).status_code)
    for path in (
        f"/{TEXT}",
        f"/v1/{TEXT}",
        f"/v1/models/{TEXT}",
        f"/info?model={TEXT}",
        f"/?q={TEXT}",
    ):
        headers = {"x-api-key": KEY, "x-request-id": f"{TEXT} {KEY}", "user-agent": TEXT}
        found.add((await client.get(path, headers=headers)).status_code)
    return found


async def nothing_is_written_down(client: Client, log: Log) -> None:
    metrics = (await client.get("/metrics", headers={"x-api-key": KEY})).text
    assert "semblance_requests_total" in metrics
    written = "\n".join([*log.lines, metrics]).lower()
    assert log.lines
    assert [secret for secret in SECRETS if secret in written] == []


async def test_of_what_is_answered_and_what_is_refused(serve: Serve, log: Log) -> None:
    async with serve(api_keys=let_in(KEY), access_log=True, max_body_bytes=5000) as client:
        assert await ask_all(client) == {200}
        assert await ask_all(client, GUESS) == {401}
        assert await ask_badly(client) - {200} == {400, 404, 405, 413, 415, 422}
        await nothing_is_written_down(client, log)


async def test_of_overload_and_of_callers_that_ask_too_often(
    serve: Serve, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(api_keys=let_in(KEY), access_log=True, cache_bytes=0, rate_limit="30/hour") as client:
        service = client.app.service
        service.queue.admissions._refusal = lambda _: Overloaded("the wait would be too long")
        for model in service.registry.values():
            expect(model.scorer, 1.0)
        assert await ask_all(client) == {200, 429}  # tokens are told without a graph
        assert await ask_all(client) == {429}
        assert await client.metric("semblance_rate_limited_total") > 0
        monkeypatch.setattr(RateLimit, "take", lambda *_: asyncio.sleep(0))
        await nothing_is_written_down(client, log)


async def test_of_graphs_that_fail_and_answers_that_are_late(serve: Serve, log: Log) -> None:
    settings = {"api_keys": let_in(KEY), "access_log": True, "cache_bytes": 0}
    for seconds, expected in ((60, {200, 424, 500}), (0.02, {200, 503})):  # of a graph 0.04, as soon as one is asked
        async with serve(**settings, request_timeout=seconds) as client:
            for model in client.app.service.registry.values():
                if seconds == 60 and model.manifest.encoder:
                    model.scorer.graphs["encoder.onnx"].run = lambda _: np.full((1, fakes.DIM), np.nan, np.float32)
                elif model.manifest.encoder:
                    slow(client, 0.04, model.release.id, expected=0.002)
            # A busy machine refuses some at once (413), and drops some (429): they would be late too.
            assert await ask_all(client) - {413, 429} == expected
            await nothing_is_written_down(client, log)


async def test_of_mistakes_of_ours_that_quote_the_request(serve: Serve, log: Log) -> None:
    async def read(_: object, texts: list[str], __: object) -> None:
        try:
            raise KeyError(texts[0])
        except KeyError as error:
            raise ValueError(f"cannot read {texts}") from error

    async with serve(api_keys=let_in(KEY), access_log=True) as client:
        for model in client.app.service.registry.values():
            model.scorer.tokenise = read
        assert await ask_all(client) == {500}
        assert any("KeyError" in line and "which led to" in line for line in log.lines)
        await nothing_is_written_down(client, log)
