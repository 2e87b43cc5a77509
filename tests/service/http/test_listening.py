"""The listening socket: who has connected before its end is kept, nobody else begins."""

import socket
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from service.http.listening import admit_no_more, bind
from tests.harness.process import question
from tests.harness.server import serving
from tests.harness.service import NEEDED_SECONDS


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_socket_that_admits_no_more_keeps_who_has_connected(host: str) -> None:
    with closing(bind(host, 0)) as listening:
        listening.listen()
        address = listening.getsockname()[:2]
        with socket.create_connection(address) as before:
            admit_no_more(listening)
            with pytest.raises(TimeoutError):
                socket.create_connection(address, timeout=0.2)
            before.sendall(b"still here")
            accepted, _ = listening.accept()
            with closing(accepted):
                assert accepted.recv(100) == b"still here"
            listening.settimeout(0.1)
            with pytest.raises(TimeoutError):
                listening.accept()


def test_an_address_that_is_taken_is_an_error() -> None:
    with closing(bind("127.0.0.1", 0)) as first:
        first.listen()
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", first.getsockname()[1])


@pytest.mark.anyio
async def test_who_has_connected_while_the_event_loop_was_busy_is_answered(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.http.server.HANDSHAKE_SECONDS", 0.0)
    with ExitStack() as stack:
        async with serving(models, hurried=False) as (_, address):
            clients = [stack.enter_context(socket.create_connection(address, NEEDED_SECONDS)) for _ in range(60)]
            for client in clients:
                client.sendall(question())
        assert [client.recv(15) for client in clients] == [b"HTTP/1.1 200 OK"] * len(clients)
