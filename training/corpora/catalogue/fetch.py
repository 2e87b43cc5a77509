"""Download corpora whose source allows it, and convert them to the files of our readers.

An archive is streamed to a temporary file and its checksum verified; its members are converted to temporary files and
their rows counted; then the files are moved to the data folder. An error leaves the data folder unchanged.
"""

import gzip
import hashlib
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx

from training.corpora import counts
from training.corpora.catalogue.catalogue import Corpus, Download, Member
from training.corpora.files import CorpusError, count_rows

_TIMEOUT = httpx.Timeout(60.0, connect=15.0)
# The checksum is of the archive itself, so the transfer must not be compressed.
_HEADERS = {"Accept-Encoding": "identity"}
_CHUNK = 1 << 16
_UNPACKED_LIMIT = 2 << 30  # bytes of one archive member; SNLI's train part, the largest, has under 0.5 GB

Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all where the server says


class FetchError(CorpusError):
    """A download failed, or its content is not as expected. The message is one line with the URL."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A downloaded archive: its checksum, whether it equals a published one, and the files made from it."""

    url: str
    sha256: str
    confirmed: bool
    files: tuple[str, ...]


def fetch(corpus: Corpus, folder: Path, progress: Progress = lambda done, total: None) -> Iterator[Fetched]:
    """Download every archive of ``corpus`` into the data folder, one result per archive.

    Raises `FetchError`: no official download, no connection, an HTTP error, a download over its size limit, another
    checksum than the published one, a damaged archive, a member that is missing or has another number of rows.
    """
    if not corpus.downloads:
        raise FetchError(f"{corpus.id}: no direct official download; see {corpus.source}")
    for download in corpus.downloads:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as work:
            archive = Path(work) / "archive"
            digest = _download(download, archive, progress)
            made = [_convert(download.url, archive, member, Path(work)) for member in download.members]
            for member, path in zip(download.members, made, strict=True):
                target = folder / member.file
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, target)
        yield Fetched(download.url, digest, download.sha256 is not None, tuple(m.file for m in download.members))


def _download(download: Download, target: Path, progress: Progress) -> str:
    digest = hashlib.sha256()
    done = 0
    try:
        with (
            httpx.stream("GET", download.url, headers=_HEADERS, follow_redirects=True, timeout=_TIMEOUT) as response,
            target.open("wb") as file,
        ):
            if response.status_code != httpx.codes.OK:
                raise FetchError(f"{download.url}: HTTP {response.status_code} {response.reason_phrase}")
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            for chunk in response.iter_raw(_CHUNK):
                done += len(chunk)
                if max(done, total or 0) > download.limit:
                    size = total if total is not None else f"more than {done}"
                    raise FetchError(f"{download.url}: expected at most {download.limit} bytes, got {size}")
                digest.update(chunk)
                file.write(chunk)
                progress(done, total)
    except httpx.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise FetchError(f"{download.url}: download failed after {done} bytes: {reason}") from error
    found = digest.hexdigest()
    if download.sha256 is not None and found != download.sha256:
        raise FetchError(f"{download.url}: expected sha256 {download.sha256}, got {found}; deleted")
    return found


def _convert(url: str, archive: Path, member: Member, work: Path) -> Path:
    """Our file made from archive members, in ``work``, its rows counted."""
    target = work / member.file.replace("/", "_")
    try:
        with ExitStack() as stack:
            plain = stack.enter_context(target.open("wb"))
            out = stack.enter_context(_packed(plain)) if member.file.endswith(".gz") else plain
            for line in member.convert(_lines(url, archive, member)):
                out.write(line.encode("utf-8") + b"\n")
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, UnicodeDecodeError) as error:
        raise FetchError(f"{url}: cannot read {' and '.join(member.names)} from the archive: {error}") from error
    expected = counts.PUBLISHED.get(member.file)
    rows = count_rows(target, member.file)
    if expected is not None and rows != expected.rows:
        raise FetchError(f"{url}: expected {expected.rows} rows for {member.file}, got {rows}")
    return target


def _packed(file: IO[bytes]) -> gzip.GzipFile:
    # Without time and name, so that the same text gives the same bytes.
    return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)


def _lines(url: str, archive: Path, member: Member) -> Iterator[str]:
    """Lines of the members one after another, without a byte order mark and line ends of either kind."""
    for name in member.names:
        with _open_member(url, archive, name) as stream:
            size = 0
            for number, raw in enumerate(stream):
                size += len(raw)
                if size > _UNPACKED_LIMIT:
                    raise FetchError(f"{url}: {name} unpacks to more than {_UNPACKED_LIMIT} bytes")
                line = raw.decode("utf-8")
                yield (line.removeprefix("\ufeff") if number == 0 else line).rstrip("\r\n")


@contextmanager
def _open_member(url: str, archive: Path, name: str) -> Iterator[IO[bytes]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as unzipped:
            if name in unzipped.namelist():
                with unzipped.open(name) as stream:
                    yield stream
                return
    else:
        with tarfile.open(archive) as untarred:
            if name in untarred.getnames() and (found := untarred.extractfile(name)) is not None:
                with found:
                    yield found
                return
    raise FetchError(f"{url}: the archive has no {name}")
