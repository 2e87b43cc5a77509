"""What deploy/chart makes of its values, by Helm itself, held against Kubernetes' schemas.

`python deploy/rendered.py` checks every file of deploy/chart/ci; deploy/static.sh and tests/deploy/test_chart.py use
this file. It ends with 77 where there is no Helm (scripts/helm.py) or no schemas (extra `dev`).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parent
CHART = DEPLOY / "chart"
NOT_INSTALLED = 77
Values = dict[str, Any]
Resource = dict[str, Any]
HELM = shutil.which("helm", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")

# Told by main; tests skip.
MISSING: str | None = None if HELM else "there is no helm: python scripts/helm.py"
try:
    import jsonschema
    import kubernetes_validate
except ImportError as missing:
    MISSING = str(missing)


class HelmError(Exception):
    """What Helm has against the chart or the values."""


def examples() -> dict[str, Values]:
    """The values of deploy/chart/ci by the name of their file."""
    return {path.name: yaml.safe_load(path.read_text()) for path in sorted(CHART.glob("ci/*-values.yaml"))}


@contextmanager
def without_links() -> Iterator[Path]:
    """The chart with its links followed, as `helm package` does; about each Helm would print a line."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copytree(CHART, Path(folder) / "semblance"))


def helm(*arguments: str, values: Values) -> subprocess.CompletedProcess[str]:
    """Run it with values, and with no files but those of a temporary folder: neither a user's plugins nor clusters."""
    with tempfile.TemporaryDirectory() as home:
        own = {f"HELM_{name}_HOME": home for name in ("CACHE", "CONFIG", "DATA")} | {"KUBECONFIG": os.devnull}
        return subprocess.run(
            [str(HELM), *arguments, "--values", "-"],
            input=json.dumps(values),
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            check=False,
        )


def rendered(values: Values, *, name: str = "demo", namespace: str = "prod", cluster: str = "") -> list[Resource]:
    """The resources of a release with these values.

    Args:
        values: beside the chart's own.
        name: of the release.
        namespace: of the release.
        cluster: address of an API server that `lookup` asks; none without it.

    Raises:
        HelmError: the values, or a template, are at fault.
    """
    asks: tuple[str, ...] = ()
    if cluster:
        asks = ("--is-upgrade", "--disable-openapi-validation", "--dry-run=server", "--kube-apiserver", cluster)
    with without_links() as folder:
        made = helm("template", name, str(folder), "--namespace", namespace, *asks, values=values)
    if made.returncode:
        raise HelmError(made.stderr.strip())
    return [document for document in yaml.safe_load_all(made.stdout) if document]


def lint(values: Values) -> list[str]:
    """What `helm lint --strict` has against the chart with these values."""
    with without_links() as folder:
        report = helm("lint", "--strict", "--quiet", str(folder), values=values)
    return (report.stdout + report.stderr).splitlines() if report.returncode else []


def kubernetes_versions() -> tuple[str, str]:
    """The oldest version that the chart allows, and the newest whose schemas are installed."""
    oldest = yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"]
    return oldest.removeprefix(">=").rpartition(".")[0], kubernetes_validate.latest_version()


def faults(resource: Resource) -> Iterator[str]:
    """What is wrong with a resource: fields that its kind does not have, or has with another type."""
    name = f"{resource['kind']}/{resource['metadata']['name']}"
    custom = json.loads((DEPLOY / "kubernetes.schemas.json").read_text())
    if (schema := custom.get(resource["kind"])) is not None:
        checker = jsonschema.Draft7Validator({**schema, "definitions": custom["definitions"]})
        yield from (f"{name}: {error.json_path}: {error.message}" for error in checker.iter_errors(resource))
        return
    for version in kubernetes_versions():
        try:
            kubernetes_validate.validate(resource, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{name}: Kubernetes {version}: {'.'.join(map(str, error.path))}: {error.message}"
        except kubernetes_validate.SchemaNotFoundError as error:
            yield f"{name}: {error.message}"


def main() -> int:
    """Check everything; print what is wrong."""
    if MISSING:
        sys.stderr.write(f"SKIPPED: the check of deploy/chart. {MISSING}\n")
        return NOT_INSTALLED
    found = []
    for name, values in examples().items():
        found += [f"{name}: {fault}" for fault in lint(values)]
        try:
            found += [f"{name}: {fault}" for resource in rendered(values) for fault in faults(resource)]
        except HelmError as error:
            found.append(f"{name}: {error}")
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
