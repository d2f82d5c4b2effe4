"""Messages between the judge and what it has forked: length-prefixed JSON over a Unix socket, with open files attached.

The judge reads what a hostile process may have written, so it reads with a deadline and a size, and `Garbled` is an
answer like any other: whoever wrote to a descriptor that was not theirs shows up as one.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

#: Largest message that either side accepts, bytes: tensors never travel here.
MAX_MESSAGE = 32 * 2**20


class Garbled(Exception):
    """Bytes that are no message of this protocol. One line."""


class Closed(Exception):
    """The other end is gone."""


class Late(Exception):
    """Nothing complete came within the deadline."""


def send(channel: socket.socket, message: dict[str, Any], files: list[int] | None = None) -> None:
    """One message. Raises Closed; TypeError or ValueError, before anything is sent, for what is not JSON."""
    body = json.dumps(message).encode()
    data = struct.pack("<I", len(body)) + body
    try:
        if files:
            data = data[socket.send_fds(channel, [data], files) :]
        channel.sendall(data)
    except OSError as error:
        raise Closed(str(error)) from error


def receive(channel: socket.socket, timeout: float | None = None, files: int = 0) -> tuple[dict[str, Any], list[int]]:
    """The next message and the files attached to it (at most `files`). Raises Closed, Late, Garbled.

    timeout: seconds for the whole message; None waits for ever.
    """
    end = None if timeout is None else time.monotonic() + timeout
    attached: list[int] = []
    head = _read(channel, 4, end, files, attached)
    (size,) = struct.unpack("<I", head)
    if size > MAX_MESSAGE:
        raise Garbled(f"a message of {size} bytes")
    body = _read(channel, size, end, 0, attached)
    try:
        message = json.loads(body)
    except ValueError as error:
        raise Garbled("a message that is not JSON") from error
    if not isinstance(message, dict):
        raise Garbled("a message that is no object")
    return message, attached


def _read(channel: socket.socket, size: int, end: float | None, files: int, attached: list[int]) -> bytes:
    found = bytearray()
    while len(found) < size:
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            raise Late
        channel.settimeout(left)
        try:
            if files and not found:
                part, more, _, _ = socket.recv_fds(channel, size, files)
                attached += more
            else:
                part = channel.recv(min(1 << 20, size - len(found)))
        except TimeoutError:
            raise Late from None
        except OSError as error:
            raise Closed(str(error)) from error
        finally:
            channel.settimeout(None)
        if not part:
            raise Closed("end of the channel")
        found += part
    return bytes(found)
