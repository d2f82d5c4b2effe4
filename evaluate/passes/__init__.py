"""Submissions in PassNet's file format: read as text, screened as text, and loaded only where nothing can be lost.

`files` reads a folder, `screen` refuses what no pass needs, `load` imports it: in the judge's worker, or in the process
of somebody who trusts the passes (evaluate/backend.py). docs/writing-passes.md describes the format.
"""

from evaluate.passes.files import IntakeError, Limits, Submission, TaskPasses, read_submission, read_task
from evaluate.passes.screen import Finding, screen

__all__ = [
    "Finding",
    "IntakeError",
    "Limits",
    "Submission",
    "TaskPasses",
    "read_submission",
    "read_task",
    "screen",
]
