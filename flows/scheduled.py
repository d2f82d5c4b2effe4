"""The refresh as a Prefect deployment: a flow with plain parameters, for a schedule or the Prefect page.

`prefect.yaml` declares the deployment, its schedule shipped inactive; docs/scheduling.md says how to serve it. It does
what `passnet refresh` does, with the same parameters, and leaves an artifact that says what changed in the warehouse.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact

from flows import hub
from flows.progress import one_line
from flows.refresh import Request, refresh
from flows.report import changes_markdown
from warehouse.changes import compare
from warehouse.snapshot import Warehouse


@flow(name="passnet-scheduled-refresh", persist_result=False)
def scheduled_refresh(
    sources: list[str] | None = None,
    models: str | None = None,
    limit: int | None = None,
    seed: int | None = None,
    variants: list[str] | None = None,
    hub_task: str = "",
    hub_library: str = "",
    hub_author: str = "",
    hub_since: str = "",
    hub_limit: int | None = None,
    warehouse: str = "lake",
    workers: int = 0,
    deadline: float = 120.0,
    scheduler: str | None = None,
) -> dict[str, Any]:
    """Refresh a warehouse: the options of `passnet refresh` as parameters, what its --json prints as the result."""
    logger = get_run_logger()
    request = Request(
        sources=tuple(sources or ()),
        hub=hub.query(hub_task, hub_library, hub_author, hub_since, hub_limit, tuple(sources or ())),
        models=models,
        limit=limit,
        seed=seed,
        variants=tuple(variants or ("default",)),
        warehouse=warehouse,
        workers=workers,
        deadline=deadline,
        scheduler=scheduler,
    )
    held = Warehouse.open(warehouse, create=True)
    before = held.latest()
    found = refresh(request, lambda plan: lambda summary: logger.info(one_line(summary)))
    logger.info("snapshot %s: %s", found.snapshot.sequence, found.summary())
    changes = changes_markdown(compare(held, before, found.snapshot))
    create_markdown_artifact(changes, key="snapshot-changes", description=f"The last refresh of {held.storage.url}")
    return found.summary()
