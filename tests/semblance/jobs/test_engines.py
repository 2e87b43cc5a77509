"""The examples of docs/engines.md, each on local workers; skipped, with a line saying so, without its package."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/engines.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE, flags=re.DOTALL)
PACKAGES = ("semblance", "ray", "pyspark", "duckdb")
EXTRAS = {"pyspark": "spark"}  # where they have another name than the package

pytestmark = [pytest.mark.timeout(600), pytest.mark.artifacts]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("example", "package"), list(zip(EXAMPLES, PACKAGES, strict=True)), ids=PACKAGES)
def test_an_example_of_the_page_runs(
    example: tuple[str, str],
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, printed = example
    module = pytest.importorskip(package, reason=f"no {package}: pip install '.[{EXTRAS.get(package, package)}]'")
    if package == "pyspark" and shutil.which("java") is None:
        pytest.skip("no java, which Spark runs on: apt-get install default-jre-headless")
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    left: dict[str, Any] = {}
    try:
        exec(compile(code, "example", "exec"), left)
    finally:
        if package == "ray":
            module.shutdown()
        if "spark" in left:
            left["spark"].stop()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == {"ray": "2", "pyspark": "2", "duckdb": "True"}.get(package, printed.strip())
