"""A model that is not whole, or not what it says, stops start-up with one line that names it."""

import hashlib
import shutil

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from core.errors import ArtifactError
from core.golden import GoldenPair
from core.manifest import SHARED_NAME, Manifest
from service.app import create_app
from service.engine.graph import CPU, open_session, provider_order
from service.errors import ProviderError, StartupError
from service.models.defaults import ROUTES, NoDefault
from service.service import Service
from service.settings import Settings
from tests.harness import fakes


def refusal(models, **settings) -> str:
    """What stops the start, where all models are to be opened before it ends."""
    with pytest.raises(StartupError) as caught:
        create_app(Settings(models_dir=models, **({"preload": ("all",)} | settings)))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_folder_without_models(tmp_path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "README.md").touch()
    (tmp_path / SHARED_NAME).mkdir()  # of files, and no model
    assert f"{tmp_path} holds no model" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["relatedness.onnx", "tokenizer.json"])
def test_a_corrupted_file_is_named_with_its_checksums(root, name: str) -> None:
    path = root / "avg-sick" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    message = refusal(root)
    assert str(path) in message
    assert hashlib.sha256(content).hexdigest() in message
    assert Manifest.load(root / "avg-sick").files[name].sha256 in message


@pytest.mark.parametrize(
    ("setting", "name", "problem"),
    [
        ("default_similarity", "nope", "SEMBLANCE_DEFAULT_SIMILARITY is 'nope', which is not among the models"),
        ("default_rank", "nope", "SEMBLANCE_DEFAULT_RANK is 'nope', which is not among the models"),
        (
            "default_entailment",
            "avg-paraphrase",
            "which has no entailment; models with entailment: avg-sick, pair-sick",
        ),
    ],
)
def test_a_default_that_cannot_be(models, setting: str, name: str, problem: str) -> None:
    assert problem in refusal(models, **{setting: name})


def republish(folder, **changes) -> None:
    """Publish the folder's files again under another description."""
    old = Manifest.load(folder)
    parts = {"encoder": old.encoder, "similarity": old.similarity, "entailment": old.entailment}
    fakes.publish(folder, old.id, **(parts | changes))


@pytest.mark.parametrize("task", ["raw_score", "score", "probabilities"])
def test_a_model_that_answers_otherwise_than_published(root, task: str) -> None:
    fakes.misstate(root / "avg-sick", task)
    message = refusal(root)
    assert "model avg-sick does not answer as published: golden pair 'a dog runs in the park'" in message


def test_answers_of_integer_products_may_be_those_of_another_cpu(root) -> None:
    path = root / "avg-sick" / "relatedness.onnx"
    graph = onnx.load(path)
    one = [numpy_helper.from_array(np.ones((1, 1), kind), name) for name, kind in (("q", np.uint8), ("c", np.int8))]
    graph.graph.initializer.extend(one)
    graph.graph.node.append(helper.make_node("MatMulInteger", ["q", "c"], ["of_integers"]))
    onnx.save(graph, path)
    fakes.sign(root / "avg-sick", path.name)
    fakes.misstate(root / "avg-sick", "score")
    create_app(Settings(models_dir=root, preload=("all",)))
    fakes.misstate(root / "avg-sick", "score", 0.06)
    assert "model avg-sick does not answer as published" in refusal(root)


@pytest.mark.parametrize(
    ("golden", "told"),
    [
        (({"negative": 1.0}, {"negative": 0.5}), "golden pair 'a' / 'a': negative of a is "),
        (({"maybe": 1.0}, {"negative": 1.0}), "maybe of a is nan, published 1.000000"),
    ],
)
def test_a_model_that_labels_otherwise_than_published(root, golden, told: str) -> None:
    folder = root / "sentiment"
    task = fakes.labelling_model(folder).classification
    republish(folder, labelling=task, golden=[GoldenPair(a="a", b="a", classes=golden)])
    assert told in refusal(root)


def test_rounding_is_not_a_difference(root) -> None:
    fakes.misstate(root / "avg-paraphrase", by=5e-5)
    create_app(Settings(models_dir=root))


@pytest.mark.parametrize("golden", [[], [GoldenPair(a=" ", b="man")]])
def test_golden_pairs_that_prove_nothing(root, golden) -> None:
    republish(root / "avg-paraphrase", golden=golden)
    assert "golden.json: no golden pair, or one without words" in refusal(root)


def test_a_head_with_another_number_of_classes(root) -> None:
    folder = root / "avg-sick"
    fakes.head_graph(folder / "relatedness.onnx", outputs=4)
    fakes.sign(folder, "relatedness.onnx")
    assert "relatedness.onnx: outputs is 4, its tasks need 5" in refusal(root)


def test_an_encoder_of_another_width(root) -> None:
    folder = root / "avg-paraphrase"
    Manifest.load(folder).model_copy(update={"dim": fakes.DIM + 1}).save(folder)
    assert f"encoder.onnx: dim is {fakes.DIM}, the manifest says {fakes.DIM + 1}" in refusal(root)


@pytest.mark.parametrize("content", [b"not a graph", b""])
def test_a_file_that_is_no_graph(tmp_path, content: bytes) -> None:
    path = tmp_path / "encoder.onnx"
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=r"encoder\.onnx: onnxruntime cannot open it") as caught:
        open_session(path, "encoder", [CPU], threads=1, must_use_cuda=False)
    assert "\n" not in str(caught.value)


def test_cuda_that_is_absent_is_said_to_be(models, monkeypatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: [CPU])
    assert refusal(models, providers="cuda").startswith(
        "SEMBLANCE_PROVIDERS=cuda, but this onnxruntime offers only CPU"
    )
    assert provider_order("auto") == provider_order("cpu") == [CPU]


def test_cuda_that_does_not_start_is_not_passed_over_in_silence(models) -> None:
    with pytest.raises(ProviderError, match="CUDA does not start here"):
        open_session(models / "avg-paraphrase" / "encoder.onnx", "encoder", [CPU], threads=1, must_use_cuda=True)


def test_a_table_that_the_manifest_does_not_name(root) -> None:
    folder = root / "pair-sick"
    np.save(folder / fakes.OUTSIDE, fakes.table())  # where the graph says, but no one vouches for it
    fakes.sign(folder, tensors={})
    assert "relatedness.onnx: it names 1 tensors outside of the file, the manifest 0" in refusal(root)


def test_a_tensor_outside_that_no_node_uses_is_refused(tmp_path) -> None:
    """ONNX Runtime leaves it out, and would read it in a version that does not."""
    path = tmp_path / "model" / "encoder.onnx"
    path.parent.mkdir()
    fakes.encoder_graph(path)
    graph = onnx.load(path, load_external_data=False)
    unused = onnx.numpy_helper.from_array(np.ones(4, np.float32), "unused")
    unused.ClearField("raw_data")
    unused.data_location = onnx.TensorProto.EXTERNAL
    unused.external_data.add(key="location", value="../secret.bin")
    graph.graph.initializer.append(unused)
    path.write_bytes(graph.SerializeToString())
    with pytest.raises(ArtifactError, match="it names 1 tensors outside of the file, the manifest 0"):
        open_session(path, "encoder", [CPU], threads=1, must_use_cuda=False)


@pytest.mark.parametrize("what", ["avg-sick", "avg-sick/manifest.json", "avg-sick/encoder.onnx", "shared"])
def test_a_link_out_of_the_models_folder_is_not_followed(root, tmp_path, what: str) -> None:
    outside = tmp_path / "outside"
    shutil.move(root / what, outside)
    (root / what).symlink_to(outside)
    message = refusal(root)
    assert message.startswith(f"{root}/{what}")
    assert f": leads out of SEMBLANCE_MODELS_DIR, to {outside}" in message


def test_links_within_the_models_folder_are_followed(root) -> None:
    (root / "avg-sick").rename(root / ".revision-1")
    (root / "avg-sick").symlink_to(".revision-1")
    link = root.parent / "current"
    link.symlink_to(root)
    assert "avg-sick" in create_app(Settings(models_dir=link)).service.registry


def test_only_the_models_named_are_opened_and_a_broken_other_one_is_none_of_ours(root) -> None:
    (root / "broken").mkdir()
    (root / "broken" / "manifest.json").write_text("{}")
    with pytest.raises(StartupError, match="broken"):
        Service(Settings(models_dir=root, preload="all"))
    wanted = {"avg-paraphrase", "avg-sick"}
    service = Service(Settings(models_dir=root, models=",".join(wanted)))
    assert set(service.registry) == wanted
    with pytest.raises(StartupError, match="SEMBLANCE_MODELS is 'absent', which is not among the models"):
        Service(Settings(models_dir=root, models=(*wanted, "absent")))


def test_entailment_is_answered_by_the_general_model_where_there_is_one(root) -> None:
    assert Service(Settings(models_dir=root)).defaults["/entailment"] == "avg-sick"
    fakes.graded_model(root / "pwim-general", "pwim-general")
    assert Service(Settings(models_dir=root)).defaults["/entailment"] == "pwim-general"
    fakes.interaction_model(root / "minilm-cross", "minilm-cross")
    defaults = Service(Settings(models_dir=root)).defaults
    assert (defaults["/entailment"], defaults["/claims"]) == ("minilm-cross", "minilm-cross")
    only = Settings(models_dir=root, models="avg-paraphrase,avg-sick")
    assert Service(only).defaults["/entailment"] == "avg-sick"
    named = Service(Settings(models_dir=root, default_entailment="avg-sick")).defaults
    assert (named["/entailment"], named["/claims"]) == ("avg-sick", "avg-sick")


def test_own_models_alone_need_no_settings(root, caplog) -> None:
    service = Service(Settings(models_dir=root, models="avg-sick"))
    assert service.defaults == dict.fromkeys(ROUTES, "avg-sick")
    without = Service(Settings(models_dir=root, models="avg-paraphrase"))
    assert "/entailment" not in without.defaults
    assert "no default model of /entailment; models that can: none" in caplog.text
    with pytest.raises(NoDefault, match="there is no default model of /entailment; models that can: none"):
        without.defaults["/entailment"]


def test_of_several_own_models_none_is_preferred(root) -> None:
    fakes.graded_model(root / "mine", "mine")
    service = Service(Settings(models_dir=root, models="avg-sick,mine"))
    assert service.defaults == {"/entailment": "avg-sick", "/claims": "avg-sick"}
    with pytest.raises(NoDefault, match="models that can: avg-sick, mine"):
        service.defaults["/similarity"]
    named = Settings(models_dir=root, models="avg-sick,mine", default_similarity="mine", default_rank="avg-sick")
    assert Service(named).defaults == {
        "/similarity": "mine",
        "/rank": "avg-sick",
        "/entailment": "avg-sick",
        "/claims": "avg-sick",
        "/embed": "mine",
        "/explain": "mine",
    }
