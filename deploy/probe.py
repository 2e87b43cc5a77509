"""Questions that deploy/check.sh puts to a service and to its Prometheus; a wrong answer is one line and exit code 1.

probe.py refused API | similarity API [SENTENCE [MODEL]] | spread API REQUESTS SENTENCE | readiness API STATUS
         | metric API SERIES VALUE [SECONDS] | reload API MODEL OUTCOME | latency API PROMETHEUS
         | packages INSTALLED LOCK SBOM | served API ROUTE [SECONDS] | crowd PROXY
SEMBLANCE_API_KEY, when set, goes along. Nothing but the standard library, since this runs on the host.
"""

import json
import math
import os
import re
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

PAIR = {"a": "A man is playing a guitar on the stage", "b": "Somebody makes music in front of people"}
P95 = (
    "histogram_quantile(0.95, sum by (le) "
    '(rate(semblance_request_seconds_bucket{job="semblance", route="/similarity"}[30s])))'
)
PATIENCE_SECONDS = 60
SOON_SECONDS = 15.0  # what happens beside a request


class WrongAnswer(Exception):
    """What was expected and what came."""


def ask(url: str, body: dict[str, Any] | None = None, *, key: str | None = None) -> bytes:
    """The answer to a GET, or to a POST when there is a body."""
    headers = {"Content-Type": "application/json"} | ({"X-API-Key": key} if key else {})
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, headers), timeout=10) as response:
        content: bytes = response.read()
    return content


def similarity(api: str, sentence: str = PAIR["a"], model: str | None = None) -> dict[str, Any]:
    """One pair's answer."""
    body = {"pairs": [{**PAIR, "a": sentence}]} | ({"model": model} if model else {})
    answer = json.loads(ask(f"{api}/similarity", body, key=os.environ.get("SEMBLANCE_API_KEY")))
    score = answer["results"][0]["score"]
    if not 0 <= score <= 1:
        raise WrongAnswer(f"/similarity: expected a score between 0 and 1, found {score}")
    return dict(answer)


def spread(api: str, requests: str, sentence: str) -> str:
    """The same request on so many connections at once, so that every worker gets some."""
    with ThreadPoolExecutor(int(requests)) as threads:
        answers = list(threads.map(lambda _: json.dumps(similarity(api, sentence)), range(int(requests))))
    if len(set(answers)) != 1:
        raise WrongAnswer(f"/similarity on {requests} connections: expected one answer, found {sorted(set(answers))}")
    return f"{requests} connections, one answer"


def refused(api: str) -> str:
    """A request without the key is not answered."""
    try:
        ask(f"{api}/similarity", {"pairs": [PAIR]})
    except HTTPError as error:
        if error.code == 401:
            return "without the key: 401"
        raise
    raise WrongAnswer("/similarity without the key: expected 401, found an answer")


def origin(api: str, allowed: str) -> str:
    """Whether pages of this origin may ask, as `SEMBLANCE_CORS_ORIGINS` of the file of settings says."""
    with urlopen(Request(f"{api}/health/live", headers={"Origin": allowed}), timeout=10) as response:
        found = response.headers.get("Access-Control-Allow-Origin")
    if found != allowed:
        raise WrongAnswer(f"/health/live: expected pages of {allowed} to be let in, found {found}")
    return f"pages of {allowed} may ask"


def soon(found: Callable[[], Any], expected: Any, what: str, seconds: float = SOON_SECONDS) -> Any:
    """What is found, once it is what is expected."""
    deadline = time.monotonic() + seconds
    while (last := found()) != expected:
        if time.monotonic() > deadline:
            raise WrongAnswer(f"{what}: expected {expected} within {seconds:g} s, found {last}")
        time.sleep(0.2)
    return last


def metric(api: str, series: str, expected: str, seconds: str = str(SOON_SECONDS)) -> str:
    """The service's own /metrics comes to show this series at this value; "2+": or a higher one."""
    wanted = float(expected.rstrip("+"))

    def values() -> list[float]:
        text = ask(f"{api}/metrics", key=os.environ.get("SEMBLANCE_API_KEY")).decode()
        found = [float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(series + " ")]
        return [min(value, wanted) for value in found] if expected.endswith("+") else found

    return f"{series} {soon(values, [wanted], series, float(seconds))[0]}"


def served(api: str, route: str, seconds: str = str(SOON_SECONDS)) -> str:
    """The service comes to have answered requests to a route since it was started."""
    series = f'semblance_requests_total{{route="{route}",status="200"}}'

    def some() -> bool:
        text = ask(f"{api}/metrics", key=os.environ.get("SEMBLANCE_API_KEY")).decode()
        return any(float(line.rpartition(" ")[2]) > 0 for line in text.splitlines() if line.startswith(series))

    soon(some, True, f"{api}: requests to {route}", float(seconds))
    return f"{api} answers {route}"


def readiness(api: str, expected: str) -> str:
    """/health/ready answers 200 and comes to say this."""
    soon(lambda: json.loads(ask(f"{api}/health/ready"))["status"], expected, "/health/ready")
    return f"/health/ready: {expected}"


def reload(api: str, model: str, expected: str) -> str:
    """What becomes of this model when the folder is looked at again."""
    try:
        content = ask(f"{api}/models/reload", {}, key=os.environ.get("SEMBLANCE_API_KEY"))
    except HTTPError as error:
        if error.code != 409:  # some model was refused
            raise
        content = error.read()
    outcomes = {entry["model"]: entry["outcome"] for entry in json.loads(content)["models"]}
    if outcomes.get(model) != expected:
        raise WrongAnswer(f"/models/reload: expected {model} {expected}, found {outcomes}")
    return f"{model} {expected}"


def latency(api: str, prometheus: str) -> str:
    """The 95th percentile of the latency, from Prometheus: a rate takes requests between two scrapes."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    result: list[Any] = []
    while time.monotonic() < deadline:
        for _ in range(20):
            similarity(api)
        result = json.loads(ask(f"{prometheus}/api/v1/query?{urlencode({'query': P95})}"))["data"]["result"]
        if result and math.isfinite(float(result[0]["value"][1])):
            return f"p95 of /similarity in Prometheus: {float(result[0]['value'][1]) * 1000:.2f} ms"
        time.sleep(1)
    raise WrongAnswer(f"Prometheus: expected a 95th percentile within {PATIENCE_SECONDS} s, found {result}")


def packages(installed: str, lock: str, sbom: str) -> str:
    """The image, the lock and the list of packages name the same versions; the project itself is in no lock."""

    def names(pairs: list[tuple[str, str]]) -> dict[str, str]:
        return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pairs}

    components = json.loads(Path(sbom).read_text())["components"]
    image = names([tuple(line.split()) for line in Path(installed).read_text().splitlines()])  # type: ignore[misc]
    listed = names([(component["name"], component["version"]) for component in components])
    locked = names(re.findall(r"^(\S+)==(\S+)", Path(lock).read_text(), re.MULTILINE))
    if odd := set(image.items()) ^ set(listed.items()):
        raise WrongAnswer(f"image and {sbom}: expected the same packages, found only in one: {sorted(odd)}")
    ours = set(image) - set(locked)
    if len(ours) != 1 or (odd := {entry for entry in image.items() if entry[0] not in ours} ^ set(locked.items())):
        raise WrongAnswer(f"image and {lock}: expected the same and the project, found {sorted(ours)}, {sorted(odd)}")
    return f"{len(image)} packages"


def crowd(proxy: str) -> str:
    """One address cannot open 300 connections to the proxy, nor take its time for a head; others are answered then."""
    at = urlsplit(proxy)
    address = (at.hostname or "", at.port or 80)
    with ExitStack() as stack:
        begun = stack.enter_context(socket.create_connection(address, 20))
        begun.sendall(b"POST /similarity HT")
        for _ in range(300):
            stack.enter_context(socket.create_connection(address, 20))

        def one_more() -> bytes:
            with suppress(ConnectionError), socket.create_connection(address, 20) as last:
                last.sendall(b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n")
                return last.recv(100)
            return b""

        # Docker passes connections on one by one: the last may be there before the others.
        soon(one_more, b"", f"{proxy}: connection 302 of an address, which should be closed,")
        if not (late := begun.recv(100)).startswith(b"HTTP/1.1 408"):
            raise WrongAnswer(f"{proxy}: expected 408 for a head that does not end, found {late!r}")
    similarity(proxy)
    return "301 connections are too many, half a head is 408"


COMMANDS: dict[str, Callable[..., str]] = {
    "refused": refused,
    "origin": origin,
    "similarity": lambda *of: json.dumps(similarity(*of)),
    "spread": spread,
    "metric": metric,
    "served": served,
    "readiness": readiness,
    "reload": reload,
    "latency": latency,
    "packages": packages,
    "crowd": crowd,
}


def main(commands: dict[str, Callable[..., str]], arguments: list[str]) -> int:
    """Run one command of a table; its answer is a line, or what is wrong is one and the exit code is 1."""
    command, *rest = arguments
    try:
        answer = commands[command](*rest)
    except (WrongAnswer, OSError) as error:  # every failure of urllib is an OSError
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(answer + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(COMMANDS, sys.argv[1:]))
