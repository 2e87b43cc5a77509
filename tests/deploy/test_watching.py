"""Rules, their tests and dashboards name what the service exports, and every alert has a runbook and is tested."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import promql_parser
import pytest
import yaml

from service.observe.metrics import PHASES
from service.observe.telemetry import ModelTelemetry, Telemetry

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
sys.path.append(str(DEPLOY))
import watched  # noqa: E402  # beside deploy/check.sh, in no package

RULES = {
    path.name: yaml.safe_load(path.read_text())["groups"] for path in sorted(DEPLOY.glob("prometheus/rules/*.yml"))
}
ALL = [rule for groups in RULES.values() for group in groups for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in ALL if "alert" in rule}
RECORDS = {rule["record"]: rule["expr"] for rule in ALL if "record" in rule}
TESTS = [
    test for path in sorted(DEPLOY.glob("prometheus/tests/*.yml")) for test in yaml.safe_load(path.read_text())["tests"]
]
DASHBOARDS = {path.name: json.loads(path.read_text()) for path in sorted(DEPLOY.glob("grafana/dashboards/*.json"))}
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
OF_EACH_TARGET = {"job", "instance", "namespace"}  # the last where Kubernetes is


def _exported() -> dict[str, set[str]]:
    """Every series' labels by its name, as a service with one model shows them."""
    telemetry = Telemetry()
    telemetry.add_route("/similarity")
    info = dict.fromkeys(("architecture", "fingerprint", "provider"), "")
    telemetry.list({"m": info})
    telemetry.serve({"m": ModelTelemetry(["encoder"])})
    telemetry.answered("/similarity", "m", 200, 0.1, (0.0,) * len(PHASES))
    telemetry.reload_failures.labels("m")
    found: dict[str, set[str]] = {"up": OF_EACH_TARGET}
    for family in telemetry.registry.collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(OF_EACH_TARGET, sample.labels)
    return found


EXPORTED = _exported()


def selectors(expression: str) -> Iterator[Any]:
    """Every selector of an expression."""
    found: list[Any] = []

    def visit(node: Any) -> bool:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    return iter(found)


def series_of(expression: str) -> Iterator[str]:
    """Names of the service's series that an expression rests on, through records too."""
    for selector in selectors(expression):
        if selector.name in RECORDS:
            yield from series_of(RECORDS[selector.name])
        else:
            yield selector.name


def unknown_in(expression: str) -> list[str]:
    """What an expression asks for, and neither the service nor a record has."""
    unknown = []
    for selector in selectors(expression):
        if selector.name in RECORDS:
            record = RECORDS[selector.name]
            labels = set(re.findall(r"\b(\w+)\b", record)) | (set() if " by (" in record else OF_EACH_TARGET)
        elif selector.name in EXPORTED:
            labels = EXPORTED[selector.name]
        else:
            unknown.append(str(selector.name))
            continue
        unknown += [f"{selector.name}: {m.name}" for m in selector.matchers.matchers if m.name not in labels]
    return unknown


@pytest.mark.parametrize("name", [*ALERTS, *RECORDS])
def test_rules_ask_for_what_there_is(name: str) -> None:
    expression = RECORDS.get(name) or ALERTS[name]["expr"]
    assert list(selectors(expression))
    assert unknown_in(expression) == []


def test_dashboards_ask_for_what_there_is() -> None:
    asked = list(watched.expressions())
    assert len(asked) == sum(len(p.get("targets", [])) for d in DASHBOARDS.values() for p in d["panels"]) > 30
    assert {title: unknown for title, expression in asked if (unknown := unknown_in(expression))} == {}
    assert [expression for _, expression in asked if "$" in expression] == []


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_whom_it_wakes_and_what_to_do(name: str) -> None:
    alert = ALERTS[name]
    assert alert["labels"]["severity"] in {"page", "ticket", "info"}
    assert alert["annotations"]["summary"]
    url, anchor = alert["annotations"]["runbook_url"].split("#")
    assert urlsplit(url).scheme == "http"
    assert urlsplit(url).path == "/guide/operating.html"  # where the service shows the documentation
    page = "docs/operating.md"
    text = (ROOT / page).read_text()
    assert anchor == name.lower()
    runbook = text.partition(f"\n### {name}\n")[2].partition("\n#")[0].strip()
    assert len(runbook) > 80, f"{page}: expected a paragraph under ### {name}"


def test_every_runbook_has_its_alert() -> None:
    headings = re.findall(r"^### (Semblance\w+)$", (ROOT / "docs/operating.md").read_text(), re.MULTILINE)
    assert headings == list(ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_is_tested_firing_and_quiet(name: str) -> None:
    of_it = [(test, case) for test in TESTS for case in test["alert_rule_test"] if case["alertname"] == name]
    assert [test["name"] for test, case in of_it if case["exp_alerts"]] == [f"{name} fires"]
    quiet = [test["name"] for test, case in of_it if not case["exp_alerts"]]
    assert f"{name} is quiet" in quiet
    # Quiet, and not merely without the series that it asks for.
    asked = set(series_of(ALERTS[name]["expr"]))
    for test in TESTS:
        if test["name"].startswith(f"{name} "):
            given = {s.name for series in test["input_series"] for s in selectors(series["series"])}
            assert given & asked, test["name"]
            assert given <= set(EXPORTED), test["name"]
