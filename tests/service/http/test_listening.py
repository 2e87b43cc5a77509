"""The listening socket: who has connected before its end is kept, nobody else begins."""

import socket
from contextlib import closing

import pytest

from service.http.listening import admit_no_more, bind


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
