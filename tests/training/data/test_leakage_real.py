"""The rule of `training.data.leakage`, held against the real corpora where they are at hand (SEMBLANCE_DATA)."""

from collections.abc import Iterable, Iterator

import pytest

from training.data import leakage, mixtures, pairwise
from training.data.files import data_dir
from training.data.glosses import FILES, glosses
from training.data.pairs import Pair
from training.data.readers import labelled_pairs, sts
from training.data.readers.captions import OVERLAP_FILE
from training.data.wordnet import wordnet_folder
from training.recipes.sources import rated

pytestmark = pytest.mark.skipif(
    not all((data_dir() / name).is_file() for name in (labelled_pairs.FILES["sick-train"].file, OVERLAP_FILE)),
    reason="the corpora are not in SEMBLANCE_DATA: `python -m training data` says where each comes from",
)
SAMPLE = 20_000


def _sides(pairs: Iterable[Pair]) -> Iterator[str]:
    for pair in pairs:
        yield from (pair.a, pair.b)


def _leaks(texts: Iterable[str], sentences: frozenset[str]) -> list[str]:
    return [text for text in texts if leakage.contains_evaluation_sentence(text, sentences)]


def test_sources_without_ratings_hold_no_sentence_of_any_evaluation_set() -> None:
    unwanted = leakage.evaluation_sentences()
    assert len(unwanted) > 40_000
    assert _leaks((text for _, text in mixtures.unlabelled_sentences(SAMPLE, 0)), unwanted) == []
    assert _leaks((text for _, text in mixtures.unlabelled_sentences(None, 0, {"captions": 1.0})), unwanted) == []
    assert _leaks(_sides(mixtures.paraphrase_pairs(SAMPLE, 0)), unwanted) == []
    assert _leaks(_sides(pairwise.read("twitter-labelled").train), unwanted) == []


@pytest.mark.skipif(not (wordnet_folder() / FILES[0]).is_file(), reason="no WordNet: apt-get install wordnet-base")
def test_definitions_hold_no_sentence_of_any_evaluation_set() -> None:
    assert _leaks(glosses(wordnet_folder(), SAMPLE, 0), leakage.evaluation_sentences()) == []


def test_pairs_for_a_teacher_hold_no_sentence_of_msrvid_and_no_pair_of_sicks_own_test() -> None:
    pairs = rated.pairs_for_others()
    foreign = leakage.evaluation_sentences([name for name in leakage.EVALUATION_CORPORA if name != "sick"])
    assert _leaks(_sides(pairs), foreign) == []
    video = {leakage.pair_key(pair.a, pair.b) for pair in sts.read("2012-test", "MSRvid")}
    test = {leakage.pair_key(pair.a, pair.b) for pair in labelled_pairs.read("sick-test")}
    assert {leakage.pair_key(pair.a, pair.b) for pair in pairs}.isdisjoint(video | test)
    assert len(pairs) == 3227  # of 4,404: what is left is still most of SICK train


@pytest.mark.parametrize("corpus", ["sick", "msrvid", "sts2014", "wikiqa", "trecqa", "answers", "msrp"])
def test_training_parts_hold_no_pair_of_their_own_development_and_test_parts(corpus: pairwise.Corpus) -> None:
    parts = pairwise.read(corpus)
    unseen = [*parts.dev, *(pair for pairs in parts.test.values() for pair in pairs)]
    keys = {leakage.pair_key(pair.a, pair.b) for pair in unseen}
    assert [pair for pair in parts.train if leakage.pair_key(pair.a, pair.b) in keys] == []
