"""The table of small releases of labelled pairs: columns, labels, groups and splits."""

import pytest

from training.corpora.files import CorpusError
from training.corpora.readers import labelled_pairs
from training.corpora.readers.labelled_pairs import FILES, read
from training.pairs import Pair


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_read_by_its_header(write, name):
    known = FILES[name]
    labels = known.labels or labelled_pairs.NLI_LABELS
    cells = {known.a: "A dog runs.", known.b: "An animal moves.", "split": known.split or "x"}
    rows = [tuple({**cells, known.label: label}.get(column, "g") for column in known.header) for label in labels]
    write(known.file, known.header, *rows)
    group = {None: "", known.a: "A dog runs."}.get(known.group, "g")
    expected = [Pair("A dog runs.", "An animal moves.", label=ours, group=group) for ours in labels.values() if ours]
    assert read(name) == expected


def test_labels_of_another_name_become_ours(write):
    write(
        FILES["qnli-dev"].file,
        FILES["qnli-dev"].header,
        ("not_entailment", "Who?", "Nobody came."),
        ("entailment", "Who?", "Ann came."),
    )
    assert [(pair.label, pair.group) for pair in read("qnli-dev")] == [("0", "Who?"), ("1", "Who?")]


def test_only_the_training_split_is_read(write):
    header = FILES["cad-nli"].header
    rows = [("neutral", "revised_premise", split, f"{split} a", f"{split} b") for split in ("train", "dev", "test")]
    write(FILES["cad-nli"].file, header, *rows)
    assert read("cad-nli") == [Pair("train a", "train b", label="neutral")]


def test_an_unknown_label_is_refused(write):
    write(FILES["wanli"].file, FILES["wanli"].header, ("maybe", "a", "b"))
    with pytest.raises(CorpusError, match=r"wanli-train-part\.tsv\.gz, line 2: expected one of contradiction, "):
        read("wanli")
    with pytest.raises(ValueError, match="name must be one of snli-train"):
        read("nli")
