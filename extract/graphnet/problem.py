"""What is wrong with a sample: a failure class, the file and the line, and one sentence."""

from __future__ import annotations

SHOWN = 80


class SampleError(ValueError):
    """A sample cannot be imported. `kind` is a failure class, `place` is `file.py:line` inside the sample."""

    def __init__(self, kind: str, message: str, place: str = ""):
        super().__init__(message)
        self.kind, self.place = kind, place


def shown(text: object) -> str:
    """A stranger's text, short and printable, for a message."""
    return "".join(c if c.isprintable() else "?" for c in str(text)[:SHOWN])
