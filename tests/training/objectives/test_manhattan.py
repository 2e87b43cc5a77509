"""MaLSTM's objective: its similarity, its targets, its development figure, and that it trains."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from contract.measures import cosine, exp_l1
from tests.harness import toys
from training.architectures import LSTMConfig
from training.architectures.malstm import manhattan_similarity
from training.architectures.parts.heads import PairHead
from training.objectives.manhattan import ManhattanConfig, ManhattanObjective
from training.objectives.supervised import LABELS, LabelledPairs
from training.pairs import Pair

MALSTM = LSTMConfig(hidden=5, peepholes=False, forget_bias=2.5)


def labelled(pairs: tuple[Pair, ...] = toys.RATED) -> LabelledPairs:
    return LabelledPairs(pairs, toys.tokenizer(), toys.MAX_TOKENS)


def objective(config: ManhattanConfig | None = None, rows: list[int] | None = None) -> ManhattanObjective:
    chosen = None if rows is None else np.array(rows)
    model = toys.model(MALSTM)
    return ManhattanObjective(model, labelled(), labelled(), config or ManhattanConfig(), 3, seed=0, rows=chosen)


def test_the_similarity_is_the_contracts() -> None:
    a, b = torch.tensor([[0.5, -1.0], [0.2, 0.2]]), torch.tensor([[0.25, -0.5], [0.2, 0.2]])
    assert manhattan_similarity(a, b).tolist() == pytest.approx([np.exp(-0.75), 1.0])
    assert manhattan_similarity(a, b).numpy() == pytest.approx(exp_l1(a.numpy(), b.numpy()))


def test_the_cosine_can_take_its_place() -> None:
    task = objective(ManhattanConfig(similarity="cosine"))
    rows = np.array([0, 3])
    with torch.no_grad():
        loss, _ = task.loss(rows)
        a, b = (task.model.encode(side.batch(rows)).numpy() for side in (task.training.a, task.training.b))
    assert float(loss) == pytest.approx(float(((cosine(a, b) - [1.0, 0.125]) ** 2).mean()), abs=1e-6)


def test_the_loss_is_the_squared_error_to_the_label_between_0_and_1() -> None:
    task = objective(ManhattanConfig(scale=(1.0, 5.0)))
    loss, parts = task.loss(np.array([0, 3]))  # rated 5 and 1.5
    loss = loss.detach()
    with torch.no_grad():
        a, b = (task.model.encode(side.batch(np.array([0, 3]))) for side in (task.training.a, task.training.b))
        g = torch.exp(-(a - b).abs().sum(1))
    assert float(loss) == pytest.approx(float(((g - torch.tensor([1.0, 0.125])) ** 2).mean()), abs=1e-6)
    assert parts == {"error": pytest.approx(float(loss))}


def with_head(pairs: tuple[Pair, ...], weight: float = 0.5) -> ManhattanObjective:
    model = toys.model(MALSTM)
    model.heads["entailment"] = PairHead(5, len(LABELS))
    return ManhattanObjective(
        model, labelled(pairs), labelled(), ManhattanConfig(entailment_weight=weight), len(pairs), seed=0
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
    task = objective(rows=[1, 4, 6, 7])
    batches = list(task.batches(0))
    assert [len(batch) for batch in batches] == [3, 1]
    assert len(batches) == task.steps()
    assert sorted(np.concatenate(batches).tolist()) == [1, 4, 6, 7]
    assert sorted(np.concatenate(list(objective().batches(0))).tolist()) == list(range(len(toys.RATED)))


@pytest.mark.parametrize("target", [None, 0.5, 5.5])
def test_a_rating_outside_the_scale_is_refused(target: float | None) -> None:
    bad = labelled((toys.RATED[0], replace(toys.RATED[1], target=target)))
    with pytest.raises(ValueError, match=r"training pair 1: a rating in 1\.\.5 expected, got (nan|0\.5|5\.5)"):
        ManhattanObjective(toys.model(MALSTM), bad, labelled(), ManhattanConfig(), 2, seed=0)
    with pytest.raises(ValueError, match="development pair 1"):
        ManhattanObjective(toys.model(MALSTM), labelled(), bad, ManhattanConfig(), 2, seed=0)
