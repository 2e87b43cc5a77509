"""Our models in the form of other libraries, read back by those libraries unmodified."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from contract.manifest import Limits, Provenance, TrainingData
from tests import toy_wordpiece, toys
from training.architectures import GRAN, GRANConfig, WordAveraging, WordAveragingConfig
from training.architectures.transformer import BERTConfig, SentenceBERT, SentenceBERTConfig
from training.families.siamese import ENCODER
from training.families.transformer import write_encoder
from training.families.words import TOKENIZER, arrays_of, write_words
from training.publishing.export import export_encoder
from training.publishing.folders import assemble, finish
from training.publishing.runtime import PublishedModel
from training.words.storage import stored
from workbench.imports.model import COSINE
from workbench.save_as.save import Form, SaveRefused, save_as

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.filterwarnings("ignore"),  # of the other libraries
]
DATA = (TrainingData(name="none", use="none", rows=0, licence="CC0-1.0", source="made up"),)
PROVENANCE = Provenance(created=date(2026, 1, 2), recipe={}, commands=("none",), seed=0, environment={})
TEXTS = ["the man plays guitar", "a dog running in the park.", "The small CAT sleeps on the sofa", "mow the big sofa"]
LIBRARIES = {"sentence-transformers": "sentence_transformers", "model2vec": "model2vec", "onnx": "onnxruntime"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`avg` averages words stored as int8, `gran` gates them, `bert` is a transformer."""
    drafts, models = tmp_path_factory.mktemp("drafts"), tmp_path_factory.mktemp("models")
    words = stored(torch.from_numpy(toys.table().rows), "int8")
    torch.manual_seed(0)
    encoders = {"avg": WordAveraging(WordAveragingConfig(), words), "gran": GRAN(GRANConfig(), words)}
    for name, encoder in encoders.items():
        folder = drafts / name
        folder.mkdir()
        arrays = arrays_of(words, "embedding")
        export_encoder(encoder.eval(), folder / ENCODER, name, list(arrays))
        fields = {
            "family": "siamese",
            "dim": toys.DIM,
            "encoder": ENCODER,
            "tokenizer": TOKENIZER,
            "limits": Limits(max_tokens=64),
            "similarity": COSINE,
            "additive": name == "avg",
            **write_words(arrays, toys.tokenizer(), folder)._asdict(),
        }
        manifest = assemble(folder, fields, title=name, architecture=name, training_data=DATA, provenance=PROVENANCE)
        finish(folder, manifest, [], [(TEXTS[0], TEXTS[1])], models, models / name)
    bert = BERTConfig(vocabulary=105, hidden=12, layers=1, attention_heads=3, inner=24, positions=70)
    folder = drafts / "bert"
    folder.mkdir()
    (drafts / "given.json").write_text(toy_wordpiece.wordpiece_json())
    fields = write_encoder(SentenceBERT(SentenceBERTConfig(bert)), drafts / "given.json", folder, "bert", max_tokens=64)
    manifest = assemble(folder, fields, title="bert", architecture="x", training_data=DATA, provenance=PROVENANCE)
    finish(folder, manifest, [], [(TEXTS[0], TEXTS[1])], models, models / "bert")
    return models


@pytest.mark.parametrize(
    ("form", "name"),
    [("sentence-transformers", "avg"), ("model2vec", "avg"), ("onnx", "avg"), ("onnx", "gran"), ("onnx", "bert")],
)
def test_the_library_embeds_as_we_do(form: Form, name: str, models: Path, tmp_path: Path) -> None:
    pytest.importorskip(LIBRARIES[form], reason="missing here: pip install '.[distill]'")
    done = save_as(form, models / name, tmp_path / "out")
    assert done.texts > 400
    assert done.read > 100
    assert done.difference < 1e-5
    ours, theirs = PublishedModel(models / name).embed(TEXTS), _by_library(form, tmp_path / "out")
    assert theirs == pytest.approx(ours, abs=1e-5)
    assert np.ptp(ours) > 0.1  # there is something to agree on
    if name != "bert":
        assert done.read < done.texts
    assert done.sentence in (tmp_path / "out" / "README.md").read_text()


def _by_library(form: Form, folder: Path) -> np.ndarray:
    """As another program does, with nothing of ours."""
    if form == "sentence-transformers":
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(str(folder), local_files_only=True, device="cpu").encode(TEXTS)
    if form == "model2vec":
        from model2vec import StaticModel

        return StaticModel.from_pretrained(folder).encode(TEXTS)
    import onnxruntime
    import tokenizers

    read = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    read.enable_padding()
    batch = read.encode_batch(TEXTS)
    feeds = {
        "input_ids": np.array([each.ids for each in batch]),
        "attention_mask": np.array([each.attention_mask for each in batch]),
    }
    (found,) = onnxruntime.InferenceSession(folder / "model.onnx").run(["sentence_embedding"], feeds)
    return np.asarray(found)


def test_what_has_no_such_form_is_refused(models: Path, tmp_path: Path) -> None:
    with pytest.raises(SaveRefused, match="gran: its architecture, gran, is no average of our words; it can be saved"):
        save_as("sentence-transformers", models / "gran", tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    with pytest.raises(FileExistsError, match="full is not empty"):
        save_as("onnx", models / "avg", tmp_path / "full")


def test_the_command_prints_parity(models: Path, tmp_path: Path) -> None:
    from workbench.__main__ import app

    arguments = ["save-as", "onnx", "avg", str(tmp_path / "out"), "--models", str(models)]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.output
    assert "it reads every word as we do, embeddings differ by at most" in ended.output.replace("\n", " ")
