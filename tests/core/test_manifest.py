"""The manifest: what it accepts, what it refuses, what it checks on disk, and what its fingerprint notices."""

import json
import os
import resource
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from core.errors import ArtifactError, ManifestError
from core.manifest import MANIFEST_NAME, SHARED_NAME, Manifest, describe_file
from core.scoring import CentredIsotonic

CONTENTS = {"encoder.onnx": b"graph", "head.onnx": b"head", "tokenizer.json": b"{}", "golden.json": b"[]"}
HEAD_TASK = {
    "graph": "head.onnx",
    "classes": [1, 2, 3, 4, 5],
    "raw_range": [1, 5],
    "label_scale": [1, 5],
    "symmetric": True,
}
EXPLANATION: dict[str, Any] = {
    "graph": "head.onnx",
    "matrices": [{"name": "cosine", "description": "of the states", "range": [-1, 1]}],
}
CLASSIFICATION: dict[str, Any] = {"graph": "head.onnx", "labels": ["negative", "positive"]}
OF_PAIRS: dict[str, Any] = {"graph": "head.onnx", "symmetric": True}
INTERACTION = {"family": "interaction", "dim": None, "encoder": None}


def fields(folder: Path) -> dict[str, Any]:
    """A complete manifest of the folder, its fingerprint aside, as JSON values."""
    return {
        "id": "avg-sick",
        "title": "Word averaging",
        "architecture": "word_averaging",
        "family": "siamese",
        "dim": 4,
        "encoder": "encoder.onnx",
        "tokenizer": "tokenizer.json",
        "golden": "golden.json",
        "files": {name: describe_file(folder / name).model_dump() for name in CONTENTS},
        "fingerprint": "0" * 64,
        "limits": {"max_tokens": 128},
        "similarity": HEAD_TASK,
        "training_data": [{"name": "SICK", "use": "training", "rows": 9, "licence": "CC", "source": "x"}],
        "figures": [
            {"task": "similarity", "corpus": "SICK", "split": "test", "metric": "pearson", "value": 0.5, "rows": 9}
        ],
        "provenance": {
            "created": "2025-01-02",
            "recipe": {"name": "avg-sick", "nested": {"lr": 0.1, "none": None}},
            "commands": ["python -m training train avg-sick"],
            "seed": 1,
            "environment": {"torch": "2"},
        },
    }


def sealed(values: dict[str, Any]) -> Manifest:
    """The manifest of these values with the fingerprint that is theirs."""
    draft = Manifest.model_validate_json(json.dumps(values))
    return draft.model_copy(update={"fingerprint": draft.expected_fingerprint()})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder with a good manifest."""
    folder = tmp_path / "avg-sick"
    folder.mkdir()
    for name, content in CONTENTS.items():
        (folder / name).write_bytes(content)
    sealed(fields(folder)).save(folder)
    return folder


def edited(folder: Path, *path: str | int, value: Any) -> None:
    """Change one value of the manifest on disk."""
    file = folder / MANIFEST_NAME
    content = json.loads(file.read_text())
    place = content
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    file.write_text(json.dumps(content))


def test_written_and_read_again_it_is_the_same(folder: Path) -> None:
    manifest = Manifest.load(folder)
    assert manifest == sealed(fields(folder))
    before = (folder / MANIFEST_NAME).read_bytes()
    manifest.save(folder)
    assert (folder / MANIFEST_NAME).read_bytes() == before
    assert manifest.provenance.created == date(2025, 1, 2)
    assert manifest.provenance.recipe["nested"] == {"lr": 0.1, "none": None}
    assert manifest.similarity is not None
    assert manifest.similarity.classes == (1.0, 2.0, 3.0, 4.0, 5.0)
    manifest.verify(folder)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("surprise",), 1, "surprise: Extra inputs are not permitted"),
        (("contract_version",), 2, "2 is of an earlier version: import or tune the model anew"),
        (("id",), "../evil", "id: String should match pattern"),
        (("encoder",), "../encoder.onnx", "encoder: String should match pattern"),
        (("golden",), "golden.json\n", "golden: String should match pattern"),
        (("similarity", "graph"), "..\\head.onnx", "similarity.graph: String should match pattern"),
        (("files", "../x"), {"bytes": 1, "sha256": "0" * 64}, "String should match pattern"),
        (("files", "golden.json", "sha256"), "abc", r"files.golden\.json.sha256: String should match pattern"),
        (("files",), {}, "files: Dictionary should have at least 1 item"),
        (("tokenizer",), "words.json", "the file: Value error, 'words.json' is used but not listed in files"),
        (("similarity", "graph"), "other.onnx", "'other.onnx' is used but not listed in files"),
        (("similarity",), None, "a model has at least one task"),
        (("dim",), None, "encoder and dim belong to the siamese family, and only to it"),
        (("encoder",), None, "encoder and dim belong to the siamese family, and only to it"),
        (("family",), "interaction", "encoder and dim belong to the siamese family, and only to it"),
        (("similarity", "comparison"), "cosine", "similarity: Value error, give either comparison or graph"),
        (("similarity", "graph"), None, "similarity: Value error, give either comparison or graph"),
        (("similarity", "raw_range"), [5, 1], r"similarity: Value error, raw_range must rise, got \(5.0, 1.0\)"),
        (("entailment",), {"graph": "head.onnx", "labels": ["neutral"] * 3}, "entailment: Value error, each label onc"),
        (
            ("classification",),
            {**CLASSIFICATION, "labels": ["yes", "yes"]},
            "classification: Value error, each label onc",
        ),
        (("classification",), {**CLASSIFICATION, "graph": "no.onnx"}, "'no.onnx' is used but not listed in files"),
        (("figures", 0, "value"), "NaN", "figures.0.value: Input should be a finite number"),
        (("explanation",), EXPLANATION, "explanation belongs to the interaction family"),
        (("tensors",), {"words": "words.npy"}, "'words.npy' is used but not listed in files"),
        (("tensors",), {"words": "../words.npy"}, "tensors.words: String should match pattern"),
        (("tensors",), {"": "head.onnx"}, "tensors..*: String should have at least 1 character"),
        (("network_config",), "config.json", "'config.json' is used but not listed in files"),
        (("dimensions",), [64, 32], "dimensions rise, and are less than dim"),
        (("dimensions",), [2, 2], "dimensions rise, and are less than dim"),
        (("relevance",), OF_PAIRS, "paraphrase and relevance belong to interaction models with a similarity"),
        (("limits", "max_pair_tokens"), 20, "max_pair_tokens belongs to the interaction family"),
        (("fingerprint",), "0" * 64, "fingerprint is 0000.*, its contents give [0-9a-f]{64}$"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    folder: Path, path: tuple[str | int, ...], value: Any, message: str
) -> None:
    edited(folder, *path, value=value)
    with pytest.raises(ManifestError, match=f"^{folder / MANIFEST_NAME}: .*{message}") as caught:
        Manifest.load(folder)
    assert "\n" not in str(caught.value)


def test_classes_without_a_graph_and_comparisons_without_embeddings_are_refused(folder: Path) -> None:
    cosine = {"comparison": "cosine", "raw_range": [-1, 1], "symmetric": True}
    with pytest.raises(ValueError, match="classes belong to a graph's output"):
        sealed({**fields(folder), "similarity": {**cosine, "classes": [1, 2]}})
    interaction = {**fields(folder), **INTERACTION}
    assert sealed(interaction).graphs == ("head.onnx",)
    with pytest.raises(ValueError, match="an interaction model has no embeddings to compare"):
        sealed({**interaction, "similarity": cosine})
    with pytest.raises(ValueError, match="classification belongs to the siamese family"):
        sealed({**interaction, "classification": CLASSIFICATION})
    with pytest.raises(ValueError, match="paraphrase and relevance belong to interaction models with a similarity"):
        sealed({**interaction, "similarity": None, "relevance": OF_PAIRS})
    for new in ({"prompts": {}}, {"dimensions": [2]}):
        with pytest.raises(ValueError, match="prompts and dimensions belong to the siamese family"):
            sealed({**interaction, **new})


def test_additive_is_said_of_embeddings_and_explanations_of_pairs(folder: Path) -> None:
    values = fields(folder)
    assert not sealed(values).additive
    assert sealed({**values, "additive": True}).additive
    with pytest.raises(ValueError, match="additive and token_embeddings belong to the siamese family"):
        sealed({**values, **INTERACTION, "additive": True})
    of_tokens = changed(values, "files", "tokens.onnx", value=OTHER_FILE) | {"token_embeddings": "tokens.onnx"}
    assert sealed(of_tokens).graphs[:2] == (sealed(values).encoder, "tokens.onnx")
    with pytest.raises(ValueError, match="give either additive or token_embeddings"):
        sealed({**of_tokens, "additive": True})
    listed = changed(values, "files", "explanation.onnx", value=OTHER_FILE)
    explained = {**listed, **INTERACTION, "explanation": {**EXPLANATION, "graph": "explanation.onnx"}}
    assert sealed(explained).graphs == ("head.onnx", "explanation.onnx")
    with pytest.raises(ValueError, match=r"'explanation\.onnx' is used but not listed in files"):
        sealed({**explained, "files": values["files"]})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe\x00", b"null", b"[" * 100_000])
def test_a_manifest_that_is_no_object_is_one_clear_line(folder: Path, content: bytes) -> None:
    (folder / MANIFEST_NAME).write_bytes(content)
    with pytest.raises(ManifestError, match=f"^{folder / MANIFEST_NAME}: the file: ") as caught:
        Manifest.load(folder)
    assert "\n" not in str(caught.value)


def test_missing_files_links_and_folders_are_refused(folder: Path) -> None:
    manifest = Manifest.load(folder)
    target = folder / "head.onnx"
    message = f"^{target}: %s, expected a file with sha256 {manifest.files['head.onnx'].sha256}$"
    elsewhere = folder.parent / "elsewhere"
    target.rename(elsewhere)
    with pytest.raises(ArtifactError, match=message % "missing"):
        manifest.verify(folder)
    target.symlink_to(elsewhere)  # the right content, but not of this folder
    with pytest.raises(ArtifactError, match=message % "a link"):
        manifest.verify(folder)
    target.unlink()
    target.mkdir()
    with pytest.raises(ArtifactError, match=message % "a folder"):
        manifest.verify(folder)
    target.rmdir()
    os.mkfifo(target)
    with pytest.raises(ArtifactError, match=message % "no plain file"):
        manifest.verify(folder)


def test_a_shared_file_lies_beside_the_models_under_its_checksum(folder: Path) -> None:
    entry = describe_file(folder / "tokenizer.json").model_copy(update={"shared": True})
    manifest = Manifest.load(folder)
    manifest = manifest.model_copy(update={"files": {**manifest.files, "tokenizer.json": entry}})
    shared = folder.parent / SHARED_NAME / f"{entry.sha256}.json"
    assert manifest.path_of(folder, "tokenizer.json") == shared
    assert manifest.path_of(folder, "head.onnx") == folder / "head.onnx"
    with pytest.raises(ArtifactError, match=f"^{shared}: missing, expected a file with sha256 {entry.sha256}$"):
        manifest.verify(folder)
    shared.parent.mkdir()
    (folder / "tokenizer.json").rename(shared)
    manifest.verify(folder)
    shared.write_bytes(b"[]")
    with pytest.raises(ArtifactError, match=f"^{shared}: corrupted or replaced: 2 bytes"):
        manifest.verify(folder)


def changed(values: dict[str, Any], *path: str, value: Any) -> dict[str, Any]:
    """The values with one of them replaced."""
    if len(path) == 1:
        return {**values, path[0]: value}
    return {**values, path[0]: changed(values[path[0]], *path[1:], value=value)}


CALIBRATION = CentredIsotonic(x=(1, 5), y=(1, 5)).model_dump(mode="json")
OTHER_FILE = {"bytes": 1, "sha256": "1" * 64}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("architecture",), "siamese_lstm"),
        (("files", "encoder.onnx"), OTHER_FILE),
        (("files", "head.onnx"), OTHER_FILE),
        (("files", "tokenizer.json"), OTHER_FILE),
        (("encoder",), "head.onnx"),
        (("limits", "max_tokens"), 127),
        (("similarity", "raw_range"), [0, 5]),
        (("similarity", "label_scale"), [0, 5]),
        (("similarity", "label_scale"), None),
        (("similarity", "classes"), [1, 2, 3, 4, 6]),
        (("similarity", "classes"), None),
        (("similarity", "symmetric"), False),
        (("similarity", "calibration"), CALIBRATION),
        (("similarity", "calibration"), {**CALIBRATION, "y": [1, 4.999]}),
        (("entailment",), {"graph": "head.onnx", "labels": ["neutral", "entailment", "contradiction"]}),
        (("classification",), CLASSIFICATION),
        (("tensors",), {"words": "golden.json"}),
    ],
)
def test_the_fingerprint_moves_with_what_can_move_a_score(folder: Path, path: tuple[str, ...], value: Any) -> None:
    values = fields(folder)
    assert sealed(changed(values, *path, value=value)).fingerprint != sealed(values).fingerprint


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("title",), "Another title"),
        (("id",), "another-id"),
        (("figures",), []),
        (("files", "golden.json"), OTHER_FILE),
        (("files", "README.md"), OTHER_FILE),
        (("training_data",), [{"name": "x", "use": "x", "rows": 0, "licence": "x", "source": "x"}]),
        (("provenance", "seed"), 2),
        (("additive",), True),
        (("files", "head.onnx", "shared"), True),
    ],
)
def test_the_fingerprint_stays_with_what_cannot(folder: Path, path: tuple[str, ...], value: Any) -> None:
    values = fields(folder)
    assert sealed(changed(values, *path, value=value)).fingerprint == sealed(values).fingerprint


def test_the_fingerprint_tells_tensors_apart_by_name_and_content(folder: Path) -> None:
    files = {**fields(folder)["files"], "w.npy": OTHER_FILE, "v.npy": {"bytes": 1, "sha256": "2" * 64}}
    values = {**fields(folder), "files": files}
    variants = [{"words": "w.npy"}, {"words": "v.npy"}, {"rows": "w.npy"}, {"words": "w.npy", "rows": "w.npy"}, {}]
    assert len({sealed({**values, "tensors": tensors}).fingerprint for tensors in variants}) == 5
    renamed = {**values, "files": {**files, "u.npy": OTHER_FILE}, "tensors": {"words": "u.npy"}}
    assert sealed(renamed).fingerprint == sealed({**values, "tensors": variants[0]}).fingerprint


def test_prompts_dimensions_and_pooling_are_of_embeddings(folder: Path) -> None:
    before = fields(folder)
    one = sealed(before)
    assert (one.prompts, one.dimensions, one.pooling) == (None, (), None)
    two = sealed({**before, "prompts": {"query": "query: "}, "dimensions": [2]})
    assert two.prompts is not None
    assert [two.prompts.of(role) for role in ("text", "query", "passage")] == ["", "query: ", ""]
    pooled = [sealed({**before, "pooling": {"mode": mode}}).fingerprint for mode in ("mean", "cls")]
    assert len({one.fingerprint, two.fingerprint, *pooled}) == 4
    interaction = {**before, **INTERACTION, "limits": {"max_tokens": 9, "max_pair_tokens": 9}}
    assert sealed(interaction).limits.max_pair_tokens == 9


def test_a_blend_and_its_encoder_come_together(folder: Path) -> None:
    whole = {
        **fields(folder),
        **INTERACTION,
        "bi_encoder": {"graph": "encoder.onnx", "dim": 8},
    }
    whole["similarity"] = {**whole["similarity"], "blend": [0.5, 2.0]}
    manifest = sealed(whole)
    assert manifest.graph_kinds["encoder.onnx"] == "encoder"
    for path, value in ((("bi_encoder",), None), (("similarity", "blend"), None)):
        with pytest.raises(ValueError, match="a task with a blend needs bi_encoder, and bi_encoder such a task"):
            sealed(changed(whole, *path, value=value))
    with pytest.raises(ValueError, match="pooling belongs to the siamese family, or to bi_encoder"):
        sealed({**whole, "pooling": {"mode": "mean"}})
    siamese = {key: fields(folder)[key] for key in ("family", "encoder", "dim")}
    with pytest.raises(ValueError, match="bi_encoder belongs to the interaction family"):
        sealed({**whole, **siamese})
    for path, value in (
        (("similarity", "blend"), [0.5, 2.5]),
        (("bi_encoder", "dim"), 9),
        (("bi_encoder", "graph"), "golden.json"),
    ):
        assert sealed(changed(whole, *path, value=value)).fingerprint != manifest.fingerprint


def test_languages_are_codes_each_once_and_none_where_a_manifest_of_before_has_no_such_field(folder: Path) -> None:
    plain = sealed(fields(folder))
    assert plain.languages is None
    two = sealed(fields(folder) | {"languages": ["en", "de"]})
    assert two.languages == ("en", "de")
    assert two.fingerprint == plain.fingerprint  # no score depends on it
    for wrong in ([], ["en", "en"], ["English"], ["EN"], "en"):
        with pytest.raises(ValueError, match="languages"):
            sealed(fields(folder) | {"languages": wrong})


def test_a_full_disk_leaves_the_earlier_manifest(folder: Path) -> None:
    """A limit on the size of files stands for a full disk."""
    manifest = Manifest.load(folder)
    before = sorted((path.name, path.read_bytes()) for path in folder.iterdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            manifest.model_copy(update={"title": "Another"}).save(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert raised.value.filename == str(folder / MANIFEST_NAME)
    assert sorted((path.name, path.read_bytes()) for path in folder.iterdir()) == before
