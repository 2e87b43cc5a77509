"""An import reads texts as the folder's own library does, or is refused by the key that would be lost."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.subwords import Subwords
from tests.workbench import foreign
from tests.workbench.foreign import changed
from training.publishing.runtime import PublishedModel
from workbench.imports import ids
from workbench.imports.described import read_tokens
from workbench.imports.files import ImportRefused
from workbench.imports.folder import import_model

transformers = pytest.importorskip("transformers", reason="missing here: pip install '.[distill]'")

pytestmark = [pytest.mark.timeout(1500), pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
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
    tokens = read_tokens(folder)
    tokenizer = Subwords(tokens.tokenizer.to_str())
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


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"do_lower_case": False}, "do_lower_case is false: tokenizer.json has lowercase true"),
        ({"strip_accents": False}, "strip_accents is false: tokenizer.json has strip_accents null"),
        (
            {"added_tokens_decoder": {"160": NEW}},
            r'added_tokens_decoder is "\[new\]": its id is 160, in tokenizer.json None',
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_without_the_library_the_key_that_would_be_lost_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], message: str
) -> None:
    changed(folder / "tokenizer_config.json", **fields)
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)  # as if it were not installed
    with pytest.raises(ImportRefused, match=message):
        read_tokens(folder)


def test_other_ids_are_refused_with_the_text_and_both_lists(folder: Path) -> None:
    tokens = read_tokens(folder)
    other = json.loads(tokens.tokenizer.to_str())
    other["normalizer"]["lowercase"] = False
    with pytest.raises(ImportRefused, match=r"'How do I reset .* has the ids \[2, .*\] in transformers, here \[2, "):
        ids.check_ids(folder, tokens.template(1), Subwords(json.dumps(other)), 30)


@pytest.mark.parametrize("sides", [1, 2])
def test_a_template_of_other_special_tokens_is_refused(folder: Path, sides: int) -> None:
    tokens = read_tokens(folder)
    tokenizer = Subwords(tokens.tokenizer.to_str())
    assert ids.check_ids(folder, tokens.template(sides), tokenizer, 30) >= 10
    changed(folder / "tokenizer_config.json", sep_token="[MASK]")
    with pytest.raises(ImportRefused, match="in transformers, here"):
        ids.check_ids(folder, tokens.template(sides), tokenizer, 30)
