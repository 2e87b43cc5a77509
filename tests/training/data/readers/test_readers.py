"""Every reader on a file of its own: the rows that it gives, and the faults that it names."""

from collections.abc import Callable
from typing import Any

import pytest

from training.data import catalogue, transfer
from training.data.catalogue import PUBLISHED, Published
from training.data.files import CorpusError
from training.data.pairs import Pair
from training.data.penn import detokenise
from training.data.readers import captions, intents, labelled_pairs, sst, sts, wikipedia

Row = tuple[str, ...]
Read = Callable[[], Any]
QUESTIONS = [("q1", "1", "who ?", "Ann ."), ("q1", "0", "who ?", "no ."), ("q2", "0", "why ?", "x .")]
ANSWERS = [Pair(a, b, None, label, group) for group, label, a, b in QUESTIONS]
SICK = [
    ("7", "A cat sleeps", "The cat is awake", "3.4", "CONTRADICTION"),
    ("9", "A cat sleeps", "An animal sleeps", "4.5", "ENTAILMENT"),
]
# Rows of a file in the table of labelled pairs -> what comes of them.
LABELLED: dict[str, tuple[list[Row], list[Pair]]] = {
    "msrp-train": ([("1", "11", "12", "He left.", "He went away.")], [Pair("He left.", "He went away.", None, "1")]),
    "trecqa-dev-raw": (QUESTIONS, ANSWERS),
    "snli-dev": ([("neutral", "A dog .", "A big dog .")], [Pair("A dog .", "A big dog .", None, "neutral")]),
    "quora": ([("how are you", "how do you do")], [Pair("how are you", "how do you do", None, "1")]),
    "simplification": (
        [("asset", "valid", "hard one", "one"), ("wikisplit", "tune", "x y", "x . y")],
        [Pair("hard one", "one", None, "1"), Pair("x y", "x . y", None, "1")],
    ),
    "bible": (  # the train part alone
        [("KJV", "ASV", "train", "thou", "ye"), ("YLT", "BBE", "dev", "p", "q")],
        [Pair("thou", "ye", None, "1")],
    ),
    "ppdb-phrases": ([("4.5", "[NP]", "this video", "the movie", "4.0,5.0")], [Pair("this video", "the movie", 4.5)]),
    "malstm-extras": (  # no pair of SICK
        [("4.2", "a", "b", "-"), ("3", "c", "d", "sick-test"), ("2", "e", "f", "sick-train")],
        [Pair("a", "b", 4.2)],
    ),
    "sick-dev": (
        SICK,
        [
            Pair("A cat sleeps", "The cat is awake", 3.4, "contradiction"),
            Pair("A cat sleeps", "An animal sleeps", 4.5, "entailment"),
        ],
    ),
    "stsb-dev": ([("5.000", "a", "b", "main-news", "headlines", "2015", "0001")], [Pair("a", "b", 5.0)]),
    "qnli-dev": (  # labels of another name become ours
        [("not_entailment", "Who?", "Nobody came."), ("entailment", "Who?", "Ann came.")],
        [Pair("Who?", "Nobody came.", label="0", group="Who?"), Pair("Who?", "Ann came.", label="1", group="Who?")],
    ),
    "cad-nli": (
        [("neutral", "revised_premise", split, f"{split} a", f"{split} b") for split in ("train", "dev", "test")],
        [Pair("train a", "train b", label="neutral")],
    ),
    "mnli-not": (  # a label without a meaning here leaves its row out
        [("not_neutral", "a", "b"), ("not_entailment", "c", "d")],
        [Pair("c", "d", label="not_entailment")],
    ),
}


def of(name: str) -> tuple[Read, str, Row]:
    known = labelled_pairs.FILES[name]
    return lambda: labelled_pairs.read(name), known.file, known.header


# What is read, from a file of these rows under this header -> what comes of it.
READ: list[tuple[Read, str, Row, list[Row], list[Any]]] = [
    *((*of(name), rows, pairs) for name, (rows, pairs) in LABELLED.items()),
    (lambda: sst.read("dev"), "sst/sst-binary.dev.tsv", ("label", "sentence"),
     [("1", "wonderful ."), ("0", "dreadful .")], [("wonderful .", 1), ("dreadful .", 0)]),
    (
        sst.phrases,  # those of a whole sentence, and neutral ones, are left out
        sst.PHRASES_FILE,
        ("label", "sentence", "count", "phrase"),
        [
            ("0", "0", "2", "rather Dreadful"),
            ("1", "0", "1", "dull"),
            ("2", "0", "9", "of the"),
            ("3", "0", "1", "fine"),
            ("4", "0", "1", "a joy"),
            ("4", "1", "1", "This is a joy ."),
        ],
        [("rather Dreadful", 0), ("dull", 0), ("fine", 1), ("a joy", 1)],
    ),
    (lambda: sts.read("2012-test", "MSRvid"), "sts/2012-test/MSRvid.tsv", sts.HEADER,
     [("2.75", "A man runs.", "A man walks.")], [Pair("A man runs.", "A man walks.", 2.75, None, "2012-test/MSRvid")]),
    (*of("pit2015-dev"),
     [("3", "rain", "(4,1)", "1", "it rains", "rain !"), ("3", "rain", "(2,3)", "debatable", "it rains", "wet")],
     [Pair("it rains", "rain !", None, "1", "3"), Pair("it rains", "wet", None, "debatable", "3")]),
    (lambda: intents.read("hwu64"), intents.FILES["hwu64"], ("text", "intent"),
     [("where is my card?", "card_arrival")], [("where is my card?", "card_arrival")]),
]  # fmt: skip


@pytest.mark.parametrize(("read", "file", "header", "rows", "expected"), READ, ids=[case[1] for case in READ])
def test_rows_are_read(write, read, file, header, rows, expected):
    write(file, header, *rows)
    assert read() == expected


REFUSED: list[tuple[Read, str, Row, Row, str]] = [
    (sst.phrases, sst.PHRASES_FILE, ("label", "sentence", "count", "phrase"), ("5", "0", "1", "too good"),
     r"expected one of 0, 1, 2, 3, 4 in column label, got '5'"),
    (*of("sick-train"), ("8", "A", "B", "0.5", "NEUTRAL"), r"expected a number from 1 to 5 .* got '0\.5'"),
    (*of("msrp-train"), ("2", "1", "2", "A", "B"), "expected one of 0, 1 in column Quality, got '2'"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "file", "header", "row", "message"), REFUSED, ids=[case[1] for case in REFUSED])
def test_a_row_out_of_range_is_refused(write, read, file, header, row, message):
    write(file, header, row)
    with pytest.raises(CorpusError, match=message):
        read()


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: sts.read("2017-test", "images"), r"year must be one of 2012-train, .*; got '2017-test'"),
        (lambda: transfer.read("msrp"), r"set must be one of .*; got 'msrp'"),
    ],
)
def test_unknown_names_are_refused(read, message):
    with pytest.raises(ValueError, match=message):
        read()


def test_published_counts_are_checked(write, monkeypatch):
    (questions, file, header), (sick, of_sick, columns) = of("trecqa-dev-raw"), of("sick-train")
    published = {file: Published(2, {"0": 2}, groups=1), of_sick: Published(2, {"neutral": 1, "entailment": 1})}
    monkeypatch.setattr(catalogue, "PUBLISHED", published)
    write(file, header, ("q1", "0", "a ?", "b"), ("q2", "0", "c ?", "d"))
    with pytest.raises(CorpusError, match=r"^trecqa/dev-raw\.tsv: expected 1 groups \(questions\), got 2$"):
        questions()
    write(of_sick, columns, *SICK)
    with pytest.raises(CorpusError, match="expected labels entailment 1, neutral 1, got contradiction 1, entailment 1"):
        sick()


def test_a_year_of_sts_comes_by_set_and_its_totals_are_the_published_ones(write):
    for name in sts.SETS["2013-test"]:
        write(f"sts/2013-test/{name}.tsv", sts.HEADER, ("1", f"{name} one", f"{name} two"))
    year = sts.read_year("2013-test")
    assert list(year) == ["headlines", "OnWN", "FNWN"]
    assert year["FNWN"][0].a == "FNWN one"
    totals = {year: sum(PUBLISHED[sts.path_of(year, name)].rows for name in names) for year, names in sts.SETS.items()}
    assert list(totals.values()) == [2234, 3108, 1500, 3750, 3000, 1186]


def test_transfer_names_lead_to_the_right_readers(write):
    write("sts/2015-test/belief.tsv", sts.HEADER, ("4", "a b", "c d"))
    write(*of("sick-test")[1:], ("1", "e", "f", "2.5", "NEUTRAL"))
    write(*of("pit2015-test")[1:], ("1", "t", "3", "debatable", "g", "h"), ("1", "t", "5", "1", "i", "j"))
    assert [p.a for p in transfer.read("2015-test/belief")] == ["a b"]
    assert [p.target for p in transfer.read("sick-test")] == [2.5]
    assert [p.a for p in transfer.read("pit2015-test")] == ["i"]


FIVE = ("split", "image", "caption1", "caption2", "caption3", "caption4", "caption5")


def five(image: str, word: str) -> tuple[str, ...]:
    return ("train", image, *(f"{word} {number}" for number in range(1, 6)))


def test_captions_of_images_that_are_not_evaluated_and_every_unordered_pair_of_an_image(write):
    write(captions.SOURCES["multi30k"], FIVE, five("11.jpg", "red"), five("12.jpg", "green"))
    images = (five("12_ab.jpg", "green"), five("13_cd.jpg", "blue"), five("14_e.jpg", "x"))
    write(captions.SOURCES["flickr8k"], FIVE, *images)
    write(captions.SOURCES["coco"], ("image_id", "caption"), ("7", "one"), ("8", "two"), ("7", "three"))
    header = ("source", "image", "evaluation_sets")
    rows = (("multi30k-flickr30k", "11.jpg", "sick-test"), ("flickr8k", "14_e.jpg", "x"), ("coco-val2017", "8", "y"))
    write(captions.OVERLAP_FILE, header, *rows)
    assert list(captions.read("multi30k")) == ["12"]
    assert captions.read("coco") == {"7": ["one", "three"]}
    assert captions.read("flickr8k") == {"13": [f"blue {number}" for number in range(1, 6)]}  # only where it is new
    pairs = list(captions.pairs(captions.read("multi30k")))
    assert len(pairs) == 10
    assert pairs[0] == Pair("green 1", "green 2", group="12")
    assert pairs[-1] == Pair("green 4", "green 5", group="12")
    assert list(captions.pairs({"7": ["one"]})) == []


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("It rained. We left.", ["It rained.", "We left."]),
        ('He asked "why?" Nobody knew.', ['He asked "why?"', "Nobody knew."]),
        (
            "Dr. Smith met J. R. Jones at St. Mary's. They spoke.",
            ["Dr. Smith met J. R. Jones at St. Mary's.", "They spoke."],
        ),
        ("The U.S. Senate met. In 1990. 12 came!", ["The U.S. Senate met.", "In 1990.", "12 came!"]),
        ("It cost 3.5 dollars, e.g. Less than that.", ["It cost 3.5 dollars, e.g. Less than that."]),
        ("See no. 5 and vol. 7. end of it", ["See no. 5 and vol. 7. end of it"]),
        ("One line without an end", ["One line without an end"]),
        ("", []),
    ],
)
def test_splitting(paragraph, expected):
    assert wikipedia.split_sentences(paragraph) == expected


@pytest.mark.parametrize(
    ("tokenised", "plain"),
    [
        ("the film -lrb- `` it 's on '' -rrb- , he said .", 'the film ("it\'s on"), he said.'),
        ("they called it '' murder and mayhem '' today", 'they called it "murder and mayhem" today'),
        ("I do n't know , you ca n't !", "I don't know, you can't!"),
        ("we 'll see what they 've done", "we'll see what they've done"),
        ("-LSB- 50 % -RSB- of $ 3", "[50%] of $3"),
        ('He said "yes" and "no".', 'He said "yes" and "no".'),
        ("  two   spaces ", "two spaces"),
        ("rock 's roll 'star", "rock's roll 'star"),
    ],
)
def test_detokenise(tokenised, plain):
    assert detokenise(tokenised) == plain
    assert detokenise(plain) == plain
