"""docs/own-model.md: its script makes a folder that the service serves."""

import re
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from contract.manifest import Manifest
from service.app import create_app
from service.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.mark.artifacts
def test_the_script_makes_a_model_that_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/own-model.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    mine = tmp_path / "models" / "my-model"
    mine.mkdir(parents=True)
    start = ROOT / "models" / "avg-paraphrase"
    for name in ("encoder.onnx", "tokenizer.json"):
        shutil.copy(Manifest.load(start).path_of(start, name), mine / name)
    monkeypatch.chdir(tmp_path)
    exec(compile(script, "own-model.md", "exec"), {})
    for name in ("avg-sick", "shared"):
        shutil.copytree(ROOT / "models" / name, tmp_path / "models" / name)
    settings = Settings(models_dir=tmp_path / "models", default_similarity="my-model", default_rank="my-model")
    pairs = [{"a": "A dog runs.", "b": "An animal runs."}]
    with TestClient(create_app(settings)) as client:
        answer = client.post("/similarity", json={"pairs": pairs}).json()
    with TestClient(create_app(Settings(models_dir=ROOT / "models", models=("avg-paraphrase", "avg-sick")))) as client:
        published = client.post("/similarity", json={"pairs": pairs}).json()
    assert answer["model"] == "my-model"
    assert answer["results"][0]["raw_score"] == pytest.approx(published["results"][0]["raw_score"], abs=1e-6)
