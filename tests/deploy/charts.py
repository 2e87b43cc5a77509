"""The chart of this checkout, rendered, for the tests of this folder."""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "chart"
sys.path.append(str(DEPLOY))
import rendered as chart  # noqa: E402  # beside deploy/check.sh, in no package

needs_helm = pytest.mark.skipif(chart.MISSING is not None, reason=f"the chart: {chart.MISSING}")
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
Resource = dict[str, Any]


@cache
def _made(values: str, name: str) -> str:
    return json.dumps(chart.rendered(json.loads(values), name=name))


def made(values: dict[str, Any], name: str = "demo") -> list[Resource]:
    """The resources of a release; a test may change them."""
    found: list[Resource] = json.loads(_made(json.dumps(values), name))
    return found


def of_kind(kind: str, values: dict[str, Any] | None = None, name: str = "demo") -> Resource:
    """The one resource of this kind."""
    (found,) = [each for each in made(values or {}, name) if each["kind"] == kind]
    return found


def kinds(values: dict[str, Any]) -> list[str]:
    return sorted(each["kind"] for each in made(values))


def pod(values: dict[str, Any] | None = None) -> Resource:
    return of_kind("Deployment", values)["spec"]["template"]["spec"]


def container(values: dict[str, Any] | None = None) -> Resource:
    (found,) = pod(values)["containers"]
    return found


def environment(values: dict[str, Any] | None = None) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container(values)["env"]}
