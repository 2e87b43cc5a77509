"""How a release of deploy/chart replaces its pods, which depends on what answers by default; skipped without Helm."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.deploy.charts import Resource, chart, made, needs_helm, of_kind


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
    ({"settings": {"MODEL_VERSIONS": "minilm=2"}}, "Recreate"),
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


@needs_helm
def test_a_first_release_replaces_nothing() -> None:
    assert update({}) == update({"models": {"defaultSimilarity": "minilm"}}) == "RollingUpdate"


class _Cluster(BaseHTTPRequestHandler):
    """As much of an API server as Helm asks for: which kinds there are, and one Deployment."""

    live: Resource

    def do_GET(self) -> None:
        kinds: dict[str, list[Resource]] = {"v1": []}
        for version, kind in sorted({(each["apiVersion"], each["kind"]) for each in made({})}):
            plural = f"{kind.lower()}s".replace("ys", "ies")
            names = {"name": plural, "singularName": kind.lower(), "kind": kind}
            kinds.setdefault(version, []).append({**names, "namespaced": True, "verbs": ["get"]})
        groups = [version.split("/") for version in kinds if "/" in version]
        known: dict[str, Any] = {
            "/version": {"major": "1", "minor": "37", "gitVersion": "v1.37.0"},
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {
                "kind": "APIGroupList",
                "groups": [
                    {"name": group, "versions": [{"groupVersion": f"{group}/{version}", "version": version}]}
                    for group, version in groups
                ],
            },
            "/apis/apps/v1/namespaces/prod/deployments/demo-semblance": self.live,
        }
        for version, resources in kinds.items():
            path = f"/apis/{version}" if "/" in version else f"/api/{version}"
            known[path] = {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
        found = known.get(self.path.partition("?")[0])
        absent = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        body = json.dumps(found or absent).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def cluster() -> Iterator[str]:
    """An API server whose namespace has the release with the chart's own values."""
    _Cluster.live = of_kind("Deployment")
    server = HTTPServer(("127.0.0.1", 0), _Cluster)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@needs_helm
def test_an_upgrade_asks_the_cluster_what_answered_before(cluster: str) -> None:
    assert update({}, cluster) == "RollingUpdate"
    assert update({"models": {"defaultSimilarity": "minilm"}}, cluster) == "Recreate"
    _Cluster.live = {}
    assert update({"models": {"defaultSimilarity": "minilm"}}, cluster) == "RollingUpdate"
