"""Which passages are found for a claim: by vector, by words, single sentences and neighbours."""

import numpy as np

from service.scoring.documents import sentences_in
from service.scoring.evidence import BEST, Evidence, Passage, passages_of, stems_of

DOCUMENT = """\
# Refunds

Goods come back within 30 days. The buyer pays. We refund in a week.

- Gift cards are not refunded.

| Country | Days |
|---|---|
| Spain | 3 |
| Italy | 4 |

# Delivery

We send on Mondays. Boxes are small.
"""


def passages() -> list[Passage]:
    sentences = sentences_in(DOCUMENT)
    return passages_of(sentences, [0] * len(sentences))


def test_neighbours_under_one_heading_make_a_passage_and_items_and_rows_do_not() -> None:
    found = passages()
    alone = [each for each in found if each.first == each.last]
    assert found[: len(alone)] == alone
    assert [each.text for each in alone] == [
        "Refunds > Goods come back within 30 days.",
        "Refunds > The buyer pays.",
        "Refunds > We refund in a week.",
        "Refunds > Gift cards are not refunded.",
        "Refunds > Spain; Days: 3",
        "Refunds > Italy; Days: 4",
        "Delivery > We send on Mondays.",
        "Delivery > Boxes are small.",
    ]
    assert [(each.first, each.last) for each in found[len(alone) :]] == [(0, 1), (1, 2), (6, 7)]
    assert found[len(alone)].text == "Refunds > Goods come back within 30 days. The buyer pays."


def test_no_passage_crosses_documents() -> None:
    sentences = [*sentences_in("One here."), *sentences_in("Two there.")]
    assert len(passages_of(sentences, [0, 0])) == 3
    assert len(passages_of(sentences, [0, 1])) == 2


def test_the_nearest_vector_is_found_without_a_shared_word() -> None:
    found = passages()
    count = sum(each.first == each.last for each in found)
    vectors = np.eye(count, 8, dtype=np.float32)
    best = Evidence(found, vectors).best("zzz", vectors[6])
    assert (best[0].passage, best[0].cosine, best[0].words) == (6, 1.0, 0.0)
    pair = Evidence(found, vectors).best("zzz", vectors[0] + vectors[1])[0]
    assert (found[pair.passage].first, found[pair.passage].last) == (0, 1)  # the mean of both directions


def test_rare_words_are_found_whatever_the_vectors_say() -> None:
    found = passages()
    vectors = np.ones((sum(each.first == each.last for each in found), 8), dtype=np.float32)
    best = Evidence(found, vectors).best("How many days to Italy?", np.ones(8, dtype=np.float32))
    assert found[best[0].passage].text == "Refunds > Italy; Days: 4"
    assert len(best) == BEST < len(found)
    assert 0 < best[0].words < 1
    assert [each.words for each in best] == sorted((each.words for each in best), reverse=True)


def test_words_count_by_their_beginning_each_once() -> None:
    assert list(stems_of("Refunded goods; REFUNDS, good refund")) == ["refund", "goods", "good"]


def test_an_encoder_that_gives_nothing_finds_by_words() -> None:
    found = passages()
    nothing = np.zeros((sum(each.first == each.last for each in found), 8), dtype=np.float32)
    best = Evidence(found, nothing).best("Mondays", np.zeros(8, dtype=np.float32))
    assert found[best[0].passage].text == "Delivery > We send on Mondays."
    assert all(np.isfinite(each.cosine) for each in best)
