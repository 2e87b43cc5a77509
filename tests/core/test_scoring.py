"""From a graph's output to the answer: every road a task can take."""

from collections.abc import Mapping

import numpy as np
import pytest

from core.labels import classification, entailment, most_likely
from core.manifest import ClassificationTask, EntailmentTask, SimilarityTask
from core.scoring import Array, CentredIsotonic, raw_scores, read_similarity, similarity

A = np.array([[1, 0], [0, 2], [1, 1]], dtype=np.float32)
B = np.array([[2, 0], [1, 0], [-1, -1]], dtype=np.float32)
BEND = CentredIsotonic(x=(-1.0, 0.0, 1.0), y=(0.0, 1.0, 5.0))


def cosine_task(**more: object) -> SimilarityTask:
    return SimilarityTask.model_validate({"comparison": "cosine", "raw_range": (-1.0, 1.0), "symmetric": True, **more})


def test_bare_cosine_spreads_its_range_over_0_to_1() -> None:
    found = similarity(cosine_task(), None, A, B)
    assert found.raw_score == pytest.approx([1.0, 0.0, -1.0], abs=1e-15)
    assert found.rating is None
    assert found.score == pytest.approx([1.0, 0.5, 0.0], abs=1e-15)


def test_a_blend_adds_a_part_of_the_cosine_where_it_is_positive() -> None:
    task = SimilarityTask(graph="pair.onnx", blend=(0.25, 2.0), raw_range=(0.0, 5.0), symmetric=False)
    assert raw_scores(task, np.float32([[4], [8], [12]]), A, B) == pytest.approx([3.0, 2.0, 3.0])
    assert raw_scores(task, np.float32([[4], [8], [12]]), A[:1], B) == pytest.approx([3.0, 4.0, 3.0])


def test_calibration_to_a_rating_scale_gives_ratings_and_their_share_of_the_scale() -> None:
    found = similarity(cosine_task(calibration=BEND, label_scale=(0.0, 5.0)), None, A, B)
    assert found.raw_score == pytest.approx([1.0, 0.0, -1.0], abs=1e-15)
    assert found.rating == pytest.approx([5.0, 1.0, 0.0], abs=1e-12)
    assert found.score == pytest.approx([1.0, 0.2, 0.0], abs=1e-12)


def test_calibration_without_a_scale_is_the_score() -> None:
    unit = CentredIsotonic(x=(-1.0, 0.0, 1.0), y=(-0.5, 0.25, 1.5))
    found = similarity(cosine_task(calibration=unit), None, A, B)
    assert found.rating is None
    assert found.score.tolist() == [1.0, 0.25, 0.0]  # clipped at both ends


def test_a_rating_is_clipped_to_its_scale() -> None:
    found = read_similarity(cosine_task(label_scale=(-0.5, 0.5)), np.array([-0.75, 0.25, 0.75]))
    assert found.raw_score.tolist() == [-0.75, 0.25, 0.75]
    assert found.rating is not None
    assert found.rating.tolist() == [-0.5, 0.25, 0.5]
    assert found.score.tolist() == [0.0, 0.75, 1.0]


def test_exp_l1_of_embeddings() -> None:
    task = SimilarityTask(comparison="exp_l1", raw_range=(0.0, 1.0), symmetric=True)
    found = similarity(task, None, A, B)
    assert found.raw_score == pytest.approx([0.3678794, 0.04978707, 0.01831564], abs=1e-15)  # exp(-1), exp(-3), exp(-4)
    assert found.score.tolist() == found.raw_score.tolist()


def graph_task(classes: tuple[float, ...] | None) -> SimilarityTask:
    return SimilarityTask(
        graph="head.onnx", classes=classes, raw_range=(1.0, 3.0), label_scale=(1.0, 3.0), symmetric=True
    )


def test_a_head_over_classes_gives_the_expected_rating() -> None:
    seen: list[Mapping[str, Array]] = []

    def head(feeds: Mapping[str, Array]) -> np.ndarray:
        seen.append(feeds)
        return np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [1 / 3, 1 / 3, 1 / 3]], dtype=np.float32))

    found = similarity(graph_task((1.0, 2.0, 3.0)), head, A, B)
    assert found.raw_score == pytest.approx([1.75, 2.7, 2.0], abs=1e-6)
    assert found.rating == pytest.approx([1.75, 2.7, 2.0], abs=1e-6)
    assert found.score == pytest.approx([0.375, 0.85, 0.5], abs=1e-6)
    assert [(list(f), f["embedding_a"] is A, f["embedding_b"] is B) for f in seen] == [
        (["embedding_a", "embedding_b"], True, True)
    ]


def test_entailment_names_each_probability_in_the_order_of_the_task() -> None:
    task = EntailmentTask(graph="head.onnx", labels=("neutral", "contradiction", "entailment"))
    found = entailment(task, np.log(np.array([[0.5, 0.2, 0.3], [0.25, 0.25, 0.5]], dtype=np.float32)))
    assert [list(row) for row in found] == [["neutral", "contradiction", "entailment"]] * 2
    assert found[0] == pytest.approx({"neutral": 0.5, "contradiction": 0.2, "entailment": 0.3}, abs=1e-6)
    assert [most_likely(row) for row in found] == ["neutral", "entailment"]
    assert [sum(row.values()) for row in found] == pytest.approx([1.0, 1.0], abs=1e-12)


@pytest.mark.parametrize("labels", [("entailment", "neutral", "not_entailment"), ("neutral", "contradiction")])
def test_labels_of_entailment_are_of_one_kind(labels: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="expected entailment, neutral, contradiction, or entailment and one other"):
        EntailmentTask(graph="head.onnx", labels=labels)  # type: ignore[arg-type]


def test_labels_of_sentences_are_in_the_order_of_the_task_and_tempered() -> None:
    output = np.log(np.array([[0.2, 0.8], [0.5, 0.5]], dtype=np.float32))
    plain = classification(ClassificationTask(graph="c.onnx", labels=("negative", "positive")), output)
    assert [list(row) for row in plain] == [["negative", "positive"]] * 2
    assert plain[0] == pytest.approx({"negative": 0.2, "positive": 0.8}, abs=1e-6)
    task = ClassificationTask(graph="c.onnx", labels=("negative", "positive"), temperature=2.0)
    tempered = classification(task, output)
    # Odds of 4 to 1 become those of its root.
    assert tempered[0] == pytest.approx({"negative": 1 / 3, "positive": 2 / 3}, abs=1e-6)
    assert tempered[1] == pytest.approx({"negative": 0.5, "positive": 0.5}, abs=1e-6)


@pytest.mark.parametrize("comparison", ["cosine", "exp_l1", "head"])
def test_one_sentence_with_many_is_each_pair_of_them(comparison: str) -> None:
    def run(feeds: Mapping[str, Array]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        assert feeds["embedding_a"].shape == feeds["embedding_b"].shape == (3, 2)
        product = feeds["embedding_a"].astype(np.float32) * feeds["embedding_b"].astype(np.float32)
        return product.sum(axis=1, keepdims=True)

    kinds = {
        "cosine": cosine_task(),
        "exp_l1": SimilarityTask(comparison="exp_l1", raw_range=(0.0, 1.0), symmetric=True),
        "head": SimilarityTask(graph="head.onnx", raw_range=(-9.0, 9.0), symmetric=True),
    }
    together = similarity(kinds[comparison], run, A[2:], B)
    repeated = similarity(kinds[comparison], run, np.repeat(A[2:], 3, axis=0), B)
    assert together.raw_score.tolist() == repeated.raw_score.tolist()
    assert together.score.tolist() == repeated.score.tolist()
