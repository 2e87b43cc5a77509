"""What the models are asked: `texts.json`, written for this and never trained or tuned on; and sets of the corpora."""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from training.data.files import one_of
from training.data.pairs import Pair
from training.data.readers import captions, labelled_pairs
from training.data.readers.labelled_pairs import NOT_ENTAILMENT
from training.data.tasks import HELD_OUT_CONTRAST

T = TypeVar("T")
TEXTS = Path(__file__).with_name("texts.json")
MOST = 1000  # pairs or contrasts of a corpus, unless asked for otherwise; more are sampled
MAX_REWRITES = 2  # of an original


@dataclass(frozen=True)
class Question:
    """A question about a FAQ, the answers of that FAQ, and which one is right."""

    domain: str
    text: str
    answers: Sequence[str]
    right: int


@dataclass(frozen=True)
class Contrast:
    """A sentence, rewrites that say the same, and an edit of one thing that does not."""

    kind: str
    original: str
    rewrites: Sequence[str]
    edit: str


def _texts() -> Any:
    return json.loads(TEXTS.read_text(encoding="utf-8"))


def questions() -> list[Question]:
    """Ten questions about each of three FAQs."""
    return [
        Question(domain, text, faq["answers"], right)
        for domain, faq in _texts()["faq"].items()
        for text, right in faq["questions"]
    ]


def written_contrasts() -> list[Contrast]:
    """Negation, numbers, roles and opposites; one rewrite each."""
    return [Contrast(kind, original, [rewrite], edit) for kind, original, rewrite, edit in _texts()["contrast"]]


def caption_contrasts(most: int = MOST) -> list[Contrast]:
    """Edits of captions by makers that no model was trained on; the rewrites are other captions of the same picture.

    The edits are those of which the original is a caption of COCO's validation part (2017), a sample of them.
    """
    images = captions.read("coco")
    image_of = {_plain(caption): image for image, said in images.items() for caption in said}
    found = [
        Contrast(edit.group, edit.a, others[:MAX_REWRITES], edit.b)
        for edit in labelled_pairs.read("caption-contrast")
        if edit.group in HELD_OUT_CONTRAST and (image := image_of.get(_plain(edit.a)))
        if (others := [caption for caption in images[image] if _plain(caption) != _plain(edit.a)])
    ]
    return sample(found, most)


def antonym_contrasts(most: int = MOST) -> list[Contrast]:
    """Sentences with a synonym, or an antonym or a negation, put in: those of CANNOT that have both kinds."""
    pairs = [pair for pair in labelled_pairs.read("cannot") if pair.group == "sem-anto-neg"]
    same, other = (_by_first(p for p in pairs if (p.label == "entailment") is wanted) for wanted in (True, False))
    found = [Contrast("sem-anto-neg", a, same[a][:MAX_REWRITES], edits[0]) for a, edits in other.items() if a in same]
    return sample(found, most)


def sample(found: Sequence[T], most: int) -> list[T]:
    """At most so many of them, the same ones each time."""
    return list(found) if len(found) <= most else random.Random(1).sample(list(found), most)


def _by_first(pairs: Iterable[Pair]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in pairs:
        found.setdefault(pair.a, []).append(pair.b)
    return found


def _plain(text: str) -> str:
    return text.lower().strip().rstrip(".").strip()


PARTS = ("development", "test")  # halves of the requests and statements: choose by the first, measure on the second


def requests(part: str) -> list[Pair]:
    """Fifteen requests, each with the same one in other words (label 1) and with a near-miss (0), one after the other.

    Raises:
        ValueError: no such part.
    """
    return _two_each("requests", part, ("1", "0"))


def statements(part: str) -> list[Pair]:
    """Fifteen sentences of policies and manuals, each with one that follows from it in other words and one that does
    not; labels `entailment` and `not_entailment`; raises as `requests`."""
    return _two_each("statements", part, ("entailment", NOT_ENTAILMENT))


def _two_each(what: str, part: str, labels: tuple[str, str]) -> list[Pair]:
    rows = _texts()[what][one_of("part", part, PARTS)]
    return [Pair(a, b, label=label) for a, *others in rows for b, label in zip(others, labels, strict=True)]
