"""Several tasks at once: quotas of an epoch, losses by hand, and training that learns."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from tests.harness import toys
from training.architectures import CrossEncoder, CrossEncoderConfig
from training.architectures.transformer import BERTConfig
from training.corpora.hard import GROUP
from training.corpora.tasks import TASKS
from training.objectives.tasks import PairTokens, Rated, TasksConfig, TasksObjective, predict
from training.pairs import Pair
from training.recipes.recipe import OptimiserConfig, Schedule
from training.runs.loop import train

HEADS = {"entailment": 3, **dict.fromkeys(("similarity", "paraphrase", "related", "relevance"), 1)}
SICK = tuple(Pair(p.a, p.b, (p.target - 1) / 4, p.label) for p in toys.RATED if p.target is not None)
MSRP = tuple(Pair(p.a, p.b, label=str(int((p.target or 0) > 3))) for p in toys.RATED)
FEVER = (Pair("the dog runs", "the cat sleeps", label="not_entailment"),)
TRAINING = {"sick": SICK, "msrp": MSRP, "fever-nli": FEVER}
CONFIG = TasksConfig(first={"sick": 6}, first_epochs=2, then={"sick": 3, "msrp": 5, "fever-nli": 1})


def model(seed: int = 0) -> CrossEncoder:
    torch.manual_seed(seed)
    bert = BERTConfig(vocabulary=120, hidden=8, layers=2, attention_heads=2, inner=16, positions=40)
    return CrossEncoder(CrossEncoderConfig(bert=bert, heads=HEADS)).eval()


def objective(
    config: TasksConfig = CONFIG, batch_size: int = 4, seed: int = 1, ratings: Mapping[str, Rated] | None = None
) -> TasksObjective:
    return TasksObjective(
        model(),
        TRAINING,
        {"sick": [Pair(p.a, p.b, p.target, p.label) for p in toys.RATED], "msrp": MSRP},
        toys.tokenizer(),
        config,
        max_tokens=12,
        batch_size=batch_size,
        seed=seed,
        low_precision=False,
        ratings=ratings,
    )


def test_an_epoch_holds_its_quotas_and_goes_on_where_the_last_one_stopped() -> None:
    tasks = objective()
    of_sick = []
    for epoch in range(6):
        rows = np.concatenate(list(tasks.batches(epoch)))
        counted = [int(np.isin(rows, tasks.rows[name]).sum()) for name in ("sick", "msrp", "fever-nli")]
        assert counted == ([6, 0, 0] if epoch < 2 else [3, 5, 1])
        of_sick += sorted(rows[np.isin(rows, tasks.rows["sick"])].tolist())
    # 6 + 6 + 3 + 3 + 3 + 3 of 8 pairs: each comes three times
    assert np.bincount(np.array(of_sick) - tasks.rows["sick"][0]).tolist() == [3] * 8
    assert tasks.steps() == 3
    again = [batch.tolist() for batch in objective().batches(3)]
    assert again == [batch.tolist() for batch in tasks.batches(3)]
    assert again != [batch.tolist() for batch in tasks.batches(4)]


ASKED = tuple(
    Pair(f"the dog runs {'away ' * (g % 3)}", text, label=str(int(i == 0)), group=str(g))
    for g in range(6)
    for i, text in enumerate(("a cat sleeps", "a dog", "the dog runs and runs", "rain", "a man plays")[:GROUP])
)


def test_questions_come_in_batches_of_whole_groups() -> None:
    tasks = TasksObjective(
        model(),
        {"sick": SICK, "wikiqa-hard": ASKED},
        {},
        toys.tokenizer(),
        TasksConfig({"sick": 6, "wikiqa-hard": 15}, 2, {"sick": 6, "wikiqa-hard": 20}, corpora={"sick": 0.5}),
        max_tokens=12,
        batch_size=11,
        seed=1,
        low_precision=False,
    )
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
    assert len(came) == 3 + 3 + 4 + 4
    assert max(np.bincount(came)) - min(np.bincount(came)) <= 1

    rows = np.concatenate([tasks.rows["wikiqa-hard"][GROUP : 2 * GROUP], tasks.rows["wikiqa-hard"][:GROUP]])
    with torch.no_grad():
        loss, parts = tasks.loss(rows)
        output = tasks.model(*tasks.training.batch(rows))["relevance"].view(2, GROUP)
    expected = cross_entropy(output, torch.zeros(2, dtype=torch.int64))
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)
    assert parts == {"groups": pytest.approx(float(expected), rel=1e-5)}
    with torch.no_grad():  # a corpus that counts half
        half, _ = tasks.loss(tasks.rows["sick"])
        tasks.weight[:] = 1.0
        assert float(tasks.loss(tasks.rows["sick"])[0]) == pytest.approx(2 * float(half), rel=1e-5)


def test_the_losses_are_those_of_the_tasks_by_hand() -> None:
    tasks = objective(TasksConfig({"sick": 1}, 1, {"sick": 1}, weights={"similarity": 2.0}))
    batch = np.array([tasks.rows["sick"][1], tasks.rows["msrp"][0], tasks.rows["fever-nli"][0]])
    with torch.no_grad():
        loss, parts = tasks.loss(batch)
        outputs = tasks.model(*tasks.training.batch(batch))
        odds = outputs["entailment"].softmax(1)
        entailment = cross_entropy(outputs["entailment"][:1], torch.tensor([1])) - torch.log(1 - odds[2, 0])
        similarity = 2 * binary_cross_entropy_with_logits(outputs["similarity"][0], torch.tensor([0.5]))
        paraphrase = binary_cross_entropy_with_logits(outputs["paraphrase"][1], torch.tensor([1.0]))
    assert parts == pytest.approx(
        {"entailment": float(entailment) / 3, "similarity": float(similarity) / 3, "paraphrase": float(paraphrase) / 3},
        rel=1e-5,
    )
    assert float(loss) == pytest.approx(sum(parts.values()), rel=1e-5)


def test_predictions_come_in_the_order_of_the_pairs() -> None:
    tokens = PairTokens(SICK, toys.tokenizer(), 12)
    together = predict(model(), tokens)
    for i in (0, 5):
        alone = predict(model(), PairTokens(SICK[i : i + 1], toys.tokenizer(), 12))
        for name in TASKS:
            np.testing.assert_allclose(together[name][i], alone[name][0], atol=1e-6)
    with pytest.raises(ValueError, match="text 0 has no tokens"):
        PairTokens([Pair("the dog", " ")], toys.tokenizer(), 12)


def test_training_learns_and_the_words_stay(tmp_path: Path) -> None:
    optimiser = OptimiserConfig("adamw", learning_rate=5e-3, heads_learning_rate=2e-2, embedding_learning_rate=None)
    schedule = Schedule(epochs=12, batch_size=4, decay="linear")
    whole = objective()
    result = train(whole, optimiser, schedule, tmp_path, seed=1)
    start = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[0])
    assert result.best["selection"] > start["selection"]
    words = whole.model.bert.words.weight
    assert torch.equal(words, model().bert.words.weight)  # frozen


def test_a_larger_models_ratings_teach_the_heads_of_the_pairs_that_it_rated() -> None:
    rows = np.array([0, 2])
    rated = Rated(
        rows,
        {
            "entailment": np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], dtype=np.float32),
            "relevance": np.array([[0.25], [0.5]], dtype=np.float32),
            "unknown": np.zeros((2, 1), dtype=np.float32),  # the student has no such head
        },
    )
    config = replace(CONFIG, ratings_weight=0.5)
    tasks = objective(config, ratings={"msrp": rated})
    batch = np.array([tasks.rows["msrp"][2], tasks.rows["msrp"][1], tasks.rows["sick"][0]])
    with torch.no_grad():
        _, parts = tasks.loss(batch)
        outputs = tasks.model(*tasks.training.batch(batch))
        expected = cross_entropy(outputs["entailment"][:1], torch.tensor([[0.1, 0.1, 0.8]]))
        relevance = binary_cross_entropy_with_logits(outputs["relevance"][0], torch.tensor([0.5]))
    assert parts["entailment_rated"] == pytest.approx(0.5 * float(expected) / 3, rel=1e-5)
    assert parts["relevance_rated"] == pytest.approx(0.5 * float(relevance) / 3, rel=1e-5)
    assert "unknown_rated" not in parts
    assert "entailment_rated" not in tasks.loss(tasks.rows["sick"])[1]
