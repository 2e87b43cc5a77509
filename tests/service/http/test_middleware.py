"""Who may ask, and how often."""

import json
import shlex
import subprocess

import httpx
import pytest

from service.http import rate_limit
from service.http.middleware import client_of
from service.http.rate_limit import RateLimit
from service.observe.telemetry import Telemetry
from service.settings import HASH_KEY, Settings, digest_of, hash_key
from tests.harness.process import command
from tests.harness.requests import GOOD, OPEN, error_of
from tests.harness.service import NEEDED_SECONDS, Serve, let_in

pytestmark = pytest.mark.anyio
KEY = "correct horse battery staple"


async def test_every_route_but_health_asks_for_a_key(serve: Serve) -> None:
    """Of the OpenAPI, which has every route of ours, and what it does not describe."""
    async with serve(api_keys=let_in(KEY)) as client:
        key = {"authorization": f"Bearer {KEY}"}
        described = (await client.get("/openapi.json", headers=key)).json()["paths"]
        routes = {(method, path) for path, methods in described.items() for method in methods}
        assert {("post", "/similarity"), ("post", "/v2/rerank"), ("get", "/metrics"), ("get", "/tei/info")} < routes
        routes |= {("get", path) for path in ("/docs", "/openapi.json", "/static-offline-docs/favicon.png", "/no")}
        answers: dict[str, set[int]] = {}
        for method, path in sorted(routes):
            where = path.replace("{model}", "avg-sick")
            without = await client.request(method, where)
            wrong = await client.request(method, where, headers={"x-api-key": f"{KEY} not"})
            right = await client.request(method, where, headers=key)
            assert right.status_code != 401, path
            answers.setdefault(path, set()).update((without.status_code, wrong.status_code))
        assert {path for path, statuses in answers.items() if statuses == {200}} == OPEN
        assert all(statuses == {401} for path, statuses in answers.items() if path not in OPEN)


@pytest.mark.parametrize("keys", [None, let_in(KEY)])
@pytest.mark.parametrize("name", ["Authorization", "X-Api-Key", "Content-Type", "Content-Encoding"])
async def test_a_header_of_which_one_counts_is_there_once(serve: Serve, name: str, keys: dict[str, str] | None) -> None:
    """A proxy may have checked the first, and the last would count here."""
    values = {"Authorization": (f"Bearer {KEY}", "Bearer x"), "X-Api-Key": (KEY, "x")}
    async with serve(**({} if keys is None else {"api_keys": keys})) as client:
        for first, second in (values.get(name, ("application/json", "application/json")), (KEY, KEY)):
            headers = [(name, first), (name.lower(), second), ("x-forwarded-for", "a"), ("x-forwarded-for", "b")]
            for path, body in (("/similarity", GOOD["/similarity"]), ("/v1/embeddings", {"input": "a man"})):
                response = await client.post(path, json=body, headers=headers)
                assert response.status_code == 400
                assert f"a request has one {name} header; found 2" in response.text
                assert KEY not in response.text
        twice = [("cookie", "a=b"), ("cookie", "c=d"), ("authorization", f"Bearer {KEY}")]
        assert (await client.post("/similarity", json=GOOD["/similarity"], headers=twice)).status_code == 200


async def test_zeros_before_the_length_of_a_body(serve: Serve) -> None:
    body = json.dumps(GOOD["/similarity"])
    length = {"content-length": f"{'0' * 5000}{len(body)}", "content-type": "application/json"}
    async with serve() as client:
        assert (await client.post("/similarity", content=body, headers=length)).status_code == 200


async def test_each_of_several_keys_opens_and_the_log_names_it(serve: Serve, caplog) -> None:
    caplog.set_level("INFO")
    keys = ["first key", "second key", "third key"]
    async with serve(api_keys=let_in(*keys), access_log=True) as client:
        for key in keys:
            assert (await client.get("/models", headers={"x-api-key": key})).status_code == 200
        for key in ("first", "first key ", "first keyx", "", digest_of("first key")):
            status = (await client.get("/models", headers={"x-api-key": key})).status_code
            assert status == (200 if key == "first key " else 401)  # spaces around a header's value are not its own
    fields = [record.fields for record in caplog.records if record.name == "service.http.middleware"]
    assert [field.get("caller") for field in fields] == ["key-0", "key-1", "key-2", None, "key-0", None, None, None]


async def test_all_keys_are_compared_whichever_fits(serve: Serve, monkeypatch) -> None:
    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda a, b: compared.append(b) or a == b)
    async with serve(api_keys=let_in("a", "b", "c")) as client:
        assert (await client.get("/models", headers={"x-api-key": "a"})).status_code == 200
    assert len(compared) == 3


async def test_a_caller_may_ask_so_often(serve: Serve) -> None:
    async with serve(rate_limit="3/minute") as client:
        statuses = [(await client.get("/models")).status_code for _ in range(2)]
        statuses.append((await client.post("/similarity", json=GOOD["/similarity"])).status_code)
        assert statuses == [200, 200, 200]
        refused = await client.post("/similarity", json=GOOD["/similarity"])
        error = error_of(refused)
        assert (refused.status_code, error["code"], error["limit"]) == (429, "rate_limited", 3)
        assert 0 < int(refused.headers["retry-after"]) <= 20  # a third of a minute for one of three
        assert 0 < int(refused.headers["retry-after-ms"]) <= 20_000
        for path in OPEN:  # a probe must not be told that a caller beside it asks too much
            assert (await client.get(path)).status_code == 200
        other = httpx.ASGITransport(app=client.app, client=("10.0.0.9", 1))
        async with httpx.AsyncClient(transport=other, base_url="http://service") as elsewhere:
            assert (await elsewhere.get("/models")).status_code == 200
        assert await client.metric("semblance_rate_limited_total") == 1
        assert await client.metric("semblance_requests_total", route="/similarity", status="429") == 1


async def test_keys_are_counted_apart_and_guesses_by_address(serve: Serve) -> None:
    async with serve(rate_limit="1/hour", api_keys=let_in("first key", "second key")) as client:
        for key, statuses in (("first key", [200, 429]), ("second key", [200, 429]), ("guess", [401, 429])):
            for status in statuses:
                assert (await client.get("/models", headers={"x-api-key": key})).status_code == status
        assert (await client.get("/models", headers={"x-api-key": "another guess"})).status_code == 429


async def test_the_allowance_grows_back(monkeypatch) -> None:
    now = 1000.0
    monkeypatch.setattr("throttled.utils.now_mono_f", lambda: now)
    limit = RateLimit(Settings(rate_limit="2/second"), Telemetry())
    await limit.take("a")
    await limit.take("a")
    with pytest.raises(rate_limit.RateLimited) as caught:
        await limit.take("a")
    assert caught.value.headers == {"retry-after": "1", "retry-after-ms": "500"}
    await limit.take("b")
    now += 0.5
    await limit.take("a")
    with pytest.raises(rate_limit.RateLimited):
        await limit.take("a")


async def test_callers_without_end_take_no_memory_without_end(monkeypatch) -> None:
    monkeypatch.setattr(rate_limit, "CALLERS", 10)
    limit = RateLimit(Settings(rate_limit="1/hour"), Telemetry())
    for i in range(100):
        await limit.take(str(i))
    with pytest.raises(rate_limit.RateLimited):
        await limit.take("99")
    await limit.take("0")  # forgotten


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("a:socket", "a:socket"),
        ("", ""),
    ],
)
def test_whom_an_address_stands_for(address: str, client: str) -> None:
    assert client_of(address) == client


@pytest.mark.parametrize(
    ("name", "key", "message"),
    [
        ("al ice", "x" * 16, "a name is made of"),
        ("", "x" * 16, "a name is made of"),
        ("alice", "x" * 15, "a key of 15 characters can be guessed"),
        ("alice", "", "a key of 0 characters"),
        ("alice", "\u00fc" * 16, "printable ASCII"),
        ("alice", " " + "x" * 16, "without spaces around it"),
    ],
)
def test_a_key_that_will_not_do(name: str, key: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hash_key(name, key)


async def test_hash_key_makes_an_entry_that_lets_its_key_in(serve: Serve) -> None:
    call = shlex.split(HASH_KEY)  # as messages say it
    made = subprocess.run([*call, "alice"], input=f"{KEY}\n", capture_output=True, text=True, check=True)
    name, _, digest = made.stdout.rstrip("\n").partition(":")
    async with serve(api_keys={name: digest}) as client:
        assert (await client.get("/models", headers={"x-api-key": KEY})).status_code == 200
    short = subprocess.run([*call, "alice"], input="hush\n", capture_output=True, text=True, check=False)
    assert (short.returncode, short.stdout) == (2, "")
    assert short.stderr == "a key of 4 characters can be guessed; expected 16 or more\n"


def test_a_key_alone_does_not_open_the_service_to_everybody() -> None:
    done = subprocess.run(**command(api_key=KEY), timeout=NEEDED_SECONDS, check=False)  # type: ignore[call-overload]
    assert done.returncode == 2
    assert done.stderr.startswith("SEMBLANCE_API_KEY is what a client sends, and SEMBLANCE_API_KEYS, which is not set,")
    assert KEY not in done.stderr
