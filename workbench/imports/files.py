"""What a folder of another library holds, read without running any of it; what cannot be taken is refused by name."""

import json
import re
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from contract.errors import TokenizerError
from contract.wordpiece import WordPiece as OurWordPiece

TOKENIZER, VOCABULARY, WEIGHTS = "tokenizer.json", "vocab.txt", "model.safetensors"
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_LICENCE = re.compile(r"^license:\s*(\S+)\s*$", re.MULTILINE)


class ImportRefused(ValueError):
    """A folder, or a part of it, that cannot be taken; says which file and field."""


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object.

    Raises:
        ImportRefused: missing, not JSON, or something else.
    """
    content = _json(path)
    if not isinstance(content, dict):
        raise ImportRefused(f"{path}: expected an object, found {type(content).__name__}")
    return content


def read_modules(folder: Path) -> list[tuple[str, Path]]:
    """The modules of a sentence-transformers folder, in order: the name of the class, and its folder.

    Raises:
        ImportRefused: not a list of modules, or a class that is not of that library.
    """
    path = folder / "modules.json"
    content = _json(path)
    if not isinstance(content, list) or not all(isinstance(each, dict) for each in content):
        raise ImportRefused(f"{path}: expected a list of modules")
    found = []
    for i, module in enumerate(content):
        name, where = module.get("type"), module.get("path", "")
        if not isinstance(name, str) or not name.startswith("sentence_transformers."):
            raise ImportRefused(f"{path}: module {i}: type {name!r} is custom code, which is never run")
        if not isinstance(where, str) or Path(where).is_absolute() or ".." in Path(where).parts:
            raise ImportRefused(f"{path}: module {i}: path {where!r} is not within the folder")
        found.append((name.rpartition(".")[2], folder / where))
    return found


def weights_file(folder: Path) -> Path:
    """`model.safetensors`.

    Raises:
        ImportRefused: there is none; pickles, which can run code when they are read, are not taken instead.
    """
    path = folder / WEIGHTS
    if path.is_file():
        return path
    for name in _PICKLES:
        if (folder / name).exists():
            raise ImportRefused(
                f"{folder / name}: weights in a pickle, which can run code when it is read: save the model anew with "
                f"safetensors, as {WEIGHTS}"
            )
    if (folder / f"{WEIGHTS}.index.json").exists():
        raise ImportRefused(f"{folder / f'{WEIGHTS}.index.json'}: weights in several files; save them as one {WEIGHTS}")
    raise ImportRefused(f"{path}: no such file")


def tokenizer_file(folder: Path, drafts: Path) -> Path:
    """The `tokenizer.json` of a WordPiece vocabulary; from `vocab.txt` one is written into `drafts`.

    Raises:
        ImportRefused: neither file, or one that `contract.wordpiece` cannot read.
    """
    path = folder / TOKENIZER
    if not path.is_file():
        path = _from_vocabulary(folder, drafts)
    try:
        OurWordPiece.load(path)
    except TokenizerError as error:
        raise ImportRefused(f"{folder / path.name}: {str(error).removeprefix(f'{path}: ')}") from error
    return path


def _from_vocabulary(folder: Path, drafts: Path) -> Path:
    vocabulary = folder / VOCABULARY
    if not vocabulary.is_file():
        raise ImportRefused(f"{folder}: neither {TOKENIZER} nor {VOCABULARY}")
    settings = folder / "tokenizer_config.json"
    given = read_object(settings) if settings.is_file() else {}
    entries = vocabulary.read_text(encoding="utf-8").splitlines()
    made = tokenizers.Tokenizer(
        WordPiece({entry: i for i, entry in enumerate(entries)}, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    made.normalizer = BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(given.get("tokenize_chinese_chars", True)),
        strip_accents=given.get("strip_accents"),
        lowercase=bool(given.get("do_lower_case", True)),
    )
    made.pre_tokenizer = BertPreTokenizer()
    made.add_special_tokens([entry for entry in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if entry in entries])
    path = drafts / TOKENIZER
    made.save(str(path))
    return path


def id_of(path: Path, token: str) -> int:
    """The id of a special token in a `tokenizer.json`.

    Raises:
        ImportRefused: it has none.
    """
    found = tokenizers.Tokenizer.from_file(str(path)).token_to_id(token)
    if found is None:
        raise ImportRefused(f"{path}: model.vocab has no {token}")
    return int(found)


def licence_of(folder: Path) -> str:
    """The licence that the folder's README states in its head, or that it states none."""
    path = folder / "README.md"
    found = _LICENCE.search(path.read_text(encoding="utf-8", errors="replace")[:4000]) if path.is_file() else None
    return found[1] if found is not None else "not stated in the folder"


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ImportRefused(f"{path}: no such file") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ImportRefused(f"{path}: cannot be read as JSON: {error}") from error
