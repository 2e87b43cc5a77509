"""A server in this event loop on a port of its own, and graphs that wait."""

import json
import socket
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import uvicorn

from core.scoring import Array, Embeddings, Run
from service.app import Application, create_app
from service.process.config import config_of
from service.settings import Settings
from tests.harness.service import NEEDED_SECONDS, expect

Address = tuple[str, int]
MB = 1_048_576


@asynccontextmanager
async def serving(
    models: Path, listening: socket.socket | None = None, /, **settings: object
) -> AsyncIterator[tuple[Application, Address]]:
    """A server in this event loop, on a port of its own, or on this socket."""
    chosen = Settings(models_dir=models, port=0, shutdown_grace_seconds=1, preload=("all",), **settings)  # type: ignore[arg-type]
    app = create_app(chosen)
    server = uvicorn.Server(config_of(chosen, app))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup([listening] if listening is not None else None)
    for each in server.servers[0].sockets:  # and who connects there: what nobody reads waits in this process
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
    try:
        yield app, server.servers[0].sockets[0].getsockname()
    finally:
        app.service.shutting_down = True
        await server.shutdown()


def post(body: object, path: str = "/similarity", spaces: int = 0) -> bytes:
    content = b" " * spaces + json.dumps(body).encode()
    return b"POST %s HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%s" % (path.encode(), len(content), content)


def counted(app: Application, status: int) -> float:
    labels = {"route": "/similarity", "status": str(status)}
    return app.service.telemetry.registry.get_sample_value("semblance_requests_total", labels) or 0.0


class Gate:
    """The graphs of a model, which wait until they are let go on."""

    def __init__(self, app: Application, model: str) -> None:
        scorer = app.service.registry[model].scorer
        expect(scorer, 0.1)
        self.ran: list[int] = []
        self.open = threading.Event()
        for graph in scorer.graphs.values():
            graph.run = partial(self._let_go, graph.run)

    def _let_go(self, run: Run, feeds: Mapping[str, Array]) -> Embeddings:
        assert self.open.wait(NEEDED_SECONDS)
        self.ran.append(len(feeds["lengths_a"]))
        return run(feeds)


def pairs_of(word: str) -> dict[str, object]:
    return {"pairs": [{"a": word, "b": "the sofa"}], "model": "pair-sick"}
