"""Where an imported model comes from: a local folder, or `owner/name[@revision]` of a model hub."""

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.manifest import Origin
from semblance.client.reading import READ, bound_reads
from workbench.imports.described import check_code
from workbench.imports.files import GRAPHS, WEIGHTS, ImportRefused, library_errors, read_modules, static_kind

if TYPE_CHECKING:
    from huggingface_hub import ResolvedRevision

MAX_BYTES = 2 << 30  # of what is fetched: a graph in float32 is one file, of 2 GB at most
PATIENCE, PACE = 60.0, 1024  # seconds after which fewer bytes a second are too slow
_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(\S+))?", re.ASCII)
# Beside the graph and the weights only these are fetched: never a pickle, never code.
_DESCRIBED = re.compile(
    r"[\w.-]+\.json|vocab\.txt|merges\.txt|(spiece|spm|tokenizer|sentencepiece\.bpe)\.model|README\.md"
)
_PARTS = re.compile(r"model-\d+-of-\d+\.safetensors")
_PICKLES = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin")


@dataclass(frozen=True)
class Source:
    """A model of another library that lies in a folder."""

    folder: Path
    name: str  # as commands and cards name it; a hub's with the commit
    origin: Origin | None = None  # None: a local folder

    @property
    def recorded(self) -> dict[str, str]:
        """What tells it from other sources, for the manifest: of a local folder the name, and its path's digest, for
        the path itself is nobody else's business."""
        if self.origin is not None:
            return {"imported": self.origin.name}
        path = os.fsencode(self.folder.resolve())
        return {"imported": self.name, "folder": hashlib.sha256(path).hexdigest()[:16]}


@contextmanager
def open_source(source: str | Path, graph: str | None = None) -> Iterator[Source]:
    """A model by its folder, or, where there is no such folder, by its name on a hub, from which it is fetched.

    Args:
        source: a folder, or `owner/name[@revision]`; what is a Path is a folder.
        graph: the ONNX file that is wanted; None: the weights, or where torch cannot export them the graph.

    Raises:
        ImportRefused: no such folder or model, or nothing in it can be taken; or the hub cannot be reached.
    """
    named = _NAMED.fullmatch(source) if isinstance(source, str) else None
    if Path(source).is_dir():
        yield Source(Path(source), Path(source).resolve().name)
    elif named is None:
        raise ImportRefused(f"{source}: no such folder (a model of a hub is named owner/name or owner/name@revision)")
    else:
        with tempfile.TemporaryDirectory(prefix="import-") as temporary:
            folder = Path(temporary) / named[1]
            try:
                origin = _fetch(named[1], named[2], graph, folder)
                yield Source(folder, f"{origin.name}@{origin.revision}", origin)
            except ImportRefused as error:  # about the copy, which nobody else knows
                raise ImportRefused(str(error).replace(str(folder), str(source))) from error


def _fetch(name: str, revision: str | None, graph: str | None, folder: Path) -> Origin:
    """Fill a folder with links to the files of a model in the hub's cache, into which they are fetched."""
    from huggingface_hub import HfApi, constants, get_session

    constants.HF_HUB_DISABLE_XET = True  # a second way to fetch, which has no bounds
    if _begin not in (hooks := get_session().event_hooks)["request"]:
        hooks["request"].append(_begin)
        hooks["response"].append(_has_head)
    with _hub_errors(name, revision):
        pinned = HfApi().resolve_revision(name, revision=revision, cache_dir=_cache())
        sizes = _sizes(name, pinned)
    _link(name, pinned, sizes, _named(_DESCRIBED, sizes, [""]), folder)
    with library_errors(folder):
        parts = _module_folders(folder)
        _link(name, pinned, sizes, _named(_DESCRIBED, sizes, parts), folder)
        check_code(folder)  # before the larger files
    _link(name, pinned, sizes, _weights_or_graph(name, sizes, graph, folder), folder)
    return Origin(hub=_hub(), name=name, revision=pinned.resolved)


def _hub() -> str:
    """The hub's host and port."""
    from huggingface_hub import constants

    return urlsplit(constants.ENDPOINT).netloc.rpartition("@")[2].lower()


def _cache() -> str | None:
    """Where the hub's files are kept: each hub but the library's own apart, for the cache knows no hubs."""
    from huggingface_hub import constants

    return None if _hub() == "huggingface.co" else str(Path(constants.HF_HUB_CACHE) / "hubs" / _hub().replace(":", "_"))


def _sizes(name: str, revision: "ResolvedRevision") -> dict[str, int]:
    """Bytes of every file of a model at a commit, from the cache where it has them."""
    from huggingface_hub import HfApi, RepoFile, get_cached_repo_tree
    from huggingface_hub.errors import CachedRepoTreeNotFoundError

    try:
        found = list(get_cached_repo_tree(name, revision=revision, cache_dir=_cache()))
    except CachedRepoTreeNotFoundError:
        tree = HfApi().list_repo_tree(name, revision=revision.resolved, recursive=True)
        found = [each for each in tree if isinstance(each, RepoFile)]
    sizes: dict[str, Any] = {each.path: each.size for each in found}
    if odd := [path for path, size in sizes.items() if type(size) is not int or size < 0]:
        raise ImportRefused(f"{name}: the hub lists {odd[0]} with a size of {sizes[odd[0]]!r}")
    return sizes


def _module_folders(folder: Path) -> list[str]:
    """Of the modules of a sentence-transformers folder, beside the folder itself: their paths in it."""
    found = (where.relative_to(folder).as_posix() for _, where in read_modules(folder) if where != folder)
    return list(dict.fromkeys(found))


def _named(pattern: re.Pattern[str], sizes: Mapping[str, int], folders: Sequence[str]) -> list[str]:
    """The files with such a name in these folders of a model, "" being its own."""
    found = [(each, *each.rpartition("/")[::2]) for each in sizes]
    return [each for each, where, name in found if where in folders and pattern.fullmatch(name)]


def _weights_or_graph(name: str, sizes: Mapping[str, int], graph: str | None, folder: Path) -> list[str]:
    """Which large files of a model are taken, its small ones being in the folder: beside a graph that is asked for the
    weights too, with which it is compared.

    Raises:
        ImportRefused: it has neither weights in safetensors nor a graph.
    """
    if graph is not None and (graph not in sizes or not graph.endswith(".onnx")):
        raise ImportRefused(f"--graph {graph}: {name} has no such ONNX file")
    modules = ["", *_module_folders(folder)]
    weights = _named(re.compile(re.escape(WEIGHTS)), sizes, modules)
    if WEIGHTS not in weights:
        weights += _named(_PARTS, sizes, [""])
    folders = {each.rpartition("/")[0] for each in weights}
    pickles = [each for each in _named(_PICKLES, sizes, modules) if each.rpartition("/")[0] not in folders]
    graphs = [graph] if graph is not None else [each for each in GRAPHS if each in sizes][:1]
    if pickles and (weights or not graphs):
        raise ImportRefused(
            f"{name}: {pickles[0]}: weights in a pickle, which can run code when it is read, and neither {WEIGHTS} nor "
            f"{GRAPHS[0]}: its pull requests on the hub may have them (@refs/pr/NUMBER)"
        )
    if not weights and not graphs:
        others = [each for each in sizes if each.endswith(".onnx")]
        hint = f" (--graph takes one of {', '.join(others[:5])})" if others else ""
        raise ImportRefused(f"{name}: has neither {WEIGHTS} nor {GRAPHS[0]}{hint}")
    if not weights or (graphs and find_spec("torch") is None and static_kind(folder) is None):
        return _with_data(graphs[0], sizes)
    return weights if graph is None else [*weights, *_with_data(graph, sizes)]


def _with_data(graph: str, sizes: Mapping[str, int]) -> list[str]:
    """A graph, and the files of weights that are named after it."""
    return [graph, *(each for each in sizes if each.startswith((f"{graph}_data", f"{graph}.data")))]


def _link(
    name: str, revision: "ResolvedRevision", sizes: Mapping[str, int], names: Sequence[str], folder: Path
) -> None:
    """Fetch files of a model, those that the cache lacks, and link them into a folder.

    Raises:
        ImportRefused: they are larger than `MAX_BYTES` together, or cannot be fetched.
    """
    from huggingface_hub import snapshot_download

    if (total := sum(sizes[each] for each in names)) > MAX_BYTES:
        largest = max(names, key=lambda each: sizes[each])
        raise ImportRefused(
            f"{name}: {total:,} bytes are to be fetched ({largest} has {sizes[largest]:,}), the limit is {MAX_BYTES:,}"
        )
    with _hub_errors(name, revision.initial):
        snapshot = Path(snapshot_download(name, revision=revision, cache_dir=_cache(), allow_patterns=list(names)))
        for each in names:
            blob = (snapshot / each).resolve(strict=True)
            with blob.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if len(blob.name) == len(digest) and blob.name != digest:  # that of a large file is the listed digest
                blob.unlink()
                raise ImportRefused(f"{name}: {each} came with the SHA-256 {digest}, the hub lists {blob.name}")
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
            if ".onnx" in each and not each.endswith(".onnx"):
                shutil.copyfile(blob, folder / each)  # the library follows no link to a graph's weights
            else:
                (folder / each).symlink_to(blob)


@dataclass
class _HubAnswer:
    """What has come of the answer that this thread reads: the library bounds each read alone, if at all."""

    host: str
    began: float
    count: int = 0  # bytes
    has_head: bool = False

    def left(self) -> float:
        """Seconds for the next read; raises ImportRefused where the head is late, or the body only drips."""
        seconds = time.monotonic() - self.began
        if seconds > PATIENCE and not (self.has_head and self.count >= PACE * seconds):
            raise ImportRefused(f"{self.host} sent {self.count:,} bytes in {seconds:.0f} s: too slow to wait for")
        return PATIENCE


def _begin(request: Any) -> None:
    READ.set(_HubAnswer(request.url.host, time.monotonic()))
    request.extensions = {**request.extensions, "trace": bound_reads}


def _has_head(response: Any) -> None:
    READ.get().has_head = True


@contextmanager
def _hub_errors(name: str, revision: str | None) -> Iterator[None]:
    """What huggingface_hub raises, in one line; its errors share no base class.

    Raises:
        ImportRefused: in place of those.
    """
    from huggingface_hub import constants, errors

    user, hub = urlsplit(constants.ENDPOINT).netloc.rpartition("@")[0], _hub()
    token = "the token may not read it" if os.environ.get("HF_TOKEN") else "then give a token in HF_TOKEN"
    try:
        yield
    except ImportRefused:
        raise
    except errors.GatedRepoError as error:
        raise ImportRefused(f"{name}: {hub} asks to agree to its conditions there first; {token}") from error
    except errors.RepositoryNotFoundError as error:
        raise ImportRefused(f"{name}: no such folder, and no such model on {hub}, or a private one: {token}") from error
    except errors.RevisionNotFoundError as error:
        raise ImportRefused(f"{name}: {hub} has no revision {revision} of it") from error
    except Exception as error:
        cause = error.__cause__ or error
        if constants.is_offline_mode():
            raise ImportRefused(f"{name}: not in the cache, and HF_HUB_OFFLINE forbids to ask {hub}") from error
        said = str(cause).partition(" Please retry with `force_download")[0]  # which is no option here
        reason = " ".join(said.split()).replace(f"{user}@", "")[:300] or type(cause).__name__
        raise ImportRefused(f"{name}: no such folder, and it cannot be fetched from {hub}: {reason}") from error
