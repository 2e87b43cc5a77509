"""The large model, with tiny weights: built without data, and with what was fitted of it."""

import json
from pathlib import Path

import pytest

from core.manifest import Manifest
from core.ranking import ConfidenceFit
from tests.workbench import foreign
from training.recipes.sources.tables import PretrainedEncoder
from training.teacher.weights import weights_folder
from workbench import large
from workbench.confidence import Drawn

pytestmark = pytest.mark.filterwarnings("ignore")  # of the other libraries
TEXTS = ("a big dog in the park", "the flute", "the man plays a guitar", "the museum")
FAQ = Drawn(TEXTS, ("Where is the dog?", "Who plays?", "Is the museum open?"), (0, 2, 3), (False, True, False))


def test_it_is_built_of_fetched_weights_with_its_confidence_and_its_licence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = weights_folder(tmp_path / "runs", "toy")
    folder.parent.mkdir(parents=True)
    foreign.encoder(folder, "mpnet")
    lines: list[str] = []
    toy = PretrainedEncoder("toy", packages=("toy",))
    built = large.build_large(tmp_path / "runs", tmp_path / "models", lines.append, encoder=toy)
    assert any("sentence-transformers" in line and "texts: answers differ by at most" in line for line in lines)
    manifest, kept = Manifest.load(built), json.loads(large.CONFIDENCE.read_text())
    (fit,) = manifest.confidence
    assert (fit.model, fit.intercept, fit.fingerprint) == ("mpnet", kept["intercept"], manifest.fingerprint)
    assert "Apache-2.0; its own training saw" in (built / "README.md").read_text()

    with foreign.served(tmp_path / "models") as client:
        (listed,) = client.get("/models").json()["models"]
        assert listed["main"]
        asked = {"query": "Where is the dog?", "candidates": TEXTS}
        assert 0 < client.post("/rank", json=asked).json()["confidence"] < 1

    monkeypatch.setattr(large, "draw", lambda seed: {"one": [FAQ, FAQ], "other": [FAQ]})
    again = tmp_path / "again.json"
    large.fit_large(tmp_path / "models", 1, lines.append, confidence=again)
    fitted = ConfidenceFit.model_validate_json(again.read_text())
    assert (fitted.rows, fitted.fingerprint) == (9, manifest.fingerprint)
    assert fitted.fitted_by == "python -m workbench fit-large --seed 1"
