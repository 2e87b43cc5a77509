"""Models with a head for each task: PWIM with heads, and what cross-encoders have in common with it.

They are served as one graph, each head calibrated on development pairs.
"""

import copy
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import spearmanr
from torch import Tensor, nn

from core.files import replacing
from core.manifest import EntailmentTask, Limits, ProbabilityTask, SimilarityTask
from core.scoring import Calibration, Logistic
from core.subwords import AnyTokenizer
from training.data.pairs import Pair
from training.data.readers import labelled_pairs
from training.data.tasks import CALIBRATION_PAIRS, answers_of_three_kinds, development
from training.families.interaction import PAIR, steady_texts, write_graphs
from training.families.siamese import STS_SCALE
from training.families.words import embedding
from training.models import CrossEncoder, PairWithHeads, PWIMTasks, PWIMTasksConfig
from training.models.layers import WordEmbedding
from training.objectives.metrics import ranked
from training.objectives.supervised import LABELS
from training.objectives.tasks import PairTokens, Rated, TasksConfig, TasksObjective, predict
from training.publish.calibrate import Floats, even_odds, fit_centred_isotonic, fit_platt, fit_temperature
from training.recipes.recipe import Publication
from training.recipes.sources.tasks import TaskPairs
from training.teacher.encoder import bfloat16_is_fast
from training.train.family import ModelFamily
from training.train.folder import RunMissing

logger = logging.getLogger(__name__)

SERVED = ("entailment", "similarity", "paraphrase", "relevance")
RAW_RANGE = (0.0, 1.0)  # of the similarity
WEIGHTS = tuple(i / 20 for i in range(21))  # of the cosine in a blended similarity
# Of the cosine in a blended relevance. Alone `minilm-cross` is best with 20, but behind a first stage, whose cosine
# counts half already, more than 8 loses (`python -m benchmarks.second_stage`: WikiQA .669 for .702).
MULTIPLES = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
Columns = Mapping[str, tuple[int, int]]
Blends = Mapping[str, tuple[float, float]]  # as in the manifest: of the output, and of the cosine


HeadsModel = TypeVar("HeadsModel", CrossEncoder, PWIMTasks)


@dataclass(frozen=True)
class HeadsFamily(ModelFamily[HeadsModel]):
    """A run that learns several tasks at once; another one may continue it."""

    config: TasksConfig
    pairs: TaskPairs  # the recipe's data

    def initialise_from(self, start: ModelFamily[Any], model: HeadsModel) -> None:
        """Copy all weights of a run of the same architecture."""
        model.load_state_dict(start.load().state_dict())

    def objective(self, model: HeadsModel, teacher: Path | None) -> TasksObjective:
        """The tasks on their corpora, with the ratings of the model that the run learns from.

        Raises:
            RunMissing: the ratings are missing.
        """
        learnt, dev = self.data(teacher)
        return TasksObjective(
            model,
            learnt,
            dev,
            self.tokenizer(teacher),
            self.config,
            max_tokens=self.recipe.max_tokens,
            batch_size=self.recipe.schedule.batch_size,
            seed=self.seed,
            low_precision=self.recipe.precision == "bfloat16" and bfloat16_is_fast(),
            ratings=None
            if (by := self.pairs.rated_by) is None
            else load_ratings(self.runs, by, self.pairs.rated(learnt)),
        )


@dataclass(frozen=True)
class PWIMTasksFamily(HeadsFamily[PWIMTasks]):
    """PWIM with a head for each task, around the words of a table."""

    architecture: PWIMTasksConfig

    uses_gpu = False  # its many small steps are no faster there

    def initial_model(self) -> PWIMTasks:
        """PWIM around the words of the table."""
        words = WordEmbedding(self.table.rows)
        torch.manual_seed(self.seed)
        return PWIMTasks(self.architecture, words)

    def export(self, publication: Publication, folder: Path) -> dict[str, Any]:
        """The graph of all answers, and that of the matrices that explain them."""
        model, tokenizer, limit = served_heads(self.load()), self.table.tokenizer, self.architecture.limit
        model.embedding = embedding(self.table, publication.storage, 1.0)
        calibrations = calibrated(model, tokenizer, limit)
        heads = Heads(model, calibrations)
        fields = write_graphs(heads, model, tokenizer, folder, publication.model_id, limit)
        return {**fields, "limits": Limits(max_tokens=limit), **task_fields(PAIR, heads.columns, calibrations, {})}

    def golden_texts(self, max_tokens: int) -> list[tuple[str, str]]:
        """Those whose answers do not depend on rounding."""
        heads = Heads(served_heads(self.load()), HeadCalibrations())
        return steady_texts(heads, self.table.tokenizer, max_tokens)


@dataclass(frozen=True)
class HeadCalibrations:
    """What makes each head's raw output an answer, fitted on development data."""

    temperature: float = 1.0  # entailment: logits are divided by it (Guo et al. 2017)
    # similarity: raw score -> rating of STS. The raw score, in 0..1, is the sigmoid of the head or the blend.
    similarity: Calibration | None = None
    paraphrase: Calibration = field(default_factory=lambda: Logistic(slope=1.0))  # raw output -> probability
    relevance: Calibration = field(default_factory=lambda: Logistic(slope=1.0))


class Heads(nn.Module):
    """A model's outputs side by side [B, K], in the order of its heads; entailment as log-probabilities."""

    def __init__(self, model: PairWithHeads, calibrations: HeadCalibrations) -> None:
        """Raises ValueError: a head of a name that is no task."""
        super().__init__()
        self.network = model
        self.temperature = calibrations.temperature
        self.columns = columns_of(model)

    def forward(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """Ids and lengths of both sentences -> outputs [B, K]."""
        outputs = self.network(input_ids_a_BS, lengths_a_B, input_ids_b_BT, lengths_b_B)
        return torch.cat([self._answer(name, outputs[name]) for name in self.columns], dim=1)

    def _answer(self, name: str, output_BK: Tensor) -> Tensor:
        if name == "entailment":
            return torch.log_softmax(output_BK / self.temperature, dim=-1)
        return torch.sigmoid(output_BK) if name == "similarity" else output_BK


def columns_of(model: PairWithHeads) -> dict[str, tuple[int, int]]:
    """Tasks -> their columns where all outputs stand side by side; raises ValueError for a head that is no task."""
    if unknown := set(model.heads) - set(SERVED):
        raise ValueError(f"no task for the heads {', '.join(sorted(unknown))}")
    columns: dict[str, tuple[int, int]] = {}
    width = 0
    for name, head in model.heads.items():
        outputs = head.out_features
        assert isinstance(outputs, int)
        columns[name] = (width, width + outputs)
        width += outputs
    return columns


def task_fields(
    graph: str, columns: Columns, calibrations: HeadCalibrations, blends: Blends, *, raw: bool = False
) -> dict[str, Any]:
    """The manifest's entry of each task.

    Args:
        graph: that answers them.
        columns: of the tasks in its output.
        calibrations: of the tasks.
        blends: of some of the tasks.
        raw: the graph gives the outputs of the heads as they are, not those of `Heads`.
    """
    tasks: dict[str, Any] = {}
    for task, own in columns.items():
        blend = blends.get(task)
        match task:
            case "similarity":
                tasks[task] = SimilarityTask(
                    graph=graph,
                    columns=own,
                    blend=blend,
                    sigmoid=raw,
                    raw_range=RAW_RANGE,
                    label_scale=STS_SCALE,
                    calibration=calibrations.similarity,
                    symmetric=False,
                )
            case "entailment":
                temperature = calibrations.temperature if raw else 1.0
                tasks[task] = EntailmentTask(graph=graph, columns=own, labels=LABELS, temperature=temperature)
            case _:
                calibration = calibrations.paraphrase if task == "paraphrase" else calibrations.relevance
                tasks[task] = ProbabilityTask(
                    graph=graph, columns=own, blend=blend, calibration=calibration, symmetric=False
                )
    return tasks


def served_heads(model: HeadsModel) -> HeadsModel:
    """The model without the heads that only helped to train it."""
    served = copy.deepcopy(model).eval()
    for name in set(served.heads) - set(SERVED):
        del served.heads[name]
    return served


def calibrated(
    model: PairWithHeads, tokenizer: AnyTokenizer, max_tokens: int, blended: HeadCalibrations | None = None
) -> HeadCalibrations:
    """Calibrations on development parts: SNLI, MultiNLI and SICK; STS-B; MSRP; three kinds of questions.

    Args:
        model: with a head for each task.
        tokenizer: of the model.
        max_tokens: of a sentence.
        blended: has similarity and relevance already, fitted to their blends with a bi-encoder.
    """
    snli, multinli = (labelled_pairs.read(name)[:CALIBRATION_PAIRS] for name in ("snli-dev", "multinli"))
    labels = [*snli, *multinli, *labelled_pairs.read("sick-dev")]

    def outputs(task: str, pairs: Sequence[Pair]) -> npt.NDArray[np.float64]:
        return predict(model, PairTokens(pairs, tokenizer, max_tokens))[task].astype(np.float64)

    found = replace(
        blended or _of_heads(outputs),
        temperature=fit_temperature(
            outputs("entailment", labels),
            np.array([LABELS.index(pair.label) for pair in labels]),
        ),
        paraphrase=fit_platt(
            outputs("paraphrase", development("msrp"))[:, 0], np.array([p.label == "1" for p in development("msrp")])
        ),
    )
    logger.info("temperature %.3f, %s, %s", found.temperature, found.paraphrase, found.relevance)
    return found


def _of_heads(outputs: Callable[[str, Sequence[Pair]], npt.NDArray[np.float64]]) -> HeadCalibrations:
    """Similarity and relevance of the heads alone."""
    rated = labelled_pairs.read("stsb-dev")
    raw = 1 / (1 + np.exp(-outputs("similarity", rated)[:, 0]))
    gold = np.array([pair.target for pair in rated], dtype=np.float64)
    return HeadCalibrations(
        similarity=fit_centred_isotonic(raw, gold, raw_range=RAW_RANGE, target_range=STS_SCALE),
        relevance=fit_relevance(
            [(outputs("relevance", pairs)[:, 0], pairs) for pairs in answers_of_three_kinds().values()]
        ),
    )


def fit_relevance(kinds: Sequence[tuple[npt.NDArray[np.float64], Sequence[Pair]]]) -> Logistic:
    """Platt scaling of raw outputs [n] to the probability of an answer, at even odds.

    A question has one right answer among few candidates or among hundreds, and the probability that any one of them is
    right says most about how many there are. So the right ones and all others count the same, and so does each kind.

    Args:
        kinds: outputs and pairs of each kind of questions.
    """
    right = [np.array([pair.label == "1" for pair in pairs]) for _, pairs in kinds]
    weight = np.concatenate([even_odds(found) / len(found) for found in right])
    return fit_platt(
        np.concatenate([raw for raw, _ in kinds]), np.concatenate(right), weight * len(weight) / len(kinds)
    )


def fit_weight(own: Floats, cosine: Floats, gold: Floats) -> tuple[float, Calibration]:
    """The cosine's part of a blended similarity, of the best rank correlation, and its calibration.

    Args:
        own: the cross-encoder's outputs for n rated pairs, [n].
        cosine: the cosines, 0 where negative, [n].
        gold: people's ratings, on the scale of STS, [n].
    """
    own = 1 / (1 + np.exp(-own))
    found = {weight: float(spearmanr(weight * cosine + (1 - weight) * own, gold).statistic) for weight in WEIGHTS}
    best = max(found, key=lambda one: found[one])
    logger.info("similarity: %.2f of the cosine; by weight: %s", best, {w: round(r, 4) for w, r in found.items()})
    raw = best * cosine + (1 - best) * own
    return best, fit_centred_isotonic(raw, gold, raw_range=RAW_RANGE, target_range=STS_SCALE)


def fit_multiple(parts: Sequence[tuple[Sequence[Pair], Floats, Floats]]) -> tuple[float, Logistic]:
    """How many times the cosine counts in a blended relevance, of the best mean average precision, and its calibration.

    Args:
        parts: of each kind of questions n pairs, the cross-encoder's outputs [n], the cosines, 0 where negative [n].
    """

    def precision(pairs: Sequence[Pair], raw: Floats) -> float:
        return ranked(raw, [p.label == "1" for p in pairs], [p.group for p in pairs])["map"]

    found = {m: float(np.mean([precision(pairs, own + m * near) for pairs, own, near in parts])) for m in MULTIPLES}
    best = max(found, key=lambda one: found[one])
    logger.info("relevance: %g of the cosine; by multiple: %s", best, {m: round(r, 4) for m, r in found.items()})
    return best, fit_relevance([(own + best * near, pairs) for pairs, own, near in parts])


def ratings_file(runs: Path, model: str, corpus: str, pairs: Sequence[Pair]) -> Path:
    """Where a model's ratings of a corpus lie (`training.families.teaching`): other pairs of it have another file."""
    digest = hashlib.sha256(json.dumps([[pair.a, pair.b] for pair in pairs]).encode()).hexdigest()[:12]
    return runs / "ratings" / model / f"{corpus}-{digest}.npz"


def save_ratings(path: Path, rated: Rated) -> None:
    """Write them; a kill leaves no half of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez(file, rows=rated.rows, **rated.probabilities)  # type: ignore[arg-type]


def load_ratings(runs: Path, model: str, pairs: Mapping[str, Sequence[Pair]]) -> dict[str, Rated]:
    """A model's ratings of every corpus.

    Raises:
        RunMissing: one was not rated; names the command.
    """
    found = {}
    for corpus, its in pairs.items():
        path = ratings_file(runs, model, corpus, its)
        if not path.is_file():
            raise RunMissing(f"{model} did not rate {corpus}: run `python -m training rate RECIPE` first")
        with np.load(path, allow_pickle=False) as arrays:
            found[corpus] = Rated(arrays["rows"], {name: arrays[name] for name in arrays.files if name != "rows"})
    return found
