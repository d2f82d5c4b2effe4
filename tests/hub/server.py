"""A Hub that speaks the endpoints a crawl uses, on the loopback device, with faults as told.

`GET /api/models` (filters, `limit`, `expand`, a `Link` cursor) and `GET /{repo}/resolve/{sha}/config.json`. Every
request is counted. Run as `python -m tests.hub.server COUNT [PORT]` it serves until it is ended.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from tests.hub.population import Population

PAGE = 1000
#: Faults that a request can meet, by the name given to `Hub.fail`.
FAULTS = ("429", "429-ratelimit", "500", "503", "slow", "truncated", "html")


class Hub(ThreadingHTTPServer):
    """The server. `asked` counts requests by kind (`list`, `config`), `paths` keeps them in order."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, population: Population, port: int = 0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.population = population
        self.asked: Counter[str] = Counter()
        self.paths: list[str] = []
        self.agents: set[str] = set()
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self._faults: dict[str, list[str]] = {"list": [], "config": []}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fail(self, kind: str, *faults: str) -> None:
        """The next requests of a kind meet these faults, one each."""
        assert set(faults) <= set(FAULTS)
        self._faults[kind].extend(faults)

    def fault(self, kind: str) -> str | None:
        with self.lock:
            return self._faults[kind].pop(0) if self._faults[kind] else None


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        kind = "list" if parts.path == "/api/models" else "config"
        hub = self.server
        with hub.lock:
            hub.asked[kind] += 1
            hub.paths.append(unquote(self.path))
            hub.agents.add(self.headers.get("user-agent", ""))
            hub.at_once += 1
            hub.most_at_once = max(hub.most_at_once, hub.at_once)
        try:
            fault = hub.fault(kind)
            if fault is not None and self._faulty(fault):
                return
            if kind == "list":
                self._list(parse_qs(parts.query))
            else:
                self._config(parts.path)
        finally:
            with hub.lock:
                hub.at_once -= 1

    def _faulty(self, fault: str) -> bool:
        """Answer with a fault; False when it only delays the true answer."""
        if fault == "slow":
            time.sleep(0.3)
            return False
        if fault == "429":
            self._answer(429, b"{}", {"Retry-After": "1"})
        elif fault == "429-ratelimit":
            self._answer(
                429, b"{}", {"RateLimit": '"api";r=0;t=1', "RateLimit-Policy": '"fixed window";"api";q=500;w=300'}
            )
        elif fault == "truncated":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'[{"id": "cut')
            self.close_connection = True
        elif fault == "html":
            self._answer(200, b"<!doctype html><html>busy</html>", {"Content-Type": "text/html"})
        else:
            self._answer(int(fault), b"{}")
        return True

    def _list(self, asked: dict[str, list[str]]) -> None:
        limit = min(PAGE, int(asked.get("limit", ["1000"])[0]))
        index = int(asked.get("cursor", ["0"])[0])
        rows: list[dict[str, Any]] = []
        everything = self.server.population
        while index < everything.count and len(rows) < limit:
            row = everything.entry(index)
            if _fits(row, asked):
                rows.append(_expanded(row, asked.get("expand", [])))
            index += 1
        more = {}
        if index < everything.count:
            query = urlencode({**asked, "cursor": [str(index)]}, doseq=True)
            more["Link"] = f'<{self.server.url}/api/models?{query}>; rel="next"'
        self._answer(200, json.dumps(rows).encode(), more)

    def _config(self, path: str) -> None:
        name, _, rest = unquote(path).strip("/").partition("/resolve/")
        revision, _, file = rest.partition("/")
        try:
            index = self.server.population.index(name)
        except (ValueError, IndexError):
            return self._answer(404, b"{}")
        if file != "config.json" or revision != self.server.population.sha(index):
            return self._answer(404, b"{}")
        return self._answer(*self.server.population.body(index), {"ETag": f'"{revision}"', "X-Repo-Commit": revision})

    def _answer(self, status: int, body: bytes, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Type": "application/json", **(more or {})}.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def _fits(row: dict[str, Any], asked: dict[str, list[str]]) -> bool:
    task = asked.get("pipeline_tag", [None])[0]
    author = asked.get("author", [None])[0]
    wanted = [w for text in asked.get("filter", []) for w in text.split(",")]
    known = {*row["tags"], row["library_name"]}
    return (
        (task is None or row.get("pipeline_tag") == task)
        and (author is None or row["id"].split("/")[0] == author)
        and all(w in known for w in wanted)
    )


def _expanded(row: dict[str, Any], fields: list[str]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if not fields or k in ("id", "modelId", *fields)}


@contextlib.contextmanager
def serving(population: Population, port: int = 0) -> Iterator[Hub]:
    """A Hub that answers while the block runs."""
    hub = Hub(population, port)
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()


if __name__ == "__main__":
    with serving(Population(int(sys.argv[1])), int(sys.argv[2]) if len(sys.argv) > 2 else 0) as running:
        print(running.url, flush=True)
        threading.Event().wait()
