"""Weights outside the graphs: loaded once, by checksum, and given to the graphs that read tokens."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from core.errors import ArtifactError
from core.manifest import SHARED_NAME, FileEntry, Manifest, describe_file
from core.tensors import load_tensors, tensors_of
from tests.harness import fakes

WORDS = np.arange(24, dtype=np.int8).reshape(6, 4)


def model(folder: Path, content: bytes | None = None, *, array: np.ndarray = WORDS) -> Manifest:
    """A manifest that names one shared array, which lies where it should."""
    folder.mkdir()
    np.save(folder / "words.npy", array)
    if content is not None:
        (folder / "words.npy").write_bytes(content)
    files = {"words.npy": fakes.share(folder / "words.npy"), "g": FileEntry(bytes=0, sha256="0" * 64)}
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


def test_a_corrupt_file_is_named_with_both_checksums(tmp_path: Path) -> None:
    manifest = model(tmp_path / "a")
    path = manifest.path_of(tmp_path / "a", "words.npy")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    was, now = manifest.files["words.npy"].sha256, describe_file(path).sha256
    with pytest.raises(ArtifactError, match=f"^{path}: corrupted or replaced: .*{now}, expected .*{was}$"):
        load_tensors(tmp_path / "a", manifest)


def header(shape: str) -> bytes:
    """A file of that shape, without its numbers."""
    content = f"{{'descr':'<f4','fortran_order':False,'shape':{shape}}}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(content).to_bytes(2, "little") + content


@pytest.mark.parametrize(
    ("content", "array", "message"),
    [
        (b"", WORDS, "cannot be read as a .npy file"),
        (b"PK\x03\x04", WORDS, "cannot be read as a .npy file"),  # np.load would open it as an archive
        (None, np.array([{"a": 1}], dtype=object), "cannot be read as a .npy file: Object arrays cannot be loaded"),
        (header("(10000000000000,)"), WORDS, "cannot be read as a .npy file"),  # a MemoryError
        (header("(True,)"), WORDS, "cannot be read as a .npy file"),  # a TypeError
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


@pytest.mark.parametrize("name", ["words", "w" * 127, "w" * 128, "w" * 256])
def test_a_graph_is_given_the_tensors_that_it_names(name: str) -> None:
    graph = onnx.GraphProto(name=f"{name}, not this", initializer=[onnx.TensorProto(name=name)]).SerializeToString()
    assert tensors_of(graph, {name: 1, name[1:]: 2, f"{name}s": 3}) == {name: 1}
    assert tensors_of(onnx.GraphProto(name=name).SerializeToString(), {name: 1}) == {}
