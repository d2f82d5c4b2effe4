"""The crawl: pages of the listing into the ledger, then one configuration for each group that has none yet.

Killed at any moment it goes on after the last page or configuration. A later crawl lists again (that is how news is
found) and asks for a configuration only where a group is new or its representative has a new commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from extract.sources.hub import configurations, entries
from extract.sources.hub.client import UNAVAILABLE, Client, HubError, Refused
from extract.sources.hub.ledger import Config, Ledger, Listing, Model
from extract.sources.hub.query import Query

#: Requests at a time, and how many members of a group are asked before the group counts as refused.
AT_ONCE, TRIED = 4, 2
#: Entries in a row that the Hub may fail to serve before the Hub itself counts as not there.
MOST_UNAVAILABLE = 3

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Listed:
    """A listed model and its normalised configuration, or a failure class."""

    model: Model
    config: str
    kind: str
    message: str

    @property
    def entry(self) -> dict[str, Any]:
        return dict(json.loads(self.model.entry))


def crawl(client: Client, query: Query, progress: Progress = lambda text: None) -> list[Listed]:
    """Models that a query lists, most downloaded first. Raises HubError; what is done by then is kept."""
    ledger = Ledger(client.endpoint)
    try:
        key = query.key(client.endpoint)
        _list(client, ledger, key, query, progress)
        models = list(ledger.members(key))
        held = _ask(client, ledger, models, progress)
    finally:
        ledger.close()
    answers: dict[str, Config] = {}
    for config in held.values():
        best = answers.get(config.grouping)
        if best is None or (best.kind and not config.kind):
            answers[config.grouping] = config
    return [_listed(model, answers) for model in models]


def _list(client: Client, ledger: Ledger, key: str, query: Query, progress: Progress) -> None:
    at = ledger.listing(key)
    if at.done or not at.round:
        at = Listing(round=at.round + 1)
    url = at.next or f"{client.endpoint}/api/models?{urlencode(query.parameters())}"
    while True:
        rows, following = client.page(url)
        models = [entries.read(row) for row in rows]
        models = [m for m in models if not query.since or json.loads(m.entry).get("modified", "") >= query.since]
        models = models[: query.limit - at.seen]
        seen = at.seen + len(models)
        done = not following or following == url or seen >= query.limit
        after = Listing("" if done else following, done, seen, at.round)
        ledger.put_page(key, models, at.seen, after)
        progress(f"{seen} models listed")
        if done:
            return
        at, url = after, following


def _ask(client: Client, ledger: Ledger, models: list[Model], progress: Progress) -> dict[tuple[str, str], Config]:
    """The answers of all groups, asking for those that are missing or out of date."""
    groups: dict[str, list[Model]] = {}
    for model in models:
        if model.grouping:
            groups.setdefault(model.grouping, []).append(model)
    held = {k: c for k, c in ledger.configs().items() if k[0] in groups}
    commits = {m.name: m.sha for m in models if m.grouping}
    for place, config in list(held.items()):
        if commits.get(config.name, config.sha) != config.sha:
            del held[place]  # its representative moved on
    of: dict[str, list[Config]] = {}
    for config in held.values():
        of.setdefault(config.grouping, []).append(config)
    waiting = iter([_next(g, members, of.get(g, [])) for g, members in groups.items()])
    done = missed = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running: dict[Future[Config], str] = {}
        try:
            more = True
            while more or running:
                more = more and _fill(pool, client, waiting, running)
                for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                    group = running.pop(future)
                    answer = future.result()
                    missed = missed + 1 if answer.kind == UNAVAILABLE else 0
                    if missed >= MOST_UNAVAILABLE:
                        raise HubError(answer.message)
                    if answer.kind != UNAVAILABLE:  # that is no lasting answer
                        ledger.put_config(answer)
                    held[group, answer.name] = answer
                    of.setdefault(group, []).append(answer)
                    following = _next(group, groups[group], of[group])
                    if following is not None:
                        running[pool.submit(_fetch, client, following)] = group
                    done += 1
                    if done % 100 == 0:
                        progress(f"{done} configurations asked for")
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return held


def _fill(
    pool: ThreadPoolExecutor, client: Client, waiting: Iterator[Model | None], running: dict[Future[Config], str]
) -> bool:
    """Keep some requests going; False when no group is left."""
    while len(running) < 2 * AT_ONCE:
        model = next(waiting, False)
        if model is False:
            return False
        if isinstance(model, Model):
            running[pool.submit(_fetch, client, model)] = model.grouping
    return True


def _next(group: str, members: list[Model], asked: list[Config]) -> Model | None:
    """Whom to ask for a group; None when it has its answer, or enough members had none. The base model comes first."""
    if any(not c.kind for c in asked) or len(asked) >= TRIED:
        return None
    names = {c.name for c in asked}
    return next((m for m in members if m.name not in names), None)


def _fetch(client: Client, model: Model) -> Config:
    """Ask for a configuration once and reduce it; what cannot be had is an answer too. HubError ends the crawl."""
    library, *what = json.loads(model.grouping)
    try:
        if library == "timm" and len(what) == 1:
            text = configurations.timm_by_name(what[0])
        elif library == "timm":
            text = configurations.normalise("timm", "", what[1], client.config(model.name, model.sha))
        else:
            given = client.config(model.name, model.sha)
            text = configurations.normalise("transformers", what[2], what[1], given)
    except Refused as error:
        return Config(model.grouping, model.name, model.sha, error.kind, str(error), "")
    return Config(model.grouping, model.name, model.sha, "", "", text)


def _listed(model: Model, answers: dict[str, Config]) -> Listed:
    if not model.grouping:
        return Listed(model, "", model.kind, model.message)
    answer = answers[model.grouping]
    return Listed(model, answer.config, answer.kind, answer.message)
