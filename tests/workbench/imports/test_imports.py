"""Models of other libraries: imported, equal to their own library, served; refused by name where they cannot be."""

import csv
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from contract.manifest import Manifest
from service.app import create_app
from service.settings import Settings
from tests.workbench import foreign
from training.objectives.supervised import LABELS
from training.publishing.parity import ParityError
from training.publishing.runtime import PublishedModel
from workbench.imports.calibration import read_labelled
from workbench.imports.files import ImportRefused
from workbench.imports.folder import Imported, import_model, read_model

safetensors = pytest.importorskip("safetensors.torch", reason="missing here: pip install '.[distill]'")
load_file, save_file = safetensors.load_file, safetensors.save_file

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.filterwarnings("ignore"),  # of the other libraries
]
A = ("the cat sat on the sofa", "A man plays the guitar.", "Dog", "\U0001f600 zz the park, 123 n\u00e4ive")
B = ("a cat sleeps", "the woman plays the flute", "the big dog runs in the park", "the cat")
ENCODERS: dict[str, Callable[[Path], Path]] = {
    "mean": foreign.bi_encoder,
    "cls": lambda folder: foreign.bi_encoder(folder, "cls", normalise=False),
    "max": lambda folder: foreign.bi_encoder(folder, "max"),
    "static": foreign.static,
    "static-unit": lambda folder: foreign.static(folder, normalise=True),
    "m2v": foreign.model2vec,
}


def encoded(folder: Path) -> np.ndarray:
    """By the unmodified library."""
    if (
        json.loads((folder / "config.json").read_text()).get("model_type") == "model2vec"
        if (folder / "config.json").is_file()
        else False
    ):
        from model2vec import StaticModel

        return StaticModel.from_pretrained(folder).encode([*A, *B])
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), local_files_only=True, device="cpu").encode([*A, *B])


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_embeds_as_its_library(name: str, tmp_path: Path) -> None:
    folder = ENCODERS[name](tmp_path / name)
    done = import_model(folder, "taken", tmp_path / "models", storage="float32")
    assert done.parity is not None
    assert done.parity.texts > 400
    assert done.parity.float32 < 1e-4
    model = PublishedModel(tmp_path / "models" / "taken")
    expected = encoded(folder)
    assert model.embed([*A, *B]) == pytest.approx(expected, abs=1e-4)
    unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    cosines = (unit[:4] * unit[4:]).sum(axis=1)
    assert np.ptp(cosines) > 0.05  # there is something to agree on
    found = model.similarity(A, B)
    assert found.raw_score == pytest.approx(cosines, abs=1e-4)
    assert found.score == pytest.approx((cosines + 1) / 2, abs=1e-4)
    manifest = model.manifest
    assert manifest.similarity is not None
    assert manifest.similarity.calibration is None
    assert "uncalibrated" in manifest.title
    assert "ncalibrated" in (tmp_path / "models" / "taken" / "README.md").read_text().partition("## Figures")[0]


def test_int8_is_the_default_and_close(tmp_path: Path) -> None:
    folder = foreign.bi_encoder(tmp_path / "mine")
    done = import_model(folder, "taken", tmp_path / "models")
    assert done.storage == "int8"
    assert done.parity is not None
    assert done.parity.float32 < 1e-4 < done.parity.stored
    assert done.parity.cosine is not None
    assert done.parity.cosine > 0.95
    assert PublishedModel(done.folder).embed(A) == pytest.approx(encoded(folder)[:4], abs=0.1)
    said = Manifest.load(done.folder).provenance.recipe["parity"]
    assert "sentence-transformers" in str(said)


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_an_onnx_encoder_is_taken_with_its_own_graph(tmp_path: Path, pooling: str) -> None:
    folder = foreign.onnx_encoder(tmp_path / "exported", pooling)
    done = import_model(folder, "taken", tmp_path / "models")
    assert done.parity is not None
    assert done.parity.float32 < 1e-4
    whole = foreign.bi_encoder(tmp_path / "whole", pooling)  # the same seed: the same weights
    assert PublishedModel(done.folder).embed([*A, *B]) == pytest.approx(encoded(whole), abs=1e-4)


def test_a_vocabulary_without_a_tokenizer_file_is_read_as_bert_reads_it(tmp_path: Path) -> None:
    folder = foreign.bi_encoder(tmp_path / "mine")
    expected = encoded(folder)
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in sorted(vocabulary, key=vocabulary.__getitem__)))
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "model_max_length": 40}')
    done = import_model(folder, "taken", tmp_path / "models", storage="float32")
    assert PublishedModel(done.folder).embed([*A, *B]) == pytest.approx(expected, abs=1e-4)


def logits(folder: Path) -> np.ndarray:
    import torch
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(folder), local_files_only=True, device="cpu")
    return np.asarray(model.predict(list(zip(A, B, strict=True)), activation_fn=torch.nn.Identity()), np.float64)


def test_a_cross_encoder_of_one_output(tmp_path: Path) -> None:
    folder = foreign.cross_encoder(tmp_path / "ranker")
    expected = 1 / (1 + np.exp(-logits(folder).reshape(-1)))
    assert np.ptp(expected) > 0.01
    done = import_model(folder, "similar", tmp_path / "models", storage="float32")
    model = PublishedModel(done.folder)
    assert model.manifest.tasks == ("similarity",)
    assert model.similarity(A, B).score == pytest.approx(expected, abs=1e-4)

    def ranker(source: Path, drafts: Path):  # type: ignore[no-untyped-def]
        return read_model(source, drafts, head="relevance")

    model = PublishedModel(import_model(folder, "ranks", tmp_path / "models", storage="float32", read=ranker).folder)
    assert model.manifest.tasks == ("similarity", "relevance")
    assert model.similarity(A, B, "relevance").score == pytest.approx(expected, abs=1e-4)


def test_a_cross_encoder_of_three_labels_in_its_own_order(tmp_path: Path) -> None:
    folder = foreign.cross_encoder(tmp_path / "nli", 3, ["contradiction", "Entailment", "neutral"])
    found = PublishedModel(import_model(folder, "nli", tmp_path / "models", storage="float32").folder).entailment(A, B)
    raw = np.exp(logits(folder))
    expected = raw / raw.sum(axis=1, keepdims=True)
    for row, theirs in zip(found, expected, strict=True):
        named = dict(zip(("contradiction", "entailment", "neutral"), theirs, strict=True))
        assert row == pytest.approx(named, abs=1e-4)
    unnamed = foreign.cross_encoder(tmp_path / "unnamed", 3)
    with pytest.raises(ImportRefused, match=r"config\.json: id2label is 'LABEL_0', 'LABEL_1', 'LABEL_2'; expected"):
        import_model(unnamed, "x", tmp_path / "models")
    read = read_model(unnamed, tmp_path, labels=LABELS)
    assert read.facts.settings["heads"] == {"entailment": 3}


def pairs_file(path: Path, column: str, values: list[str]) -> Path:
    texts = ["the cat", "a dog", "the man plays", "a woman sleeps on the sofa", "guitar", "the big park"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", column])
        writer.writerows(
            [f"{texts[i % 6]} {texts[i % 5]}", f"{texts[i % 6]} {texts[(i * i) % 5]}", value]
            for i, value in enumerate(values)
        )
    return path


def test_labelled_pairs_calibrate_every_kind(tmp_path: Path) -> None:
    rated = pairs_file(tmp_path / "rated.csv", "score", [f"{1 + i % 5}" for i in range(30)])
    labels = pairs_file(tmp_path / "labels.csv", "label", [LABELS[(i * 7) % 3] for i in range(30)])
    sources = {
        "bi": foreign.static(tmp_path / "bi"),
        "ce": foreign.cross_encoder(tmp_path / "ce"),
        "nli": foreign.cross_encoder(tmp_path / "nli", 3, LABELS),
    }
    for name, source in sources.items():
        done = import_model(
            source,
            name,
            tmp_path / "models",
            labelled=lambda model, name=name: read_labelled(labels if name == "nli" else rated, model.label),
        )
        manifest = Manifest.load(done.folder)
        assert done.calibrated
        assert "uncalibrated" not in manifest.title
        card = (done.folder / "README.md").read_text()
        assert ("labels.csv" if name == "nli" else "rated.csv") in card
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
        ("a,b,score\nthe cat,,3\n", "line 2: b: the text has no visible character"),
        ("a,b,score\nthe cat,a dog,three\n", "line 2: score: 'three' is no number"),
        ("a,b,score\nthe cat,a dog,9\n", "line 2: score: '9' is no number from 0 to 5"),
        ("a,b,score\nthe cat,a dog,3\n", "1 pairs, at least 20 are needed"),
    ],
)
def test_bad_pairs_are_refused_with_their_line(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(content)
    with pytest.raises(ImportRefused, match=reason):
        read_labelled(path, None, (0.0, 5.0))


def changed(path: Path, **fields: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def _pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _module(folder: Path, i: int, kind: str) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    modules[i]["type"] = kind
    (folder / "modules.json").write_text(json.dumps(modules))


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "pooling": (
        lambda f: changed(f / "1_Pooling" / "config.json", pooling_mode="weightedmean"),
        r"1_Pooling/config\.json: pooling_mode is weightedmean, taken is one of mean, cls, max",
    ),
    "mpnet": (
        lambda f: changed(f / "config.json", model_type="mpnet"),
        r"config\.json: model_type is 'mpnet', taken is 'bert'",
    ),
    "activation": (
        lambda f: changed(f / "config.json", hidden_act="relu"),
        r"config\.json: hidden_act is 'relu', taken is 'gelu'",
    ),
    "code": (
        lambda f: changed(f / "config.json", auto_map={"AutoModel": "x.Y"}),
        r"config\.json: auto_map: custom code",
    ),
    "module": (lambda f: _module(f, 0, "custom_st.Mine"), r"modules\.json: module 0: type 'custom_st\.Mine' is custom"),
    "dense": (
        lambda f: _module(f, 2, "sentence_transformers.models.Dense"),
        r"modules\.json: modules Transformer, Pooling, Dense",
    ),
    "pickle": (_pickle, r"pytorch_model\.bin: weights in a pickle"),
    "weights": (lambda f: (f / "model.safetensors").unlink(), r"model\.safetensors: no such file"),
    "tokenizer": (lambda f: (f / "tokenizer.json").unlink(), r"neither tokenizer\.json nor vocab\.txt"),
    "bpe": (
        lambda f: changed(f / "tokenizer.json", pre_tokenizer={"type": "ByteLevel"}),
        r"tokenizer\.json: expected .*WordPiece.* found .*ByteLevel",
    ),
    "prompt": (
        lambda f: changed(f / "config_sentence_transformers.json", default_prompt_name="query"),
        r"config_sentence_transformers\.json: default_prompt_name is 'query'",
    ),
    "comparison": (
        lambda f: changed(f / "config_sentence_transformers.json", similarity_fn_name="euclidean"),
        r"similarity_fn_name is 'euclidean'",
    ),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return foreign.bi_encoder(tmp_path_factory.mktemp("good") / "good")


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_taken_is_refused_with_file_and_field(case: str, good: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(good, tmp_path / "changed")
    change, reason = REFUSED[case]
    change(tmp_path / "changed")
    with pytest.raises(ImportRefused, match=reason):
        import_model(tmp_path / "changed", "x", tmp_path / "models")
    assert not (tmp_path / "models" / "x").exists()


def test_other_refusals(good: Path, tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="no such folder"):
        read_model(tmp_path / "none", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImportRefused, match=r"no modules\.json, config\.json or model\.onnx"):
        read_model(tmp_path / "empty", tmp_path)
    with pytest.raises(ImportRefused, match=r"--id Mine"):
        import_model(good, "Mine", tmp_path)
    with pytest.raises(ImportRefused, match="--storage float16: this model is stored as int8 or float32"):
        import_model(good, "x", tmp_path, storage="float16")
    with pytest.raises(ImportRefused, match="--max-tokens 39: the model reads at most 38"):
        read_model(good, tmp_path, max_tokens=39)
    with pytest.raises(ImportRefused, match="id2label has 2 outputs"):
        read_model(foreign.cross_encoder(tmp_path / "two", 2), tmp_path)


def test_what_differs_from_its_library_is_not_published(good: Path, tmp_path: Path) -> None:
    """A library that computes something else, as where a setting were overlooked."""
    read = read_model(good, tmp_path)

    class Altered(type(read)):  # type: ignore[misc]
        def theirs(self, a: object, b: object) -> np.ndarray:
            return super().theirs(a, b) + 0.001

    def altered(folder: Path, drafts: Path):  # type: ignore[no-untyped-def]
        return Altered(**{name: getattr(read, name) for name in read.__dataclass_fields__ if name != "storages"})

    with pytest.raises(ParityError, match=r"differs from sentence-transformers by 1\.\de-03, allowed 1e-04"):
        import_model(good, "x", tmp_path / "models", read=altered)
    assert not (tmp_path / "models" / "x").exists()


@asynccontextmanager
async def serve(root: Path, defaults: dict[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(Settings(models_dir=root, **defaults))  # type: ignore[arg-type]
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")
    async with app.app.router.lifespan_context(app.app), client:  # type: ignore[attr-defined]
        yield client


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_the_service_serves_what_was_imported(tmp_path: Path) -> None:
    root = tmp_path / "models"
    folder = foreign.bi_encoder(tmp_path / "mine")
    import_model(folder, "mine", root, storage="float32")
    nli = foreign.cross_encoder(tmp_path / "nli", 3, LABELS)
    import_model(nli, "nli", root)
    import_model(foreign.model2vec(tmp_path / "m2v"), "m2v", root)
    expected = encoded(folder)
    cosines = (expected[:4] * expected[4:]).sum(axis=1)
    defaults = {"default_similarity": "mine", "default_rank": "mine", "default_entailment": "nli"}
    async with serve(root, defaults) as client:
        answer = (
            await client.post("/similarity", json={"pairs": [{"a": a, "b": b} for a, b in zip(A, B, strict=True)]})
        ).json()
        assert answer["model"] == "mine"
        assert [each["raw_score"] for each in answer["results"]] == pytest.approx(cosines, abs=1e-4)
        answer = (await client.post("/embed", json={"sentences": A})).json()
        assert np.array(answer["embeddings"]) == pytest.approx(expected[:4], abs=1e-4)
        answer = (await client.post("/rank", json={"query": A[0], "candidates": B})).json()
        order = np.argsort(-(expected[4:] @ expected[0]))
        assert [each["index"] for each in answer["results"]] == order.tolist()
        answer = await client.post("/entailment", json={"pairs": [{"premise": A[0], "hypothesis": B[0]}]})
        assert set(answer.json()["results"][0]["probabilities"]) == set(LABELS)
        answer = await client.post("/rank", json={"query": A[0], "candidates": B, "model": "m2v"})
        assert answer.status_code == 200


def test_weights_of_another_shape_are_refused(good: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(good, tmp_path / "changed")
    path = tmp_path / "changed" / "model.safetensors"
    weights = load_file(path)
    weights["embeddings.word_embeddings.weight"] = weights["embeddings.word_embeddings.weight"][:100].clone()
    save_file(weights, path)
    with pytest.raises(ImportRefused, match=r"model\.safetensors: .*word_embeddings\.weight has shape \[100, 24\]"):
        read_model(tmp_path / "changed", tmp_path)


def test_the_command_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from typer.testing import CliRunner

    from workbench.__main__ import app

    folder = foreign.static(tmp_path / "mine")
    ended = CliRunner().invoke(app, ["import", str(folder), "--id", "mine", "--models", str(tmp_path / "models")])
    assert ended.exit_code == 0, ended.output
    assert isinstance(Imported, type)
    manifest = Manifest.load(tmp_path / "models" / "mine")
    assert manifest.provenance.commands == ("python -m workbench import mine --id mine",)
