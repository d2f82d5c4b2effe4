"""The Hub's part of a selection: the crawl, its models for the catalog, and a row for every model it lists.

The only place where `passnet refresh` and `passnet plan` use the network; capture workers have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from flows.catalog import Catalog
from flows.errors import UserError
from warehouse.schema import HUB_MODELS

if TYPE_CHECKING:
    from extract.model import ModelRef
    from extract.sources.hub.crawl import Listed
    from extract.sources.hub.query import Query

NAME = "hub"


def query(
    task: str, library: str, author: str, since: str, limit: int | None, sources: tuple[str, ...]
) -> Query | None:
    """What the `--hub-...` options ask for; None when the Hub is not among the sources. UserError for a wrong one."""
    from extract.sources.hub.query import DEFAULT_LIMIT, Query, QueryError

    if NAME not in sources:
        if task or library or author or since or limit is not None:
            raise UserError("the --hub-... options need --source hub")
        return None
    try:
        return Query(task, library, author, since, DEFAULT_LIMIT if limit is None else limit)
    except QueryError as error:
        raise UserError(str(error)) from error


def fill(catalog: Catalog, asked: Query, progress: Callable[[str], None]) -> pa.Table:
    """Crawl, and give the catalog the models that can be built. Returns rows of `hub_models` for all that are listed.

    Raises UserError when the Hub cannot be used: what is listed by then is kept.
    """
    from extract.sources.hub.client import Client, HubError  # before transformers_zoo, which goes offline
    from extract.sources.hub.crawl import crawl
    from extract.sources.hub.source import refs

    try:
        listed = crawl(Client(), asked, progress)
    except HubError as error:
        raise UserError(str(error)) from error
    found = {ref.name: ref for ref in refs(listed)}
    if not found:
        raise UserError("none of the models that the Hub lists can be built here: give other --hub-... filters")
    catalog.hold(NAME, found)
    return rows(listed, found)


def rows(listed: list[Listed], refs: dict[str, ModelRef]) -> pa.Table:
    """Rows of `hub_models`, by name."""
    columns: dict[str, list[object]] = {name: [] for name in HUB_MODELS.schema.names}
    for one in sorted({o.model.name: o for o in listed}.values(), key=lambda o: (o.model.name, o.model.sha)):
        entry, ref = one.entry, refs.get(one.model.name)
        values = {
            "name": one.model.name,
            "revision": one.model.sha,
            "class": one.kind,
            "message": one.message,
            "config_hash": ref.config_hash if ref else None,
            "library": entry.get("library", "none"),
            "task": entry.get("task", ""),
            "license": entry.get("license", ""),
            "base_model": entry.get("base", ""),
            "downloads": entry.get("downloads", 0),
            "parameters": entry.get("parameters") or None,
            "modified": entry.get("modified", ""),
        }
        for name, column in columns.items():
            column.append(values[name])
    return pa.table(columns, schema=HUB_MODELS.schema)
