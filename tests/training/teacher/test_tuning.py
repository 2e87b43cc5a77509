"""The teacher's fine-tuning, on a stand-in that averages word vectors as a sentence-transformers model would answer."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from contract.measures import expected_rating
from contract.tokenizer import pad
from tests.harness import toys
from training.objectives.supervised import LABELS
from training.teacher import tuning
from training.teacher.tuning import (
    CLASSES,
    ENTAILMENT_HEAD_NAME,
    HEAD_NAME,
    SCALE,
    TuningConfig,
    load_heads,
    tuned,
)

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


def test_it_learns_the_ratings_and_saves_model_and_head(tmp_path: Path) -> None:
    folder = tuned(tmp_path / "teacher", toys.RATED, CONFIG, tmp_path)
    assert {path.name for path in folder.iterdir()} == {"words.pt", HEAD_NAME}
    assert ratings(folder) == pytest.approx([p.target for p in toys.RATED], abs=0.5)
    assert folder.parent == tmp_path
    assert not list(tmp_path.glob("*.partial"))
    assert load_heads(folder, 6)[1] is None


def test_it_learns_the_labels_beside_them_on_request(tmp_path: Path) -> None:
    config = replace(CONFIG, entailment_weight=1.0)
    folder = tuned(tmp_path / "teacher", toys.RATED, config, tmp_path)
    assert {path.name for path in folder.iterdir()} == {"words.pt", HEAD_NAME, ENTAILMENT_HEAD_NAME}
    _, labels = load_heads(folder, 6)
    assert labels is not None
    with torch.no_grad():
        assert [LABELS[i] for i in labels(*embedded(folder)).argmax(1)] == [p.label for p in toys.RATED]
    assert ratings(folder) == pytest.approx([p.target for p in toys.RATED], abs=0.5)


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
