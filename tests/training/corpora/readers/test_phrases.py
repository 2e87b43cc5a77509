import pytest

from training.corpora.files import CorpusError
from training.corpora.readers import paraphrase
from training.pairs import Pair
from training.sources.transfer import LexicalPairs

HEADER = ("mean_score", "syntactic_tag", "phrase_a", "phrase_b", "ratings")
WORDS = [("[NN]", "percent", "%"), ("[NN]", "colour", "color"), ("[NN]", "", "x"), ("[JJ]", "big", "large")]


def test_rated_phrases_keep_their_mean_rating_and_their_part_of_speech(write):
    write(paraphrase.PHRASES_FILE, HEADER, ("4.5", "[NP]", "this video", "the movie", "4.0,5.0"))
    assert paraphrase.rated_phrases() == [Pair("this video", "the movie", 4.5, group="[NP]")]
    write(paraphrase.PHRASES_FILE, HEADER, ("6", "[NP]", "a", "b", "6.0"))
    with pytest.raises(CorpusError, match="a number from 1 to 5 in column mean_score"):
        paraphrase.rated_phrases()


def test_pairs_of_words_come_in_the_order_of_the_database_without_empty_sides(write):
    write(paraphrase.LEXICAL_FILE, ("tag", "longer", "shorter"), *WORDS)
    assert [pair.a for pair in paraphrase.lexical()] == ["percent", "colour", "big"]


def test_pairs_of_words_are_trained_on_in_an_order_of_their_own(write):
    write(
        paraphrase.LEXICAL_FILE, ("tag", "longer", "shorter"), *(("[NN]", f"word{i}", f"other{i}") for i in range(40))
    )
    assert LexicalPairs().train() == LexicalPairs().train() != paraphrase.lexical()
    assert sorted(pair.a for pair in LexicalPairs().train()) == sorted(pair.a for pair in paraphrase.lexical())
