"""The deployed flow with toys in place of models: an entry point for the tests of the schedule."""

from __future__ import annotations

from functools import partial

import flows.refresh
from tests.flows import toy

flows.refresh.Request = partial(flows.refresh.Request, job=toy.JOB, preload=())  # type: ignore[misc, assignment]

from flows.scheduled import scheduled_refresh  # noqa: E402

__all__ = ["scheduled_refresh"]
