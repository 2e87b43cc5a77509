"""Objectives of networks that read both texts: of one task, and of several at once."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from core.scoring import expected_rating
from tests.harness import toys
from training.data.hard import GROUP
from training.data.pairs import Pair
from training.data.tasks import TASKS
from training.models import CrossEncoder, CrossEncoderConfig, PWIMConfig, PWIMTasks, PWIMTasksConfig
from training.models.kinds import InteractionModel
from training.models.layers import WordEmbedding
from training.models.mgim import MGIM, MGIMConfig
from training.models.transformer import BERTConfig, words_of
from training.objectives.losses import kl_to_target, sparse_target
from training.objectives.pairwise import (
    RATINGS_OF_SICK,
    YES_OR_NO,
    PairwiseConfig,
    PairwiseObjective,
    TargetPairs,
    predict,
)
from training.objectives.tasks import PairTokens, Rated, TasksConfig, TasksObjective
from training.objectives.tasks import predict as predict_all
from training.recipes.recipe import OptimiserConfig, Schedule
from training.train.loop import train

RATED = PairwiseConfig(RATINGS_OF_SICK, "pearson")
CHOSEN = PairwiseConfig(YES_OR_NO, "mrr")
# Three questions: one right answer of four, two of three, none of two.
ANSWERS = [
    Pair(f"the {question}", f"a {answer}", target=float(right), group=question)
    for question, answers in (
        ("man", (("dog", 0), ("woman", 1), ("cat", 0), ("park", 0))),
        ("cat", (("big dog", 1), ("small dog", 1), ("man", 0))),
        ("park", (("sofa", 0), ("guitar", 0))),
    )
    for answer, right in answers
]


def target_pairs(pairs: list[Pair] | tuple[Pair, ...]) -> TargetPairs:
    return TargetPairs(pairs, toys.tokenizer(), toys.MAX_TOKENS)


def model(classes: int, *, both_orders: bool = False) -> InteractionModel:
    torch.manual_seed(0)
    network = MGIM(MGIMConfig(hidden=4), WordEmbedding(toys.table().rows), classes)
    return InteractionModel(network, both_orders=both_orders)


def objective(config: PairwiseConfig, pairs: list[Pair] | tuple[Pair, ...], batch_size: int = 3) -> PairwiseObjective:
    data = target_pairs(pairs)
    return PairwiseObjective(
        model(len(config.classes), both_orders=config.both_orders), data, data, config, batch_size, seed=5
    )


def outputs(task: PairwiseObjective, batch: np.ndarray, *, swapped: bool = False) -> Tensor:
    a, b = task.training.a.batch(batch), task.training.b.batch(batch)
    return task.model.network(*(b if swapped else a), *(a if swapped else b))


def test_a_rating_is_held_against_its_sparse_distribution() -> None:
    task = objective(RATED, toys.RATED)
    batch = np.array([1, 3, 6])
    target = sparse_target(torch.tensor([3.0, 1.5, 4.5]), torch.tensor(RATINGS_OF_SICK))
    loss, parts = task.loss(batch)
    assert loss.item() == pytest.approx(kl_to_target(outputs(task, batch), target).item(), abs=1e-6)
    assert parts == {"fit": pytest.approx(loss.item())}


def test_the_margin_asks_the_right_class_to_lead_by_one() -> None:
    task = objective(replace(CHOSEN, loss="margin"), ANSWERS)
    batch = np.arange(len(ANSWERS))
    output = outputs(task, batch).detach().numpy()
    right = np.array([int(p.target or 0) for p in ANSWERS])
    lead = output[batch, right] - output[batch, 1 - right]
    # torch's multi-class margin divides by the number of classes.
    expected = np.maximum(0.0, 1.0 - lead).mean() / 2
    assert task.loss(batch)[0].item() == pytest.approx(expected, abs=1e-6)


def test_the_penalty_is_of_all_weights_but_the_words() -> None:
    task = objective(replace(RATED, l2=0.1), toys.RATED)
    squares = {name: (p**2).sum().item() for name, p in task.model.named_parameters()}
    expected = 0.1 * sum(value for name, value in squares.items() if name != "network.embedding.weight")
    loss, parts = task.loss(np.arange(3))
    assert parts["penalty"] == pytest.approx(expected, rel=1e-5)
    assert loss.item() == pytest.approx(parts["fit"] + parts["penalty"], rel=1e-5)


def test_a_batch_is_read_in_an_order_drawn_by_a_generator_that_is_kept() -> None:
    task = objective(replace(RATED, swap=True), toys.RATED)
    batch = np.arange(len(toys.RATED))
    target = sparse_target(torch.tensor([p.target for p in toys.RATED]), torch.tensor(RATINGS_OF_SICK))
    orders = [kl_to_target(outputs(task, batch, swapped=swapped), target).item() for swapped in (False, True)]
    (coin,) = task.generators()
    before = coin.get_state()
    seen = [task.loss(batch)[0].item() for _ in range(12)]
    assert {round(loss, 5) for loss in seen} == {round(loss, 5) for loss in orders}
    coin.set_state(before)
    assert [task.loss(batch)[0].item() for _ in range(12)] == seen


def test_an_epoch_is_every_pair_once_and_pairs_of_like_size_share_a_batch() -> None:
    pairs = toys.pairs(40)
    task = objective(RATED, pairs, batch_size=4)
    batches = list(task.batches(1))
    assert task.steps() == len(batches) == 10
    assert sorted(i for batch in batches for i in batch) == list(range(40))
    area = task.training.area
    spread = np.mean([np.ptp(area[batch]) for batch in batches])
    assert spread < np.ptp(area) / 5
    again, other = list(task.batches(1)), list(task.batches(2))
    assert [b.tolist() for b in again] == [b.tolist() for b in batches]
    assert [b.tolist() for b in other] != [b.tolist() for b in batches]


def test_negatives_are_drawn_anew_each_epoch_from_the_questions_own() -> None:
    task = objective(replace(CHOSEN, negatives=1), ANSWERS)
    epochs = [sorted(i for batch in task.batches(epoch) for i in batch.tolist()) for epoch in range(20)]
    for drawn in epochs:
        assert [i for i in drawn if ANSWERS[i].target] == [1, 4, 5]  # every right answer, once
        wrong = [ANSWERS[i].group for i in drawn if not ANSWERS[i].target]
        assert wrong == ["man", "cat"]  # one for each right one, as far as there are any; no question without
    assert {i for drawn in epochs for i in drawn} == {0, 1, 2, 3, 4, 5, 6}
    assert task.steps() == 2
    everything = objective(CHOSEN, ANSWERS)
    assert sorted(i for batch in everything.batches(0) for i in batch) == list(range(9))
    # The figure that the config names selects.
    for task, name in ((everything, "mrr"), (objective(RATED, toys.RATED), "pearson")):
        metrics = task.evaluate()
        assert metrics["selection"] == metrics[name]


@pytest.mark.parametrize("negatives", [1, 2])
def test_every_right_answer_of_a_question_has_negatives_of_its_own(negatives: int) -> None:
    right = {"man": 1, "cat": 2}
    answers = [
        Pair(f"the {question}", f"a {'big ' * at}dog", target=float(at < count), group=question)
        for question, count in right.items()
        for at in range(8)
    ]
    task = objective(replace(CHOSEN, negatives=negatives), answers)
    drawn = [answers[i] for batch in task.batches(0) for i in batch.tolist()]
    wrong = Counter(each.group for each in drawn if not each.target)
    assert wrong == {question: negatives * count for question, count in right.items()}


@pytest.mark.parametrize("both_orders", [False, True])
def test_predictions_are_expected_classes_in_the_order_of_the_pairs(both_orders: bool) -> None:
    pairs = toys.pairs(150)  # more than two batches
    data, asked = target_pairs(pairs), model(5, both_orders=both_orders).eval()
    found = predict(asked, data, RATINGS_OF_SICK)
    with torch.no_grad():
        alone = [asked(*data.a.batch(np.array([i])), *data.b.batch(np.array([i]))).numpy() for i in range(150)]
    np.testing.assert_allclose(found, expected_rating(np.concatenate(alone), RATINGS_OF_SICK), atol=1e-5)
    turned = predict(asked, target_pairs([replace(p, a=p.b, b=p.a) for p in pairs]), RATINGS_OF_SICK)
    assert np.allclose(found, turned, atol=1e-5) == both_orders


HEADS = {"entailment": 3, **dict.fromkeys(("similarity", "paraphrase", "related", "relevance"), 1)}
SICK_PAIRS = tuple(Pair(p.a, p.b, (p.target - 1) / 4, p.label) for p in toys.RATED if p.target is not None)
MSRP = tuple(Pair(p.a, p.b, label=str(int((p.target or 0) > 3))) for p in toys.RATED)
FEVER = (Pair("the dog runs", "the cat sleeps", label="not_entailment"),)
TRAINING = {"sick": SICK_PAIRS, "msrp": MSRP, "fever-nli": FEVER}
SEVERAL = TasksConfig({"sick": 3, "msrp": 5, "fever-nli": 1})


def cross(seed: int = 0) -> CrossEncoder:
    torch.manual_seed(seed)
    bert = BERTConfig(vocabulary=120, hidden=8, layers=2, attention_heads=2, inner=16, positions=40)
    return CrossEncoder(CrossEncoderConfig(bert=bert, heads=HEADS)).eval()


def several(
    config: TasksConfig = SEVERAL, ratings: Mapping[str, Rated] | None = None, batch_size: int = 4, **training: Any
) -> TasksObjective:
    dev = {"sick": [Pair(p.a, p.b, p.target, p.label) for p in toys.RATED], "msrp": MSRP}
    sizes = {"max_tokens": 12, "batch_size": batch_size, "seed": 1, "low_precision": False}
    return TasksObjective(
        cross(), training or TRAINING, {} if training else dev, toys.tokenizer(), config, ratings=ratings, **sizes
    )


def test_an_epoch_holds_its_quotas_and_goes_on_where_the_last_one_stopped() -> None:
    tasks = several()
    of_sick = []
    for epoch in range(8):
        rows = np.concatenate(list(tasks.batches(epoch)))
        counted = [int(np.isin(rows, tasks.rows[name]).sum()) for name in ("sick", "msrp", "fever-nli")]
        assert counted == [3, 5, 1]
        of_sick += sorted(rows[np.isin(rows, tasks.rows["sick"])].tolist())
    # 8 x 3 of 8 pairs: each comes three times
    assert np.bincount(np.array(of_sick) - tasks.rows["sick"][0]).tolist() == [3] * 8
    assert tasks.steps() == 3
    again = [batch.tolist() for batch in several().batches(3)]
    assert again == [batch.tolist() for batch in tasks.batches(3)]
    assert again != [batch.tolist() for batch in tasks.batches(4)]


ASKED = tuple(
    Pair(f"the dog runs {'away ' * (g % 3)}", text, label=str(int(i == 0)), group=str(g))
    for g in range(6)
    for i, text in enumerate(("a cat sleeps", "a dog", "the dog runs and runs", "rain", "a man plays")[:GROUP])
)


def test_the_order_of_ratings_chooses_the_epoch_not_their_distances() -> None:
    tasks = several()
    rated = [Pair(p.a, p.b, p.target) for p in toys.RATED]
    tasks.development = {"stsb": (PairTokens(rated, toys.tokenizer(), 12), rated)}
    figures = tasks.evaluate()
    assert figures["stsb_spearman"] != pytest.approx(figures["stsb_pearson"], abs=1e-3)
    assert figures["selection"] == figures["stsb_spearman"]


def test_questions_come_in_batches_of_whole_groups() -> None:
    quotas = TasksConfig({"sick": 6, "wikiqa-hard": 20})
    tasks = several(quotas, batch_size=11, **{"sick": SICK_PAIRS, "wikiqa-hard": ASKED})
    first = tasks.rows["wikiqa-hard"][0]
    came: list[int] = []
    for epoch in range(4):
        batches = list(tasks.batches(epoch))
        assert len(batches) == tasks.steps() == 1 + 2
        for batch in batches:
            of_groups = batch >= first
            assert of_groups.all() or not of_groups.any()
            if of_groups.any():
                assert len(batch) in (GROUP, 2 * GROUP)
                whole = batch.reshape(-1, GROUP)
                assert ((whole[:, 0] - first) % GROUP == 0).all()
                assert (np.diff(whole, axis=1) == 1).all()
                came += ((whole[:, 0] - first) // GROUP).tolist()
    assert len(came) == 4 * 4
    assert max(np.bincount(came)) - min(np.bincount(came)) <= 1

    rows = np.concatenate([tasks.rows["wikiqa-hard"][GROUP : 2 * GROUP], tasks.rows["wikiqa-hard"][:GROUP]])
    with torch.no_grad():
        loss, parts = tasks.loss(rows)
        output = tasks.model(*tasks.training.batch(rows))["relevance"].view(2, GROUP)
    expected = cross_entropy(output, torch.zeros(2, dtype=torch.int64))
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)
    assert parts == {"groups": pytest.approx(float(expected), rel=1e-5)}


def test_the_losses_are_those_of_the_tasks_by_hand() -> None:
    tasks = several()
    batch = np.array([tasks.rows["sick"][1], tasks.rows["msrp"][0], tasks.rows["fever-nli"][0]])
    with torch.no_grad():
        loss, parts = tasks.loss(batch)
        outputs = tasks.model(*tasks.training.batch(batch))
        odds = outputs["entailment"].softmax(1)
        entailment = cross_entropy(outputs["entailment"][:1], torch.tensor([1])) - torch.log(1 - odds[2, 0])
        similarity = binary_cross_entropy_with_logits(outputs["similarity"][0], torch.tensor([0.5]))
        paraphrase = binary_cross_entropy_with_logits(outputs["paraphrase"][1], torch.tensor([1.0]))
    expected = {"entailment": entailment, "similarity": similarity, "paraphrase": paraphrase}
    assert parts == pytest.approx({name: float(value) / 3 for name, value in expected.items()}, rel=1e-5)
    assert float(loss) == pytest.approx(sum(parts.values()), rel=1e-5)


def test_predictions_come_in_the_order_of_the_pairs() -> None:
    tokens = PairTokens(SICK_PAIRS, toys.tokenizer(), 12)
    together = predict_all(cross(), tokens)
    for i in (0, 5):
        alone = predict_all(cross(), PairTokens(SICK_PAIRS[i : i + 1], toys.tokenizer(), 12))
        for name in TASKS:
            np.testing.assert_allclose(together[name][i], alone[name][0], atol=1e-6)
    with pytest.raises(ValueError, match="text 0 has no tokens"):
        PairTokens([Pair("the dog", " ")], toys.tokenizer(), 12)


@pytest.mark.parametrize("reads_words", [False, True])
def test_what_is_computed_in_bfloat16_is_measured_in_float32(reads_words: bool) -> None:
    pwim = PWIMTasksConfig(PWIMConfig(hidden=5, maps=(4, 3), grid=8, limit=12, same_words=True), HEADS, hidden=7)
    asked = PWIMTasks(pwim, toys.words()).eval() if reads_words else cross()
    tokens = PairTokens(SICK_PAIRS, toys.tokenizer(), 12)
    exact = predict_all(asked, tokens)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = predict_all(asked, tokens)
    for name in TASKS:
        assert rounded[name].dtype == np.float32
        np.testing.assert_allclose(rounded[name], exact[name], atol=0.1)


def test_training_learns_and_the_words_stay(tmp_path: Path) -> None:
    optimiser = OptimiserConfig("adamw", learning_rate=5e-3, heads_learning_rate=2e-2, embedding_learning_rate=None)
    schedule = Schedule(epochs=12, batch_size=4, decay="linear")
    whole = several()
    result = train(whole, optimiser, schedule, tmp_path, seed=1)
    start = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[0])
    assert result.best["selection"] > start["selection"]
    words = words_of(whole.model.bert).weight
    assert torch.equal(words, words_of(cross().bert).weight)  # frozen


def test_a_larger_models_ratings_teach_the_heads_of_the_pairs_that_it_rated() -> None:
    entailment = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], dtype=np.float32)
    relevance = np.array([[0.25], [0.5]], dtype=np.float32)
    unknown = np.zeros((2, 1), dtype=np.float32)  # the student has no such head
    rated = Rated(np.array([0, 2]), {"entailment": entailment, "relevance": relevance, "unknown": unknown})
    tasks = several(ratings={"msrp": rated})
    batch = np.array([tasks.rows["msrp"][2], tasks.rows["msrp"][1], tasks.rows["sick"][0]])
    with torch.no_grad():
        _, parts = tasks.loss(batch)
        outputs = tasks.model(*tasks.training.batch(batch))
        expected = cross_entropy(outputs["entailment"][:1], torch.tensor([[0.1, 0.1, 0.8]]))
        ranked = binary_cross_entropy_with_logits(outputs["relevance"][0], torch.tensor([0.5]))
    assert parts["entailment_rated"] == pytest.approx(float(expected) / 3, rel=1e-5)
    assert parts["relevance_rated"] == pytest.approx(float(ranked) / 3, rel=1e-5)
    assert "unknown_rated" not in parts
    assert "entailment_rated" not in tasks.loss(tasks.rows["sick"])[1]
