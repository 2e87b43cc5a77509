"""Sentences and pairs of evaluation sets are in nothing that is learnt."""

import logging
from collections import Counter
from types import SimpleNamespace

import pytest

import papers.recipes  # noqa: F401 (makes them known)
from training.data import leakage, mixtures
from training.data.leakage import normalise_for_overlap
from training.data.mixtures import paraphrase_pairs, quotas, unlabelled_sentences
from training.data.pairs import Pair
from training.data.readers import captions, labelled_pairs, sts, wikipedia
from training.objectives.teacher_cosine import TeacherCosineConfig
from training.objectives.transfer import MarginConfig
from training.recipes import RECIPES
from training.recipes.recipe import Recipe
from training.recipes.sources import rated
from training.recipes.sources.labelled import CorpusPairs, SSTSentences, TeacherAnswers
from training.recipes.sources.rated import SickPairs, STSSplitPairs, TeacherPairs
from training.recipes.sources.transfer import ParaphrasePairs


def of(name: str) -> tuple[str, tuple[str, ...]]:
    """File and header in the table of labelled pairs."""
    known = labelled_pairs.FILES[name]
    return known.file, known.header


def test_the_form_in_which_sentences_are_compared():
    assert leakage.normalise_for_overlap("  The U.S.  team's _new_\tcar -- it's \u201cred\u201d! ") == (
        "the u s team s new car it s red"
    )
    assert leakage.normalise_for_overlap("?!") == ""
    assert leakage.normalise_for_overlap("\u306d\u3053  \u3067\u3059") != leakage.normalise_for_overlap("\u3044\u306c")


@pytest.mark.parametrize(
    ("text", "elsewhere"),
    [
        ("600 ships - about a third", "600 ships--about a third"),
        ("the head\u2026 she said", "the headâ€¦ she said"),
        ("it was splendid \u201dI loved it", "it was splendid ΓÇ¥I loved it"),
        ("the Mus\u00e9e Alsacien", "the Mus\ufffde Alsacien"),
        ("near Vedr\u00a0", "near Vedr\u252c\u00e1"),
    ],
)
def test_other_marks_and_broken_letters_are_the_same_sentence(text, elsewhere):
    assert leakage.normalise_for_overlap(text) == leakage.normalise_for_overlap(elsewhere)
    assert leakage.without_pairs([Pair("new", text)], [Pair(elsewhere, "new")]) == []


@pytest.fixture
def evaluation(write):
    write(*of("sick-train"), ("1", "A cat sleeps.", "A dog barks.", "1.5", "NEUTRAL"))
    write(sts.path_of("2013-test", "OnWN"), sts.HEADER, ("1", "a body of water.", "a dry place"))
    write(*of("stsb-dev"), ("5", "Benchmark dev", "dev two", "g", "s", "2015", "1"))
    write(*of("msrp-test"), ("1", "1", "2", "Shares rose.", "Shares went up."))
    write(*of("msrp-train"), ("1", "3", "4", "Shares fell.", "Shares went down."))
    write(*of("pit2015-test"), ("1", "t", "3", "debatable", "what a day", "such a day"))
    write(*of("wikiqa-dev"), ("1", "1", "who was he ?", "He was n't there -LRB- ever -RRB- ."))
    write(*of("wikiqa-train"), ("1", "1", "train question ?", "train answer"))


@pytest.mark.usefixtures("evaluation")
def test_sentences_are_of_every_evaluation_set_and_of_no_training_set_and_absent_sets_are_named(caplog):
    assert leakage.evaluation_sentences() == {
        "a cat sleeps", "a dog barks", "a body of water", "a dry place", "benchmark dev", "dev two", "shares rose",
        "shares went up", "what a day", "such a day", "who was he", "he was n t there lrb ever rrb",
        "he wasn t there ever",
    }  # fmt: skip
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        leakage.evaluation_sentences(["sick"])
    (record,) = caplog.records
    message = record.getMessage()
    assert message.startswith("2 evaluation sets are not filtered out, being absent: SICK: ")
    assert "SICK_trial.txt" in message
    assert "SICK_test_annotated.txt" in message
    texts = ["A CAT SLEEPS", "a cat sleeps well", "Such a day!", "He wasn't there (ever)."]
    assert list(leakage.without_evaluation_sentences(texts)) == ["a cat sleeps well"]
    pairs = [Pair("new", "a dog barks"), Pair("a dry place", "new"), Pair("new", "newer")]
    assert list(leakage.without_evaluation_sentences(pairs)) == [Pair("new", "newer")]


def test_pairs_are_the_same_in_either_order():
    assert leakage.pair_key("B it is!", "a") == leakage.pair_key("A", "b it is") == ("a", "b it is")
    train = [Pair("A cat.", "A dog."), Pair("A cat.", "A bird.")]
    assert leakage.without_pairs(train, [Pair("a dog", "a cat")]) == [train[1]]


def test_training_pairs_with_a_sentence_of_another_corpus_are_dropped_and_the_corpus_keeps_its_own(write):
    write(*of("sick-train"), ("1", "A cat sleeps.", "A dog barks.", "1.5", "NEUTRAL"))
    write(sts.path_of("2012-test", "MSRvid"), sts.HEADER, ("5", "a man plays", "A woman SINGS!"))
    own, foreign = Pair("A cat sleeps.", "New.", 3.0), Pair("New.", "a woman sings", 3.0)
    assert leakage.without_foreign_sentences([own, foreign, Pair("A man plays.", "New.")], "sick") == [own]
    with pytest.raises(ValueError, match=r"corpus must be one of .*sick, stsb"):
        leakage.without_foreign_sentences([own], "quora")


def test_the_pairs_that_tune_a_teacher_hold_no_sentence_of_another_corpus(write):
    rows = [
        ("1", "A cat sleeps.", "A dog barks.", "1.5", "NEUTRAL"),
        ("2", "A man plays.", "A dog barks.", "1.0", "NEUTRAL"),
        ("3", "A bird flies.", "A cow eats.", "1.0", "NEUTRAL"),
    ]
    write(*of("sick-train"), *rows)
    write(*of("sick-dev"), rows[2])
    write(*of("sick-test"), ("4", "A dog barks.", "A cow eats.", "1.0", "NEUTRAL"))
    write(sts.path_of("2012-test", "MSRvid"), sts.HEADER, ("5", "a man plays", "a woman sings"))
    assert [pair.a for pair in rated.pairs_for_others()] == ["A cat sleeps."]
    assert [pair.a for pair in rated.supervised_pairs()] == ["A cat sleeps.", "A man plays."]
    assert [pair.a for pair in SickPairs().train()] == ["A cat sleeps.", "A man plays."]
    assert [pair.a for pair in SickPairs(foreign=False).train()] == ["A cat sleeps."]


def test_a_teacher_is_tuned_on_those_and_rates_no_others(monkeypatch, tmp_path):
    kept, seen = [Pair("A cat sleeps.", "A dog barks.", 1.5)], []
    instead = {
        "pairs_for_others": lambda: kept,
        "held_out": list,
        "mixtures": SimpleNamespace(unlabelled_sentences=lambda **options: []),
        "tuned": lambda teacher, pairs, *more: seen.append(pairs) or tmp_path,
        "Teacher": lambda folder: SimpleNamespace(dim=3),
        "load_heads": lambda folder, dim: (None, None),
        "teacher_pairs": lambda data, rated, *more: rated,
    }
    for name, stand_in in instead.items():
        monkeypatch.setattr(rated, name, stand_in)
    assert TeacherPairs().train(tmp_path, tmp_path) == kept
    assert seen == [kept]


# What people rated, and the corpora that a model which learnt it may be measured on; rule 2 of `leakage`.
_MEASURED_ON = {"SickPairs": {"sick"}, "STSPairs": {"sick"}, "STSSplitPairs": {"sts-split"}, "SSTSentences": {"sst"}}
_QUESTIONS = {"wikiqa", "trecqa", "answers"}


def _allowed(data: object) -> set[str] | None:
    """The corpora a model that learnt from these data may be measured on; None: any."""
    match data:
        case CorpusPairs("twitter-labelled") | SickPairs(foreign=False):  # filtered by sentence
            return None
        case CorpusPairs(corpus) if corpus not in _QUESTIONS:
            return {corpus}
        case CorpusPairs() | TeacherAnswers():
            return _QUESTIONS
    return _MEASURED_ON.get(type(data).__name__)


def _measured(recipe: Recipe) -> str:
    match recipe.data:
        case CorpusPairs(corpus):
            return corpus
        case TeacherAnswers() as data:
            return data.selection
        case STSSplitPairs():
            return "sts-split"
        case SSTSentences():
            return "sst"
    siamese = isinstance(recipe.objective, TeacherCosineConfig | MarginConfig)
    return "transfer" if siamese else "sick"


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_no_model_is_measured_on_a_corpus_whose_ratings_a_run_it_starts_from_was_not_kept_from(name):
    recipe = RECIPES[name]
    measured, each = _measured(recipe), recipe
    while True:
        allowed = _allowed(each.data)
        assert allowed is None or measured in allowed, f"{name} is measured on {measured}, and learnt {each.data}"
        if each.start is None:
            break
        each = RECIPES[each.start]


FIVE = ("split", "image", "caption1", "caption2", "caption3", "caption4", "caption5")
WORDS = ["red", "green", "blue", "grey", "pink", "white", "black", "brown", "gold", "silver"]


@pytest.fixture
def corpora(write):
    write(*of("sick-test"), ("1", "How to boil an egg", "The dog is red", "2", "NEUTRAL"))
    questions = [(f"how do i paint {word} doors ?", f"what paints {word} doors ?") for word in WORDS]
    write(
        *of("quora"),
        *questions,
        ("how to boil an egg ?", "what way to boil eggs ?"),  # an evaluation sentence
        ("who is it then ?", "who is it , then"),  # equal sides
        (questions[0][1], questions[0][0]),  # a repeated pair
        ("too short", "how short is too short ?"),
    )
    write(*of("twitter-url"), ("rain &amp; wind in france", "france has `` rain '' and wind"))
    write(*of("twitter-labelled"), ("1", "one two three", "two three four"), ("0", "a b c", "x y z"))
    images = [("train", f"{i}.jpg", *(f"a {word} dog number {n}" for n in range(5))) for i, word in enumerate(WORDS)]
    images[1] = (*images[1][:6], "The dog is red.")
    write(captions.SOURCES["multi30k"], FIVE, *images)
    write(captions.OVERLAP_FILE, ("source", "image", "evaluation_sets"), ("multi30k-flickr30k", "0.jpg", "sick-test"))
    rows = [("asset", "valid", "the hard -lrb- long -rrb- sentence", f"the easy one {n}") for n in range(3)]
    write(*of("simplification"), *rows)


SHARES = {"quora": 0.5, "twitter-url": 0.2, "simplification": 0.3}


@pytest.mark.usefixtures("corpora")
def test_sentences_are_plain_distinct_and_without_evaluation_sentences_and_samples_follow_limit_shares_and_seed():
    sample = unlabelled_sentences(None, 0, SHARES)
    by_source = Counter(source for source, _ in sample)
    # ten pairs, "what way to boil eggs", "who is it then" once, "how short is too short"
    assert by_source == {"quora": 23, "twitter-url": 2, "simplification": 4}
    texts = [text for _, text in sample]
    assert {"rain & wind in france", 'france has "rain" and wind', "the hard (long) sentence"} <= set(texts)
    keys = [normalise_for_overlap(text) for text in texts]
    assert len(set(keys)) == len(keys)
    assert not {"how to boil an egg", "too short"} & set(keys)
    sample = unlabelled_sentences(10, 3, SHARES)
    # twitter-url has only its 2; the rest is 5 and 3
    assert Counter(source for source, _ in sample) == {"quora": 5, "twitter-url": 2, "simplification": 3}
    assert unlabelled_sentences(10, 3, SHARES) == sample
    assert unlabelled_sentences(10, 4, SHARES) != sample
    assert unlabelled_sentences(1000, 3, SHARES) == unlabelled_sentences(None, 3, SHARES)


@pytest.mark.usefixtures("corpora")
def test_pairs_are_positive_distinct_and_without_evaluation_sentences_and_those_of_one_image_share_a_group():
    pairs = paraphrase_pairs(None, 0, ["quora", "twitter-labelled"])
    assert Counter(pair.group for pair in pairs) == {"quora": 10, "twitter-labelled": 1}
    assert {pair.label for pair in pairs} == {"1"}
    red = {frozenset((pair.a, pair.b)) for pair in pairs if "red" in pair.a}
    assert red == {frozenset(("how do i paint red doors?", "what paints red doors?"))}
    groups = Counter(pair.group for pair in paraphrase_pairs(None, 0, ["multi30k", "simplification"]))
    assert "multi30k:0" not in groups  # in the overlap list
    # One of five captions is an evaluation sentence.
    assert (groups["multi30k:1"], groups["multi30k:2"], groups["simplification:0"]) == (6, 10, 3)


@pytest.mark.usefixtures("corpora")
def test_definitions_are_pairs_without_evaluation_sentences_and_the_card_credits_wordnet(monkeypatch):
    pairs = [Pair(a, "the act of going up", label="1") for a in ("go up a hill", "How to boil an egg", "rise")]
    monkeypatch.setattr(mixtures, "open_wordnet", lambda folder: pairs)
    monkeypatch.setattr(mixtures, "definition_pairs", iter)
    data = ParaphrasePairs(None, corpora=("wordnet", "twitter-url"))
    assert [pair.a for pair in data.train() if pair.group == "wordnet"] == ["go up a hill"]
    credited = {each.name: (each.rows, each.licence) for each in data.trained_on()}
    assert credited["WordNet 3.0"] == (1, "WordNet licence (permissive, Princeton University)")
    assert credited["twitter-url"][0] == 1


@pytest.mark.parametrize(
    ("available", "limit", "expected"),
    [
        ({"a": 100, "b": 100, "c": 100}, 10, {"a": 5, "b": 3, "c": 2}),
        ({"a": 100, "b": 1, "c": 100}, 10, {"a": 6, "b": 1, "c": 3}),
        ({"a": 0, "b": 0, "c": 4}, 10, {"a": 0, "b": 0, "c": 4}),
        ({"a": 2, "b": 3, "c": 4}, 9, {"a": 2, "b": 3, "c": 4}),
        ({"a": 100, "b": 100, "c": 100}, 0, {"a": 0, "b": 0, "c": 0}),
        ({"a": 100, "b": 100, "c": 100}, 1, {"a": 1, "b": 0, "c": 0}),
    ],
)
def test_quotas(available, limit, expected):
    assert quotas(available, limit, {"a": 0.5, "b": 0.3, "c": 0.2}) == expected


def test_definitions_are_what_follows_is(write):
    text = "Pacifism is a political philosophy that advocates peace. A lake (or mere) is any body of standing water."
    write(wikipedia.PARTS[0], (text,))
    for part in wikipedia.PARTS[1:]:
        write(part, ("It rained. Nothing to see.",))
    sample = unlabelled_sentences(None, 0, {"wikipedia-definitions": 1.0})
    assert sorted(text for _, text in sample) == [
        "a political philosophy that advocates peace",
        "any body of standing water",
    ]
