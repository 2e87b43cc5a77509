import pytest

from training.corpora.readers import captions
from training.pairs import Pair

FIVE = ("split", "image", "caption1", "caption2", "caption3", "caption4", "caption5")


def five(image: str, word: str) -> tuple[str, ...]:
    return ("train", image, *(f"{word} {number}" for number in range(1, 6)))


@pytest.fixture
def corpora(write):
    write(captions.SOURCES["multi30k"], FIVE, five("11.jpg", "red"), five("12.jpg", "green"))
    write(
        captions.SOURCES["flickr8k"], FIVE, five("12_ab.jpg", "green"), five("13_cd.jpg", "blue"), five("14_e.jpg", "x")
    )
    write(captions.SOURCES["coco"], ("image_id", "caption"), ("7", "one"), ("8", "two"), ("7", "three"))
    header = ("source", "image", "evaluation_sets")
    rows = (("multi30k-flickr30k", "11.jpg", "sick-test"), ("flickr8k", "14_e.jpg", "x"), ("coco-val2017", "8", "y"))
    write(captions.OVERLAP_FILE, header, *rows)


@pytest.mark.usefixtures("corpora")
def test_images_with_evaluation_captions_are_left_out():
    assert list(captions.read("multi30k")) == ["12"]
    assert captions.read("coco") == {"7": ["one", "three"]}


@pytest.mark.usefixtures("corpora")
def test_flickr8k_counts_only_where_it_is_new():
    assert captions.read("flickr8k") == {"13": [f"blue {number}" for number in range(1, 6)]}


@pytest.mark.usefixtures("corpora")
def test_every_unordered_pair_of_an_image():
    pairs = list(captions.pairs(captions.read("multi30k")))
    assert len(pairs) == 10
    assert pairs[0] == Pair("green 1", "green 2", group="12")
    assert pairs[-1] == Pair("green 4", "green 5", group="12")
    assert list(captions.pairs({"7": ["one"]})) == []
