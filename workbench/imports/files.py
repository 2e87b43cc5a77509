"""What a folder of another library holds, read without running any of it; what cannot be taken is refused by name."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from training.errors import UserError

TOKENIZER, WEIGHTS, CONFIG = "tokenizer.json", "model.safetensors", "config.json"
LOGITS = "logits"  # the output of a graph with a head
GRAPHS = ("onnx/model.onnx", "model.onnx")  # where such folders have their graph
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_KINDS: Mapping[str, tuple[type, ...]] = {  # of the fields that are read, in whichever file they stand
    **dict.fromkeys(("architectures", "matryoshka_dimensions"), (list,)),
    **dict.fromkeys(("id2label", "prompts", "truncation", "modality_config", "sentence_transformers"), (dict,)),
    **dict.fromkeys(("num_labels", "pad_token_id", "max_length"), (int,)),
    **dict.fromkeys(("max_seq_length", "model_max_length", "max_position_embeddings"), (float, int)),
    **dict.fromkeys(("model_type", "problem_type", "default_prompt_name", "activation_function"), (str,)),
    "pooling_mode": (str, list),
}
# By both marks a few lines of YAML may become millions.
_ALIASED = tuple(re.compile(rf"[\s\[,:{{-]{mark}\S") for mark in ("&", r"\*"))
_LICENCE = 200  # characters
_IN_JSON: Mapping[type, str] = {
    **{dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a whole number"},
    float: "a number",
}


class ImportRefused(UserError, ValueError):
    """A folder, or a part of it, that cannot be taken; says which file and field."""

    exit_code = 2


class Stated(NamedTuple):
    """What a folder's README states in its head; None: nothing."""

    licence: str | None
    languages: tuple[str, ...] | None  # ISO 639 codes


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object.

    Raises:
        ImportRefused: missing, not JSON, or something else; or a field that is read has another type.
    """
    content = _json(path)
    if not isinstance(content, dict):
        raise ImportRefused(f"{path}: expected an object, found {type(content).__name__}")
    for field, kinds in _KINDS.items():
        if content.get(field) is not None and not isinstance(content[field], kinds):
            expected = " or ".join(_IN_JSON[kind] for kind in kinds)
            raise ImportRefused(f"{path}: {field}: expected {expected}, found {_IN_JSON[type(content[field])]}")
    return content


def object_or_none(path: Path) -> dict[str, Any]:
    """The same; empty where there is no such file."""
    return read_object(path) if path.is_file() else {}


def read_modules(folder: Path) -> list[tuple[str, Path]]:
    """The modules of a sentence-transformers folder, in order: the name of the class, and its folder; none without a
    `modules.json`.

    Raises:
        ImportRefused: not a list of modules, or a class that is not of that library.
    """
    path = folder / "modules.json"
    if not path.is_file():
        return []
    content = _json(path)
    if not isinstance(content, list) or not all(isinstance(each, dict) for each in content):
        raise ImportRefused(f"{path}: expected a list of modules")
    found = []
    for i, module in enumerate(content):
        name, where = module.get("type"), module.get("path", "")
        if not isinstance(name, str) or not name.startswith("sentence_transformers."):
            raise ImportRefused(f"{path}: module {i}: type {name!r} is custom code, which is never run")
        if not isinstance(where, str) or not is_within(where):
            raise ImportRefused(f"{path}: module {i}: path {where!r} is not within the folder")
        if where and (folder / where).is_symlink():
            raise ImportRefused(f"{path}: module {i}: path {where!r} is a link")
        found.append((name.rpartition(".")[2], folder / where))
    return found


def is_within(path: str) -> bool:
    """Whether a path in a folder leads to no place outside of it."""
    return not Path(path).is_absolute() and ".." not in Path(path).parts


def sentence_model(folder: Path) -> Any:
    """The model that sentence-transformers makes of a folder, in float32 whatever its weights are stored in."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), local_files_only=True, device="cpu").float()


@contextmanager
def library_errors(folder: Path) -> Iterator[None]:
    """What reading a folder raises, of whatever its files hold, in one line; transformers has no errors of its own.

    Raises:
        ImportRefused: in place of those.
    """
    try:
        yield
    except (UserError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of a library in Rust is no Exception
        if isinstance(error, ModuleNotFoundError) and find_spec(str(error.name).partition(".")[0]) is None:
            raise  # a library that is not installed; a part of one that it lacks is named by the folder
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise ImportRefused(f"{folder}: cannot be read: {reason}") from error


def has_weights(folder: Path) -> bool:
    """Whether there is a `model.safetensors`, in one file or several."""
    return (folder / WEIGHTS).is_file() or (folder / f"{WEIGHTS}.index.json").is_file()


def check_weights(folder: Path) -> None:
    """Whether there is a `model.safetensors`, in one file or several; of a module that has weights, too.

    Raises:
        ImportRefused: there is none; pickles, which can run code when they are read, are not taken instead.
    """
    for part in dict.fromkeys((folder, *(where for _, where in read_modules(folder)))):
        if (part / WEIGHTS).is_file() or (part == folder and has_weights(part)):
            continue
        if pickle := next((part / name for name in _PICKLES if (part / name).exists()), None):
            raise ImportRefused(
                f"{pickle}: weights in a pickle, which can run code when it is read: save the model anew with "
                f"safetensors, as {WEIGHTS}"
            )
        if part == folder:
            raise ImportRefused(f"{part / WEIGHTS}: no such file")


def read_tensors(path: Path) -> dict[str, Any]:
    """The NumPy arrays of a safetensors file by name.

    Raises:
        ImportRefused: no such file, or not of that form.
        ModuleNotFoundError: the library safetensors is not installed.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise ImportRefused(f"{path}: cannot be read: {error}") from error


def static_kind(folder: Path) -> Literal["model2vec", "StaticEmbedding"] | None:
    """The kind of a table of rows, one for each token; None: the folder holds a transformer.

    Raises:
        ImportRefused: as `read_modules`.
    """
    if object_or_none(folder / CONFIG).get("model_type") == "model2vec":
        return "model2vec"
    return "StaticEmbedding" if [name for name, _ in read_modules(folder)][:1] == ["StaticEmbedding"] else None


def read_stated(folder: Path) -> Stated:
    """What the head of a folder's README states, as a model hub reads it; nothing where none can be read."""
    from huggingface_hub import metadata_load

    try:
        content = (folder / "README.md").read_text(encoding="utf-8-sig").lstrip()
        raw = re.split(r"[\r\n]---", content, maxsplit=1)[0]
        aliased = all(each.search(raw) for each in _ALIASED)
        head = {} if aliased else metadata_load(folder / "README.md") or {}
    except Exception:  # YAML's own errors, and whatever a head of another kind raises: it states nothing
        return Stated(None, None)
    licence = head.get("license_name") if head.get("license") == "other" else None
    licence = licence or head.get("license") or ""
    licence = ", ".join(map(str, licence)) if isinstance(licence, list) else str(licence)
    licence = " ".join("".join(each if each.isprintable() else " " for each in licence).split())[:_LICENCE]
    languages = head.get("language", head.get("languages", []))
    found = [_language(each) for each in (languages if isinstance(languages, list) else [languages])]
    return Stated(licence or None, tuple(dict.fromkeys(each for each in found if each)) or None)


def _language(code: object) -> str | None:
    """An ISO 639 code; None of what is none: "multilingual", "code"."""
    if code is False:  # YAML's reading of `no`, Norwegian
        return "no"
    first = str(code).lower().partition("-")[0]  # of zh-Hant
    return first if first.isascii() and first.isalpha() and 2 <= len(first) <= 3 else None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ImportRefused(f"{path}: no such file") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ImportRefused(f"{path}: cannot be read as JSON: {error}") from error
