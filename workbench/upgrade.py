"""Model folders of an earlier contract -> the present one: manifests are rewritten, graphs stay, answers are proved."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.errors import ManifestError, one_line
from core.golden import TOLERANCE, GoldenPairs
from core.graph import CONTRACT_VERSION
from core.manifest import MANIFEST_NAME, Manifest
from training.publish.card import write_card
from training.publish.folders import CARD, golden_pairs
from training.publish.graphs import ParityError
from training.publish.runtime import PublishedModel


def upgrade(models: Path) -> list[str]:
    """Rewrite the manifests of a models folder that are of an earlier contract; returns the ids.

    Fits of confidence name the fingerprints of their models, so those follow in every manifest.

    Raises:
        ManifestError: a manifest cannot be read as one of this contract.
        ArtifactError: a file is missing or another.
        ParityError: a model's answers are not its golden ones; no manifest is rewritten then.
    """
    folders = sorted(path.parent for path in [*models.glob(f"*/{MANIFEST_NAME}"), *models.glob(f"*/*/{MANIFEST_NAME}")])
    contents = {folder: json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8")) for folder in folders}
    older = [folder for folder, content in contents.items() if content.get("contract_version") != CONTRACT_VERSION]
    renamed = {str(contents[f]["fingerprint"]): _of_now(f, contents[f]).expected_fingerprint() for f in older}
    found = {folder: _of_now(folder, content, renamed) for folder, content in contents.items()}
    for folder in older:
        _prove(folder, found[folder])
    for folder, manifest in found.items():
        if contents[folder] != json.loads(manifest.model_dump_json()):
            manifest.save(folder)
            write_card(manifest, folder / CARD)
    return [folder.name for folder in older]


def _of_now(folder: Path, content: dict[str, Any], renamed: dict[str, str] | None = None) -> Manifest:
    """The manifest of this contract, its fingerprints replaced."""
    names = renamed or {}
    fits = [
        fit | {name: names.get(fit[name], fit[name]) for name in ("fingerprint", "rerank_fingerprint") if fit.get(name)}
        for fit in content.get("confidence", ())
    ]
    own = str(content["fingerprint"])
    new = {"contract_version": CONTRACT_VERSION, "confidence": fits, "fingerprint": names.get(own, own)}
    try:
        return Manifest.model_validate_json(json.dumps(content | new))
    except ValidationError as error:
        raise ManifestError(f"{folder / MANIFEST_NAME}: {one_line(error)}") from error


def _prove(folder: Path, manifest: Manifest) -> None:
    manifest.verify(folder)
    golden = GoldenPairs.load(manifest.path_of(folder, manifest.golden)).pairs
    texts: Sequence[tuple[str, str]] = [(pair.a, pair.b) for pair in golden]
    for pair, now in zip(golden, golden_pairs(PublishedModel(folder, manifest), texts).pairs, strict=True):
        said, answers = pair.answers(), now.answers()
        off = max(abs(answers[name] - value) for name, value in said.items())
        if not off <= TOLERANCE:
            raise ParityError(f"{folder}: its answers differ from the golden ones by {off:.1e}")
