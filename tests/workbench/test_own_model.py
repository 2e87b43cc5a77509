"""docs/samples/own_manifest.py, which docs/own-model.md names, makes a folder that the service serves."""

import runpy
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from core.manifest import Manifest
from service.app import create_app
from service.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.mark.artifacts
def test_the_script_makes_a_model_that_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = ROOT / "docs/samples/own_manifest.py"
    assert f"({script.relative_to(ROOT / 'docs')})" in (ROOT / "docs/own-model.md").read_text(encoding="utf-8")
    mine = tmp_path / "models" / "my-model"
    mine.mkdir(parents=True)
    start = ROOT / "models" / "avg-paraphrase"
    for name in ("encoder.onnx", "tokenizer.json"):
        shutil.copy(Manifest.load(start).path_of(start, name), mine / name)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script))
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
