"""`semblance choose`: models compared on labelled pairs, and the one recommended."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from semblance.cli.app import app
from semblance.errors import BatchError
from semblance.jobs import threshold
from semblance.jobs.threshold import Candidate, Scored, choose, compare, read_pairs, recommended
from tests.harness.labelled import ALIKE, models_in, scored
from tests.harness.tables import write

UNLIKE = [
    ("a man plays the guitar", "a dog runs in the park"),
    ("the cat sleeps", "the woman is playing the flute"),
    ("a woman plays the flute", "a dog sleeps on the sofa"),
    ("the man sleeps in the park", "a cat is not on the sofa"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models_in(tmp_path_factory.mktemp("models"))


def candidate(name: str, scores: list[float], seconds: float) -> Candidate:
    return Candidate(name, "similarity", np.array(scores), seconds, 0)


LABELS = np.array([True] * 10 + [False] * 10)
ORDERED = [0.9 - n / 100 for n in range(10)] + [0.1 + n / 100 for n in range(10)]
SURE = [0.125, *ORDERED[1:]]  # one pair on the wrong side of seven
NEARLY = [*ORDERED[:9], 0.105, *ORDERED[10:]]  # another on the wrong side of nine
LUCKLESS = [0.5, 0.4, 0.6, 0.3, 0.7] * 4


def test_the_best_is_recommended_whatever_it_costs_and_of_equal_ones_the_cheapest() -> None:
    given = [candidate("luckless", LUCKLESS, 0.001), candidate("sure", SURE, 1.0), candidate("nearly", NEARLY, 0.01)]
    found = compare(given, LABELS)
    assert [each.candidate.model for each in found] == ["sure", "nearly", "luckless"]
    assert recommended(found).candidate.model == "sure"
    again = compare([*given, candidate("as sure", SURE, 0.5)], LABELS)
    assert recommended(again).candidate.model == "as sure"
    assert compare(given, LABELS) == found


def _printed() -> list[tuple[str, str]]:
    """Options and what is printed with them, of which nothing depends on times."""
    parts = Path(__file__).with_name("chosen.txt").read_text(encoding="utf-8").split("=== ")[1:]
    return [(options, text) for options, text in (part.split("\n", 1) for part in parts)]


@pytest.mark.parametrize(("options", "text"), _printed(), ids=lambda given: given.split("\n")[0])
def test_what_is_printed_of_24_pairs(models: Path, tmp_path: Path, options: str, text: str) -> None:
    rows = [{"a": a, "b": b, "label": int(pairs is ALIKE)} for pairs in (ALIKE, UNLIKE) for a, b in pairs]
    rows[0]["a"] = "word " * 30
    path = write(tmp_path / "pairs.csv", rows * 3)
    asked = ["choose", str(path), "--models-dir", str(models), "--resamples", "50", *options.split()]
    lines = [line.rstrip() for line in CliRunner().invoke(app, asked, env={"COLUMNS": "80"}).output.splitlines()]
    if options == "--all":  # which one is recommended depends on times
        lines = [line.rpartition(" ")[0].rstrip() for line in lines[:7]]
    assert lines == text.splitlines()


@pytest.mark.parametrize(("low", "gap"), [(2e-7, 4e-7), (1 - 6e-7, 4e-7), (0.43, 0.2)])
def test_a_printed_threshold_lets_the_pairs_pass_that_it_was_chosen_for(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, low: float, gap: float
) -> None:
    scores = np.array([low + gap + n * gap / 50 for n in range(10)] + [low + n * gap / 50 for n in range(10)])

    async def found(*_: object, **__: object) -> tuple[list[Candidate], int]:
        return [Candidate("a", "similarity", scores, 0.1, 0)], 0

    monkeypatch.setattr(threshold, "candidates", found)
    rows = [{"a": f"a cat {n}", "b": "a dog", "label": int(right)} for n, right in enumerate(LABELS)]
    asked = ["choose", str(write(tmp_path / "pairs.csv", rows)), "--models-dir", str(models), "--resamples", "50"]
    printed = CliRunner().invoke(app, asked, env={"COLUMNS": "80"}).output
    (said,) = re.findall("recommended: (.*), for the highest F1", printed)
    assert ((scores >= float(said)) == LABELS).all()
    assert f"{said} " in printed  # in the table
    assert len(said) == len("0.5764") or gap < 0.1


def test_an_output_is_refused_without_an_faq(models: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.csv", [{"a": a, "b": b, "label": 1} for a, b in ALIKE])
    ran = CliRunner().invoke(app, ["choose", str(path), "--models-dir", str(models), "--output", "chosen.json"])
    assert (ran.exit_code, "--output: is for an FAQ" in ran.output) == (2, True), ran.output


def test_a_text_that_the_service_does_not_take_is_named_by_its_line(models: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.csv", [{"a": a, "b": "x" * 100_001, "label": n} for n, a in enumerate("yz")])
    error = CliRunner().invoke(app, ["choose", str(path), "--models-dir", str(models)]).exception
    assert isinstance(error, BatchError)
    assert str(error) == f"{path}: line 2: a text of 100001 characters, the limit is 100000"


def test_the_command_compares_the_main_models_and_every_one_where_asked(models: Path, tmp_path: Path) -> None:
    rows = [{"a": a, "b": b, "label": int(pairs is ALIKE)} for pairs in (ALIKE, UNLIKE) for a, b in pairs]
    path = write(tmp_path / "pairs.csv", rows * 3)
    asked = ["choose", str(path), "--models-dir", str(models), "--resamples", "50"]
    first = CliRunner().invoke(app, asked, env={"COLUMNS": "80"})
    assert first.exit_code == 0, first.output
    said = json.loads(CliRunner().invoke(app, [*asked, "--json"]).output)
    assert [row["model"] for row in said["models"]] == ["avg-paraphrase"]
    read = read_pairs(path)
    assert said["recommended"]["threshold"] == choose(
        scored(models, "avg-paraphrase", read, "similarity")[0], read.labels
    )
    assert said["intervals"]["resamples"] <= 50
    assert [round(each["threshold"], 1) for each in said["table"]] == [n / 10 for n in range(1, 10)]
    ran = CliRunner().invoke(app, [*asked, "--all"], env={"COLUMNS": "80"})
    assert "both, paraphrase" in ran.output
    assert "not compared" not in ran.output
    said = json.loads(CliRunner().invoke(app, [*asked, "--all", "--json"]).output)
    assert {(row["model"], row["task"]) for row in said["models"]} == {
        ("avg-paraphrase", "similarity"), ("avg-sick", "similarity"),
        *(("both", task) for task in ("similarity", "paraphrase", "relevance")),
    }  # fmt: skip
    for row in said["models"]:
        task: Scored = row["task"]
        scores, _ = scored(models, row["model"], read, task)
        above = scores[read.labels][:, None] - scores[~read.labels]
        assert row["auc"] == pytest.approx(np.mean((above > 1e-6) + 0.5 * (abs(above) <= 1e-6)), abs=1e-6)
        assert row["ms_a_pair"] > 0
    assert sum(row["recommended"] for row in said["models"]) == 1
    assert [row["auc"] for row in said["models"]] == sorted((row["auc"] for row in said["models"]), reverse=True)
