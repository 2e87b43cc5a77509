"""`semblance choose --faq`, and an FAQ that is asked."""

import json
from itertools import count
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from core.ranking import ONE_STAGE, TWO_STAGES, ConfidenceFit, Match, digest_of
from semblance import FAQ, Client
from semblance.cli.app import app
from semblance.cli.choose_faq import _milliseconds, chosen_faq
from semblance.client.faq import FAQEntry
from semblance.errors import BatchError, InvalidArgument, InvalidRequest
from semblance.jobs.faq.configurations import Configuration, Ranked, configurations, ranked
from semblance.jobs.faq.decisions import (
    best_threshold,
    calibration_error,
    compare,
    default_of,
    fit,
    folds_of,
    recommended,
)
from semblance.jobs.faq.files import NONE, Faq, Questions, columns_given, read_faq, read_questions
from semblance.jobs.faq.logistic import Flags, Floats
from semblance.jobs.faq.scores import Model, score
from tests.harness import fakes
from tests.harness.tables import write

ENTRIES: list[dict[str, Any]] = [
    {"id": "guitar", "question": "a man plays the guitar", "answer": "the man is playing"},
    {"id": "cat", "question": "a cat sleeps on the sofa", "answer": "the cat is not in the park"},
    {"id": "dog", "question": "a dog runs in the park", "answer": "the dog runs"},
    {"id": "flute", "question": "the woman is playing the flute", "answer": "a woman plays"},
]
QUESTIONS: list[dict[str, Any]] = [
    {"question": "the man plays a guitar", "id": "guitar"},
    {"question": "is the cat on the sofa", "id": "cat"},
    {"question": "the dog runs", "id": "dog"},
    {"question": "a woman plays the flute", "id": "flute"},
    {"question": "the cat sleeps", "id": "cat"},
    {"question": "a dog in the park", "id": "dog"},
    {"question": "not a man", "id": ""},
    {"question": "the sofa", "id": ""},
    {"question": "a woman sleeps", "id": ""},
    {"question": "is the park a sofa", "id": ""},
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    fakes.cosine_model(folder / "avg-paraphrase")
    fakes.interaction_model(folder / "pair-sick")
    return folder


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "faq.csv", ENTRIES), write(tmp_path / "questions.csv", QUESTIONS)


def some_rows(seed: int, rows: int = 400) -> tuple[Floats, Flags]:
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, 3)) * [1.0, 5.0, 0.1]
    chance = 1 / (1 + np.exp(-(features @ [1.0, -0.4, 8.0] - 0.5)))
    return features, random.random(rows) < chance


def test_the_fit_is_scikit_learns() -> None:
    features, right = some_rows(1)
    scaled = StandardScaler().fit(features)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(scaled.transform(features), right)
    ours = fit(features, right)
    np.testing.assert_allclose(
        ours.probability(features), theirs.predict_proba(scaled.transform(features))[:, 1], atol=1e-5
    )


def published(weights: Floats, intercept: float = 0.0, threshold: float = 0.3) -> ConfidenceFit:
    """A fit that a model has."""
    named = dict(zip(ONE_STAGE, weights.tolist(), strict=True))
    return ConfidenceFit(
        model="m", fingerprint="f", intercept=intercept, weights=named, threshold=threshold, rows=9,
        calibration_error=0.1, fitted_by="a test",
    )  # fmt: skip


def test_few_questions_hardly_move_a_known_fit_and_many_do() -> None:
    random = np.random.default_rng(2)
    known = published(np.array([0.75, 1.0, 0.25, 0.5]), -0.5)
    weights = np.array(list(known.weights.values()))

    def moved(rows: int) -> float:
        features = random.normal(size=(rows, 4))
        right = random.random(rows) < 1 / (1 + np.exp(features @ weights))  # the contrary of what is known
        line = fit(features, right, known)
        far = np.hypot.reduce([*(line.weights - weights), line.intercept - known.intercept])
        return float(far / np.hypot.reduce([*(2 * weights), known.intercept]))

    assert moved(20) < 0.4
    assert moved(5_000) > 0.9
    none_right = fit(np.ones((3, 4)), np.zeros(3, dtype=bool), known)
    assert none_right.probability(np.ones((1, 4))) < 1 / (1 + np.exp(-2.0))


def test_without_a_right_one_the_share_of_right_ones_is_the_probability() -> None:
    features, right = some_rows(3)
    never = np.zeros(len(right), dtype=bool)
    for rows in (1, 4, len(right)):  # as if there were half a right one more, of one row more
        np.testing.assert_allclose(fit(features[:rows], never[:rows]).probability(features[:9]), 0.5 / (rows + 1))


def test_the_threshold_weighs_a_right_answer_against_a_right_refusal() -> None:
    right, none = np.array([True] * 4 + [False] * 4), np.array([False] * 4 + [True] * 4)
    assert best_threshold(right, none) == 0.5  # whatever is not right has no answer
    assert best_threshold(right, np.zeros(8, dtype=bool)) == 0.0  # refusing is never right
    assert best_threshold(right, np.array([False] * 7 + [True])) == pytest.approx(0.2)
    assert best_threshold(np.ones(8, dtype=bool), np.zeros(8, dtype=bool)) == 0.0


def test_a_known_threshold_is_moved_by_many_questions_alone() -> None:
    wrong, none = np.zeros(500, dtype=bool), np.ones(500, dtype=bool)
    assert best_threshold(wrong[:0], none[:0], 0.3) == pytest.approx(0.3)
    assert 0.3 < best_threshold(wrong[:10], none[:10], 0.3) < 0.4 < best_threshold(wrong, none, 0.3) < 0.5


def test_each_fold_has_its_share_of_each_kind() -> None:
    right = np.array([True] * 10 + [False] * 20)
    none = np.array([False] * 20 + [True] * 10)
    folds = folds_of(right, none, 5, np.random.default_rng(1))
    for fold in range(5):
        here = folds == fold
        assert (right[here].sum(), none[here].sum(), here.sum()) == (2, 2, 6)


def test_the_calibration_error_of_chances_that_are_true_is_small() -> None:
    random = np.random.default_rng(4)
    chances = random.random(20_000)
    right = random.random(20_000) < chances
    assert calibration_error(chances, right) < 0.02
    assert calibration_error(np.full(20, 0.9), np.zeros(20, dtype=bool)) == pytest.approx(0.9)


def made(seconds: float, features: Floats, right: Flags, *fits: ConfidenceFit) -> Ranked:
    model = Model(f"m{seconds:g}", "f", reads_pairs=False, confidence=fits)
    places = [int(not each) for each in right]
    return Ranked(Configuration(model, "both", None), places, right, features, seconds)


SIZE = 60
WITHOUT = np.arange(SIZE) % 3 == 0
ASKED = Questions([f"q{i}" for i in range(SIZE)], [NONE if each else 0 for each in WITHOUT])


def test_the_best_comes_first_and_of_equal_ones_the_cheaper() -> None:
    noise = np.random.default_rng(5).normal(size=(SIZE, 4))
    clear = noise + 8.0 * ~WITHOUT[:, None]
    ways = [made(0.5, clear, ~WITHOUT), made(0.2, clear, ~WITHOUT), made(0.1, noise, np.zeros(SIZE, dtype=bool))]
    found = compare(ways, ASKED, resamples=200, seed=1)
    assert [each.ranked.seconds for each in found] == [0.2, 0.5, 0.1]
    assert recommended(found, None) is found[0]
    assert found[0].first_right == 1.0  # of those that have an answer
    right = found[0].decisions_right
    assert right.low <= right.value <= right.high
    assert right.value > 0.9
    assert found[-1].decisions_right.value <= WITHOUT.mean()
    for each in found:
        shares = each.outcome.right + each.outcome.wrong_given + each.outcome.refused_known
        np.testing.assert_allclose(shares, 1.0)
    assert compare(ways, ASKED, resamples=200, seed=1)[0].decisions_right == right


def test_the_default_is_left_only_for_what_is_surely_better() -> None:
    features = np.random.default_rng(6).normal(size=(SIZE, 4)) + 8.0 * ~WITHOUT[:, None]
    good = published(np.full(4, 1.0), -16.0).model_copy(update={"model": "m0.1"})
    as_it_is = made(0.1, features, ~WITHOUT, good)
    lucky = ~WITHOUT.copy()
    lucky[1] = False
    worse = made(0.1, features, lucky, good)  # one decision less right
    for default, left in ((as_it_is, False), (worse, False), (made(0.1, features, WITHOUT, good), True)):
        found = compare([default, made(0.2, features, ~WITHOUT)], ASKED, resamples=50, seed=1)
        usual = default_of(found, "m0.1")
        assert usual is not None
        assert usual.ranked is default
        assert not usual.own
        assert (recommended(found, usual) is not usual) == left
    assert default_of(found, "m0.2") is None  # which has no fit of its own


def test_no_question_is_decided_by_a_fit_that_has_seen_it() -> None:
    """Features that say nothing decide no better than chance, however many there are for the questions."""
    random = np.random.default_rng(7)
    right = np.arange(SIZE) % 2 == 0
    questions = Questions(ASKED.texts, [0 if each else NONE for each in right])
    shares = []
    for _ in range(10):
        (found,) = compare([made(0.1, random.normal(size=(SIZE, 25)), right)], questions, resamples=20, seed=1)
        shares.append(found.decisions_right.value)
        seen = found.line.probability(found.ranked.features) >= found.threshold
        assert (seen == right).mean() > 0.65
    assert np.mean(shares) < 0.56


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"id": "a", "question": "q"}], "no column 'answer'"),
        ([*ENTRIES, ENTRIES[0]], r"line 6: id 'guitar' is that of line 2 too"),
        ([*ENTRIES, {"id": "x", "question": " ", "answer": "a"}], "line 6: question: the text has no visible"),
        (ENTRIES[:1], "2 entries or more"),
        ([{"question": "q", "answer": "a"}] * 1001, "1,001 entries; a request may have 1,000"),
    ],
)
def test_a_bad_faq_is_refused(tmp_path: Path, entries: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(BatchError, match=message):
        read_faq(write(tmp_path / "faq.csv", entries))


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([{"question": "q"}] * 10, "no column 'expected'"),
        ([*QUESTIONS, {"question": "q", "id": "bird"}], "line 12: no entry of the FAQ has the id 'bird'"),
        (QUESTIONS[:9], "expected 10 questions or more"),
        ([*QUESTIONS[:6], *QUESTIONS[:4]], "3 without, which the FAQ does not answer; found 10, 0 without"),
    ],
)
def test_bad_questions_are_refused(tmp_path: Path, questions: list[dict[str, Any]], message: str) -> None:
    faq = read_faq(write(tmp_path / "faq.csv", ENTRIES))
    with pytest.raises(BatchError, match=message):
        read_questions(write(tmp_path / "questions.csv", questions), faq)


def test_entries_without_ids_are_numbered(tmp_path: Path) -> None:
    rows = [{"question": each["question"], "answer": each["answer"]} for each in ENTRIES]
    assert [entry.id for entry in read_faq(write(tmp_path / "faq.csv", rows)).entries] == ["1", "2", "3", "4"]
    numbered = write(tmp_path / "faq.jsonl", [{**row, "id": n} for n, row in enumerate(rows)])
    assert [entry.id for entry in read_faq(numbered).entries] == ["0", "1", "2", "3"]


def test_ids_of_a_column_with_gaps_are_whole_numbers(tmp_path: Path) -> None:
    entries = [{**each, "id": n} for n, each in enumerate(ENTRIES)]
    faq = read_faq(write(tmp_path / "faq.parquet", entries))
    asked = [{"question": each["question"], "expected": None if n > 5 else 1.0} for n, each in enumerate(QUESTIONS)]
    assert read_questions(write(tmp_path / "asked.parquet", asked), faq).right == [1] * 6 + [NONE] * 4


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    faq = tmp_path / "faq.csv"
    faq.write_text("Question;Answer\nWhere?;Here.\nWhen?;Now.\n")
    assert [entry.question for entry in read_faq(faq).entries] == ["Where?", "When?"]
    asked = [
        {"Frage": each["question"], "Expected": str(n % 2 + 1) if n < 6 else ""} for n, each in enumerate(QUESTIONS)
    ]
    for suffix in ("csv", "jsonl"):
        path = write(tmp_path / f"asked.{suffix}", asked)
        found = read_questions(path, read_faq(faq), columns=columns_given(["asked=Frage"]))
        assert found.right == [0, 1] * 3 + [NONE] * 4
        with pytest.raises(BatchError, match="no column 'question'"):
            read_questions(path, read_faq(faq))
    with pytest.raises(BatchError, match="no column 'Titel'"):
        read_faq(faq, columns=columns_given(["id=Titel"]))
    for wrong in ("Frage", "asked=", "title=Frage"):
        with pytest.raises(BatchError, match="expected question=NAME"):
            columns_given([wrong])


@pytest.mark.parametrize("reranked", [False, True])
def test_the_file_names_the_second_stage_where_there_is_one(reranked: bool) -> None:
    random = np.random.default_rng(5)
    right = np.arange(60) % 3 > 0
    questions = Questions([f"q{i}" for i in range(60)], [0 if each else NONE for each in right])
    models = [Model(name, f"{name}-f", reads_pairs=False, confidence=[]) for name in ("first", "second")]
    configuration = Configuration(models[0], "either", models[1] if reranked else None)
    features = random.normal(size=(60, len(TWO_STAGES if reranked else ONE_STAGE))) + 8.0 * right[:, None]
    places = [int(not each) for each in right]
    (taken,) = compare([Ranked(configuration, places, right, features, 0.1)], questions, resamples=50, seed=1)
    assert taken.own
    entries = [FAQEntry(id="a", question="Where?", answer="Here.")]
    found = chosen_faq(taken, Faq(entries), 7, "a command").settings
    second = {"rerank_model": "second", "rerank_top": 7} if reranked else {}
    assert {name: value for name, value in found.items() if name != "confidence_fit"} == {
        "model": "first", **second, "match": "either",
    }  # fmt: skip
    fitted = found["confidence_fit"]
    assert (fitted["threshold"], fitted["entries"]) == (round(taken.threshold, 4), digest_of([("Where?", "Here.")]))
    assert {name: fitted.get(name) for name in second} == second
    assert fitted.get("rerank_fingerprint") == ("second-f" if reranked else None)
    as_built_in = chosen_faq(taken._replace(own=False), Faq(entries), 7, "a command").settings
    assert as_built_in == {"model": "first", **second, "match": "either"}


def test_a_configuration_ranks_as_the_service_does(models: Path, files: tuple[Path, Path]) -> None:
    """The order and the features that the command computes itself are those of `POST /rank`."""
    faq = read_faq(files[0])
    questions = read_questions(files[1], faq)
    with Client.local(models) as client:
        scores = score(client, faq, questions, None, every=True, clock=lambda: 0.0, step=lambda *_: None)
        found = configurations(scores.models)
        assert len(found) == 4 * 2  # one model alone, and before the one that reads pairs; four matches
        for each in found:
            answers = ranked(each, scores, faq, questions)
            line = fit(answers.features, answers.right)
            second: dict[str, Any] = {}
            if each.second is not None:
                second = {"rerank_model": each.second.id, "rerank_top": scores.rerank_top}
            versions = {"rerank_fingerprint": each.second.fingerprint} if each.second is not None else {}
            settings = {
                "model": each.model.id, "match": each.match, **second,
                "confidence_fit": {
                    "model": each.model.id, "fingerprint": each.model.fingerprint, **second, **versions,
                    "intercept": line.intercept,
                        "weights": line.named(ONE_STAGE if each.second is None else TWO_STAGES),
                    "threshold": 0.0, "rows": 10, "calibration_error": 0.1, "fitted_by": "a test",
                },
            }  # fmt: skip
            chances = line.probability(answers.features)
            for i, question in enumerate(questions.texts):
                reply = client.answer(question, FAQ(tuple(faq.entries), settings))
                assert reply.entry == faq.entries[answers.first[i]]
                assert reply.confidence == pytest.approx(chances[i], abs=1e-4)


def test_of_two_texts_a_model_that_reads_pairs_costs_twice_as_much(models: Path, files: tuple[Path, Path]) -> None:
    faq = read_faq(files[0])
    ticks = count()
    with Client.local(models) as client:
        questions = read_questions(files[1], faq)
        scores = score(client, faq, questions, None, every=True, clock=lambda: next(ticks) ** 2, step=lambda *_: None)
    for model in scores.models:
        costs = [scores.cost(model, match) for match in get_args(Match)]  # question, answer, both, either
        assert costs == [costs[0]] * 3 + [costs[0] * (2 if model.reads_pairs else 1)]


def test_the_command_writes_what_the_client_and_the_service_take(
    models: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    output = tmp_path / "chosen.json"
    asked = ["choose", "--faq", str(files[0]), str(files[1]), "--models-dir", str(models), "--output", str(output)]
    ran = CliRunner().invoke(app, [*asked, "--all", "--resamples", "50"])
    assert ran.exit_code == 0, ran.output
    assert "4 entries; 10 questions, of which 6 have an answer there" in ran.output
    assert "refusing everything: 0.40 of the decisions right" in ran.output
    assert "not shown" not in ran.output
    said = json.loads(CliRunner().invoke(app, [*asked, "--all", "--resamples", "50", "--json"]).output)
    assert (said["entries"], said["questions"], len(said["configurations"])) == (4, 10, 8)
    (taken,) = [each for each in said["configurations"] if each["recommended"]]
    right = [each["decisions_right"] for each in said["configurations"]]
    assert right == sorted(right, reverse=True)
    assert {each["question"] for each in said["wrong"]} <= {each["question"] for each in QUESTIONS}
    faq = FAQ.load(output)
    assert faq.entries == tuple(FAQEntry(**each) for each in ENTRIES)
    assert (faq.settings["model"], faq.settings["match"]) == (taken["model"], taken["match"])
    threshold = faq.settings["confidence_fit"]["threshold"]
    assert threshold == pytest.approx(taken["threshold"], abs=1e-4)
    with Client.local(models) as client:
        for question in QUESTIONS:
            reply = client.answer(question["question"], faq)
            assert reply.confidence is not None
            assert reply.ranking.answered == (reply.confidence >= threshold)
            assert (reply.entry is not None) == reply.ranking.answered
            if reply.entry is not None:
                assert reply.ranking.results[0].id == reply.entry.id


def test_the_command_refuses_what_does_not_fit(models: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    asked = ["choose", "--faq", str(files[0]), str(files[1]), "--models-dir", str(models)]
    ran = CliRunner().invoke(app, [*asked, "--task", "similarity"])
    assert (ran.exit_code, "--task" in ran.output) == (2, True)
    other = tmp_path / "mine.json"
    other.write_text('{"mine": 1}')
    ran = CliRunner().invoke(app, [*asked, "--output", str(other)])
    assert isinstance(ran.exception, BatchError)
    assert "holds something else" in str(ran.exception)
    assert other.read_text() == '{"mine": 1}'
    ran = CliRunner().invoke(app, [*asked, "--model", "nope"])
    assert "model 'nope' is not served or has no similarity" in str(ran.exception)
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    for path in (other, deep, tmp_path / "absent.json"):
        with pytest.raises(InvalidArgument):
            FAQ.load(path)


def test_a_model_that_reads_pairs_needs_another_before_it(models: Path, files: tuple[Path, Path]) -> None:
    faq = read_faq(files[0])
    questions = read_questions(files[1], faq)
    with Client.local(models) as client, pytest.raises(BatchError, match="pair-sick: name a model as well"):
        score(client, faq, questions, ["pair-sick"], every=False, clock=lambda: 0.0, step=lambda *_: None)


def test_a_confidence_needs_all_candidates_in_one_request(tmp_path: Path) -> None:
    manifest = fakes.cosine_model(tmp_path / "avg-paraphrase")
    strict = published(np.ones(4), threshold=1.0).model_copy(
        update={"model": manifest.id, "fingerprint": manifest.fingerprint}
    )
    manifest.model_copy(update={"confidence": (strict,)}).save(tmp_path / "avg-paraphrase")
    candidates = [each["question"] for each in ENTRIES]
    with Client.local(tmp_path) as client:
        one = client.rank("a man", candidates)
        assert (one.answered, one.threshold, len(one.results)) == (False, 1.0, 4)
    with Client.local(tmp_path, max_items=2) as client:
        with pytest.raises(InvalidRequest, match="min_confidence"):
            client.rank("a man", candidates, min_confidence=0.5)
        whole = client.rank("a man", candidates)
        assert (whole.answered, whole.confidence, whole.threshold, len(whole.results)) == (True, None, None, 4)
        none = client.rank("a man", candidates, min_score=min(1.0, whole.results[0].score + 0.001))
        assert (none.answered, none.results) == (False, [])
        assert client.rank("a man", candidates, min_score=whole.results[0].score).results == whole.results


def test_milliseconds_have_three_digits_or_those_before_the_point() -> None:
    assert [_milliseconds(seconds) for seconds in (0.0033849, 0.09949, 0.2884, 1.5)] == ["3.38", "99.5", "288", "1,500"]
