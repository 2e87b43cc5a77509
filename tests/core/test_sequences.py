"""Sequences of a transformer: special tokens by the tokenizer's own rule, padding by a text's own length, pooling."""

import json
from typing import Any, get_args

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import processors

from core.errors import GraphMismatchError, TokenizerError
from core.graph import GraphSignature
from core.sequences import LENGTH_STEP, Pooling, PoolingMode, SequenceFeeds, feeds_of
from core.subwords import Subwords
from tests.harness import fakes
from tests.harness.toy_wordpiece import CLS, SEP, wordpiece_json

RULES = {
    "bert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "roberta": ("[CLS] $A [SEP]", "[CLS] $A [SEP] [SEP] $B [SEP]"),
    "end": ("$A [SEP]", "$A $B [SEP]"),
    "none": ("$A", "$A $B"),
}
TEXTS = [("the cat sat", "a dog"), ("not", "the big man plays the small guitar in the park"), ("cat sat .", "a")]
ALL = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


def tokenizer(rule: str) -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer.from_str(wordpiece_json())
    made.no_truncation()
    single, pair = RULES[rule]
    made.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
    )
    return made


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sides", [1, 2])
def test_a_sequence_is_what_the_library_makes_of_the_texts(rule: str, sides: int) -> None:
    library = tokenizer(rule)
    ours = Subwords(library.to_str())
    feeds = SequenceFeeds(ours.special_tokens(sides), ALL, None, 30)
    ids = [[ours.encode(texts[side], 30).ids for texts in TEXTS] for side in range(sides)]
    found, lengths = feeds.joined(ids)
    for row, texts in enumerate(TEXTS):
        wanted = library.encode(*texts[:sides])
        length = len(wanted.ids)
        assert lengths[row] == length
        assert found["input_ids"][row, :length].tolist() == wanted.ids
        assert found["token_type_ids"][row, :length].tolist() == wanted.type_ids
        assert found["attention_mask"][row].tolist() == [1] * length + [0] * (found["input_ids"].shape[1] - length)
        assert found["position_ids"][row, :length].tolist() == list(range(length))


@given(st.data())
def test_a_row_is_read_with_the_same_padding_in_any_company(data: st.DataObject) -> None:
    feeds = SequenceFeeds(Subwords(tokenizer("bert").to_str()).special_tokens(1), ALL[:2], Pooling(mode="mean"), 21)
    texts = data.draw(st.lists(st.lists(st.integers(1, 90), min_size=1, max_size=21).map(tuple), min_size=1))
    seen: dict[tuple[int, ...], set[int]] = {}

    def run(given: Any) -> np.ndarray:
        ids, mask = given["input_ids"], given["attention_mask"]
        for row, real in zip(ids, mask, strict=True):
            seen.setdefault(tuple(row[: real.sum()].tolist()[1:-1]), set()).add(len(row))
        return np.repeat(ids[:, :, None], 3, axis=2).astype(np.float32)

    rows = feeds.rows(run, [texts])
    assert set(seen) == set(texts)
    for text, padded in seen.items():
        assert padded == set(feeds.shapes([text])[0])
        assert max(padded) - len(text) - 2 < LENGTH_STEP
        assert max(padded) <= 23  # positions end there
    for text, row in zip(texts, rows, strict=True):
        assert row.tolist() == feeds.rows(run, [[text]])[0].tolist()


@pytest.mark.parametrize("mode", get_args(PoolingMode))
def test_padding_is_not_pooled(mode: PoolingMode) -> None:
    states = np.random.default_rng(0).normal(size=(3, 7, 5)).astype(np.float32)
    pooling = Pooling(mode=mode, normalise=True)
    found = pooling.apply(states, [7, 1, 4])
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(3))
    for row, length in enumerate([7, 1, 4]):
        assert found[row].tolist() == pooling.apply(states[row : row + 1, :length], [length])[0].tolist()
    # Of one token every way of pooling is that token.
    assert found[1] == pytest.approx(states[1, 0] / np.linalg.norm(states[1, 0]))


def test_what_does_not_go_together_is_refused() -> None:
    states = GraphSignature(ALL[:2], "last_hidden_state", {"dim": 4}, True, True)
    whole = Subwords(tokenizer("bert").to_str())
    with pytest.raises(GraphMismatchError, match="it gives last_hidden_state, and the manifest's pooling is mis"):
        feeds_of(states, "encoder", whole, None, 9, where="x.onnx")
    with pytest.raises(GraphMismatchError, match=r"a transformer reads the ids of a tokenizer\.json"):
        feeds_of(states, "encoder", fakes.tokenizer(), Pooling(mode="cls"), 9, where="x.onnx")
    lost = json.loads(whole._tokenizer.to_str())
    lost["post_processor"]["pair"] = [part for part in lost["post_processor"]["pair"] if "B" not in str(part)]
    with pytest.raises(TokenizerError, match="its post_processor reads 2 texts as"):
        Subwords(json.dumps(lost)).special_tokens(2)
