"""Texts with an intent."""

import pytest

from training.corpora.files import CorpusError
from training.corpora.readers import intents


@pytest.mark.parametrize("name", intents.FILES)
def test_texts_come_with_their_intent(write, name):
    write(intents.FILES[name], ("text", "intent"), ("where is my card?", "card_arrival"))
    assert intents.read(name) == [("where is my card?", "card_arrival")]


def test_another_name_and_an_empty_text_are_refused(write):
    with pytest.raises(ValueError, match="intents must be one of banking77"):
        intents.read("snips")
    write(intents.FILES["hwu64"], ("text", "intent"), (" ", "x"))
    with pytest.raises(CorpusError, match="expected text in column text"):
        intents.read("hwu64")
