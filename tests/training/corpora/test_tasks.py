"""The mixture of several tasks: what each corpus teaches, and what is left out of it."""

import pytest

from training.corpora import tasks
from training.corpora.readers import intents, labelled_pairs, nli, sick, sts
from training.pairs import Pair

NLI = labelled_pairs.FILES["snli-train"]


@pytest.fixture
def evaluation(write):
    """One sentence in an evaluation set, one premise in each of the three parts for entailment."""
    write(
        sts.path_of("2016-test", "headlines"), ("score", "sentence_a", "sentence_b"), ("3", "Ice melts.", "It snows.")
    )
    for file, premise in (
        (nli.SNLI_FILES["dev"], "A man sings ."),
        (nli.SNLI_FILES["test"], "A man swims ."),
        (nli.MULTINLI_FILE, "A man waits."),
    ):
        write(file, nli.HEADER, ("neutral", premise, "Someone is alive."))


def test_evaluation_sentences_and_premises_are_left_out(write, evaluation):
    rows = [
        ("neutral", "x", "A man runs.", "It rains."),
        ("neutral", "x", "A man runs.", "Ice melts"),  # a sentence of STS
        ("neutral", "x", "a man sings", "He is loud."),  # premises of SNLI and MultiNLI
        ("neutral", "x", "A man swims.", "He is wet."),
        ("neutral", "x", "A man waits.", "He stands."),
        ("neutral", "x", "A man leaves.", "Someone is alive."),  # their hypotheses may come again
    ]
    write(NLI.file, NLI.header, *rows)
    assert [(pair.a, pair.b) for pair in tasks.read("snli-train")] == [
        ("A man runs.", "It rains."),
        ("A man leaves.", "Someone is alive."),
    ]


def test_texts_of_cosines_are_in_no_part_that_measures_entailment(evaluation):
    texts = ["It rains.", "a man SINGS", "A man swims.", "A man waits.", "someone is alive", "A man runs."]
    assert tasks.without_entailment_texts(texts) == ["It rains.", "A man runs."]


def test_pairs_to_choose_by_are_not_measured(monkeypatch):
    pairs = [Pair(f"a {i}", f"b {i}", label="neutral") for i in range(5000)]
    monkeypatch.setattr(nli, "snli", lambda split: pairs)
    monkeypatch.setattr(nli, "multinli", lambda: pairs)
    for name in ("snli", "multinli"):
        chosen = tasks.development(name)
        assert len(chosen) == 600
        assert not {p.a for p in chosen} & {p.a for p in tasks.measured(pairs)}


def test_a_negation_that_differs_in_marks_alone_is_none(write, evaluation):
    known = labelled_pairs.FILES["cannot"]
    rows = [
        ("x", "contradiction", "It rains", "It rains."),
        ("x", "contradiction", "It rains", "It does not rain"),
        ("x", "paraphrase", "It pours", "It pours."),
    ]
    write(known.file, known.header, *rows)
    expected = [("It does not rain", "contradiction"), ("It pours.", "entailment")]
    assert [(pair.b, pair.label) for pair in tasks.read("cannot")] == expected
    assert [(pair.b, pair.label) for pair in tasks.read("negations")] == [("It does not rain", "0"), ("It pours.", "1")]


def test_ratings_of_sick_become_values_from_0_to_1_and_test_pairs_are_left_out(write, monkeypatch):
    pairs = {
        "train": [Pair("A dog runs", "A dog walks", 1.0, "neutral"), Pair("It rains", "It pours", 5.0, "entailment")],
        "dev": [Pair("It pours", "It rains", 5.0, "entailment")],
        "test": [],
    }
    monkeypatch.setattr(sick, "read", pairs.get)
    tasks._read.cache_clear()
    assert tasks.read("sick") == (Pair("A dog runs", "A dog walks", 0.0, "neutral"),)
    tasks._read.cache_clear()


def test_premises_get_the_hypothesis_of_another_group_as_neutral(write, evaluation):
    known = labelled_pairs.FILES["entailment-bank"]
    rows = [
        ("A star is hot.", "a star glows", "entailment", "1", "step"),
        ("Ice is cold.", "ice cools", "entailment", "2", "x"),
    ]
    write(known.file, known.header, *rows)
    assert [(p.a, p.b, p.label) for p in tasks.read("entailment-bank")] == [
        ("A star is hot.", "a star glows", "entailment"),
        ("Ice is cold.", "ice cools", "entailment"),
        ("A star is hot.", "ice cools", "neutral"),
        ("Ice is cold.", "a star glows", "neutral"),
    ]


def test_a_sentence_that_does_not_answer_does_not_entail_the_question(write, evaluation):
    known = labelled_pairs.FILES["qnli-dev"]
    write(
        known.file, known.header, ("entailment", "Who came?", "Ann did."), ("not_entailment", "Who left?", "It rains.")
    )
    assert tasks.read("qnli-not") == (Pair("It rains.", "Who left?", label="not_entailment"),)


def test_answers_that_stand_in_a_set_kept_aside_are_left_out(write, evaluation):
    known = labelled_pairs.FILES["stackexchange"]
    said = "Beer keeps for a year when it is cold."
    write("bank-faq/hdfc-bank-faq.tsv.gz", ("question", "answer"), ("x", f"Well: {said} So do."))
    rows = [
        ("q", answer, "1", "g", "beer") for answer in (f"Yes! {said}", "Some say that it keeps for many years or so.")
    ]
    write(known.file, known.header, *rows)
    assert [p.b for p in tasks.read("stackexchange")] == ["Some say that it keeps for many years or so."]


def test_requests_are_edited_with_quora_s_questions(write, evaluation):
    quora = labelled_pairs.FILES["qqp-labelled"]
    write(quora.file, quora.header, ("1", "How do I raise money?", "What is Rome?"))
    for name in intents.FILES:
        write(intents.FILES[name], ("text", "intent"), ("import my data", name), ("Ice melts.", name))
    assert tasks.requests("intents-hwu64") == [("import my data", "hwu64")]  # the other one is a sentence of STS
    found = tasks.read("request-edits")
    assert {p.label for p in found} == {"0", "1"}
    assert any({p.a, p.b} == {"import my data", "export my data"} for p in found)
    with pytest.raises(ValueError, match="corpus must be one of snli-train"):
        tasks.read("intents-hwu64")


def test_edits_of_two_makers_are_kept_for_measuring(write):
    known = labelled_pairs.FILES["caption-contrast"]
    rows = [(maker, "swap", "0", f"a dog {maker}", f"a cat {maker}") for maker in ("sugarcrepe", "valse", "negclip")]
    write(known.file, known.header, *rows)
    assert tasks.read("caption-contrast") == (Pair("a dog negclip", "a cat negclip", tasks.CONTRAST),)
