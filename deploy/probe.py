"""Questions that deploy/check.sh puts to a service and to its Prometheus; a wrong answer is one line and exit code 1.

probe.py refused API | similarity API [SENTENCE] | metric API SERIES VALUE | readiness API STATUS
         | latency API PROMETHEUS
SEMBLANCE_API_KEY, when set, goes along. Nothing but the standard library, since this runs on the host.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

PAIR = {"a": "A man is playing a guitar on the stage", "b": "Somebody makes music in front of people"}
P95 = (
    "histogram_quantile(0.95, sum by (le) "
    '(rate(semblance_request_seconds_bucket{job="semblance", route="/similarity"}[30s])))'
)
PATIENCE_SECONDS = 60


class WrongAnswer(Exception):
    """What was expected and what came."""


def ask(url: str, body: dict[str, Any] | None = None, *, key: str | None = None) -> bytes:
    """The answer to a GET, or to a POST when there is a body."""
    headers = {"Content-Type": "application/json"} | ({"X-API-Key": key} if key else {})
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, headers), timeout=10) as response:
        content: bytes = response.read()
    return content


def similarity(api: str, sentence: str = PAIR["a"]) -> dict[str, Any]:
    """One pair's answer."""
    answer = json.loads(
        ask(f"{api}/similarity", {"pairs": [{**PAIR, "a": sentence}]}, key=os.environ.get("SEMBLANCE_API_KEY"))
    )
    score = answer["results"][0]["score"]
    if not 0 <= score <= 1:
        raise WrongAnswer(f"/similarity: expected a score between 0 and 1, found {score}")
    return dict(answer)


def refused(api: str) -> str:
    """A request without the key is not answered."""
    try:
        ask(f"{api}/similarity", {"pairs": [PAIR]})
    except HTTPError as error:
        if error.code == 401:
            return "without the key: 401"
        raise
    raise WrongAnswer("/similarity without the key: expected 401, found an answer")


def metric(api: str, series: str, expected: str) -> str:
    """The service's own /metrics shows this series at this value."""
    text = ask(f"{api}/metrics", key=os.environ.get("SEMBLANCE_API_KEY")).decode()
    found = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(series + " ")]
    if [float(value) for value in found] != [float(expected)]:
        raise WrongAnswer(f"/metrics: expected {series} {expected}, found {found}")
    return f"{series} {found[0]}"


def readiness(api: str, expected: str) -> str:
    """/health/ready answers 200 and says this."""
    answer = json.loads(ask(f"{api}/health/ready"))
    if answer["status"] != expected:
        raise WrongAnswer(f"/health/ready: expected {expected}, found {answer}")
    return json.dumps(answer)


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


COMMANDS: dict[str, Callable[..., str]] = {
    "refused": refused,
    "similarity": lambda *of: json.dumps(similarity(*of)),
    "metric": metric,
    "readiness": readiness,
    "latency": latency,
}


def main(arguments: list[str]) -> int:
    """Run one command of the table above."""
    command, *rest = arguments
    try:
        answer = COMMANDS[command](*rest)
    except (WrongAnswer, OSError) as error:  # every failure of urllib is an OSError
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(answer + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
