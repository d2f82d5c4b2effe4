"""Length-prefixed JSON messages over Unix sockets: all that the pool, its warm parent and its workers ever exchange."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any


def send(channel: socket.socket, message: dict[str, Any], files: list[int] | None = None) -> None:
    """One message, with open files attached if any. TypeError or ValueError, before anything is sent, if not JSON."""
    body = json.dumps(message).encode()
    data = struct.pack("<I", len(body)) + body
    if files:
        sent = socket.send_fds(channel, [data], files)
        data = data[sent:]
    if data:
        channel.sendall(data)


def receive(channel: socket.socket, files: int = 0) -> tuple[dict[str, Any] | None, list[int]]:
    """The next message and its attached files; None at the end of the channel."""
    attached: list[int] = []
    head = b""
    while len(head) < 4:
        if files and not head:
            part, found, _, _ = socket.recv_fds(channel, 4, files)
            attached += found
        else:
            part = channel.recv(4 - len(head))
        if not part:
            return None, attached
        head += part
    (size,) = struct.unpack("<I", head)
    body = bytearray()
    while len(body) < size:
        part = channel.recv(min(1 << 20, size - len(body)))
        if not part:
            return None, attached
        body += part
    return json.loads(bytes(body)), attached
