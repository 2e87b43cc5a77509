"""Fetching from a server on this machine that serves small archives in the official formats."""

import gzip
import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from training.corpora import counts
from training.corpora.catalogue.catalogue import CATALOGUE, Corpus, find
from training.corpora.catalogue.fetch import FetchError, fetch
from training.corpora.counts import Published
from training.corpora.readers import nli, sick, stsb


@dataclass
class Served:
    """A running server: put bytes under a path in ``files``."""

    url: str
    files: dict[str, bytes]
    asked: list[str]


@pytest.fixture
def server() -> Iterator[Served]:
    files: dict[str, bytes] = {}
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if self.path == "/moved":
                self.send_response(302)
                self.send_header("Location", "/archive")
                self.end_headers()
                return
            content = files.get(self.path.removesuffix("?cut"))
            self.send_response(404 if content is None else 200)
            if self.path != "/unsized":
                self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            cut = self.path.endswith("?cut")
            self.wfile.write((content or b"")[: -10 if cut else None])

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield Served(f"http://127.0.0.1:{running.server_port}", files, asked)
        running.shutdown()
        thread.join()


def zip_of(members: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()


def tar_gz_of(members: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def table(*rows: tuple[str, ...], end: str = "\n") -> str:
    return "".join("\t".join(row) + end for row in rows)


SICK_TABLE = table(sick.HEADER, ("1", "A cat", "A dog", "2.5", "NEUTRAL"), end="\r\n")


def sick_from(server: Served, path: str = "/archive", **changes) -> Corpus:
    """SICK, its first archive only, from our server."""
    corpus = find("sick")
    first = replace(corpus.downloads[0], url=server.url + path, **changes)
    return replace(corpus, downloads=(first,))


def test_sick_archives_become_our_files(server, data):
    corpus = find("sick")
    downloads = []
    for download in corpus.downloads:
        name = download.url.rsplit("/", 1)[1]
        server.files[f"/{name}"] = zip_of({"readme.txt": "SICK", download.members[0].names[0]: "\ufeff" + SICK_TABLE})
        downloads.append(replace(download, url=f"{server.url}/{name}"))
    got = list(fetch(replace(corpus, downloads=tuple(downloads)), data))
    assert [result.files for result in got] == [(file,) for file in sick.FILES.values()]
    assert [result.confirmed for result in got] == [False, False, False]
    assert got[0].sha256 == hashlib.sha256(server.files["/sick_train.zip"]).hexdigest()
    assert [pair.target for split in sick.FILES for pair in sick.read(split)] == [2.5, 2.5, 2.5]
    assert b"\r" not in (data / sick.FILES["test"]).read_bytes()
    assert sorted(path.name for path in data.iterdir()) == ["sick"]


def test_stsb_archive_becomes_our_files(server, data):
    train = table(("main-news", "MSRpar", "2012test", "0001", "4.200", 'He said "no.', "He refused.", "note"))
    dev = table(("main-captions", "images", "2015", "0002", "1", "a", "b"), ("g", "s", "2014", "3", "5", "c", "d"))
    server.files["/archive"] = tar_gz_of({"stsbenchmark/sts-train.csv": train, "stsbenchmark/sts-dev.csv": dev})
    corpus = find("stsb")
    (download,) = corpus.downloads
    (got,) = fetch(replace(corpus, downloads=(replace(download, url=f"{server.url}/archive"),)), data)
    assert got.files == ("stsb/sts-train.tsv", "stsb/sts-dev.tsv")
    assert [(pair.a, pair.target) for pair in stsb.read("train")] == [('He said "no.', 4.2)]
    assert [pair.group for pair in stsb.read("dev")] == ["main-captions/images/2015", "g/s/2014"]


NLI_HEADER = ("gold_label", "sentence1_parse", "sentence1", "sentence2", "captionID", "label1")


def test_snli_archive_becomes_our_files_byte_for_byte_alike(server, data):
    rows = (NLI_HEADER, ("neutral", "(x)", "A dog.", "A big dog.", "1#0", "n"), ("-", "(x)", "A dog.", "?", "1#1", "n"))
    members = {f"snli_1.0/snli_1.0_{split}.txt": table(*rows) for split in ("train", "dev", "test")}
    server.files["/archive"] = zip_of({**members, "__MACOSX/snli_1.0/._x": "x"})
    digest = hashlib.sha256(server.files["/archive"]).hexdigest()
    corpus = find("snli-1.0")
    download = replace(corpus.downloads[0], url=f"{server.url}/archive", sha256=digest)
    first = list(fetch(replace(corpus, downloads=(download,)), data))
    assert first[0].confirmed
    packed = (data / "snli/snli_1.0_train.tsv.gz").read_bytes()
    assert gzip.decompress(packed) == b"label\tpremise\thypothesis\nneutral\tA dog.\tA big dog.\n"
    assert [pair.label for split in ("train", "dev", "test") for pair in nli.snli(split, "official")] == ["neutral"] * 3
    assert packed[4:8] == bytes(4)  # no time of writing in the gzip header
    list(fetch(replace(corpus, downloads=(download,)), data))
    assert (data / "snli/snli_1.0_train.tsv.gz").read_bytes() == packed


def test_multinli_matched_and_mismatched_become_one_file(server, data):
    one = table(NLI_HEADER, ("neutral", "(x)", "a", "b", "", "n"))
    two = table(NLI_HEADER, ("entailment", "(x)", "c", "d", "", "e"))
    names = [f"multinli_1.0/multinli_1.0_dev_{kind}.txt" for kind in ("matched", "mismatched")]
    server.files["/archive"] = zip_of(dict(zip(names, (one, two), strict=True)))
    corpus = find("multinli")
    download = replace(corpus.downloads[0], url=f"{server.url}/archive", sha256=None)
    list(fetch(replace(corpus, downloads=(download,)), data))
    assert [(pair.a, pair.label) for pair in nli.multinli()] == [("a", "neutral"), ("c", "entailment")]


def test_redirects_are_followed_and_progress_reported(server, data):
    server.files["/archive"] = zip_of({"SICK_train.txt": SICK_TABLE})
    seen = []
    list(fetch(sick_from(server, "/moved"), data, lambda done, total: seen.append((done, total))))
    size = len(server.files["/archive"])
    assert seen[-1] == (size, size)
    assert server.asked == ["/moved", "/archive"]


def test_a_server_that_does_not_say_the_size(server, data):
    server.files["/unsized"] = zip_of({"SICK_train.txt": SICK_TABLE})
    seen = []
    list(fetch(sick_from(server, "/unsized"), data, lambda done, total: seen.append(total)))
    assert set(seen) == {None}
    assert len(sick.read("train")) == 1


def expect_failure(corpus: Corpus, data, message: str) -> None:
    """The error matches, an older file stays as it was and nothing temporary is left."""
    old = data / sick.FILES["train"]
    old.parent.mkdir(parents=True)
    old.write_text("old")
    with pytest.raises(FetchError, match=message):
        list(fetch(corpus, data))
    assert old.read_text() == "old"
    assert [path.name for path in data.rglob("*")] == ["sick", "SICK_train.txt"]


def test_another_checksum_says_both(server, data):
    server.files["/archive"] = zip_of({"SICK_train.txt": SICK_TABLE})
    found = hashlib.sha256(server.files["/archive"]).hexdigest()
    corpus = sick_from(server, sha256="0" * 64)
    expect_failure(corpus, data, f"/archive: expected sha256 {'0' * 64}, got {found}; deleted")


def test_http_errors(server, data):
    expect_failure(sick_from(server, "/nothing"), data, "/nothing: HTTP 404 Not Found")


def test_nobody_listening(server, data):
    corpus = sick_from(server)
    closed = replace(corpus.downloads[0], url="http://127.0.0.1:9/archive.zip")
    expect_failure(replace(corpus, downloads=(closed,)), data, "archive.zip: download failed after 0 bytes: .*refused")


def test_a_connection_cut_short(server, data):
    server.files["/archive"] = zip_of({"SICK_train.txt": SICK_TABLE})
    expect_failure(sick_from(server, "/archive?cut"), data, r"download failed after \d+ bytes")


@pytest.mark.parametrize("path", ["/archive", "/unsized"])
def test_the_size_is_bounded(server, data, path):
    server.files[path] = zip_of({"SICK_train.txt": SICK_TABLE})
    expect_failure(sick_from(server, path, limit=100), data, r"expected at most 100 bytes, got (more than )?\d+")


def test_what_is_no_archive(server, data):
    server.files["/archive"] = b"<html>please log in</html>"
    expect_failure(sick_from(server), data, r"cannot read SICK_train\.txt from the archive")


def test_an_archive_without_the_member(server, data):
    server.files["/archive"] = zip_of({"other.txt": "x"})
    expect_failure(sick_from(server), data, r"/archive: the archive has no SICK_train\.txt")


def test_a_member_that_is_not_utf8(server, data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("SICK_train.txt", b"pair_ID\xff")
    server.files["/archive"] = out.getvalue()
    expect_failure(sick_from(server), data, r"cannot read SICK_train\.txt from the archive: .*0xff")


def test_a_member_that_unpacks_too_large(server, data, monkeypatch):
    monkeypatch.setattr("training.corpora.catalogue.fetch._UNPACKED_LIMIT", 20)
    server.files["/archive"] = zip_of({"SICK_train.txt": SICK_TABLE})
    expect_failure(sick_from(server), data, r"SICK_train\.txt unpacks to more than 20 bytes")


def test_another_number_of_rows_than_published(server, data, monkeypatch):
    monkeypatch.setattr(counts, "PUBLISHED", {sick.FILES["train"]: Published(4500)})
    server.files["/archive"] = zip_of({"SICK_train.txt": SICK_TABLE})
    expect_failure(sick_from(server), data, r"/archive: expected 4500 rows for sick/SICK_train\.txt, got 1")


def test_a_corpus_without_a_download_names_its_source(data):
    with pytest.raises(FetchError, match="msrp: no direct official download; see https://www"):
        list(fetch(find("msrp"), data))


def test_every_download_makes_files_of_its_corpus():
    for corpus in CATALOGUE:
        made = [member.file for download in corpus.downloads for member in download.members]
        assert set(made) <= set(corpus.files), corpus.id
        for download in corpus.downloads:
            assert download.sha256 is None or len(download.sha256) == 64
