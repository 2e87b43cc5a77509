"""Whether a folder's texts become the same token ids here as in its own library; compared before any answer is.

A graph that is fed by our own reading of `tokenizer.json` can agree with itself to 1e-7 and still answer for texts that
nobody sent: what `tokenizer_config.json` says (letter case, accents, added tokens, the side that is cut) changes ids.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from core.subwords import Subwords, fit_together
from workbench.imports.files import TOKENIZER, ImportRefused, object_or_none
from workbench.imports.graph import Template

CONFIG = "tokenizer_config.json"
_SHOWN = 60  # characters of a text in a message
# Settings of a BertNormalizer by their names in tokenizer_config.json.
_OF_BERT = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
TEXTS = (
    "How do I reset my password?",
    "WHERE IS MY ORDER No. 4711-B?",
    "Der Café-Besitzer naïve façade, Ångström; El Niño",
    "e\u0301 and \u00e9: the same letter",
    "\u0413\u0434\u0435 \u043c\u043e\u0439 \u0437\u0430\u043a\u0430\u0437?",  # Where is my order?
    "\u6211\u7684\u8ba2\u5355\u5728\u54ea\u91cc\uff1f\u8acb\u554f",  # Where is my order? Please.
    "أين طلبي؟",
    "  two  spaces\tand a\nline ",
    "it's 5'11\" (50%) <b>bold</b> a@b.co #1 \u2014 \u00bd \U0001f600",
    "",
)
Read = Callable[..., list[int]]  # one text, or two -> ids with special tokens


def check_config(folder: Path, tokenizer: Any) -> None:
    """Refuse what `tokenizer_config.json` says and the service does not do, by its key.

    Args:
        folder: of the model.
        tokenizer: what `tokenizer.json` gives, or the folder's own library where it is installed.

    Raises:
        ImportRefused: names the key and its value.
    """
    path = folder / CONFIG
    config = object_or_none(path)

    def refuse(key: str, value: object, why: str) -> ImportRefused:
        return ImportRefused(f"{path}: {key} is {json.dumps(value, ensure_ascii=False)}: {why}")

    if (side := config.get("truncation_side", "right")) != "right":
        raise refuse("truncation_side", side, "texts are cut at their end here")
    normalizer = json.loads(tokenizer.to_str()).get("normalizer") or {}
    if normalizer.get("type") == "BertNormalizer" and "Bert" in str(config.get("tokenizer_class")):
        for key, theirs in _OF_BERT.items():
            if key in config and config[key] != normalizer.get(theirs):
                raise refuse(key, config[key], f"{TOKENIZER} has {theirs} {json.dumps(normalizer.get(theirs))}")
    for number, token in (config.get("added_tokens_decoder") or {}).items():
        content = token.get("content") if isinstance(token, dict) else token
        if (found := tokenizer.token_to_id(str(content))) != int(number):
            raise refuse("added_tokens_decoder", content, f"its id is {number}, in {TOKENIZER} {found}")


def check_ids(folder: Path, template: Template, tokenizer: Subwords, limit: int) -> int:
    """Compare ids of texts in capitals, with accents, of several scripts, too long, empty, with added tokens; of pairs.

    Args:
        folder: of the model.
        template: the special tokens around one text or two.
        tokenizer: as the service reads the published file.
        limit: tokens of a text, or of a pair together, without special ones.

    Returns:
        How many texts or pairs were compared: none where transformers is not installed.

    Raises:
        ImportRefused: a text gives other ids; says the text and both lists.
    """
    theirs = _library(folder, limit + template.width)
    if theirs is None:
        return 0
    sides = len(template.segments)
    single = [*TEXTS, *(f"before {token} after" for token in _added(folder)), "the cat sat here. " * limit]
    asked: list[tuple[str, ...]] = [(text,) for text in single]
    if sides == 2:  # an empty second text is none to the library; the service refuses empty texts
        whole = [text for text in single if text]
        asked = list(zip(whole, [*whole[1:], whole[0]], strict=True))
    for texts in asked:
        wanted, found = theirs(*texts), _ours(template, tokenizer, texts, limit)
        if wanted != found:
            shown = " | ".join(text[:_SHOWN] for text in texts)
            raise ImportRefused(f"{folder}: {shown!r} has the ids {_few(wanted)} in transformers, here {_few(found)}")
    return len(asked)


def _ours(template: Template, tokenizer: Subwords, texts: Sequence[str], limit: int) -> list[int]:
    """Ids with special tokens, as the served graph puts them together."""
    read = [list(tokenizer.encode(text, limit).ids) for text in texts]
    if len(read) == 2:
        kept = fit_together(len(read[0]), len(read[1]), limit)
        read = [ids[:count] for ids, count in zip(read, kept, strict=True)]
    found = [token for token, _ in template.parts[0]]
    for ids, after in zip(read, template.parts[1:], strict=True):
        found += [*ids, *(token for token, _ in after)]
    return found


def _library(folder: Path, most: int) -> Read | None:
    """Reading by transformers; None where it is not installed, or has no tokenizer for such a folder."""
    try:
        from transformers import AutoTokenizer
    except ModuleNotFoundError:
        return None
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    lower = bool(object_or_none(folder / "sentence_bert_config.json").get("do_lower_case"))

    def read(*texts: str) -> list[int]:
        given = [text.lower() for text in texts] if lower else texts
        return [int(each) for each in tokenizer(*given, truncation=True, max_length=most)["input_ids"]]

    return read


def _added(folder: Path) -> list[str]:
    """Added tokens that a text may hold; a special one in a text is read as words here, which is meant."""
    found = object_or_none(folder / CONFIG).get("added_tokens_decoder") or {}
    listed = object_or_none(folder / TOKENIZER).get("added_tokens") or []
    tokens = [each for each in [*found.values(), *listed] if isinstance(each, dict) and not each.get("special")]
    return list(dict.fromkeys(str(each.get("content")) for each in tokens))[:20]


def _few(ids: Sequence[int]) -> str:
    return f"{list(ids[:24])}{f' and {len(ids) - 24} more' if len(ids) > 24 else ''}"
