"""What tuning begins with: parts of a file of pairs, and the weights of a published folder."""

from pathlib import Path

import numpy as np
import pytest
import torch

from core.manifest import Manifest
from semblance.tables.labelled_pairs import PairsError
from tests.harness import toys
from tests.workbench.tuning import starts
from training.data.pairs import Pair
from training.models import WordAveraging
from training.models.layers import WordEmbedding
from training.models.transformer import SentenceBERT
from workbench.tuning.read_back import TuneRefused, check_kind, read_start
from workbench.tuning.split import components, sentence_of, split


def pairs(count: int, sharing: int, seed: int = 0) -> list[Pair]:
    """Pairs of numbered sentences; every `sharing` of them have a first sentence in common."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(count):
        label = str(int(rng.random() < 0.5))
        found.append(Pair(f"Question {i // sharing}?", f"answer number {i}", float(label), label))
    return found


def test_pairs_that_share_a_sentence_are_of_one_group() -> None:
    found = components([Pair("a b", "c"), Pair("d", "A  b"), Pair("e", "d"), Pair("f", "g"), Pair("G", "g")])
    assert found[0] == found[1] == found[2] != found[3] == found[4]
    assert sentence_of("Caf\u00e9  is") == sentence_of("cafe is")
    assert sentence_of("\u200b") == "\u200b"  # without a word: the text itself


def test_no_sentence_is_in_two_parts_and_no_pair_is_lost() -> None:
    given = pairs(600, 3)
    parts = split(given, "label", 1)
    assert sorted(np.concatenate(parts).tolist()) == list(range(600))
    held = [{sentence_of(text) for i in rows for text in (given[i].a, given[i].b)} for rows in parts]
    assert sum(map(len, held)) == len(set.union(*held))
    assert [len(rows) for rows in parts] == [480, 60, 60]

    # The seed decides.
    given = pairs(400, 2)
    first, again, other = (split(given, "label", seed) for seed in (1, 1, 2))
    assert first.held_out.tolist() == again.held_out.tolist() != other.held_out.tolist()


def test_pairs_that_cannot_be_parted_are_refused() -> None:
    with pytest.raises(PairsError, match=r"the largest such group has 100 % of them"):
        split(pairs(400, 400), "label", 1)
    with pytest.raises(PairsError, match="199 pairs, at least 200 are needed"):
        split(pairs(199, 1), "label", 1)
    with pytest.raises(PairsError, match="have one label only"):
        split([Pair(f"a {i}", f"b {i}", 1.0, "1") for i in range(400)], "label", 1)
    with pytest.raises(PairsError, match="have one score only"):
        split([Pair(f"a {i}", f"b {i}", 2.5) for i in range(400)], "score", 1)
    ranked = [Pair(f"a {i}", f"b {i}", float(i % 2), str(i % 2), f"a {i}") for i in range(400)]
    with pytest.raises(PairsError, match="no question among the pairs to choose on has a right and a wrong answer"):
        split(ranked, "ranking", 1)


def test_what_was_stored_comes_back(tmp_path: Path) -> None:
    average = read_start(starts.average_model(tmp_path, "average"))
    assert isinstance(average.network, WordAveraging)
    assert isinstance(average.network.embedding, WordEmbedding)
    transformer = read_start(starts.transformer_model(tmp_path, "other"))
    assert average.storage == transformer.storage == "int8"
    found = [average.network.embedding.weight.detach(), *transformer.network.state_dict().values()]
    original = starts.shaken(SentenceBERT(starts.BERT)).state_dict().values()
    for value, stored in zip((torch.from_numpy(toys.table().rows), *original), found, strict=True):
        torch.testing.assert_close(stored, value, rtol=0, atol=float(value.abs().max()) / 125)  # half of 63 steps


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"architecture": "static_mean"},
            "'static_mean' is neither an average of words nor a transformer imported by its weights; start from avg-p",
        ),
        ({"similarity": None}, "its score is not the cosine"),
    ],
)
def test_what_is_not_tuned_is_refused_with_the_reason(tmp_path: Path, fields: dict[str, object], reason: str) -> None:
    manifest = Manifest.load(starts.average_model(tmp_path, "toy"))
    with pytest.raises(TuneRefused, match=f"toy: {reason}"):
        check_kind(manifest.model_copy(update=fields))
