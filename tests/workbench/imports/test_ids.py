"""An import reads texts as the folder's own library does, or is refused by the key that would be lost."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workbench import foreign
from tests.workbench.foreign import changed
from training.publish.runtime import PublishedModel
from workbench.imports.described import read_tokenizer
from workbench.imports.files import ImportRefused
from workbench.imports.folder import import_model

transformers = pytest.importorskip("transformers", reason="missing here: pip install '.[distill]'")

pytestmark = [pytest.mark.timeout(1500), pytest.mark.filterwarnings("ignore"), pytest.mark.extras]
NEW = {"content": "[new]"} | dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word", "special"), False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder with a graph in ONNX whose tokenizer is a BERT's, with room for one more id."""
    folder = foreign.encoder(tmp_path_factory.mktemp("made") / "bert")
    changed(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    return foreign.with_graph(folder)


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "changed"))


def served(folder: Path, texts: list[str]) -> list[list[int]]:
    tokenizer = read_tokenizer(folder)[0]
    return [list(tokenizer.encode(text, 30).ids) for text in texts]


def by_library(folder: Path, texts: list[str]) -> list[list[int]]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return [tokenizer(text, add_special_tokens=False, truncation=True, max_length=30)["input_ids"] for text in texts]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"do_lower_case": False}, "The Cat SAT on the sofa"),
        ({"strip_accents": False}, "la chât naïve"),
        ({"tokenize_chinese_chars": False}, "\u732b\u304c\u597d\u304d the cat"),
        ({"added_tokens_decoder": {"0": {**NEW, "content": "[PAD]", "special": True}, "160": NEW}}, "a [new] cat"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_the_configuration_says_beyond_the_tokenizer_is_honoured(
    folder: Path, fields: dict[str, Any], text: str
) -> None:
    before = served(folder, [text])
    changed(folder / "tokenizer_config.json", **fields)
    assert served(folder, [text]) == by_library(folder, [text])
    assert served(folder, [text]) != before


def test_the_side_that_is_cut_is_refused_and_that_of_the_padding_changes_nothing(folder: Path, tmp_path: Path) -> None:
    changed(folder / "tokenizer_config.json", truncation_side="left")
    with pytest.raises(ImportRefused, match=r'tokenizer_config\.json: truncation_side is "left": texts are cut at'):
        import_model(folder, "mine", tmp_path / "models")
    assert not (tmp_path / "models").exists()
    changed(folder / "tokenizer_config.json", truncation_side="right", padding_side="left", model_max_length=20)
    model = PublishedModel(import_model(folder, "mine", tmp_path / "models").folder)
    assert model.manifest.limits.max_tokens == 18
    assert np.isfinite(model.embed(["the cat", "a longer text of the park and the snow"])).all()


@pytest.mark.parametrize("kept", [{}, {"strip_accents": False}])
def test_where_the_configuration_names_no_class_the_kind_of_model_does(folder: Path, kept: dict[str, Any]) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps(kept))
    assert served(folder, ["la ch\u00e2t na\u00efve"]) == by_library(folder, ["la ch\u00e2t na\u00efve"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", '{"a":' * 100_000),
        ("config.json", '{"model_type": "bert", "hidden_size": 1e999}'),
        ("tokenizer_config.json", '{"a":' * 100_000),
    ],
    ids=["deep", "endless", "deep-tokenizer"],
)
def test_odd_configurations_are_refused_in_a_line(folder: Path, tmp_path: Path, name: str, content: str) -> None:
    shutil.rmtree(folder / "onnx")
    (folder / name).write_text(content)
    with pytest.raises(ImportRefused):
        import_model(folder, "mine", tmp_path / "models")


def test_a_module_that_is_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "1_Pooling").rename(tmp_path / "elsewhere")
    (folder / "1_Pooling").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ImportRefused, match=r"modules\.json: module 1: path '1_Pooling' is a link"):
        import_model(folder, "mine", tmp_path / "models")


def test_an_id_of_the_models_that_are_served_beside_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "models" / "mine" / "manifest.json").write_text("{}")
    with pytest.raises(ImportRefused, match=r"--id mine: .*models/mine is a model of this id"):
        import_model(folder, "mine", tmp_path / "own-models")
    assert not (tmp_path / "own-models").exists()
