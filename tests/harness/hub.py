"""A small model hub over HTTP, with the hub's routes, headers and errors: revisions, listings, files, large ones by a
redirect, private and gated models."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGE = (".safetensors", ".bin", ".onnx")  # stored apart, as Git LFS does


@dataclass
class Repository:
    """Files by commit, and what a branch or tag stands for."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    revisions: dict[str, str] = field(default_factory=dict)
    token: str | None = None  # that may read it; None: everybody
    gated: bool = False
    stated_bytes: dict[str, object] = field(default_factory=dict)  # in the listing, instead of a file's own
    sent: dict[str, bytes] = field(default_factory=dict)  # by digest, instead of a large file's own
    drips: str = ""  # which part of a file's answer comes a byte every twentieth of a second: head or body

    def commit(self, files: dict[str, bytes], revision: str = "main") -> str:
        """Add a commit, which `revision` now stands for; returns its id."""
        sha = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.commits[sha] = files
        self.revisions[revision] = sha
        return sha


class Hub:
    """The repositories, and every file that was asked for."""

    def __init__(self, url: str) -> None:
        """`url`: where it answers."""
        self.url = url
        self.repositories: dict[str, Repository] = {}
        self.asked: list[str] = []  # files of repositories, once for each request

    def add(self, name: str, folder: Path, **more: str) -> Repository:
        """A repository of a folder's files, and of `more`, by name."""
        found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        self.repositories[name] = made = Repository()
        made.commit(found | {file: content.encode() for file, content in more.items()})
        return made


@contextmanager
def running() -> Iterator[Hub]:
    """A hub on a port of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.hub = Hub(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.hub  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing: a test's output is its own."""

    def do_HEAD(self) -> None:
        """As GET, without a body."""
        self.do_GET()

    def do_GET(self) -> None:
        """/api/models/ID[/revision/R], /api/models/ID/tree/R, /ID/resolve/R/FILE and /large/SHA256."""
        parts = [unquote(each) for each in urlsplit(self.path).path.strip("/").split("/")]
        hub: Hub = self.server.hub  # type: ignore[attr-defined]
        if parts[0] == "large":  # another host, which gets no token
            assert "Authorization" not in self.headers
            every = (
                content for each in hub.repositories.values() for f in each.commits.values() for content in f.values()
            )
            own = next(each for each in every if hashlib.sha256(each).hexdigest() == parts[1])
            others = {digest: each for r in hub.repositories.values() for digest, each in r.sent.items()}
            return self._send(200, others.get(parts[1], own))
        api = parts[:2] == ["api", "models"]
        owner, name, *rest = parts[2:] if api else parts
        repository = hub.repositories.get(f"{owner}/{name}")
        if repository is None:
            return self._error(401, "RepoNotFound")
        if repository.token not in (None, self.headers.get("Authorization", "").removeprefix("Bearer ")):
            return self._error(403 if repository.gated else 401, "GatedRepo" if repository.gated else "RepoNotFound")
        wanted = rest[1] if rest else "main"
        sha = repository.revisions.get(wanted, wanted)
        files = repository.commits.get(sha)
        if files is None:
            return self._error(404, "RevisionNotFound")
        if not api:
            return self._file(hub, sha, files, "/".join(rest[2:]))
        if rest[:1] == ["tree"]:
            return self._json([_listed(path, files[path], repository) for path in sorted(files)])
        listed = [{"rfilename": path} for path in files]
        return self._json({"id": f"{owner}/{name}", "sha": sha, "private": False, "tags": [], "siblings": listed})

    def _file(self, hub: Hub, sha: str, files: dict[str, bytes], path: str) -> None:
        hub.asked.append(path)
        if path not in files:
            return self._error(404, "EntryNotFound")
        content = files[path]
        for each in hub.repositories.values():
            if each.drips == "head" or (each.drips and self.command == "GET"):
                return self._drip(each.drips)
        digest, headers = hashlib.sha256(content).hexdigest(), {"X-Repo-Commit": sha}
        if not path.endswith(LARGE):
            return self._send(200, content, headers | {"ETag": f'"{hashlib.sha1(content).hexdigest()}"'})
        headers |= {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(content))}
        return self._send(
            302, b"", headers | {"Location": f"http://localhost:{self.server.server_port}/large/{digest}"}
        )

    def _drip(self, part: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        if part == "head":
            self._headers_buffer.append(b"X-Long:")
            self.flush_headers()
        else:
            self.end_headers()
        with suppress(OSError):  # of who has gone
            while self.wfile.write(b" "):
                time.sleep(0.05)

    def _json(self, content: object) -> None:
        self._send(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _error(self, status: int, code: str) -> None:
        self._send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": code})

    def _send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


def _listed(path: str, content: bytes, repository: Repository) -> dict[str, object]:
    size = repository.stated_bytes.get(path, len(content))
    found: dict[str, object] = {"type": "file", "path": path, "size": size, "oid": hashlib.sha1(content).hexdigest()}
    if path.endswith(LARGE):
        found["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": size, "pointerSize": 130}
    return found
