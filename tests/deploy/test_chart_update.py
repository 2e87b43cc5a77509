"""How a release of deploy/chart replaces its pods, which depends on what answers by default; skipped without Helm."""

from typing import Any

import pytest

from tests.deploy.charts import chart, made, needs_helm, of_kind


def update(values: dict[str, Any], cluster: str = "") -> str:
    resources = chart.rendered(values, cluster=cluster) if cluster else made(values)
    (strategy,) = [each["spec"]["strategy"] for each in resources if each["kind"] == "Deployment"]
    assert ("rollingUpdate" in strategy) == (strategy["type"] == "RollingUpdate")
    return str(strategy["type"])


def answers(values: dict[str, Any]) -> str:
    return str(of_kind("Deployment", values)["metadata"]["annotations"]["semblance/answers"])


CHANGES = [
    ({"models": {"defaultSimilarity": "minilm"}}, "Recreate"),
    ({"models": {"defaultEntailment": "minilm-cross"}}, "Recreate"),
    ({"models": {"revision": "2"}}, "Recreate"),
    ({"settings": {"MAX_PAIRS": 9}}, "RollingUpdate"),
    ({"image": {"tag": "0.2.0"}, "replicas": 5}, "RollingUpdate"),
    ({"models": {"serve": ["minilm"]}}, "RollingUpdate"),
    ({"models": {"defaultSimilarity": "minilm"}, "update": {"type": "RollingUpdate"}}, "RollingUpdate"),
    ({"update": {"type": "Recreate"}}, "Recreate"),
]


@needs_helm
@pytest.mark.parametrize(("values", "expected"), CHANGES)
def test_pods_of_two_default_models_are_never_side_by_side(values: dict[str, Any], expected: str) -> None:
    update_values = {"before": answers({}), **values.get("update", {})}
    assert update({**values, "update": update_values}) == expected
