"""`python -m workbench tune`: from labelled pairs and a published model to another one that answers."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from core.manifest import MANIFEST_NAME, Manifest
from core.sequences import pad
from semblance.tables.labelled_pairs import PairsError, read_own
from tests.harness.tables import write
from tests.workbench import foreign
from tests.workbench.tuning import starts
from training.publish.runtime import PublishedModel
from training.recipes.recipe import OptimiserConfig, Schedule
from training.train.folder import RecipeChangedError
from workbench.__main__ import app, run_cli
from workbench.imports.folder import import_model
from workbench.tuning import plan
from workbench.tuning.objective import TuneObjective
from workbench.tuning.plan import TuningPlan
from workbench.tuning.read_back import TuneRefused, WorseThanStart, read_start
from workbench.tuning.split import split
from workbench.tuning.tune import TuningOptions, TuningResult, tune

QUICK = TuningPlan(OptimiserConfig("adam", 0.05, 0.2), Schedule(6, 16, decay="linear"))
TRANSFORMER = TuningPlan(OptimiserConfig("adamw", 2e-3, None, clip=1.0), Schedule(4, 16, decay="linear"))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A toy learns in a second what a real model takes minutes for."""
    monkeypatch.setattr(plan, "AVERAGING", QUICK)
    monkeypatch.setattr(plan, "TRANSFORMER", TRANSFORMER)


Tune = Callable[..., TuningResult]


@pytest.fixture
def tuned(tmp_path: Path) -> Tune:
    """Tune the model `toy` of the folder of models, an average, on rows in a file of pairs."""
    starts.average_model(tmp_path / "models", "toy")

    def run(pairs: list[dict[str, object]], **more: Any) -> TuningResult:
        path = write(tmp_path / "pairs.jsonl", pairs)
        wish = {"start": "toy", "model_id": "mine", "models": tmp_path / "models", "runs": tmp_path / "runs"}
        return tune(TuningOptions(**(wish | {"pairs": path} | more)))

    return run


def test_labelled_pairs_make_a_better_model_with_a_card(tmp_path: Path, tuned: Tune) -> None:
    given = [*starts.rows("label", 300), {"a": "x", "b": 3, "label": 1}, {"a": "the cat"}]
    done = tuned(given)
    assert (done.material.rows, len(done.material.faults)) == (302, 2)
    assert done.after["auc"] > done.before["auc"]
    assert [fault.line for fault in done.material.faults] == [301, 302]

    folder = tmp_path / "models" / "mine"
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    model = PublishedModel(folder)
    held_out = done.material.part("held_out")
    scores = model.similarity([p.a for p in held_out], [p.b for p in held_out]).score
    right = np.array([p.label == "1" for p in held_out])
    assert scores[right].mean() > scores[~right].mean()
    assert ((scores > 0) & (scores < 1)).all()  # calibrated: a probability
    assert manifest.similarity is not None
    assert manifest.similarity.label_scale is None
    assert {f.metric: f.value for f in manifest.figures} == pytest.approx(dict(done.after))
    card = (folder / "README.md").read_text()
    assert f"| auc | {done.before['auc']:.4f} | {done.after['auc']:.4f} |" in card
    assert "302 rows, 2 of them left out" in card
    assert str(tmp_path) not in card + (folder / "manifest.json").read_text()

    for other in ({"pairs": given[:250], "seed": 2}, {"pairs": given, "start": "mine", "runs": tmp_path / "new"}):
        with pytest.raises(FileExistsError, match="was tuned from another model or on another file"):
            tuned(**other, epochs=1, even_if_worse=True)
    again = tuned(given, model_id="again", start="mine", epochs=1, even_if_worse=True)  # a tuned model can be tuned
    assert again.before["auc"] == pytest.approx(done.after["auc"])


def test_a_killed_run_ends_with_the_same_files(tmp_path: Path, tuned: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    given = starts.rows("label", 250)
    whole = tuned(given).folder
    schedule = replace(QUICK.schedule, checkpoint_seconds=0.0)
    monkeypatch.setattr(plan, "AVERAGING", replace(QUICK, schedule=schedule))
    loss = TuneObjective.loss
    seen = 0

    def killed(self: TuneObjective, batch: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == 21:
            raise KeyboardInterrupt
        return loss(self, batch)

    monkeypatch.setattr(TuneObjective, "loss", killed)
    other = {"runs": tmp_path / "others", "models": tmp_path / "models", "model_id": "mine2"}
    with pytest.raises(KeyboardInterrupt):
        tuned(given, **other)
    tuned(given, **other)
    assert seen == 21 + 6 * 13 - 20  # no batch was done twice
    ours, theirs = (Manifest.load(folder) for folder in (whole, tmp_path / "models" / "mine2"))
    assert ours.similarity == theirs.similarity
    assert [f.value for f in ours.figures] == [f.value for f in theirs.figures]
    with pytest.raises(RecipeChangedError, match="was begun with another schedule"):
        tuned(given, **other, epochs=3)


def test_a_model_that_is_worse_on_held_out_pairs_is_not_published(tmp_path: Path, tuned: Tune) -> None:
    given = starts.rows("label", 300)
    path = write(tmp_path / "pairs.jsonl", given)
    for i in split(read_own(path).pairs, "label", 1).held_out:
        given[i]["label"] = 1 - int(str(given[i]["label"]))
    # The split knows no labels: what is measured on says the contrary now.
    with pytest.raises(
        WorseThanStart, match=r"not published: on 30 held-out pairs auc is 0\.\d+, that of toy is 0\.\d+"
    ):
        tuned(given)
    assert not (tmp_path / "models" / "mine").exists()
    done = tuned(given, even_if_worse=True)
    assert done.after["auc"] < done.before["auc"]
    assert (done.folder / "manifest.json").is_file()


def test_answers_are_ranked_within_their_question(tuned: Tune) -> None:
    done = tuned(starts.rows("ranking", 800))
    assert done.after["map"] > done.before["map"]
    assert set(done.after) == set(done.before) == {"map", "mrr"}


def test_labels_of_entailment_are_refused(tuned: Tune) -> None:
    labels = ("entailment", "neutral", "contradiction")
    given = [row | {"label": labels[i % 3]} for i, row in enumerate(starts.rows("label", 200))]
    with pytest.raises(TuneRefused, match="labels of entailment are not learnt"):
        tuned(given)


def test_a_transformer_learns_from_ratings(tmp_path: Path, tuned: Tune) -> None:
    starts.transformer_model(tmp_path / "models", "other")
    done = tuned(starts.rows("score", 300), start="other")
    assert done.after["spearman"] > done.before["spearman"]
    held = [{text for p in done.material.part(name) for text in (p.a, p.b)} for name in done.material.parts._fields]
    assert not held[0] & held[1] | held[0] & held[2] | held[1] & held[2]


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")  # of the other libraries
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_was_imported_is_tuned_and_can_be_tuned_again(tmp_path: Path, tuned: Tune, dtype: torch.dtype) -> None:
    from sentence_transformers import SentenceTransformer

    folder = foreign.encoder(tmp_path / "theirs", "roberta", "cls")
    SentenceTransformer(str(folder), device="cpu").to(dtype).save_pretrained(str(folder), create_model_card=False)
    models, given = tmp_path / "models", starts.rows("label", 300)
    import_model(folder, "imported", models, storage="int8")
    done = tuned(given, start="imported", even_if_worse=True)  # random weights learn little
    mine, imported = (PublishedModel(models / name) for name in ("mine", "imported"))
    assert (mine.manifest.network_config, mine.manifest.pooling) == ("config.json", imported.manifest.pooling)
    pairs = done.material.part("held_out")
    sides = [p.a for p in pairs], [p.b for p in pairs]
    assert np.abs(mine.similarity(*sides).raw_score - imported.similarity(*sides).raw_score).max() > 0.02
    start = read_start(done.folder)  # from where it would be tuned again
    limit, texts = start.manifest.limits.max_tokens, list(sides[0][:8])
    ids = map(torch.from_numpy, pad([start.tokenizer.encode(text, limit).ids for text in texts]))
    with torch.inference_mode():
        found = start.network(*ids).numpy()
    assert (found * mine.embed(texts)).sum(axis=1).min() > 0.99 * np.linalg.norm(found, axis=1).max()


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
def test_what_was_imported_with_a_prompt_is_tuned_behind_it(tmp_path: Path, tuned: Tune) -> None:
    prompts = {"query": "q: ", "document": "", "sts": "the cat "}
    folder = foreign.encoder(tmp_path / "theirs", prompts=prompts, default_prompt_name="sts")
    import_model(folder, "imported", tmp_path / "models")
    done = tuned(starts.rows("score", 300), start="imported", even_if_worse=True)
    manifest = Manifest.load(done.folder)
    assert manifest.prompts == Manifest.load(tmp_path / "models" / "imported").prompts
    with pytest.raises(TuneRefused, match="imported: its queries and passages have prompts of their own"):
        tuned(starts.rows("ranking", 300), start="imported", model_id="other")


def test_what_cannot_be_done_is_refused_before_the_work(tmp_path: Path, tuned: Tune) -> None:
    rows = starts.rows("label", 300)
    with pytest.raises(FileExistsError, match="was not made by tuning: give another --id"):
        tuned(rows, model_id="toy")
    (tmp_path / "models" / "versions" / "1").mkdir(parents=True)
    with pytest.raises(FileExistsError, match="versions was not made by tuning: give another --id"):
        tuned(rows, model_id="versions")
    (tmp_path / "models" / "versions" / MANIFEST_NAME).write_text("{}")
    with pytest.raises(FileExistsError, match=r"manifest\.json.*: remove that folder, or give another --id"):
        tuned(rows, model_id="versions")
    (tmp_path / "models" / "a-file").write_text("kept")
    with pytest.raises(TuneRefused, match="a-file is no folder"):
        tuned(rows, model_id="a-file")
    with pytest.raises(TuneRefused, match="--id My Model: small letters"):
        tuned(rows, model_id="My Model")
    with pytest.raises(TuneRefused, match=r"--from nope: .*models or models \(--models\); there: toy\b"):
        tuned(rows, start="nope")
    with pytest.raises(PairsError, match=r"of 8 rows 5 do not fit: line 1: label: expected 0 or 1, found 'so'"):
        tuned([{"a": "x", "b": "y", "label": "so"}] * 5 + rows[:3])
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nothere.csv"], "nothere.csv"),
        (["."], "."),
        (["others.csv"], "others.csv: expected columns a, b and score"),
        (["equal.csv"], "equal.csv: all scores are 1"),
        (["pairs.csv", "--id", "../x"], "--id ../x: small letters"),
        (["pairs.csv", "--id", "toy"], "give another --id"),
        (["pairs.csv", "--from", "nope"], "--from nope: there is no such model"),
    ],
)
def test_what_was_given_wrong_ends_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    starts.average_model(tmp_path / "models", "toy")
    for name, content in {"pairs": "a,b,score\n", "others": "x,y\n1,2\n", "equal": "a,b,score\nx,y,1\n"}.items():
        Path(f"{name}.csv").write_text(content)
    with pytest.raises(SystemExit) as ended:
        run_cli(["tune", "--from", "toy", "--id", "mine", "--models", "models", *given], name="semblance")
    out = capsys.readouterr().out
    assert (ended.value.code, out.count("\n"), said in out) == (2, 1, True), out


@pytest.mark.parametrize("places", [[], ["--models", "models", "--runs", "elsewhere"]], ids=["own", "named"])
def test_the_command_says_what_it_did_and_puts_a_model_of_ones_own_into_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    starts.average_model(tmp_path / "models", "toy")
    path = write(tmp_path / "pairs.jsonl", starts.rows("label", 300))
    ran = CliRunner().invoke(app, ["tune", str(path), "--from", "toy", "--id", "mine", *places], env={"COLUMNS": "200"})
    assert ran.exit_code == 0, ran.output
    models = "models" if places else "own-models"
    said = ("held out: 30 pairs", "auc", "calibration error", "best epoch", f"published {models}/mine")
    assert [each for each in said if each not in ran.output] == []
    manifest = Manifest.load(tmp_path / models / "mine")
    manifest.verify(tmp_path / models / "mine")
    assert manifest.provenance.commands[-1] == "python -m workbench tune pairs.jsonl --from toy --id mine --seed 1"
    assert (tmp_path / "models" / "mine").exists() == (tmp_path / "elsewhere").exists() == bool(places)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"rate": 0.0}, r"--rate 0: expected a number above 0"),
        ({"rate": float("inf")}, r"--rate inf: expected a number above 0"),
        ({"rate": float("nan")}, r"--rate nan: expected a number above 0"),
        ({"seed": 10**20}, r"--seed 100000000000000000000: expected a number from 0 to "),
        ({"scale": (0.0, float("inf"))}, r"the scale must rise, got 0 to inf \(at most 1e\+100\)"),
        ({"scale": (-1e308, 1e308)}, r"the scale must rise, got -1e\+308"),
        ({"columns": ("a", "a", "score")}, r"expected three columns .*, found a, a, score"),
        ({"models": Path("/dev/null/x")}, r"--models /dev/null/x: /dev/null cannot be written into"),
    ],
)
def test_what_an_option_cannot_be_is_refused_before_training(
    tmp_path: Path, tuned: Tune, more: dict[str, Any], said: str
) -> None:
    with pytest.raises((TuneRefused, PairsError), match=said):
        tuned(starts.rows("score", 300), **more)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("content", [b"", b"3", b'{"from'])
def test_a_record_of_a_run_that_is_damaged_is_a_line(tmp_path: Path, tuned: Tune, content: bytes) -> None:
    record = tmp_path / "runs" / "tune-mine" / "seed-1" / "tune.json"
    record.parent.mkdir(parents=True)
    record.write_bytes(content)
    with pytest.raises(RecipeChangedError, match=r"tune\.json is damaged: move .*seed-1 away to start afresh"):
        tuned(starts.rows("score", 300))


def test_scores_too_large_to_be_squared_are_no_scores(tuned: Tune) -> None:
    given = [{**row, "score": 1e308 if i % 2 else -1e308} for i, row in enumerate(starts.rows("score", 300))]
    with pytest.raises(PairsError, match=r"score: -1e\+308 is no number from -1e\+100 to 1e\+100"):
        tuned(given)
