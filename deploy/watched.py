"""Questions about rules, dashboards and alerts; a wrong answer is a line for each, and exit code 1.

watched.py panels PROMETHEUS [SECONDS]   every expression of deploy/grafana comes to have data
         | rules PROMETHEUS              every rule of deploy/prometheus is loaded, and none fails
         | load API STOP                 requests of several kinds, until there is a file STOP
         | receiver PORT FILE            a webhook: each alert that it is sent is a line of FILE
         | caught FILE ALERT [SECONDS]   such a line comes to be there
         | collector ADDRESS...          takes spans and shows traces, as the compose file's collector does (spans.py)
         | exemplar PROMETHEUS TRACES    a bucket of latency comes to name a trace that the collector has
SEMBLANCE_API_KEY, when set, goes along. Nothing but the standard library, since this runs on the host.
"""

import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

from probe import PAIR, PATIENCE_SECONDS, WrongAnswer, ask, main, soon
from spans import collector

HERE = Path(__file__).resolve().parent
SECONDS_BETWEEN_LOADS = 0.1
LATENCY = "semblance_request_seconds_bucket"
EXEMPLARS = 20  # the newest: the collector may have come later than the first, and keeps the last traces only
# What Grafana puts in the place of its variables.
VARIABLES = {"$__rate_interval": "1m", **dict.fromkeys(("$model", "$job", "$namespace", "$instance"), ".*")}


def expressions(folder: Path = HERE / "grafana" / "dashboards") -> Iterator[tuple[str, str]]:
    """Each expression of the dashboards, as Grafana would ask it, with the panel's name before it."""
    for path in sorted(folder.glob("*.json")):
        dashboard = json.loads(path.read_text())
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                expression = target["expr"]
                for name, value in VARIABLES.items():
                    expression = expression.replace(name, value)
                yield f"{dashboard['title']}: {panel['title']}", expression


def has_data(prometheus: str, expression: str) -> str:
    """Empty where there is a number; otherwise what there is."""
    try:
        content = ask(f"{prometheus}/api/v1/query?{urlencode({'query': expression})}")
    except HTTPError as error:
        return error.read().decode()
    result = json.loads(content)["data"]["result"]
    if any(math.isfinite(float(series["value"][1])) for series in result):
        return ""
    return f"{len(result)} series without a number" if result else "no data"


def panels(prometheus: str, seconds: str = str(PATIENCE_SECONDS)) -> str:
    """Every expression comes to have data."""
    asked = list(expressions())
    titles = {expression: title for title, expression in asked}
    deadline = time.monotonic() + float(seconds)
    while True:
        found = {expression: what for expression in titles if (what := has_data(prometheus, expression))}
        if not found:
            return f"{len(asked)} expressions of {len({title for title, _ in asked})} panels, all with data"
        if time.monotonic() > deadline:
            lines = [f"{titles[expression]}: {what}: {expression}" for expression, what in found.items()]
            raise WrongAnswer("\n".join(lines))
        time.sleep(2)


def rules(prometheus: str) -> str:
    """The rules that the files name are those that Prometheus evaluates, without an error."""
    named = set()
    for path in (HERE / "prometheus" / "rules").glob("*.yml"):
        named |= set(re.findall(r"^\s*- (?:alert|record): (\S+)", path.read_text(), re.MULTILINE))

    def states() -> dict[str, str]:
        groups = json.loads(ask(f"{prometheus}/api/v1/rules"))["data"]["groups"]
        return {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}

    soon(states, dict.fromkeys(named, "ok"), "rules", PATIENCE_SECONDS)
    return f"{len(named)} rules, all evaluated"


def exemplar(prometheus: str, traces: str, seconds: str = str(PATIENCE_SECONDS)) -> str:
    """A trace that a bucket of latency names, asked of the collector as Grafana asks it."""
    began = time.time()

    def known() -> list[str]:
        query = {"query": LATENCY, "start": began - 300, "end": time.time()}
        found = json.loads(ask(f"{prometheus}/api/v1/query_exemplars?{urlencode(query)}"))["data"]
        all_of_them = [example for series in found for example in series["exemplars"]]
        newest = sorted(all_of_them, key=lambda example: float(example["timestamp"]))[-EXEMPLARS:]
        ids = [example["labels"]["trace_id"] for example in newest]
        return [spans for name in ids if (spans := _spans(traces, name))][:1]

    soon(lambda: bool(known()), True, "an exemplar whose trace the collector has", float(seconds))
    return f"an exemplar leads to its trace: {known()[0]}"


def _spans(traces: str, trace_id: str) -> str:
    """Names of a trace's spans; empty where the collector has no such trace."""
    try:
        (trace,) = json.loads(ask(f"{traces}/api/traces/{trace_id}"))["data"]
    except HTTPError:
        return ""
    return ", ".join(sorted({span["operationName"] for span in trace["spans"]}))


def load(api: str, stop: str) -> str:
    """Requests to every model, new sentences among them; counts those that were answered."""
    key = os.environ.get("SEMBLANCE_API_KEY")
    models = [model["id"] for model in json.loads(ask(f"{api}/models", key=key))["models"]]
    answered = 0
    for turn in count():
        if Path(stop).exists() or not Path(stop).parent.exists():
            return f"{answered} requests"
        text = f"{PAIR['a']} number {turn % 50}"
        for path, body in [
            *(("/similarity", {"pairs": [{**PAIR, "a": text}], "model": model}) for model in models),
            ("/rank", {"query": text, "candidates": list(PAIR.values())}),
        ]:
            with suppress(
                OSError
            ):  # a model without this task, a busy machine: whether requests fail is asked elsewhere
                ask(f"{api}{path}", body, key=key)
                answered += 1
        time.sleep(SECONDS_BETWEEN_LOADS)
    raise AssertionError


class _Receiver(BaseHTTPRequestHandler):
    """Writes what Alertmanager posts."""

    file: Path

    def do_POST(self) -> None:
        """One line for each alert."""
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.file.open("a") as lines:
            for alert in content["alerts"]:
                lines.write(json.dumps(alert) + "\n")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing: the file is the log."""


def receiver(port: str, file: str) -> str:
    """Serve until the process is ended."""
    _Receiver.file = Path(file)
    _Receiver.file.touch()
    HTTPServer(("127.0.0.1", int(port)), _Receiver).serve_forever()
    return ""


def caught(file: str, alert: str, seconds: str = "180") -> str:
    """A firing alert of this name came, with what a person needs."""

    def firing() -> list[dict[str, Any]]:
        alerts = [json.loads(line) for line in Path(file).read_text().splitlines()]
        return [a for a in alerts if a["labels"]["alertname"] == alert and a["status"] == "firing"]

    soon(lambda: bool(firing()), True, f"{alert} at the receiver", float(seconds))
    told = firing()[0]
    if not {"summary", "runbook_url"} <= set(told["annotations"]):
        raise WrongAnswer(f"{alert}: expected a summary and a runbook, found {told['annotations']}")
    return f"{alert} came: {told['annotations']['summary']}"


COMMANDS: dict[str, Callable[..., str]] = {
    "panels": panels,
    "rules": rules,
    "load": load,
    "receiver": receiver,
    "caught": caught,
    "collector": collector,
    "exemplar": exemplar,
}


if __name__ == "__main__":
    sys.exit(main(COMMANDS, sys.argv[1:]))
