"""Convert the official formats of corpora to the tables that our readers read.

Each converter takes the lines of the official file (without line ends) and yields the lines of ours, header first. It
raises `CorpusError` when the official file has another format; the caller checks the counts.
"""

from collections.abc import Iterable, Iterator

from training.corpora.files import CorpusError
from training.corpora.readers import nli, sick, stsb


def from_sick(lines: Iterable[str]) -> Iterator[str]:
    """SemEval-2014 task 1 distribution (``SICK_train.txt`` and so on): our format, except for CRLF line ends."""
    first = True
    for line in lines:
        if first and line.split("\t") != list(sick.HEADER):
            raise CorpusError(f"SICK, line 1: expected the header {' | '.join(sick.HEADER)}, got {line[:80]!r}")
        first = False
        yield line


def from_stsb(lines: Iterable[str]) -> Iterator[str]:
    """``sts-*.csv`` of Stsbenchmark.tar.gz: no header; genre, file, year, id, score, two sentences, licence notes."""
    yield "\t".join(stsb.HEADER)
    for number, line in enumerate(lines, 1):
        cells = line.split("\t")
        if len(cells) < 7:
            raise CorpusError(f"STS Benchmark, line {number}: expected 7 or more columns, got {len(cells)}")
        genre, file, year, identity, score, a, b = cells[:7]
        yield "\t".join((score, a, b, genre, file, year, identity))


def from_nli(lines: Iterable[str]) -> Iterator[str]:
    """``snli_1.0_*.txt`` and ``multinli_1.0_*.txt``: pairs without a gold label (``-``) are left out, as all papers do.

    Several official files may follow one another (MultiNLI matched and mismatched), each with its header.
    """
    yield "\t".join(nli.HEADER)
    columns: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        cells = line.split("\t")
        if cells[0] == "gold_label":
            columns = {name: index for index, name in enumerate(cells)}
            continue
        try:
            label, premise, hypothesis = (cells[columns[name]] for name in ("gold_label", "sentence1", "sentence2"))
        except (KeyError, IndexError) as error:
            raise CorpusError(
                f"NLI, line {number}: expected the columns gold_label, sentence1 and sentence2, got {line[:80]!r}"
            ) from error
        if label != "-":
            yield "\t".join((label, premise, hypothesis))
