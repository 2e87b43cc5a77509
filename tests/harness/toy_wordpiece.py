"""A small WordPiece tokenizer, with the special tokens where BERT has them."""

import json

from core.subwords import Subwords

WORDS = "the a man woman dog is plays sleeps runs guitar flute park sofa in on not big small .".split()  # noqa: SIM905
CLS, SEP = 101, 102  # the ids of BERT's special tokens


def wordpiece_json() -> str:
    """A `tokenizer.json` of the library `tokenizers`: BERT's, with a small vocabulary."""
    vocabulary = [
        "[PAD]",
        *WORDS,
        "##o",
        "##w",
        "##s",
        "##ning",
        *"bcdefghijklmnopqrstuvwxyz",
        ",",
        "[",
        "]",
        "##e",
        "\u732b",
    ]
    entries = (
        vocabulary + [f"[unused{i}]" for i in range(100 - len(vocabulary))] + ["[UNK]", "[CLS]", "[SEP]", "cat", "sat"]
    )
    special = [
        {"id": entries.index(name), "content": name, "special": True, "single_word": False, "lstrip": False}
        | {"rstrip": False, "normalized": False}
        for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    ]
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None}
    fields = {
        "version": "1.0",
        "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "padding": None,
        "added_tokens": special,
        "normalizer": normalizer | {"lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": None,
        "model": model | {"max_input_chars_per_word": 100, "vocab": {entry: i for i, entry in enumerate(entries)}},
    }
    return json.dumps(fields)


def wordpiece() -> Subwords:
    return Subwords(wordpiece_json())
