"""Reference pages that a running service answers for: its routes, its metrics, its models."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric
from starlette.testclient import TestClient

from core.manifest import Manifest
from scripts.guide.pages_of_code import sentence
from service.app import create_app
from service.models.defaults import USUAL
from service.settings import Settings
from training.markdown import table

_LONGEST = 6  # numbers of a list that are shown
_LONGEST_ANSWER = 2500  # characters


def pages(models: Path) -> dict[str, str]:
    """The pages by name, from a service of the default models and one with labels of its own."""
    chosen = dict.fromkeys((*(names[0] for names in USUAL.values()), "minilm", "sentiment"))
    settings = Settings(models_dir=(models,), models=tuple(chosen))
    with TestClient(create_app(settings)) as client:
        api = client.get("/openapi.json").json()
        routes = routes_page(api, client)
        families = list(client.app.service.telemetry.registry.collect())  # type: ignore[attr-defined]
    return {"routes.md": routes, "metrics.md": metrics_page(families)}


def routes_page(api: Mapping[str, Any], client: TestClient) -> str:
    """Every route with its fields, and its examples with what the service answered while this page was built."""
    parts = [
        "# Routes\n",
        "Written from the OpenAPI document of the service, which is at `/openapi.json`; `/docs` shows the same and "
        "sends the examples. The answers below were given while this page was built, by the default models; long "
        "ones are shortened. How other services' clients are pointed here: [dialects](../dialects.md).\n",
    ]
    by_tag: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            by_tag.setdefault(operation["tags"][0], []).append((path, method.upper(), operation))
    for tag, found in by_tag.items():
        parts.append(f"## {tag[0].upper()}{tag[1:]}\n")
        for path, method, operation in found:
            parts += _route(path, method, operation, api["components"]["schemas"], client)
    return "\n".join(parts)


def _route(
    path: str, method: str, operation: Mapping[str, Any], schemas: Mapping[str, Any], client: TestClient
) -> list[str]:
    parts = [f"### {method} {path}\n", f"{operation['summary']}.\n"]
    if "requestBody" not in operation:
        return parts
    name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema = schemas[name]
    example = schema["examples"][0]
    answer = client.request(method, path, json=example)
    shown = json.dumps(_short(answer.json()), ensure_ascii=False)[:_LONGEST_ANSWER]
    parts += [f"**{name}**: {sentence(schema.get('description', ''))}\n", _body(schema)]
    parts += ["```json", json.dumps(example, ensure_ascii=False), "```\n", "```json", shown, "```\n"]
    return parts


def _body(schema: Mapping[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = []
    for name, part in schema["properties"].items():
        default = part.get("default")
        missing = "required" if name in required else ("" if default is None else f"`{json.dumps(default)}`")
        rows.append((f"`{name}`", missing, sentence(part.get("description", ""))))
    return table(("field", "without it", "what"), rows) + "\n"


def _short(value: Any) -> Any:
    """The same with long lists of numbers cut."""
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    if isinstance(value, list):
        if len(value) > _LONGEST and all(isinstance(one, int | float) for one in value):
            return [*value[:_LONGEST], f"... {len(value) - _LONGEST} more"]
        return [_short(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


def metric_rows(families: list[Metric]) -> list[tuple[str, str, str, str]]:
    """Name, type, labels and help of each metric of ours."""
    rows = []
    for family in families:
        if family.name.startswith("semblance_"):
            suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
            labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
            shown = ", ".join(f"`{label}`" for label in labels)
            rows.append((f"`{family.name}{suffix}`", family.type, shown, sentence(family.documentation)))
    return rows


def metrics_page(families: list[Metric]) -> str:
    """Every metric of ours."""
    return "\n".join(
        [
            "# Metrics\n",
            "What `GET /metrics` says, written from the service. Every series exists from the first scrape on, at 0; "
            "labels come from closed sets, never from a request. Questions and their queries: "
            "[monitoring](../metrics.md). Besides these there are `process_*` and `python_*`, as every Python "
            "service has them.\n",
            table(("metric", "type", "labels", "what"), metric_rows(families)),
        ]
    )


def models_page(models: Path) -> str:
    """Every published model: what it does, its size and its main figures."""
    main = {
        "20 transfer sets, r x 100": ("transfer", "mean of sets", "pearson"),
        "SICK, r x 100": ("SICK", "test", "pearson"),
        "SICK entailment, %": ("SICK", "test", "accuracy"),
    }
    rows = []
    for path in sorted(models.glob("*/manifest.json")):
        manifest = Manifest.model_validate_json(path.read_bytes())
        tasks = [
            task
            for task in ("similarity", "paraphrase", "relevance", "entailment", "classification")
            if getattr(manifest, task)
        ]
        size = sum(entry.bytes for entry in manifest.files.values()) / 1e6
        figures = {(f.corpus, f.split, f.metric): f.value for f in manifest.figures}
        shown = [f"{100 * figures[key]:.1f}" if key in figures else "" for key in main.values()]
        link = f"[{manifest.id}](models/{manifest.id}.md)"
        rows.append((link, manifest.architecture, ", ".join(tasks), f"{size:.0f}", *shown))
    return "\n".join(
        [
            "# Published models\n",
            "Written from the manifests in `models/`. Figures are of the published files, through ONNX Runtime. "
            "Which model to take: [choose a model](../choosing.md).\n",
            table(("model", "architecture", "tasks", "MB", *main), rows),
        ]
    )
