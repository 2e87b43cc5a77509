"""Stanford Sentiment Treebank (Socher et al. 2013): its sentences, and the phrases of its training trees."""

from collections.abc import Mapping
from typing import Literal

from training.data.files import one_of, read_rows

Labels = Literal["binary", "ternary", "fine"]
SPLITS = ("train", "dev", "test")
# The classes, counted from 0, most negative first.
LABELS: Mapping[str, tuple[str, ...]] = {
    "binary": ("negative", "positive"),
    "ternary": ("negative", "neutral", "positive"),
    "fine": ("very negative", "negative", "neutral", "positive", "very positive"),
}
# Class of each of the five -> class; None is left out.
_CLASS: Mapping[str, tuple[int | None, ...]] = {
    "binary": (0, 0, None, 1, 1),
    "ternary": (0, 0, 1, 2, 2),
    "fine": (0, 1, 2, 3, 4),
}

PHRASES_FILE = "sst-phrases/sst-phrases.train.tsv.gz"


def path_of(task: str, split: str) -> str:
    """Where a split lies in the data folder."""
    file = "fine" if one_of("task", task, LABELS) == "ternary" else task
    return f"sst/sst-{file}.{one_of('split', split, SPLITS)}.tsv"


def read(split: str, task: Labels = "binary") -> list[tuple[str, int]]:
    """(sentence, class) of one split: `binary` 0/1 (neutral left out), `ternary` 0..2 or `fine` 0..4."""
    file = path_of(task, split)
    classes = tuple(str(label) for label in range(2 if task == "binary" else 5))
    rows = [
        (row.text("sentence"), int(row.choice("label", classes)))
        for row in read_rows("SST", file, ("label", "sentence"))
    ]
    return rows if task == "binary" else _in_classes(rows, task)


def phrases(task: Labels = "binary") -> list[tuple[str, int]]:
    """(phrase, class) below the roots of the training trees, each once; the classes as those of `read`.

    Tokenised as the sentences, with capitals.
    """
    rows = read_rows("SST phrases", PHRASES_FILE, ("label", "sentence", "count", "phrase"))
    classes = tuple(str(label) for label in range(len(LABELS["fine"])))
    labelled = [
        (row.text("phrase"), int(row.choice("label", classes)), row.choice("sentence", ("0", "1"))) for row in rows
    ]
    return _in_classes([(text, label) for text, label, whole in labelled if whole == "0"], task)


def _in_classes(rows: list[tuple[str, int]], task: Labels) -> list[tuple[str, int]]:
    return [(text, label) for text, fine in rows if (label := _CLASS[task][fine]) is not None]
