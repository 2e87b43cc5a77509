"""The listening socket: bound once, and closed without a reset for anybody who has connected."""

import ctypes
import socket
import struct
from contextlib import suppress

HANDSHAKE_SECONDS = 0.1  # in which handshakes that have begun are completed
_SO_ATTACH_FILTER = 26  # of Linux; Python has no name for it
_FLAGS_BYTE, _SYN, _ACK = 13, 0x02, 0x10  # of a TCP header (RFC 9293, 3.1)
# Classic BPF (Linux: Documentation/networking/filter.rst): an instruction is its code, two jumps and a constant.
_LOAD_BYTE, _AND, _JUMP_IF_EQUAL, _RETURN = 0x30, 0x54, 0x15, 0x06
_DROP_SYN = b"".join(
    struct.pack("HBBI", *instruction)
    for instruction in [
        (_LOAD_BYTE, 0, 0, _FLAGS_BYTE),
        (_AND, 0, 0, _SYN | _ACK),
        (_JUMP_IF_EQUAL, 0, 1, _SYN),
        (_RETURN, 0, 0, 0),  # dropped
        (_RETURN, 0, 0, 0xFFFF_FFFF),  # kept whole
    ]
)


def bind(host: str, port: int) -> socket.socket:
    """A socket to listen on.

    Raises:
        OSError: the address is not available.
    """
    [(family, kind, _, _, address), *_] = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listening = socket.socket(family, kind)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    return listening


def admit_no_more(listening: socket.socket) -> None:
    """Let nobody begin to connect any more, in no process that has this socket.

    Linux resets connections that nobody has accepted when the socket is closed, and one could always come between the
    last `accept` and `close`. After this call and `HANDSHAKE_SECONDS` all that will ever come have come. Who begins
    meanwhile gets no answer, asks again after a second, and is refused. Where the system has no such filter the socket
    is left as it is.
    """
    program = ctypes.create_string_buffer(_DROP_SYN, len(_DROP_SYN))
    count = len(_DROP_SYN) // struct.calcsize("HBBI")
    with suppress(OSError):
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", count, ctypes.addressof(program)))
