"""Weights outside the graphs: loaded once, by checksum, and held against what each graph expects."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from contract import ArtifactError, Manifest, external_tensors, load_tensors
from contract.manifest import SHARED_NAME, FileEntry, describe_file
from tests import fakes

WORDS = np.arange(24, dtype=np.int8).reshape(6, 4)


def model(folder: Path, content: bytes | None = None, *, array: np.ndarray = WORDS) -> Manifest:
    """A manifest that names one shared array, which lies where it should."""
    shared = folder.parent / SHARED_NAME
    shared.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    draft = shared / "draft.npy"
    np.save(draft, array)
    if content is not None:
        draft.write_bytes(content)
    entry = describe_file(draft).model_copy(update={"shared": True})
    draft.rename(shared / f"{entry.sha256}.npy")
    graph = FileEntry(bytes=0, sha256="0" * 64)
    files = {"words.npy": entry, "g": graph}
    return Manifest.model_construct(id=folder.name, tensors={"embedding.rows": "words.npy"}, files=files)


def test_an_array_is_read_and_may_not_be_written(tmp_path: Path) -> None:
    tensors = load_tensors(tmp_path / "a", model(tmp_path / "a"))
    np.testing.assert_array_equal(tensors["embedding.rows"], WORDS)
    assert tensors["embedding.rows"].dtype == np.int8
    with pytest.raises(ValueError, match="read-only"):
        tensors["embedding.rows"][0, 0] = 1


def test_a_file_that_two_models_name_is_in_memory_once(tmp_path: Path) -> None:
    manifests = {name: model(tmp_path / name) for name in ("a", "b")}
    other = model(tmp_path / "c", array=WORDS + 1)
    loaded: dict[str, Any] = {}
    a, b = (load_tensors(tmp_path / name, manifest, loaded)["embedding.rows"] for name, manifest in manifests.items())
    c = load_tensors(tmp_path / "c", other, loaded)["embedding.rows"]
    assert a is b
    assert c is not a
    assert len(loaded) == 2
    shutil.rmtree(tmp_path / SHARED_NAME)
    assert load_tensors(tmp_path / "a", manifests["a"], loaded)["embedding.rows"] is a


def test_a_missing_file_is_named_with_its_checksum(tmp_path: Path) -> None:
    manifest = model(tmp_path / "a")
    path = manifest.path_of(tmp_path / "a", "words.npy")
    path.unlink()
    with pytest.raises(
        ArtifactError, match=f"^{path}: cannot be read: No such file.*{manifest.files['words.npy'].sha256}"
    ):
        load_tensors(tmp_path / "a", manifest)


def test_a_corrupt_file_is_named_with_both_checksums(tmp_path: Path) -> None:
    manifest = model(tmp_path / "a")
    path = manifest.path_of(tmp_path / "a", "words.npy")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    was, now = manifest.files["words.npy"].sha256, describe_file(path).sha256
    with pytest.raises(ArtifactError, match=f"^{path}: corrupted or replaced: .*{now}, expected .*{was}$"):
        load_tensors(tmp_path / "a", manifest)


@pytest.mark.parametrize(
    ("content", "array", "message"),
    [
        (b"", WORDS, "cannot be read as a .npy file"),
        (b"PK\x03\x04", WORDS, "cannot be read as a .npy file"),  # np.load would open it as an archive
        (None, np.array([{"a": 1}], dtype=object), "cannot be read as a .npy file: Object arrays cannot be loaded"),
        (None, np.array(["a"]), "expected plain numbers in C order, found <U1"),
        (None, WORDS.astype(">i4"), "expected plain numbers in C order, found >i4"),
        (None, np.asfortranarray(WORDS), r"expected plain numbers in C order, found \|i1 in another order"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(
    tmp_path: Path, content: bytes | None, array: np.ndarray, message: str
) -> None:
    manifest = model(tmp_path / "a", content, array=array)
    path = manifest.path_of(tmp_path / "a", "words.npy")
    with pytest.raises(ArtifactError, match=f"^{path}: {message}"):
        load_tensors(tmp_path / "a", manifest)


def graph(path: Path, *outside: tuple[str, int, list[int]]) -> Path:
    """An ONNX file with one initializer inside, and those outside."""
    initialisers = [numpy_helper.from_array(np.zeros((300, 2), np.float32), "inside")]
    for name, dtype, dims in outside:
        tensor = TensorProto(name=name, data_type=dtype, dims=dims, data_location=TensorProto.EXTERNAL)
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", "words.npy"
        initialisers.append(tensor)
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch"])
    node = helper.make_node("Identity", ["x"], ["y"])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch"])
    made = helper.make_model(helper.make_graph([node], "tiny", [value], [output], initializer=initialisers))
    path.write_bytes(made.SerializeToString())
    return path


def test_a_graph_is_given_what_it_leaves_outside_and_no_more(tmp_path: Path) -> None:
    tensors = {"words": WORDS, "scale": np.ones(6, np.float16), "inside": np.zeros((300, 2), np.float32)}
    both = graph(tmp_path / "g.onnx", ("words", TensorProto.INT8, [6, 4]), ("scale", TensorProto.FLOAT16, [6]))
    assert external_tensors(both, tensors).keys() == {"words", "scale"}
    assert external_tensors(both, tensors)["words"] is WORDS
    one = graph(tmp_path / "h.onnx", ("words", TensorProto.INT8, [6, 4]))
    assert external_tensors(one, tensors).keys() == {"words"}
    assert external_tensors(graph(tmp_path / "i.onnx"), tensors) == {}


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        (("words", TensorProto.INT8, [6, 5]), r"expects tensor 'words' as int8 \[6, 5\], its file holds int8 \[6, 4\]"),
        (("words", TensorProto.INT8, [24]), r"expects tensor 'words' as int8 \[24\], its file holds int8 \[6, 4\]"),
        (("words", TensorProto.UINT8, [6, 4]), r"expects tensor 'words' as uint8 \[6, 4\], its file holds int8"),
        (("words", TensorProto.BFLOAT16, [6, 4]), "expects tensor 'words' as type 16"),
        (("rows", TensorProto.INT8, [6, 4]), "leaves 'rows' outside, .* not among the manifest's tensors: words$"),
    ],
)
def test_a_tensor_that_does_not_fit_its_graph_is_named(
    tmp_path: Path, expected: tuple[str, int, list[int]], message: str
) -> None:
    path = graph(tmp_path / "g.onnx", expected)
    with pytest.raises(ArtifactError, match=f"^{path}: {message}"):
        external_tensors(path, {"words": WORDS})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x3a\xff", "it ends within a number"),
        (b"\x3a\x05ab", "it ends within a field"),
        (b"\x3b", "unknown wire type 3"),
        (b"\xff" * 11, "it ends within a number"),
    ],
)
def test_a_file_that_is_no_graph_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "g.onnx"
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=f"^{path}: cannot be read as an ONNX file: {message}$"):
        external_tensors(path, {})
    with pytest.raises(ArtifactError, match="cannot be read: No such file"):
        external_tensors(tmp_path / "nowhere.onnx", {})


def test_graphs_with_everything_inside_are_given_nothing(tmp_path: Path) -> None:
    fakes.encoder_graph(tmp_path / "encoder.onnx")
    onnx.checker.check_model(str(tmp_path / "encoder.onnx"))
    assert external_tensors(tmp_path / "encoder.onnx", {"table": fakes.table()}) == {}
