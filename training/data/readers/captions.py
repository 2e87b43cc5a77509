"""Image captions as paraphrases: Multi30k (= Flickr30k), Flickr8k and MS COCO val2017, several captions per image.

Some captions are test sentences of STS and SICK, so the images listed in ``captions/eval-overlap-images.tsv`` are left
out. Flickr8k and Flickr30k share most images under different file names with the same leading
number; of Flickr8k only images that are not in Flickr30k are used.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from training.data.files import one_of, read_rows
from training.data.pairs import Pair

SOURCES = {
    "multi30k": "captions/multi30k-flickr30k-captions.tsv.gz",
    "flickr8k": "captions/flickr8k-captions.tsv",
    "coco": "captions/coco-val2017-captions.tsv",
}
OVERLAP_FILE = "captions/eval-overlap-images.tsv"
_OVERLAP_NAMES = {"multi30k-flickr30k": "flickr", "flickr8k": "flickr", "coco-val2017": "coco"}
_FIVE = ("split", "image", "caption1", "caption2", "caption3", "caption4", "caption5")


def image_id(name: str) -> str:
    """The number that identifies a Flickr or COCO image: its file name up to the first ``_`` or ``.``."""
    return name.split("_")[0].split(".")[0]


def overlap_images() -> dict[str, frozenset[str]]:
    """Ids of the images with a caption that is an evaluation sentence, for ``flickr`` (30k and 8k) and ``coco``."""
    found: dict[str, set[str]] = {"flickr": set(), "coco": set()}
    for row in read_rows("captions", OVERLAP_FILE, ("source", "image", "evaluation_sets")):
        found[_OVERLAP_NAMES[row.choice("source", _OVERLAP_NAMES)]].add(image_id(row.text("image")))
    return {source: frozenset(images) for source, images in found.items()}


def read(source: str) -> dict[str, list[str]]:
    """image id -> its captions, in file order, without the images of `overlap_images`.

    ``source``: ``multi30k``, ``flickr8k`` (only images that are not in Multi30k) or ``coco``.
    """
    file = SOURCES[one_of("source", source, SOURCES)]
    images = _one_caption_a_line(file) if source == "coco" else _five_captions_a_line(file)
    left_out = set(overlap_images()["coco" if source == "coco" else "flickr"])
    if source == "flickr8k":
        left_out.update(_five_captions_a_line(SOURCES["multi30k"]))
    return {image: captions for image, captions in images.items() if image not in left_out}


def pairs(images: Mapping[str, Iterable[str]]) -> Iterator[Pair]:
    """Every unordered pair of captions of the same image (ten for five captions); ``group`` is the image id."""
    for image, captions in images.items():
        for a, b in combinations(captions, 2):
            yield Pair(a, b, group=image)


def _five_captions_a_line(file: str) -> dict[str, list[str]]:
    return {
        image_id(row.text("image")): [row.text(column) for column in _FIVE[2:]]
        for row in read_rows("captions", file, _FIVE)
    }


def _one_caption_a_line(file: str) -> dict[str, list[str]]:
    images: dict[str, list[str]] = {}
    for row in read_rows("captions", file, ("image_id", "caption")):
        images.setdefault(row.text("image_id"), []).append(row.text("caption"))
    return images
