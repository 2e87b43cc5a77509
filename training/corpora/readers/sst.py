"""Stanford Sentiment Treebank (Socher et al. 2013): its sentences, and the phrases of its training trees."""

from training.corpora.files import one_of, read_rows

SPLITS = ("train", "dev", "test")
# The classes, counted from 0, most negative first.
LABELS = {
    "binary": ("negative", "positive"),
    "fine": ("very negative", "negative", "neutral", "positive", "very positive"),
}

PHRASES_FILE = "sst-phrases/sst-phrases.train.tsv.gz"


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


def phrases() -> list[tuple[str, int]]:
    """(phrase, class 0/1) below the roots of the training trees, each once, without neutral ones.

    Tokenised as the sentences, with capitals. What people said is negative or very negative is 0.
    """
    rows = read_rows("SST phrases", PHRASES_FILE, ("label", "sentence", "count", "phrase"))
    neutral = LABELS["fine"].index("neutral")
    classes = tuple(str(label) for label in range(len(LABELS["fine"])))
    labelled = [
        (row.text("phrase"), int(row.choice("label", classes)), row.choice("sentence", ("0", "1"))) for row in rows
    ]
    return [(text, int(label > neutral)) for text, label, whole in labelled if whole == "0" and label != neutral]
