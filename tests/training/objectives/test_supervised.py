"""Objectives of encoders that learn labels: rated and labelled pairs, MaLSTM's, sentiment."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from core.scoring import cosine, exp_l1, expected_rating
from tests.harness import toys
from training.data.pairs import Pair
from training.models import LSTMConfig
from training.models.heads import PairHead, SentenceHead
from training.models.kinds import SiameseModel
from training.models.malstm import manhattan_similarity
from training.objectives.losses import kl_to_target, sparse_target
from training.objectives.manhattan import ManhattanConfig, ManhattanObjective
from training.objectives.metrics import graded, labelled
from training.objectives.sentiment import LabelledSentences, SentimentConfig, SentimentObjective
from training.objectives.supervised import LABELS, LabelledPairs, SupervisedConfig, SupervisedObjective

PARTIAL = [
    replace(p, target=None if i % 3 == 0 else p.target, label=None if i % 3 == 1 else p.label)
    for i, p in enumerate(toys.RATED)
]
CONFIG = SupervisedConfig(entailment_weight=0.3)


def labelled_pairs(pairs: list | tuple) -> LabelledPairs:
    return LabelledPairs(pairs, toys.tokenizer(), toys.MAX_TOKENS)


def objective(model: SiameseModel, pairs: list | tuple, config: SupervisedConfig = CONFIG) -> SupervisedObjective:
    return SupervisedObjective(model, labelled_pairs(pairs), labelled_pairs(pairs), config, batch_size=3, seed=0)


def predictions(model: SiameseModel, pairs: list | tuple) -> dict[str, torch.Tensor]:
    data = labelled_pairs(pairs)
    everything = np.arange(len(pairs))
    a, b = model.encode(data.a.batch(everything)), model.encode(data.b.batch(everything))
    return {name: head(a, b) for name, head in model.heads.items()}


@pytest.mark.parametrize("pairs", [toys.RATED, PARTIAL], ids=["all golds", "some golds"])
def test_loss_and_development_figures_are_of_the_pairs_that_have_the_gold(pairs: list) -> None:
    model = toys.model(heads=True)
    found = predictions(model, pairs)
    rated = [i for i, p in enumerate(pairs) if p.target is not None]
    known = [i for i, p in enumerate(pairs) if p.label is not None]
    target = sparse_target(torch.tensor([pairs[i].target for i in rated]), torch.arange(1.0, 6.0))
    kl = kl_to_target(found["similarity"][rated], target).item()
    nll = -np.mean([found["entailment"][i, LABELS.index(pairs[i].label)].item() for i in known])
    loss, parts = objective(model, pairs).loss(np.arange(len(pairs)))
    assert parts == pytest.approx({"similarity": kl, "entailment": 0.3 * nll, "penalty": 0.0}, abs=1e-6)
    assert loss.item() == pytest.approx(kl + 0.3 * nll, abs=1e-6)
    with torch.no_grad():
        found = predictions(model.eval(), pairs)
        metrics = objective(model, pairs).evaluate()
    rating = expected_rating(found["similarity"].numpy(), (1, 2, 3, 4, 5))
    expected = graded(rating[rated], [pairs[i].target for i in rated]) | labelled(
        [LABELS[i] for i in found["entailment"].argmax(1)[known]], [pairs[i].label for i in known]
    )
    assert metrics == pytest.approx({**expected, "selection": (expected["pearson"] + expected["accuracy"]) / 2})


MALSTM = LSTMConfig(hidden=5, peepholes=False, forget_bias=2.5)


def toy_pairs(pairs: tuple[Pair, ...] = toys.RATED) -> LabelledPairs:
    return LabelledPairs(pairs, toys.tokenizer(), toys.MAX_TOKENS)


def manhattan(config: ManhattanConfig | None = None, rows: list[int] | None = None) -> ManhattanObjective:
    chosen = None if rows is None else np.array(rows)
    model = toys.model(MALSTM)
    return ManhattanObjective(model, toy_pairs(), toy_pairs(), config or ManhattanConfig(), 3, seed=0, rows=chosen)


def test_the_similarity_is_the_contracts_and_the_cosine_can_take_its_place() -> None:
    a, b = torch.tensor([[0.5, -1.0], [0.2, 0.2]]), torch.tensor([[0.25, -0.5], [0.2, 0.2]])
    assert manhattan_similarity(a, b).tolist() == pytest.approx([np.exp(-0.75), 1.0])
    assert manhattan_similarity(a, b).numpy() == pytest.approx(exp_l1(a.numpy(), b.numpy()))
    task = manhattan(ManhattanConfig(similarity="cosine"))
    rows = np.array([0, 3])
    with torch.no_grad():
        loss, _ = task.loss(rows)
        a, b = (task.model.encode(side.batch(rows)).numpy() for side in (task.training.a, task.training.b))
    assert float(loss) == pytest.approx(float(((cosine(a, b) - [1.0, 0.125]) ** 2).mean()), abs=1e-6)


def test_the_loss_is_the_squared_error_to_the_label_between_0_and_1() -> None:
    task = manhattan(ManhattanConfig(scale=(1.0, 5.0)))
    with torch.no_grad():
        loss, parts = task.loss(np.array([0, 3]))  # rated 5 and 1.5
        a, b = (task.model.encode(side.batch(np.array([0, 3]))) for side in (task.training.a, task.training.b))
        g = torch.exp(-(a - b).abs().sum(1))
    assert float(loss) == pytest.approx(float(((g - torch.tensor([1.0, 0.125])) ** 2).mean()), abs=1e-6)
    assert parts == {"error": pytest.approx(float(loss))}


def with_head(pairs: tuple[Pair, ...], weight: float = 0.5) -> ManhattanObjective:
    model = toys.model(MALSTM)
    model.heads["entailment"] = PairHead(5, len(LABELS))
    return ManhattanObjective(
        model, toy_pairs(pairs), toy_pairs(), ManhattanConfig(entailment_weight=weight), len(pairs), seed=0
    )


def test_the_entailment_heads_loss_is_added_where_a_pair_has_a_label() -> None:
    odds = (0.5, 0.25, 0.25)
    pairs = (toys.RATED[0], replace(toys.RATED[1], label=None), replace(toys.RATED[2], label=None, label_odds=odds))
    task = with_head(pairs)
    with torch.no_grad():
        loss, parts = task.loss(np.arange(3))
        a, b = (task.model.encode(side.batch(np.array([0, 2]))) for side in (task.training.a, task.training.b))
        predicted = task.model.heads["entailment"](a, b)
    target = torch.tensor([[1.0, 0, 0], odds])
    divergence = (torch.xlogy(target, target) - target * predicted).sum(1).mean()  # of a label: its surprise
    assert parts["entailment"] == pytest.approx(0.5 * float(divergence), abs=1e-6)
    assert float(loss) == pytest.approx(parts["error"] + parts["entailment"], abs=1e-6)
    loss, parts = with_head((replace(toys.RATED[1], label=None),)).loss(np.arange(1))
    assert parts["entailment"] == 0.0
    assert loss.item() == pytest.approx(parts["error"])


def test_only_the_rows_named_are_trained_on() -> None:
    task = manhattan(rows=[1, 4, 6, 7])
    batches = list(task.batches(0))
    assert [len(batch) for batch in batches] == [3, 1]
    assert len(batches) == task.steps()
    assert sorted(np.concatenate(batches).tolist()) == [1, 4, 6, 7]
    assert sorted(np.concatenate(list(manhattan().batches(0))).tolist()) == list(range(len(toys.RATED)))


@pytest.mark.parametrize("target", [None, 0.5, 5.5])
def test_a_rating_outside_the_scale_is_refused(target: float | None) -> None:
    bad = toy_pairs((toys.RATED[0], replace(toys.RATED[1], target=target)))
    with pytest.raises(ValueError, match=r"training pair 1: a rating in 1\.\.5 expected, got (nan|0\.5|5\.5)"):
        ManhattanObjective(toys.model(MALSTM), bad, toy_pairs(), ManhattanConfig(), 2, seed=0)
    with pytest.raises(ValueError, match="development pair 1"):
        ManhattanObjective(toys.model(MALSTM), toy_pairs(), bad, ManhattanConfig(), 2, seed=0)


ROWS = [
    ("the dog is big .", 1),
    ("a small cat sleeps", 0),
    ("the man plays guitar", 1),
    ("a woman runs", 0),
    ("the park is not big", 0),
]


def classifier() -> SiameseModel:
    encoder = toys.model().encoder
    torch.manual_seed(1)
    return SiameseModel(encoder, {"sentiment": SentenceHead(toys.DIM, 2, hidden=6)})


def rows() -> LabelledSentences:
    return LabelledSentences(ROWS, toys.tokenizer(), toys.MAX_TOKENS, ("negative", "positive"))


def sentiment(trained: SiameseModel, config: SentimentConfig = SentimentConfig()) -> SentimentObjective:  # noqa: B008
    return SentimentObjective(trained, rows(), rows(), config, batch_size=2, seed=0)


def log_probabilities(trained: SiameseModel) -> torch.Tensor:
    output: torch.Tensor = trained.heads["sentiment"](trained.encode(rows().sentences.batch(np.arange(5))))
    return output


def test_the_loss_is_the_mean_negative_log_likelihood() -> None:
    trained = classifier()
    expected = -np.mean([log_probabilities(trained)[i, label].item() for i, (_, label) in enumerate(ROWS)])
    loss, parts = sentiment(trained).loss(np.arange(5))
    assert loss.item() == pytest.approx(expected, abs=1e-6)
    assert parts == pytest.approx({"sentiment": expected, "penalty": 0.0}, abs=1e-6)
    loss.backward()
    assert trained.embedding.weight.grad is not None
