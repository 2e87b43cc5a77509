"""Stanford Sentiment Treebank (Socher et al. 2013), sentence level, lower-cased and tokenised."""

from training.corpora.files import one_of, read_rows

SPLITS = ("train", "dev", "test")
# The classes, counted from 0, most negative first.
LABELS = {
    "binary": ("negative", "positive"),
    "fine": ("very negative", "negative", "neutral", "positive", "very positive"),
}


def path_of(task: str, split: str) -> str:
    """Where a split lies in the data folder."""
    return f"sst/sst-{one_of('task', task, LABELS)}.{one_of('split', split, SPLITS)}.tsv"


def read(split: str, task: str = "binary") -> list[tuple[str, int]]:
    """(sentence, class) of one split: ``binary`` 0/1 (neutral left out) or ``fine`` 0..4, most negative first."""
    file = path_of(task, split)
    classes = tuple(str(label) for label in range(len(LABELS[task])))
    return [
        (row.text("sentence"), int(row.choice("label", classes)))
        for row in read_rows("SST", file, ("label", "sentence"))
    ]
