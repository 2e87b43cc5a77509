"""Our tokenizer as one of the library `tokenizers`.

The normaliser puts `</w>` behind every word, as `contract.text` finds them; a WordPiece model then reads the entry
`word</w>`, or else the longest pieces, of which the last has the mark too. So a vocabulary word is never taken for the
beginning of another, as in ours. What it cannot read is what ours puts into hash buckets: those words are `[UNK]`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers
from tokenizers.models import WordPiece

from contract.padding import PADDING_ID
from contract.text import PLAIN
from contract.tokenizer import MAX_PIECED_CHARS, Tokenizer

END, PAD, UNKNOWN = "</w>", "[PAD]", "[UNK]"
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # as in contract.text
_LETTER = rf"[[\p{{L}}\p{{N}}]&&[^{_UNSPACED}]]"
_WORD = (
    rf"n't(?!{_LETTER})"
    rf"|'(?:s|re|ve|ll|d|m)(?!{_LETTER})"
    rf"|\p{{Nd}}[\p{{Nd}}.,]*\p{{Nd}}(?!{_LETTER})"
    rf"|{_LETTER}+"
    r"|[^\s]"
)


class Vocabulary(NamedTuple):
    """A tokenizer, and which of our ids each of its ids is."""

    tokenizer: tokenizers.Tokenizer
    ids: npt.NDArray[np.int64]  # [theirs]; that of [UNK] is our first bucket


def vocabulary_of(ours: Tokenizer) -> Vocabulary:
    """The same words and pieces."""
    entries = {PAD: PADDING_ID}
    first_piece = PADDING_ID + 1 + len(ours.words)
    for i, word in enumerate(ours.words, start=PADDING_ID + 1):
        entries[word + END] = i
    for i, piece in enumerate(ours.pieces, start=first_piece):
        entries[piece] = i
        entries.setdefault(piece + END, i)
    entries[UNKNOWN] = first_piece + len(ours.pieces)
    made = tokenizers.Tokenizer(
        WordPiece(
            {entry: i for i, entry in enumerate(entries)},
            unk_token=UNKNOWN,
            max_input_chars_per_word=MAX_PIECED_CHARS + len(END),
        )
    )
    made.normalizer = normalizers.Sequence(
        [
            *(normalizers.Replace(mark, plain) for mark, plain in PLAIN.items()),
            normalizers.NFKD(),
            *(normalizers.Replace(mark, plain) for mark, plain in PLAIN.items()),
            normalizers.Replace(Regex(r"[[\p{Mn}\p{Me}\p{Cf}\p{Co}]&&[^\u3099\u309a]]"), ""),
            normalizers.Replace(Regex(r"\p{Cc}"), " "),
            normalizers.NFC(),
            normalizers.Lowercase(),
            normalizers.Replace("\u00df", "ss"),
            normalizers.Replace("\u03c2", "\u03c3"),
            normalizers.Replace(Regex(rf"n't(?!{_LETTER})"), " n't"),
            normalizers.Replace(Regex(rf"(?:{_WORD})\K"), END),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(END, "merged_with_previous")]
    )
    return Vocabulary(made, np.array(list(entries.values()), dtype=np.int64))
