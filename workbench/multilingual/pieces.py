"""A Unigram tokenizer in the form of `tokenizer.json`, and the pieces of it that texts of some languages need."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tokenizers import Tokenizer

from workbench.multilingual.packed import SpecialIds

SPACE = "\u2581"  # what a piece at the beginning of a word begins with
_PER_CALL = 100_000  # texts that are read at once
# How a word is written, and how often beside its plain form: at the beginning of a sentence or as a German noun; after
# an apostrophe, a bracket or a quotation mark, where its first piece has no space before it.
_SPELLINGS = ((1.0, str), (0.3, str.capitalize), (0.05, "'{}".format))


def unigram_tokenizer(pieces: Sequence[tuple[str, float]], special: SpecialIds) -> str:
    """The content of a `tokenizer.json`: NFKC, a space before every text, Unigram, special pieces around it."""
    ends = [pieces[special.begin][0], pieces[special.end][0]]
    marks = sorted({special.begin, special.end, special.pad, special.unknown})
    form: dict[str, Any] = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    first, last = ({"SpecialToken": {"id": end, "type_id": 0}} for end in ends)
    text, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    space = {"replacement": SPACE, "prepend_scheme": "always", "split": True}
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": pieces[i][0], "special": True, **form} for i in marks],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Nmt"}, {"type": "NFKC"}]},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", **space}],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, text, last],
            "pair": [first, text, last, last, second, last],
            "special_tokens": {
                end: {"id": end, "ids": [i], "tokens": [end]}
                for end, i in zip(ends, (special.begin, special.end), strict=True)
            },
        },
        "decoder": {"type": "Metaspace", **space},
        "model": {
            "type": "Unigram",
            "unk_id": special.unknown,
            "vocab": [[piece, score] for piece, score in pieces],
            "byte_fallback": False,
        },
    }
    return json.dumps(content, ensure_ascii=False)


def uses_of(tokenizer: Tokenizer, languages: Iterable[Mapping[str, float]]) -> dict[int, float]:
    """How often each piece stands in texts of languages, all languages alike: id -> shares of a language's words.

    Args:
        tokenizer: of the pieces.
        languages: of each, its words and how often each occurs.
    """
    uses: dict[int, float] = defaultdict(float)
    for words in languages:
        total = sum(words.values()) * sum(share for share, _ in _SPELLINGS)
        for share, spelling in _SPELLINGS:
            listed = list(words)
            for start in range(0, len(listed), _PER_CALL):
                part = listed[start : start + _PER_CALL]
                read = tokenizer.encode_batch_fast([spelling(word) for word in part], add_special_tokens=False)
                for word, encoding in zip(part, read, strict=True):
                    for i in encoding.ids:
                        uses[i] += share * words[word] / total
    return uses


def kept_ids(
    pieces: Sequence[tuple[str, float]], special: SpecialIds, uses: Mapping[int, float], count: int
) -> list[int]:
    """The ids of the `count` pieces to keep, in their order: special ones, single characters, then those of most use,
    then those of the best score."""
    kept = {special.begin, special.end, special.pad, special.unknown}
    kept |= {i for i, (piece, _) in enumerate(pieces) if len(piece.removeprefix(SPACE)) <= 1}
    by_use = sorted(uses, key=lambda i: (-uses[i], i))
    by_score = sorted(range(len(pieces)), key=lambda i: (-pieces[i][1], i))
    for i in (*by_use, *by_score):
        if len(kept) >= count:
            break
        kept.add(i)
    return sorted(kept)
