import pytest

from training.corpora.files import CorpusError
from training.corpora.readers import paraphrase
from training.pairs import Pair

HEADER = ("mean_score", "syntactic_tag", "phrase_a", "phrase_b", "ratings")


def test_rated_phrases_keep_their_mean_rating_and_their_part_of_speech(write):
    write(paraphrase.PHRASES_FILE, HEADER, ("4.5", "[NP]", "this video", "the movie", "4.0,5.0"))
    assert paraphrase.rated_phrases() == [Pair("this video", "the movie", 4.5, group="[NP]")]
    write(paraphrase.PHRASES_FILE, HEADER, ("6", "[NP]", "a", "b", "6.0"))
    with pytest.raises(CorpusError, match="a number from 1 to 5 in column mean_score"):
        paraphrase.rated_phrases()
