"""A recipe carried out: corpora to sentences, sentences to an objective, the loop, the finished weights on disk."""

import copy
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from contract.text import split_words
from contract.tokenizer import Tokenizer
from training.afterwards import ENTAILMENT_NAME, finish
from training.architectures import MGIMConfig, PWIMConfig, build_encoder
from training.batches import Sentences
from training.corpora import catalogue, malstm, mixtures, pairwise, sick, sst, sts, sts_split, wikipedia
from training.corpora.files import locate
from training.corpora.leakage import without_pairs
from training.distill import count_words, distil_table
from training.found import alike, found_table
from training.glosses import glosses
from training.heads import PairHead, SentenceHead
from training.interaction import build_interaction_model, continue_from, random_rows
from training.layers import WordEmbedding
from training.loop import Objective, Result, Watch, train
from training.models import InteractionModel, SiameseModel, output_dim
from training.objectives.development import GradedSets
from training.objectives.manhattan import ManhattanConfig, ManhattanObjective
from training.objectives.pairwise import PairwiseConfig, PairwiseObjective, TargetPairs
from training.objectives.sentiment import LabelledSentences, SentimentConfig, SentimentObjective
from training.objectives.supervised import LABELS, LabelledPairs, SupervisedConfig, SupervisedObjective
from training.objectives.teacher_cosine import TeacherCosineConfig, TeacherCosineObjective
from training.objectives.teacher_margin import TeacherMarginConfig, TeacherMarginObjective
from training.objectives.transfer import MarginConfig, MarginObjective
from training.pairs import Pair
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
    differences,
)
from training.recipes import find
from training.svm import SupportVectorHead
from training.synonyms import augment, open_wordnet, wordnet_folder
from training.tables import ROWS_NAME, WordTable
from training.teacher import Teacher, encode_cached
from training.teacher_answers import teacher_answers
from training.teacher_pairs import teacher_pairs
from training.tokenised import tokenised_pairs, tokenised_texts
from training.tuned_teacher import load_heads, tuned
from training.unseen import map_unseen
from training.vectors import VectorsError, WordVectors, read_vectors

logger = logging.getLogger(__name__)

WEIGHTS_NAME = "model.pt"  # after everything, map of unseen rows included


class RecipeChangedError(Exception):
    """A run in this folder was begun with other settings than the recipe has now."""


class RunMissing(Exception):
    """A run that another one starts from, or that is to be published, was not trained yet."""


def run_folder(runs: Path, recipe: Recipe, seed: int) -> Path:
    """Where a run lives."""
    return runs / recipe.name / f"seed-{seed}"


def make_table(recipe: TableRecipe, teacher: Teacher, runs: Path) -> WordTable:
    """Distil a word table, or load it when it is there.

    Words are counted on Wikipedia and on the sentences of the transfer mixture, never on evaluation sentences.

    Raises:
        RecipeChangedError: a table of that name is there, and of another size.
    """
    folder = runs / "tables" / recipe.name
    if (folder / ROWS_NAME).is_file():
        return load_table(recipe, runs)

    def texts() -> Iterator[str]:
        yield from wikipedia.paragraphs()
        for _, sentence in mixtures.unlabelled_sentences(limit=400_000, seed=0):
            yield sentence

    table = distil_table(
        teacher,
        count_words(texts()),
        teacher.whole_words(),
        words=recipe.words,
        dim=recipe.dim,
        pieces=recipe.pieces,
        buckets=recipe.buckets,
        sif=recipe.sif,
        cache=runs / "teacher",
    )
    table.save(folder)
    return table


def published_vectors(recipe: FoundTable) -> WordVectors:
    """The word vectors of a table, as their file has them.

    Raises:
        CorpusError: the file is missing or malformed.
    """
    (file,) = catalogue.find(recipe.corpus).files
    return read_vectors(locate(recipe.corpus, file))


def make_found_table(recipe: FoundTable, runs: Path) -> WordTable:
    """Make a word table from published word vectors; one that is there stays, if it is the same.

    Raises:
        RecipeChangedError: a table of that name is there, and another one.
        CorpusError: the file of vectors is missing or malformed.
    """
    try:
        table = found_table(published_vectors(recipe), pieces=recipe.pieces, buckets=recipe.buckets)
    except ValueError as error:
        raise VectorsError(f"{recipe.corpus}: {error}") from error
    folder = runs / "tables" / recipe.name
    if not (folder / ROWS_NAME).is_file():
        table.save(folder)
    elif not alike(table, WordTable.load(folder)):
        raise RecipeChangedError(f"{folder} holds another table than {recipe.corpus} gives: move it away")
    return WordTable.load(folder)


def run(
    recipe: Recipe,
    runs: Path,
    teacher: Path | None,
    seed: int,
    *,
    folder: Path | None = None,
    watch: Watch | None = None,
) -> Result:
    """Train a recipe, or resume it; the finished weights lie in `runs/<recipe>/seed-<n>/model.pt`.

    `folder`: another place for this run. `watch` sees each epoch's development score and may raise to stop.

    Raises:
        RunMissing: the word table or the run this one starts from is not there.
        RecipeChangedError: the folder holds a run of another recipe or other settings.
        CorpusError: a corpus is missing or malformed.
    """
    _join_processes()
    folder = folder or run_folder(runs, recipe, seed)
    folder.mkdir(parents=True, exist_ok=True)
    table = load_table(recipe.table, runs)
    model = _started(recipe, table, runs, seed)
    if recipe.row_scale != 1.0:
        with torch.no_grad():
            model.embedding.weight.mul_(recipe.row_scale)
            model.embedding.start.mul_(recipe.row_scale)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    objective: Objective
    if isinstance(model, InteractionModel):
        objective = pairwise_objective(recipe, model, table.tokenizer, runs, teacher, seed)
    else:
        objective = build_objective(recipe, model, table.tokenizer, runs, teacher, seed)
    schedule = recipe.schedule
    _record_recipe(folder, recipe, seed)
    start = copy.deepcopy(model.state_dict()) if isinstance(objective, ManhattanObjective) else {}
    result = train(objective, recipe.optimiser, schedule, folder, seed=seed, watch=watch)
    if isinstance(objective, ManhattanObjective):
        labelled = LabelledPairs(supervised_pairs(), table.tokenizer, recipe.max_tokens)
        finish(objective, start, labelled, recipe.optimiser, schedule, folder, seed)
    if recipe.map_unseen and isinstance(objective, TeacherCosineObjective):
        assert isinstance(model, SiameseModel)
        _map_unseen(model, objective.sentences, table)
        with torch.no_grad():
            logger.info("development after mapping unseen rows: %.4f", objective.evaluate()["selection"])
    if not dist.is_initialized() or dist.get_rank() == 0:
        torch.save(model.state_dict(), folder / WEIGHTS_NAME)
    return result


def _started(recipe: Recipe, table: WordTable, runs: Path, seed: int) -> SiameseModel | InteractionModel:
    """The model of a recipe as its training begins."""
    start_seed = seed if recipe.start_seed is None else recipe.start_seed
    if isinstance(recipe.objective, PairwiseConfig):
        pair_model = build_interaction_model(recipe, table, seed)
        if recipe.start is not None:
            continue_from(pair_model, weights_of(find(recipe.start), runs, start_seed))
        return pair_model
    model = build_model(recipe, table, seed)
    if recipe.start is not None:
        start_from(model, find(recipe.start), runs, start_seed)
    return model


def _record_recipe(folder: Path, recipe: Recipe, seed: int) -> None:
    """Write `recipe.json`, unless a run with other settings was begun here: it must not be resumed with these.

    What it should reach, and how it is published, may change. A setting that a run begun earlier does not know was at
    its default then.
    """
    if changed := changed_settings(folder, recipe, seed):
        raise RecipeChangedError(f"{folder} was begun with another {', '.join(changed)}: move it away to start afresh")
    settings = {**recipe.as_json(), "seed": seed}
    (folder / "recipe.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def changed_settings(folder: Path, recipe: Recipe, seed: int) -> list[str]:
    """The settings with which a run was begun in this folder and that the recipe has otherwise now; none for no run."""
    path = folder / "recipe.json"
    if not path.exists():
        return []
    begun = json.loads(path.read_text(encoding="utf-8"))
    return ["seed"] * (begun.pop("seed") != seed) + differences(begun, recipe)


def load_table(recipe: TableRecipe | FoundTable, runs: Path) -> WordTable:
    """A word table made before.

    Raises:
        RunMissing: it was not; names the command.
        RecipeChangedError: it was distilled in another size.
    """
    folder = runs / "tables" / recipe.name
    try:
        table = WordTable.load(folder)
    except FileNotFoundError as error:
        command = "vectors" if isinstance(recipe, FoundTable) else "distill"
        raise RunMissing(f"no word table {recipe.name!r}: run `python -m training {command} {recipe.name}`") from error
    if isinstance(recipe, TableRecipe):
        found = (len(table.tokenizer.words), table.rows.shape[1], table.tokenizer.buckets)
        if found != (wanted := (recipe.words, recipe.dim, recipe.buckets)):
            raise RecipeChangedError(
                f"{folder} holds a table of (words, dim, buckets) {found}, the recipe wants {wanted}: "
                "move it away and distil it again"
            )
    return table


def build_model(recipe: Recipe, table: WordTable, seed: int) -> SiameseModel:
    """The untrained model of a recipe."""
    torch.manual_seed(seed)
    rows = random_rows(table, seed) if recipe.random_start else table.rows
    sparse = not (torch.cuda.is_available() and dist.is_initialized())  # NCCL reduces dense gradients only
    if isinstance(recipe.architecture, PWIMConfig | MGIMConfig):
        raise TypeError(f"{recipe.name}: {type(recipe.architecture).__name__} encodes no single sentence")
    encoder = build_encoder(recipe.architecture, WordEmbedding(rows, sparse=sparse))
    heads: dict[str, PairHead | SentenceHead] = {}
    if isinstance(recipe.objective, SupervisedConfig):
        dim = output_dim(encoder)
        if recipe.objective.classes:
            heads["similarity"] = PairHead(dim, len(recipe.objective.classes), recipe.objective.hidden)
        if recipe.objective.entailment_weight > 0:
            heads["entailment"] = PairHead(
                dim, len(LABELS), recipe.objective.hidden, directed=recipe.objective.directed
            )
    if isinstance(recipe.objective, ManhattanConfig) and recipe.objective.entailment_weight > 0:
        heads["entailment"] = PairHead(output_dim(encoder), len(LABELS))
    if isinstance(recipe.objective, SentimentConfig):
        heads["sentiment"] = SentenceHead(output_dim(encoder), sst.CLASSES["binary"], recipe.objective.hidden)
    return SiameseModel(encoder, heads, recipe.precision)


def load_run(recipe: Recipe, runs: Path, seed: int) -> tuple[SiameseModel, WordTable]:
    """A trained model and its word table.

    Raises:
        RunMissing: it was not trained; names the command.
    """
    path = weights_of(recipe, runs, seed)
    table = load_table(recipe.table, runs)
    model = build_model(recipe, table, seed)
    model.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    if (fitted := path.with_name(ENTAILMENT_NAME)).is_file():
        model.heads["entailment"] = SupportVectorHead.from_state(torch.load(fitted, weights_only=True))
    return model, table


def load_interaction_run(recipe: Recipe, runs: Path, seed: int) -> tuple[InteractionModel, WordTable]:
    """A trained interaction model and its word table; raises like `load_run`."""
    path = weights_of(recipe, runs, seed)
    table = load_table(recipe.table, runs)
    model = build_interaction_model(recipe, table, seed)
    model.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    return model, table


def weights_of(recipe: Recipe, runs: Path, seed: int) -> Path:
    """Where a run's weights lie.

    Raises:
        RunMissing: it was not trained; names the command.
    """
    path = run_folder(runs, recipe, seed) / WEIGHTS_NAME
    if not path.is_file():
        raise RunMissing(f"{path} is not there: run `python -m training train {recipe.name} --seed {seed}` first")
    return path


def start_from(model: SiameseModel, recipe: Recipe, runs: Path, seed: int) -> None:
    """Copy a trained encoder into a new model, the "universal" start; of another architecture, its words only.

    With the encoder go the heads that both have. Falls back to seed 1 of that recipe.
    """
    if not (run_folder(runs, recipe, seed) / WEIGHTS_NAME).is_file():
        seed = 1
    trained, _ = load_run(recipe, runs, seed)
    if type(trained.encoder) is type(model.encoder):
        model.encoder.load_state_dict(trained.encoder.state_dict())
        for task, head in model.heads.items():
            if task in trained.heads and type(trained.heads[task]) is type(head):
                head.load_state_dict(trained.heads[task].state_dict())
    else:
        with torch.no_grad():
            model.embedding.weight.copy_(trained.embedding.weight)
    model.embedding.start.copy_(model.embedding.weight.detach())


def build_objective(
    recipe: Recipe, model: SiameseModel, tokenizer: Tokenizer, runs: Path, teacher: Path | None, seed: int
) -> Objective:
    """The objective a recipe describes, on its corpora."""
    batch_size = recipe.schedule.batch_size
    match recipe.data, recipe.objective:
        case TeacherSentences() as data, TeacherCosineConfig() as config:
            samples = [[s for _, s in mixtures.unlabelled_sentences(limit=data.limit, seed=data.seed)]]
            if data.glosses:
                samples.append(glosses(wordnet_folder(), data.glosses, data.seed))
            _, sentences = tokenised_texts(chain.from_iterable(samples), tokenizer, recipe.max_tokens)
            if teacher is None:
                raise RunMissing("this recipe needs a teacher: give --teacher, the folder of a model")
            # Apart, so that runs with and without glosses share the encodings of the rest.
            encoded = Teacher(teacher)
            readable = ([text for text in sample if split_words(text)] for sample in samples)
            targets = np.concatenate(
                [encode_cached(encoded, texts, runs / "teacher", what="sentences") for texts in readable]
            )
            development = development_sets(tokenizer, recipe.max_tokens)
            return TeacherCosineObjective(model, sentences, targets, development, config, batch_size, seed)
        case ParaphrasePairs() as data, MarginConfig() as config:
            pairs = mixtures.paraphrase_pairs(limit=data.limit, seed=data.seed)
            a, b = tokenised_pairs(pairs, tokenizer, recipe.max_tokens)
            development = development_sets(tokenizer, recipe.max_tokens)
            return MarginObjective(model, a, b, development, config, batch_size, seed)
        case SentencesAndPairs() as data, TeacherMarginConfig() as config:
            schedule = replace(recipe.schedule, batch_size=config.margin_batch)
            parts = (
                replace(recipe, data=data.sentences, objective=config.teacher),
                replace(recipe, data=data.pairs, objective=config.margin, schedule=schedule),
            )
            regression, margin = (build_objective(part, model, tokenizer, runs, teacher, seed) for part in parts)
            assert isinstance(regression, TeacherCosineObjective)
            assert isinstance(margin, MarginObjective)
            return TeacherMarginObjective(regression, margin, config.margin_weight)
        case STSSplitPairs() as data, SupervisedConfig() as config:
            split = sts_split.read(data.seed)
            logger.info("STS split: train %d, dev %d, test %d pairs", *map(len, (split.train, split.dev, split.test)))
            training = LabelledPairs(split.train, tokenizer, recipe.max_tokens)
            held_out = LabelledPairs(split.dev, tokenizer, recipe.max_tokens)
            return SupervisedObjective(model, training, held_out, config, batch_size, seed)
        case SSTSentences(), SentimentConfig() as config:
            learnt, dev = (LabelledSentences(sst.read(part), tokenizer, recipe.max_tokens) for part in ("train", "dev"))
            return SentimentObjective(model, learnt, dev, config, batch_size, seed)
        case SickPairs() | TeacherPairs() as data, SupervisedConfig() as config:
            training = LabelledPairs(rated_pairs(data, runs, teacher), tokenizer, recipe.max_tokens)
            held_out = LabelledPairs(sick.read("dev"), tokenizer, recipe.max_tokens)
            return SupervisedObjective(model, training, held_out, config, batch_size, seed)
        case SickPairs() | STSPairs() | TeacherPairs() as data, ManhattanConfig() as config:
            training = LabelledPairs(rated_pairs(data, runs, teacher), tokenizer, recipe.max_tokens)
            held_out = LabelledPairs(sick.read("dev"), tokenizer, recipe.max_tokens)
            return ManhattanObjective(model, training, held_out, config, batch_size, seed)
    raise TypeError(f"{recipe.name}: {type(recipe.data).__name__} does not feed {type(recipe.objective).__name__}")


def pairwise_objective(
    recipe: Recipe, model: InteractionModel, tokenizer: Tokenizer, runs: Path, teacher: Path | None, seed: int
) -> PairwiseObjective:
    """The objective of an interaction model, on its corpora; sentences are cut where the network's limit is.

    Raises:
        TypeError: data that do not feed it.
        RunMissing: they need a teacher, and none was given.
    """
    assert isinstance(recipe.objective, PairwiseConfig)
    match recipe.data:
        case CorpusPairs() as data:
            parts = pairwise.read(data.corpus)
            learnt, dev = parts.train, parts.dev
        case TeacherPairs() as data:
            learnt, dev = tuple(rated_pairs(data, runs, teacher)), pairwise.read("sick").dev
        case TeacherAnswers() as data:
            if teacher is None:
                raise RunMissing("these answers need a teacher: give --teacher, the folder of a model")
            learnt = tuple(teacher_answers(data, Teacher(teacher), runs / "teacher"))
            dev = pairwise.read(data.selection).dev
        case other:
            raise TypeError(f"{recipe.name}: {type(other).__name__} does not feed {type(recipe.objective).__name__}")
    training, development = (TargetPairs(pairs, tokenizer, recipe.max_tokens) for pairs in (learnt, dev))
    return PairwiseObjective(model, training, development, recipe.objective, recipe.schedule.batch_size, seed)


def supervised_pairs() -> list[Pair]:
    """SICK train without the pairs that its trial and test parts repeat."""
    return without_pairs(sick.read("train"), _held_out())


def rated_pairs(data: SickPairs | STSPairs | TeacherPairs, runs: Path, teacher: Path | None) -> list[Pair]:
    """Pairs rated 1..5, none of them a pair of SICK's trial or test part.

    Raises:
        RunMissing: the pairs need a teacher, and none was given.
        WordNetMissing: they need WordNet.
    """
    match data:
        case SickPairs():
            pairs = supervised_pairs()
            if data.synonyms:
                pairs += augment(pairs, data.synonyms, data.seed, open_wordnet(wordnet_folder()))
            return without_pairs(pairs, _held_out())
        case STSPairs():
            return without_pairs(malstm.pretraining_pairs(), _held_out())
        case TeacherPairs():
            if teacher is None:
                raise RunMissing("these pairs need a teacher: give --teacher, the folder of a model")
            sentences = mixtures.unlabelled_sentences(limit=None, seed=data.seed, shares={"captions": 1.0})
            captions = [sentence for _, sentence in sentences]
            rated, cache = supervised_pairs(), runs / "teacher"
            folder = tuned(teacher, rated, data.tuning, cache)
            encoder = Teacher(folder)
            heads = load_heads(folder, encoder.dim)
            return teacher_pairs(data, rated, _held_out(), captions, encoder, heads, cache)


def _held_out() -> list[Pair]:
    return [pair for split in ("dev", "test") for pair in sick.read(split)]


def training_texts(recipe: Recipe) -> list[str]:
    """The sentences whose words a smaller vocabulary must keep: those a supervised recipe was trained on."""
    if not isinstance(recipe.objective, SupervisedConfig | ManhattanConfig):
        return []
    return [text for pair in supervised_pairs() for text in (pair.a, pair.b)]


def development_sets(tokenizer: Tokenizer, max_tokens: int) -> GradedSets:
    """STS 2016, on which the papers select their transfer models."""
    return GradedSets(sts.read_year("2016-test"), tokenizer, max_tokens)


def _map_unseen(model: SiameseModel, sentences: Sentences, table: WordTable) -> None:
    seen = np.bincount(sentences.flat, minlength=len(table.tokenizer)).astype(np.int64)
    weight = model.embedding.weight
    rows = map_unseen(table.rows, weight.detach().cpu().numpy(), seen)
    with torch.no_grad():
        weight.copy_(torch.from_numpy(rows))


def _join_processes() -> None:
    """Under torchrun: one process a device, gradients averaged (see training/loop.py)."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
