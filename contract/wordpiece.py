"""BERT's WordPiece tokenizer, read from a `tokenizer.json` by the library `tokenizers`: the other kind of file.

Ids come without special tokens: the graphs of a transformer add [CLS] and [SEP] themselves, so that limits, truncation,
caches and explanations count the words of a text only. A text that spells a special token ("[SEP]") is read as words.

The library is no part of the base install; the extras `service` and `training` bring it.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from contract.errors import TokenizerError
from contract.padding import PADDING_ID
from contract.tokenizer import Encoded, Tokenizer, read_json

_PART = 1000  # characters that are read at once
_CHINESE = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ceaf\U0002f800-\U0002fa1f"  # each is a word of its own
)
_WORD_END = re.compile(rf"[\W_{_CHINESE}]")  # and a mark, which is none
_SURROGATE = re.compile("[\ud800-\udfff]")
_PARTS = {"model": "WordPiece", "normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}


class WordPiece:
    """The interface of `Tokenizer`; words are what BERT's own rules separate (white space, punctuation, Chinese)."""

    def __init__(self, content: str) -> None:
        """Read the content of a `tokenizer.json`; its truncation, padding and special tokens are dropped.

        Raises:
            TokenizerError: not a BERT WordPiece tokenizer, or the library is not installed.
        """
        try:
            import tokenizers
        except ModuleNotFoundError as error:
            raise TokenizerError("a WordPiece tokenizer needs the extra: pip install -e '.[service]'") from error
        try:
            fields = json.loads(content)
            kinds = {part: fields[part].get("type", "WordPiece" if part == "model" else None) for part in _PARTS}
            if kinds != _PARTS:
                raise TokenizerError(f"expected {_PARTS}, found {kinds}")
            fields |= {"truncation": None, "padding": None, "post_processor": None}
            self._tokenizer = tokenizers.Tokenizer.from_str(json.dumps(fields))
        except TokenizerError:
            raise
        except Exception as error:  # the library raises plain ones; a field that is missing or mistyped comes here too
            raise TokenizerError(f"cannot be read as a tokenizer.json: {error!r}") from error
        self._tokenizer.encode_special_tokens = True  # "[SEP]" in a text is no separator
        unknown = self._tokenizer.token_to_id("[UNK]")
        if unknown is None or self._tokenizer.id_to_token(PADDING_ID) != "[PAD]":
            raise TokenizerError(f"a WordPiece vocabulary has an [UNK], and [PAD] as its id {PADDING_ID}")
        self._unknown: int = unknown
        # One object for each id: a cache of many texts then holds references only.
        self._ids = tuple(range(len(self)))
        if set(self._tokenizer.get_vocab(with_added_tokens=True).values()) != set(self._ids):
            raise TokenizerError(f"the ids of {len(self)} pieces are not 0 to {len(self) - 1}")

    def __len__(self) -> int:
        """Number of ids, special tokens included: the rows of the embedding table."""
        return int(self._tokenizer.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str, max_tokens: int) -> Encoded:
        """Token ids of a text, cut at `max_tokens`; no ids at all when it has no visible character.

        Unknown are the words that the vocabulary has no pieces for, each of which is one [UNK]: a character it does not
        have, or more than a hundred characters. A long text is read no further than the limit takes.
        """
        ids: list[int] = []
        words = start = 0
        while start < len(text) and len(ids) <= max_tokens:
            end = _word_end(text, start + _PART)
            # What goes on beyond two parts is one unknown word, of more than a hundred characters.
            part = _plain(text[start : min(end, start + 2 * _PART)])
            encoding = self._tokenizer.encode(part, add_special_tokens=False)
            ids += encoding.ids
            words += max((i for i in encoding.word_ids if i is not None), default=-1) + 1
            start = end
        read = tuple(map(self._ids.__getitem__, ids))
        return Encoded(read[:max_tokens], words, ids.count(self._unknown), len(ids) > max_tokens)

    def encode_all(self, texts: Sequence[str], max_tokens: int) -> list[Encoded]:
        """`encode` of every text."""
        return [self.encode(text, max_tokens) for text in texts]

    def token(self, token_id: int) -> str:
        """The piece an id stands for, for people to read; `##` marks one that continues a word."""
        found = self._tokenizer.id_to_token(token_id)
        assert found is not None, "ids come from encode"
        return str(found)

    def save(self, path: Path) -> None:
        """Write the file; the same tokenizer gives the same bytes."""
        path.write_text(self._tokenizer.to_str() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "WordPiece":
        """Read a `tokenizer.json`.

        Raises:
            TokenizerError: unreadable, or not a BERT WordPiece tokenizer, or the library is not installed.
        """
        return cls._of(path, read_json(path))

    @classmethod
    def _of(cls, path: Path, content: object) -> "WordPiece":
        try:
            return cls(json.dumps(content))
        except TokenizerError as error:
            raise TokenizerError(f"{path}: {error}") from error


AnyTokenizer = Tokenizer | WordPiece


def load_tokenizer(path: Path) -> AnyTokenizer:
    """Read a tokenizer file of either kind: what has a `model` is one of the library `tokenizers`.

    Raises:
        TokenizerError: of neither kind, or malformed.
    """
    content = read_json(path)
    if isinstance(content, dict) and "model" in content:
        return WordPiece._of(path, content)
    return Tokenizer.of(content, path)


def _word_end(text: str, start: int) -> int:
    """The first place from `start` on where BERT ends a word; the end of the text if there is none."""
    for found in _WORD_END.finditer(text, start):
        character = found[0]
        if unicodedata.category(character)[0] in "PZL" or character.isspace() or character.isascii():
            return found.start()
    return len(text)


def _plain(text: str) -> str:
    """Without halves of surrogate pairs, which JSON can carry and no tokenizer reads."""
    return text if text.isascii() else _SURROGATE.sub("", text)
