from collections import Counter

import pytest

from training.corpora.leakage import normalise_for_overlap
from training.corpora.mixtures import paraphrase_pairs, quotas, unlabelled_sentences
from training.corpora.readers import captions, paraphrase, sick

FIVE = ("split", "image", "caption1", "caption2", "caption3", "caption4", "caption5")
TWO = ("sentence_a", "sentence_b")
WORDS = ["red", "green", "blue", "grey", "pink", "white", "black", "brown", "gold", "silver"]


@pytest.fixture
def corpora(write):
    write(sick.FILES["test"], sick.HEADER, ("1", "How to boil an egg", "The dog is red", "2", "NEUTRAL"))
    questions = [(f"how do i paint {word} doors ?", f"what paints {word} doors ?") for word in WORDS]
    write(
        paraphrase.QUORA_FILE,
        TWO,
        *questions,
        ("how to boil an egg ?", "what way to boil eggs ?"),  # an evaluation sentence
        ("who is it then ?", "who is it , then"),  # equal sides
        (questions[0][1], questions[0][0]),  # a repeated pair
        ("too short", "how short is too short ?"),
    )
    write(paraphrase.TWITTER_URL_FILE, TWO, ("rain &amp; wind in france", "france has `` rain '' and wind"))
    header = ("label", *TWO)
    write(paraphrase.TWITTER_LABELLED_FILE, header, ("1", "one two three", "two three four"), ("0", "a b c", "x y z"))
    images = [("train", f"{i}.jpg", *(f"a {word} dog number {n}" for n in range(5))) for i, word in enumerate(WORDS)]
    images[1] = (*images[1][:6], "The dog is red.")
    write(captions.SOURCES["multi30k"], FIVE, *images)
    write(captions.OVERLAP_FILE, ("source", "image", "evaluation_sets"), ("multi30k-flickr30k", "0.jpg", "sick-test"))
    header = ("source", "split", "complex", "simple")
    rows = [("asset", "valid", "the hard -lrb- long -rrb- sentence", f"the easy one {n}") for n in range(3)]
    write(paraphrase.SIMPLIFICATION_FILE, header, *rows)


SHARES = {"quora": 0.5, "twitter-url": 0.2, "simplification": 0.3}


@pytest.mark.usefixtures("corpora")
def test_sentences_are_plain_distinct_and_without_evaluation_sentences():
    sample = unlabelled_sentences(None, 0, SHARES)
    by_source = Counter(source for source, _ in sample)
    # ten pairs, "what way to boil eggs", "who is it then" once, "how short is too short"
    assert by_source == {"quora": 23, "twitter-url": 2, "simplification": 4}
    texts = [text for _, text in sample]
    assert "rain & wind in france" in texts
    assert 'france has "rain" and wind' in texts
    assert "the hard (long) sentence" in texts
    keys = [normalise_for_overlap(text) for text in texts]
    assert len(set(keys)) == len(keys)
    assert "how to boil an egg" not in keys
    assert "too short" not in keys


@pytest.mark.usefixtures("corpora")
def test_samples_follow_limit_shares_and_seed():
    sample = unlabelled_sentences(10, 3, SHARES)
    # twitter-url has only its 2; the rest is 5 and 3
    assert Counter(source for source, _ in sample) == {"quora": 5, "twitter-url": 2, "simplification": 3}
    assert unlabelled_sentences(10, 3, SHARES) == sample
    assert unlabelled_sentences(10, 4, SHARES) != sample
    assert unlabelled_sentences(1000, 3, SHARES) == unlabelled_sentences(None, 3, SHARES)


@pytest.mark.usefixtures("corpora")
def test_pairs_are_positive_distinct_and_without_evaluation_sentences():
    pairs = paraphrase_pairs(None, 0, ["quora", "twitter-labelled"])
    assert Counter(pair.group for pair in pairs) == {"quora": 10, "twitter-labelled": 1}
    assert {pair.label for pair in pairs} == {"1"}
    assert {frozenset((pair.a, pair.b)) for pair in pairs if "red" in pair.a} == {
        frozenset(("how do i paint red doors?", "what paints red doors?"))
    }


@pytest.mark.usefixtures("corpora")
def test_pairs_of_one_image_or_complex_sentence_share_a_group():
    pairs = paraphrase_pairs(None, 0, ["multi30k", "simplification"])
    groups = Counter(pair.group for pair in pairs)
    assert "multi30k:0" not in groups  # in the overlap list
    assert groups["multi30k:1"] == 6  # one of its five captions is an evaluation sentence
    assert groups["multi30k:2"] == 10
    assert groups["simplification:0"] == 3


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
    from training.corpora.readers import wikipedia

    text = (
        "Anarchism is a political philosophy that advocates stateless societies. It rained. A lake (or mere) is any "
        "body of standing water."
    )
    write(wikipedia.PARTS[0], (text,))
    for part in wikipedia.PARTS[1:]:
        write(part, ("Nothing to see.",))
    sample = unlabelled_sentences(None, 0, {"wikipedia-definitions": 1.0})
    assert sorted(text for _, text in sample) == [
        "a political philosophy that advocates stateless societies",
        "any body of standing water",
    ]
