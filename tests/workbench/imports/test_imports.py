"""Models of other libraries: imported, equal to their own library, served; refused by name where they cannot be."""

import base64
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core.manifest import Manifest
from core.scoring import Logistic
from tests.harness.hub import Hub
from tests.harness.tables import write
from tests.workbench import foreign
from tests.workbench.foreign import changed
from training.publish.graphs import ParityError
from training.publish.runtime import PublishedModel
from workbench.imports.calibration import read_labelled
from workbench.imports.described import POOLINGS
from workbench.imports.files import ImportRefused
from workbench.imports.folder import import_model
from workbench.imports.model import LABELS, ImportOptions, Storage
from workbench.imports.transformer import Transformer

pytest.importorskip("sentence_transformers", reason="missing here: pip install '.[distill]'")

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.filterwarnings("ignore"),  # of the other libraries
    pytest.mark.extras,
]
ROOT = Path(__file__).parents[3]
A = ("the cat sat on the sofa", "A man plays the guitar.", "Dog", "\U0001f600 zz the park, 123 n\u00e4ive")
B = ("a cat sleeps", "the woman plays the flute", "the big dog runs in the park", "the cat")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights and a graph of the same encoder."""
    return foreign.with_graph(foreign.encoder(tmp_path_factory.mktemp("good") / "bert"))


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of three outputs."""
    folder = tmp_path_factory.mktemp("nli") / "bert"
    return foreign.of_graph(foreign.transformer(folder, "bert", ["neutral", "contradiction", "entailment"]))


@pytest.fixture(scope="module")
def ranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of one output."""
    return foreign.of_graph(foreign.transformer(tmp_path_factory.mktemp("ranker") / "bert", "bert", ["score"]))


@pytest.fixture
def copy(bert: Path, tmp_path: Path) -> Path:
    """A copy of the encoder, to change."""
    return Path(shutil.copytree(bert, tmp_path / "changed"))


STATIC: dict[str, Callable[[Path], Path]] = {
    "static": foreign.static,
    "static-unit": lambda folder: foreign.static(folder, normalise=True),
    "m2v": foreign.model2vec,
}


@pytest.mark.parametrize("name", STATIC)
def test_a_static_model_embeds_as_its_library(name: str, tmp_path: Path) -> None:
    folder = STATIC[name](tmp_path / name)
    done = import_model(folder, "taken", tmp_path / "models")
    assert done.parity is not None
    assert done.parity.max_difference_float32 < 1e-4
    model = PublishedModel(tmp_path / "models" / "taken")
    if name == "m2v":
        from model2vec import StaticModel

        expected = StaticModel.from_pretrained(folder).encode([*A, *B])
    else:
        expected = foreign.embedded(folder, A + B)
    assert model.embed([*A, *B]) == pytest.approx(expected, abs=1e-4)
    unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    cosines = (unit[:4] * unit[4:]).sum(axis=1)
    assert model.similarity(A, B).raw_score == pytest.approx(cosines, abs=1e-4)
    manifest = model.manifest
    assert manifest.similarity is not None
    assert manifest.similarity.label_scale is None
    scores = model.similarity(["the cat", "the cat"], ["the cat", "guitar"]).score
    assert scores[0] == pytest.approx(1.0)  # by the rated pairs that come with this package
    assert 0.0 <= scores[1] < 1.0
    assert "rated pairs that come with semblance, 64 pairs" in (tmp_path / "models" / "taken" / "README.md").read_text()


@pytest.mark.parametrize("pooling", POOLINGS)
def test_every_pooling_is_the_librarys(pooling: str, copy: Path, tmp_path: Path) -> None:
    changed(copy / "1_Pooling" / "config.json", pooling_mode=pooling)
    done = import_model(copy, "taken", tmp_path / "models")
    assert done.parity is not None
    assert done.parity.library.startswith("sentence-transformers")
    assert PublishedModel(done.folder).embed([*A, *B]) == pytest.approx(foreign.embedded(copy, A + B), abs=1e-4)


def test_a_dense_layer_after_the_pooling(tmp_path: Path, bert: Path) -> None:
    folder = foreign.encoder(tmp_path / "dense", dense=10, normalise=False)
    model = PublishedModel(import_model(folder, "taken", tmp_path / "models").folder)
    assert model.manifest.dim == 10
    assert model.embed([*A, *B]) == pytest.approx(foreign.embedded(folder, A + B), abs=1e-4)
    shutil.copytree(bert / "onnx", folder / "onnx")  # of the same weights, without the layer
    with pytest.raises(ImportRefused, match="a Dense layer follows: import it by its weights"):
        import_model(folder, "other", tmp_path / "models", options=ImportOptions(graph="onnx/model.onnx"))


@pytest.mark.parametrize(
    ("storage", "share", "cosine", "off"), [("int8", 1.05, 0.95, 0.15), ("float16", 1.2, 0.999, 0.01)]
)
def test_fewer_bytes_a_weight_are_close(
    storage: Storage, share: float, cosine: float, off: float, bert: Path, tmp_path: Path
) -> None:
    done = import_model(bert, "taken", tmp_path / "models", storage=storage)
    whole = import_model(bert, "whole", tmp_path / "models")
    assert done.parity is not None
    assert done.parity.max_difference_float32 < 1e-4
    assert done.parity.max_difference_stored > done.parity.max_difference_float32
    assert done.parity.cosine is not None
    assert done.parity.cosine > cosine
    assert (done.folder / "encoder.onnx").stat().st_size < (whole.folder / "encoder.onnx").stat().st_size / share
    assert PublishedModel(done.folder).embed(A) == pytest.approx(foreign.embedded(bert, A), abs=off)
    assert "sentence-transformers" in str(Manifest.load(done.folder).provenance.recipe["parity"])


def test_the_command_takes_a_graph_without_weights_from_the_hub_that_the_environment_names(
    copy: Path, hub: Hub, tmp_path: Path
) -> None:
    (copy / "model.safetensors").unlink()
    repository = hub.add("people/bert", copy)
    repository.token = "secret"
    command = ["import", "people/bert", "--id", "mine", "--models", str(tmp_path / "models"), "--query-prompt", "the "]
    names = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "secret", "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    ran = subprocess.run(
        [sys.executable, "-c", "from semblance.__main__ import main; main()", *command],
        cwd=ROOT,
        env=inherited | names,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "onnxruntime" in ran.stdout
    assert any((tmp_path / "home" / "hub").iterdir())
    manifest = Manifest.load(tmp_path / "models" / "mine")
    name = f"people/bert@{repository.revisions['main']}"
    assert manifest.provenance.commands == (f"semblance import {name} --id mine --query-prompt 'the '",)
    assert manifest.prompts is not None
    assert (manifest.prompts.query, manifest.prompts.text) == ("the ", "")


def test_a_vocabulary_without_a_tokenizer_file_is_read_as_the_library_reads_it(copy: Path, tmp_path: Path) -> None:
    vocabulary = json.loads((copy / "tokenizer.json").read_text())["model"]["vocab"]
    (copy / "vocab.txt").write_text("".join(f"{word}\n" for word in sorted(vocabulary, key=vocabulary.__getitem__)))
    (copy / "tokenizer.json").unlink()
    (copy / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "model_max_length": 40}')
    done = import_model(copy, "taken", tmp_path / "models")
    assert PublishedModel(done.folder).embed([*A, *B]) == pytest.approx(foreign.embedded(copy, A + B), abs=1e-4)


def test_one_output_is_a_relevance_or_if_asked_a_similarity(ranker: Path, tmp_path: Path) -> None:
    model = PublishedModel(import_model(ranker, "ranks", tmp_path / "models").folder)
    assert model.manifest.tasks == ("similarity", "relevance")
    assert model.manifest.ranking_task == "relevance"
    probability = model.similarity(A, B, "relevance").score

    numbers = Path(shutil.copytree(ranker, tmp_path / "numbers"))
    for kind in ("regression", "multi_label_classification"):  # of one text perhaps
        changed(numbers / "config.json", problem_type=kind)
        with pytest.raises(ImportRefused, match=rf"config\.json: problem_type is '{kind}'; .* give --head"):
            import_model(numbers, "x", tmp_path / "models")
    similar = import_model(numbers, "similar", tmp_path / "models", options=ImportOptions(head="similarity"))
    model = PublishedModel(similar.folder)
    assert model.manifest.tasks == ("similarity",)
    assert model.similarity(A, B).score == pytest.approx(probability, abs=1e-6)


def test_labels_of_entailment_that_the_folder_does_not_name(nli: Path, tmp_path: Path) -> None:
    unnamed = Path(shutil.copytree(nli, tmp_path / "unnamed"))
    changed(unnamed / "config.json", id2label={str(i): f"LABEL_{i}" for i in range(3)})
    changed(unnamed / "config.json", problem_type="multi_label_classification")
    with pytest.raises(ImportRefused, match="problem_type is 'multi_label_classification'; served are labels of which"):
        import_model(unnamed, "x", tmp_path / "models")
    changed(unnamed / "config.json", problem_type="single_label_classification")
    with pytest.raises(ImportRefused, match=r"config\.json: id2label is 'LABEL_0', 'LABEL_1', 'LABEL_2'; expected"):
        import_model(unnamed, "x", tmp_path / "models")

    named = ImportOptions(labels=["neutral", "contradiction", "entailment"])
    mine = PublishedModel(import_model(unnamed, "mine", tmp_path / "models", options=named).folder)
    theirs = PublishedModel(import_model(nli, "theirs", tmp_path / "models").folder)
    for found, expected in zip(mine.entailment(A, B), theirs.entailment(A, B), strict=True):
        assert found == pytest.approx(expected, abs=1e-6)


def pairs_file(path: Path, column: str, values: list[str]) -> Path:
    texts = ["the cat", "a dog", "the man plays", "a woman sleeps on the sofa", "guitar", "the big park"]
    pairs = [(f"{texts[i % 6]} {texts[i % 5]}", f"{texts[i % 6]} {texts[(i * i) % 5]}") for i in range(len(values))]
    return write(path, [{"a": a, "b": b, column: value} for (a, b), value in zip(pairs, values, strict=True)])


def test_labelled_pairs_calibrate_every_kind(bert: Path, nli: Path, ranker: Path, tmp_path: Path) -> None:
    labels = pairs_file(tmp_path / "labels.csv", "label", [LABELS[(i * 7) % 3] for i in range(30)])
    relevant = pairs_file(tmp_path / "relevant.csv", "label", [str(i % 2) for i in range(30)])
    texts = read_labelled(relevant, "label").pairs
    plain = PublishedModel(import_model(bert, "plain", tmp_path / "models").folder)
    places = np.argsort(np.argsort(plain.similarity([p.a for p in texts], [p.b for p in texts]).raw_score)) / 29
    rated = pairs_file(tmp_path / "rated.csv", "score", [f"{1 + 4 * each:.3f}" for each in places])
    wrong = pairs_file(tmp_path / "wrong.csv", "score", [f"{5 - 4 * each:.3f}" for each in places])
    with pytest.raises(ImportRefused, match=r"wrong\.csv: pairs with the higher scores are no more alike to the model"):
        import_model(bert, "bi", tmp_path / "models", labelled=lambda model: read_labelled(wrong, model.label))
    sources = {"bi": (bert, rated), "nli": (nli, labels)}
    scores = PublishedModel(import_model(ranker, "ce", tmp_path / "models").folder)
    raw = scores.similarity([p.a for p in texts], [p.b for p in texts], "relevance").raw_score
    relevant = pairs_file(tmp_path / "relevant.csv", "label", [str(int(each > np.median(raw))) for each in raw])
    import_model(ranker, "ce", tmp_path / "models", labelled=lambda model: read_labelled(relevant, model.label))
    relevance = Manifest.load(tmp_path / "models" / "ce").relevance
    assert relevance is not None
    assert relevance.calibration not in (None, Logistic(slope=1.0))
    assert "relevant.csv" in (tmp_path / "models" / "ce" / "README.md").read_text()
    for name, (source, file) in sources.items():
        done = import_model(
            source, name, tmp_path / "models", labelled=lambda model, file=file: read_labelled(file, model.label)
        )
        manifest = Manifest.load(done.folder)
        assert done.calibration == f"on {file.name}, 30 pairs"
        assert "uncalibrated" not in manifest.title
        card = (done.folder / "README.md").read_text()
        assert file.name in card
        if manifest.similarity is not None:
            assert manifest.similarity.label_scale == (1.0, 5.0)
            ratings = PublishedModel(done.folder).similarity(A, B).rating
            assert ratings is not None
            assert ((ratings >= 1) & (ratings <= 5)).all()
            assert "calibrated (centred isotonic)" in card


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a,c,score\n", "no column 'b'; there are 'a', 'c', 'score'"),
        ("a,b,score\nthe cat,a dog,9\n", "line 2: score: '9' is no number from 0 to 5"),  # more: test_own_pairs.py
        ("a,b,score\nthe cat,a dog,3\n", "1 pairs, at least 20 are needed"),
    ],
)
def test_bad_pairs_are_refused_with_their_line(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(content)
    with pytest.raises(ImportRefused, match=reason):
        read_labelled(path, None, (0.0, 5.0))


def _pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    shutil.rmtree(folder / "onnx")


def _moved(folder: Path) -> None:
    """The network in a folder of its own, as old versions of the library wrote it."""
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([modules[0] | {"path": "0_Transformer"}, *modules[1:]]))


def _without(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    shutil.rmtree(folder / "onnx")


def _module(folder: Path, i: int, kind: str) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    modules[i]["type"] = kind
    (folder / "modules.json").write_text(json.dumps(modules))


# A table of two places, both of which are empty, and a text that stands in place of others.
CHARSMAP = base64.b64encode(struct.pack("<III", 8, 0, 0) + b"dog " * 100 + b"\0").decode()


def _of_model(folder: Path, **fields: object) -> None:
    path = folder / "tokenizer.json"
    changed(path, model=json.loads(path.read_text())["model"] | fields)


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "pooling": (lambda f: changed(f / "1_Pooling" / "config.json", pooling_mode=["mean", "max"]),
        r"1_Pooling/config\.json: pooling_mode is mean and max, taken is one of mean, cls, max"),
    "prompt-pooling": (lambda f: changed(f / "1_Pooling" / "config.json", include_prompt=None),
        r"1_Pooling/config\.json: include_prompt is false"),
    "tokenizer_code": (lambda f: changed(f / "tokenizer_config.json", auto_map={"AutoTokenizer": ["x.Y", None]}),
        r"tokenizer_config\.json: auto_map: custom code"),
    "code": (lambda f: changed(f / "config.json", auto_map={"AutoModel": "x.Y"}),
        r"config\.json: auto_map: custom code"),
    "architectures": (lambda f: changed(f / "config.json", architectures="BertModel"),
        r"config\.json: architectures: expected a list, found a text"),
    "prompts": (lambda f: changed(f / "config_sentence_transformers.json", prompts=["query: "]),
        r"transformers\.json: prompts: expected an object, found a list"),
    "pooling_mode": (lambda f: changed(f / "1_Pooling" / "config.json", pooling_mode=5),
        r"1_Pooling/config\.json: pooling_mode: expected a text or a list, found a whole number"),
    "dimensions": (lambda f: changed(f / "config.json", matryoshka_dimensions=5),
        r"config\.json: matryoshka_dimensions: expected a list, found a whole number"),
    "length": (lambda f: changed(f / "sentence_bert_config.json", max_seq_length="128"),
        r"sentence_bert_config\.json: max_seq_length: expected a number or a whole number, found a text"),
    "module": (lambda f: _module(f, 0, "custom_st.Mine"),
        r"modules\.json: module 0: type 'custom_st\.Mine' is custom"),
    "layers": (lambda f: _module(f, 2, "sentence_transformers.models.LSTM"),
        r"modules\.json: modules Transformer, Pooling, LSTM"),
    "sparse": (
        lambda f: (
            _module(f, 1, "sentence_transformers.sparse_encoder.models.SpladePooling"),
            changed(f / "config.json", architectures=["BertForMaskedLM"])),
        r"modules\.json: SpladePooling: sparse vectors, which no route of ours gives"),
    "modules": (lambda f: (f / "modules.json").unlink(),
        r"no modules\.json that says how .* are pooled: give --pooling"),
    "pickle": (_pickle, r"pytorch_model\.bin: weights in a pickle"),
    "old-layout": (_moved, r"modules\.json: Transformer lies in 0_Transformer: save the model anew"),
    "other-settings": (lambda f: changed(f / "sentence_bert_config.json", query_length=8),
        r"sentence_bert_config\.json: query_length is 8, which is not honoured here"),
    "other-output": (
        lambda f: changed(f / "sentence_bert_config.json", modality_config={"text": {"method_output_name": "pooled"}}),
        r"sentence_bert_config\.json: modality_config is .*'?pooled"),
    "chat": (lambda f: changed(f / "sentence_bert_config.json", modality_config={"message": {}}),
        r"sentence_bert_config\.json: modality_config is .*: read are plain texts alone"),
    "cut": (lambda f: changed(f / "config_sentence_transformers.json", truncate_dim=8),
        r"config_sentence_transformers\.json: truncate_dim is 8, which is not honoured here"),
    "empty": (lambda f: [shutil.rmtree(e) if e.is_dir() else e.unlink() for e in list(f.iterdir())],
        "no model: neither config.json"),
    "adapter": (lambda f: (shutil.rmtree(f / "onnx"), (f / "adapter_config.json").write_text("{}")),
        r"adapter_config\.json: an adapter"),
    "layers-without-end": (lambda f: changed(f / "config.json", num_hidden_layers=100_000),
        r"config\.json: num_hidden_layers is 100,000; at most 1,000 are taken"),
    "labels-without-end": (lambda f: changed(f / "config.json", num_labels=100_000_000),
        r"config\.json: num_labels is 100,000,000; at most"),
    "pipe": (lambda f: os.mkfifo(f / "README.md"),
        r"README\.md: a pipe or a device"),
    "weights": (_without, r"model\.safetensors: no such file"),
    "tokenizer": (lambda f: (f / "tokenizer.json").write_text("{}"),
        r"cannot be read"),
    "normalizer": (
        lambda f: changed(f / "tokenizer.json",
            normalizer={"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 10_000}),
        r"tokenizer\.json: its normalizer puts 10,000 characters in the place of others; at most 32"),
    "normalizer-of-several": (
        lambda f: changed(f / "tokenizer.json", normalizer={"type": "Sequence", "normalizers": [
            {"type": "Replace", "pattern": {"String": "qzjx"}, "content": "cat " * 5}, {"type": "Lowercase"},
            {"type": "Replace", "pattern": {"String": "cat"}, "content": "dogs"}]}),
        r"tokenizer\.json: its normalizer puts 80 characters in the place of others; at most 32"),
    "charsmap": (
        lambda f: changed(f / "tokenizer.json", normalizer={"type": "Precompiled", "precompiled_charsmap": CHARSMAP}),
        r"tokenizer\.json: its normalizer puts 400 characters in the place of others; at most 32"),
    "long-words": (lambda f: _of_model(f, max_input_chars_per_word=10_000),
        r"tokenizer\.json: model: max_input_chars_per_word is 10,000; at most 256"),
    "long-prefix": (lambda f: _of_model(f, continuing_subword_prefix="#" * 100),
        r"tokenizer\.json: model: continuing_subword_prefix has 100 characters; at most 32"),
    "vocabulary": (lambda f: changed(f / "config.json", vocab_size=161),
        r"config\.json: embeddings\.word_embeddings\.weight would have the shape \(161, 24\), the weights have \(160"),
    "long-prompt": (lambda f: changed(f / "config_sentence_transformers.json", prompts={"query": "q" * 1001}),
        r"config_sentence_transformers\.json, or --prompt: a prompt of 1,001 characters; at most 1,000"),
    "panic": (lambda f: changed(f / "tokenizer.json",
            normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA/////w=="}),
        "cannot be read: Precompiled"),
    "prompt": (lambda f: changed(f / "config_sentence_transformers.json", default_prompt_name="mine"),
        r"config_sentence_transformers\.json: default_prompt_name is 'mine', prompts are"),
    "comparison": (lambda f: changed(f / "config_sentence_transformers.json", similarity_fn_name="euclidean"),
        r"similarity_fn_name is 'euclidean'"),
    "lengths": (
        lambda f: (
            (f / "modules.json").write_text(json.dumps(json.loads((f / "modules.json").read_text())[:-1])),
            changed(f / "config_sentence_transformers.json", similarity_fn_name="dot")),
        r"similarity_fn_name is 'dot' and no Normalize module is last"),
    "graph": (lambda f: ((f / "model.safetensors").unlink(), (f / "onnx" / "model.onnx").write_bytes(b"no")),
        r"onnx/model\.onnx: onnxruntime cannot open it"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_taken_is_refused_with_file_and_field(case: str, copy: Path, tmp_path: Path) -> None:
    change, reason = REFUSED[case]
    change(copy)
    with pytest.raises(ImportRefused, match=reason):
        import_model(copy, "x", tmp_path / "models")
    assert not (tmp_path / "models" / "x").exists()


@pytest.mark.parametrize(
    ("name", "model_id", "options", "reason"),
    [
        ("none", "x", ImportOptions(), "no such folder"),
        ("bert", "Mine", ImportOptions(), r"--id Mine"),
        ("bert", "x", ImportOptions(max_tokens=39), "--max-tokens 39: the model reads at most 38"),
        ("bert", "x", ImportOptions(graph="../bert/onnx/model.onnx"), r"--graph \.\./.*: not within the folder"),
        ("bert", "x", ImportOptions(graph="onnx/other.onnx"), r"--graph onnx/other.onnx: .*no such file"),
    ],
)
def test_other_refusals(bert, tmp_path: Path, name: str, model_id: str, options: ImportOptions, reason: str) -> None:
    with pytest.raises(ImportRefused, match=reason):
        import_model(bert.with_name(name), model_id, tmp_path, options=options)


def test_what_differs_from_its_library_is_not_published(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that computes something else, as where a setting were overlooked."""

    theirs = Transformer.library_answers
    monkeypatch.setattr(Transformer, "library_answers", lambda *args: theirs(*args) + 0.001)
    with pytest.raises(ParityError, match=r"differs from sentence-transformers by 1\.\de-03, allowed 1e-04"):
        import_model(bert, "x", tmp_path / "models")
    assert not (tmp_path / "models" / "x").exists()


def test_a_folder_without_modules_and_the_pooling_given(copy: Path, tmp_path: Path) -> None:
    expected = foreign.embedded(copy, A + B)
    (copy / "modules.json").unlink()

    options = ImportOptions(pooling="mean", max_tokens=38)
    found = PublishedModel(import_model(copy, "x", tmp_path / "models", options=options).folder).embed([*A, *B])
    unit = found / np.linalg.norm(found, axis=1, keepdims=True)
    assert unit == pytest.approx(expected, abs=1e-4)  # which the library brings to length 1
