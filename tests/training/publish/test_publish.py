"""From a trained run to a model folder, on a toy vocabulary; the corpora are replaced by a few sentences of ours."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from core.golden import GoldenPairs
from tests.harness import toy_runs, toys
from training.data.readers import sst
from training.data.words.storage import shrink
from training.errors import UserError
from training.families import family_of
from training.models import GRANConfig, LSTMConfig, ProjectionConfig
from training.objectives.sentiment import SentimentConfig
from training.objectives.teacher_cosine import TeacherCosineConfig
from training.publish.figures import read_figures
from training.publish.folders import replace_folder
from training.publish.runtime import PublishedModel
from training.recipes.recipe import Publication, Schedule
from training.recipes.sources.labelled import SSTSentences
from training.recipes.sources.transfer import TeacherSentences
from training.train import run

SICK = toy_runs.RECIPE
TRANSFER = replace(
    SICK,
    name="toy-transfer",
    data=TeacherSentences(limit=10),
    objective=TeacherCosineConfig(),
    publication=Publication("toy-transfer", "A toy"),
)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Corpora of eight pairs."""
    rated = list(toys.RATED)
    parts = {"sick-train": rated, "sick-dev": rated[:5], "sick-test": rated[:5]}
    read = {"labelled": parts.__getitem__, "year": lambda year: {"toy": rated}, "transfer": lambda name: rated}
    return toy_runs.runs_in(tmp_path, monkeypatch, **read)


def test_a_supervised_run_becomes_a_folder_that_answers_as_the_run_whatever_its_width(runs: Path) -> None:
    config = ProjectionConfig(outputs=11)
    recipe = replace(SICK, architecture=config, publication=Publication("toy-sick", "A toy", storage="float32"))
    assert run.run(family_of(recipe, runs, 1), None).epochs == 3
    trained = family_of(recipe, runs, 1)
    folder, manifest = toy_runs.published(trained)
    assert manifest.tasks == ("similarity", "entailment")
    graphs = {f"{name}.onnx" for name in ("encoder", "entailment", "similarity")}
    assert {p.name for p in folder.iterdir()} == {"README.md", "golden.json", "manifest.json", *graphs}
    assert {f.metric for f in manifest.figures} == {"pearson", "spearman", "mse", "accuracy", "macro_f1"}
    assert (manifest.dim, manifest.architecture, manifest.languages) == (11, config.name, ("en",))
    assert manifest.provenance.recipe["architecture"]["kind"] == "ProjectionConfig"
    card = (folder / "README.md").read_text()
    for said in ("python -m training train toy-sick --seed 1", manifest.fingerprint, "sees no word order"):
        assert said in card
    published = PublishedModel(folder)
    ids = torch.tensor([trained.table.tokenizer.encode("the cat sleeps", 9).ids])
    with torch.no_grad():
        expected = trained.load().encoder(ids, torch.tensor([3])).numpy()
    assert expected.shape == (1, 11)
    np.testing.assert_allclose(published.embed(["the cat sleeps"]), expected, atol=1e-6)
    for pair in GoldenPairs.load(folder / "golden.json").pairs:
        answer = published.similarity([pair.a], [pair.b])
        assert answer.score[0] == pytest.approx(pair.score, abs=1e-6)
        assert published.entailment([pair.a], [pair.b])[0] == pytest.approx(pair.probabilities, abs=1e-6)


def test_a_transfer_run_is_calibrated_to_ratings_and_measured_on_every_set(runs: Path, tmp_path: Path) -> None:
    folder, manifest = toy_runs.published(toy_runs.as_begun(TRANSFER, runs))
    assert manifest.similarity is not None
    assert manifest.similarity.raw_range == (-1.0, 1.0)  # of a cosine
    assert manifest.similarity.calibration is not None
    same = PublishedModel(folder).similarity(["a cat"], ["a cat"])
    assert same.raw_score[0] == pytest.approx(1.0)
    assert same.rating is not None
    assert same.rating[0] == pytest.approx(5.0)
    (measured,) = read_figures(tmp_path / "figures")
    assert measured.command == "python -m training publish toy-transfer --seed 1"
    assert len([f for f in measured.figures if f.split == "mean of sets"]) == 5  # four years and all sets


def test_any_finished_run_is_published_under_its_own_name_or_another_id(runs: Path, tmp_path: Path) -> None:
    experiment = replace(SICK, name="toy-experiment", publication=None, schedule=Schedule(epochs=0, batch_size=2))
    family = toy_runs.trained(experiment, runs)
    folder, manifest = toy_runs.published(family)
    assert folder == tmp_path / "models" / "toy-experiment"
    assert (manifest.id, manifest.title) == ("toy-experiment", "Recipe toy-experiment: word_averaging")
    other, manifest = toy_runs.published(family, model_id="mine", storage="float32")
    assert other == tmp_path / "models" / "mine"
    measured = {run.key: run.figures for run in read_figures(tmp_path / "figures")}
    assert measured["toy-experiment", 1, "float32"] == manifest.figures


SENTIMENTS: dict[sst.Labels, list[tuple[str, int]]] = {
    "binary": [("the cat sleeps", 1), ("a dog runs", 0), ("a man plays", 1), ("the dog runs", 1), ("not a guitar", 0)],
    "ternary": [("the cat sleeps", 4), ("a dog runs", 0), ("a man plays", 2), ("the dog runs", 3), ("not a guitar", 1)],
}


@pytest.mark.parametrize("labels", SENTIMENTS)
def test_sentiment_is_published_with_its_labels_and_a_temperature(
    runs: Path, write: Callable[..., Path], labels: sst.Labels
) -> None:
    for task, file in (("binary", "binary"), ("ternary", "fine")):
        for part in ("train", "dev", "test"):
            rows = SENTIMENTS[task][part != "train" :]  # type: ignore[index]
            write(f"sst/sst-{file}.{part}.tsv", ("label", "sentence"), *((str(label), text) for text, label in rows))
    recipe = replace(SICK, data=SSTSentences(labels=labels), objective=SentimentConfig(hidden=3))
    folder, manifest = toy_runs.published(toy_runs.trained(recipe, runs))
    assert manifest.tasks == ("classification",)
    task = manifest.classification
    assert task is not None
    assert (task.labels, (folder / task.graph).is_file()) == (sst.LABELS[labels], True)
    # With three labels those of two are measured too, by the likelier of negative and positive.
    corpora = {"binary": ("SST",), "ternary": ("SST", "SST with neutral")}[labels]
    assert {(f.task, f.corpus, f.metric) for f in manifest.figures} == {
        ("classification", corpus, metric)
        for corpus in corpora
        for metric in ("accuracy", "macro_f1", "calibration_error")
    }
    published = PublishedModel(folder)
    for corpus, names in (("SST", sst.LABELS["binary"]), ("SST with neutral", sst.LABELS["ternary"])):
        rows = sst.read("test", "binary" if len(names) == 2 else "ternary")
        answers = published.classification([text for text, _ in rows])
        if corpus in corpora:
            likelier = [max(names, key=each.__getitem__) for each in answers]
            right = np.mean([said == names[label] for said, (_, label) in zip(likelier, rows, strict=True)])
            found = next(f for f in manifest.figures if f.corpus == corpus and f.metric == "accuracy")
            assert (found.value, found.rows) == (pytest.approx(right), len(rows))
    for pair in GoldenPairs.load(folder / "golden.json").pairs:
        assert pair.classes is not None
        assert list(pair.classes) == [pytest.approx(each) for each in published.classification([pair.a, pair.b])]
    assert task.temperature != 1.0
    assert ", ".join(sst.LABELS[labels]) in (folder / "README.md").read_text()


def test_words_that_siamese_runs_froze_are_shared_and_a_gated_average_has_a_graph_of_its_words(runs: Path) -> None:
    frozen = replace(TRANSFER, optimiser=replace(SICK.optimiser, embedding_learning_rate=None))
    shared = {}
    for name, architecture, scale in (("toy-gran", GRANConfig(), 2.0), ("toy-lstm", LSTMConfig(), 1.0)):
        publication = Publication(name, "A toy")
        recipe = replace(frozen, name=name, architecture=architecture, row_scale=scale, publication=publication)
        _, manifest = toy_runs.published(toy_runs.as_begun(recipe, runs, scale))
        shared[name] = {file: entry.sha256 for file, entry in manifest.files.items() if entry.shared}
        assert (manifest.token_embeddings is not None) == (name == "toy-gran")
    gran, lstm = shared.values()
    assert set(gran) == {"embedding.codes.npy", "embedding.scale.npy", "tokenizer.json"}
    assert gran["embedding.codes.npy"] == lstm["embedding.codes.npy"]
    assert gran["embedding.scale.npy"] != lstm["embedding.scale.npy"]  # the factor falls on the scales


def test_shrink_keeps_frequent_words_and_the_words_of_the_texts() -> None:
    table = toys.table()
    smaller = shrink(table, 5, ["guitar plays"])
    assert smaller.tokenizer.words == ("the", "a", "man", "plays", "guitar")
    assert len(smaller.rows) == len(smaller.tokenizer)
    for word in smaller.tokenizer.words:
        (old,), (new,) = table.tokenizer.encode(word, 9).ids, smaller.tokenizer.encode(word, 9).ids
        np.testing.assert_array_equal(table.rows[old], smaller.rows[new])
    assert smaller.tokenizer.encode("park", 9).unknown == 1


def test_a_published_folder_can_be_read_by_others_and_replaces_the_old_one_whole(tmp_path: Path) -> None:
    new, target = tmp_path / "new", tmp_path / "models" / "toy"
    new.mkdir(mode=0o700)
    (new / "fresh").write_text("1")
    target.mkdir(parents=True)
    (target / "stale").write_text("0")
    replace_folder(new, target)
    assert [p.name for p in target.iterdir()] == ["fresh"]
    assert target.stat().st_mode & 0o777 == 0o755
    assert [p.name for p in target.parent.iterdir()] == ["toy"]  # nothing half-made beside it


def test_a_copy_that_fails_and_a_kill_leave_the_old_folder(tmp_path: Path) -> None:
    new, target = tmp_path / "new", tmp_path / "models" / "toy"
    new.mkdir()
    (new / "fresh").write_text("1")
    killed = target.with_name(".toy.old")
    killed.mkdir(parents=True)
    (killed / "stale").write_text("0")

    (new / "gone").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"models/toy cannot be written: \[Errno 2\] No such file or directory: '"):
        replace_folder(new, target)
    (new / "gone").unlink()
    assert [p.name for p in target.parent.iterdir()] == ["toy"]
    assert [p.name for p in target.iterdir()] == ["stale"]
    replace_folder(new, target)
    assert [p.name for p in target.iterdir()] == ["fresh"]
