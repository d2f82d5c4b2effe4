"""Errors that a user can mend: one line each, and the exit code that the command ends with."""

from __future__ import annotations

OK, UNEXPECTED, MENDABLE, SCHEDULER_LOST, INTERRUPTED = 0, 1, 2, 3, 130


class UserError(Exception):
    """Something to mend: the text is one line that says what is wrong and how. Exit code 2."""

    code = MENDABLE

    def __init__(self, message: str):
        super().__init__(" ".join(message.split()))


class SchedulerLost(UserError):
    """The Dask scheduler went away. Finished captures are safe; the same command goes on. Exit code 3."""

    code = SCHEDULER_LOST
