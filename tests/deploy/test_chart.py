"""deploy/chart makes what its values ask for, of resources that Kubernetes knows; skipped without Helm."""

import json
import re
from typing import Any

import pytest
import yaml

from service.settings import Settings
from tests.deploy.charts import (
    CHART,
    DEPLOY,
    VALUES,
    chart,
    environment,
    kinds,
    made,
    needs_helm,
    of_kind,
    pod,
)

# Without Helm.


def test_the_schema_lists_the_values_and_no_others() -> None:
    def compare(values: dict[str, Any], schema: dict[str, Any], where: str) -> None:
        if "properties" not in schema:
            return
        assert schema["additionalProperties"] is False, where
        assert set(schema["properties"]) - {"global"} == set(values), where
        for name, inside in schema["properties"].items():
            if isinstance(values.get(name), dict) and "requests" not in values[name]:
                compare(values[name], inside, f"{where}.{name}")

    compare(VALUES, json.loads((CHART / "values.schema.json").read_text()), "values")


def test_the_schema_refuses_settings_that_have_values_of_their_own() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    refused = set(schema["properties"]["settings"]["propertyNames"]["not"]["enum"])
    assert refused <= {name.upper() for name in Settings.model_fields}
    template = (CHART / "templates/deployment.yaml").read_text()
    assert set(re.findall(r"SEMBLANCE_([A-Z_]+)[,\s]", template)) <= refused


# With Helm.


@needs_helm
@pytest.mark.parametrize("name", chart.examples())
def test_an_example_lints_and_makes_what_kubernetes_knows(name: str) -> None:
    values = chart.examples()[name]
    assert chart.lint(values) == []
    assert [fault for resource in made(values) for fault in chart.faults(resource)] == []


@needs_helm
@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Deployment", ("spec", "replica"), 2),
        ("Deployment", ("spec", "template", "spec", "containers", 0, "readinessProbe", "periodSecond"), 2),
        ("Deployment", ("spec", "template", "spec", "terminationGracePeriodSeconds"), "25"),
        ("NetworkPolicy", ("spec", "egress", 0, "port"), []),
        ("PodDisruptionBudget", ("spec", "maxUnavailabel"), 1),
        ("ServiceMonitor", ("spec", "endpoints", 0, "bearer"), "x"),
        ("PrometheusRule", ("spec", "groups", 0, "rules", 0, "four"), "1m"),
    ],
)
def test_a_fault_in_a_resource_is_found(kind: str, path: tuple[str | int, ...], value: Any) -> None:
    resource = of_kind(kind, chart.examples()["guarded-values.yaml"])
    assert list(chart.faults(resource)) == []
    inside: Any = resource
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    found = list(chart.faults(resource))
    assert found
    assert str(path[-1]) in found[0] or str(value) in found[0]


@needs_helm
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"replicaCount": 3}, "replicaCount"),
        ({"replicas": "3"}, "replicas"),
        ({"models": {"source": "bucket"}}, "source"),
        ({"models": {"source": "volume"}}, r"models\.volume: expected a volume source"),
        ({"models": {"source": "initContainer"}}, r"models\.initContainer\.image: expected an image"),
        ({"settings": {"API_KEYS": "x"}}, "API_KEYS"),
        ({"settings": {"max_pairs": 1}}, "max_pairs"),
        ({"redis": {"url": "redis://user:password@redis"}}, "url"),
        ({"autoscaling": {"kind": "keda"}}, r"autoscaling\.prometheusAddress: expected an address"),
        ({"autoscaling": {"kind": "hpa", "minReplicas": 9}}, "expected at most maxReplicas, 8, found 9"),
        (
            {"apiKeys": {"existingSecret": "keys"}, "monitoring": {"serviceMonitor": {"enabled": True}}},
            r"serviceMonitor\.bearerSecret: expected the name of a secret",
        ),
    ],
)
def test_values_that_are_wrong_are_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(chart.HelmError, match=said):
        chart.rendered(values)


@needs_helm
@pytest.mark.parametrize("name", chart.examples())
def test_every_container_is_confined(name: str) -> None:
    resources = made(chart.examples()[name])
    specs = [each["spec"]["template"]["spec"] for each in resources if each["kind"] == "Deployment"]
    specs += [each["spec"] for each in resources if each["kind"] == "Pod"]
    assert len(specs) == 2
    for spec in specs:
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for each in [*spec.get("initContainers", []), *spec["containers"]]:
            assert each["securityContext"] == {
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }
            assert each["resources"]["limits"]["memory"]


@needs_helm
@pytest.mark.parametrize("name", chart.examples())
def test_variables_are_settings_and_the_service_takes_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = chart.examples()[name]
    variables = {name: value for name, value in environment(values).items() if isinstance(value, str)}
    assert Settings.unknown(environment(values)) == []
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    settings = Settings.from_environment()
    wanted = values.get("settings", {})
    assert {key: getattr(settings, key.lower()) for key in wanted} == wanted


@needs_helm
def test_a_pod_has_the_time_that_ending_takes() -> None:
    values = {"shutdown": {"preStopSeconds": 7, "drainSeconds": 11, "graceSeconds": 13}}
    spec = pod(values)
    assert spec["terminationGracePeriodSeconds"] == 7 + 11 + 13 + 5
    assert "sleep(7)" in spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][-1]
    assert environment(values)["SEMBLANCE_DRAIN_SECONDS"] == "11"
    assert environment(values)["SEMBLANCE_SHUTDOWN_GRACE_SECONDS"] == "13"


@needs_helm
def test_secrets_come_from_secrets() -> None:
    values = chart.examples()["guarded-values.yaml"]
    assert environment(values)["SEMBLANCE_API_KEYS"] == {"secretKeyRef": {"name": "semblance-keys", "key": "api-keys"}}
    assert environment(values)["SEMBLANCE_REDIS_URL"]["secretKeyRef"] == {"name": "semblance-redis", "key": "url"}
    assert environment(values)["SEMBLANCE_REDIS_SECRET"]["secretKeyRef"]["key"] == "signing"
    assert "Secret" not in kinds(values)


@needs_helm
def test_rules_and_dashboards_are_those_of_compose() -> None:
    values = chart.examples()["guarded-values.yaml"]
    files = sorted(DEPLOY.glob("prometheus/rules/*.yml"))
    groups = [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    assert of_kind("PrometheusRule", values)["spec"]["groups"] == groups
    dashboards = {f"semblance-{path.name}": path.read_text() for path in DEPLOY.glob("grafana/dashboards/*.json")}
    assert of_kind("ConfigMap", values)["data"] == dashboards
