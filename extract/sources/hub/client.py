"""Requests to a Hub: polite, bounded in size and number of tries, and every odd answer an error with a class.

The session and headers are huggingface_hub's own, so `HF_ENDPOINT`, proxies and tokens mean what they mean elsewhere.
Its retrying helper reads whole bodies of any size, hence the loop here.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from huggingface_hub import constants
from huggingface_hub.utils import build_hf_headers, get_session, httpx, parse_ratelimit_headers

TRIES = 6
#: Seconds: the first wait after an error, the longest one of ours, and the longest that a Hub may ask for.
FIRST_WAIT, LONGEST_WAIT, LONGEST_TOLD = 0.5, 30.0, 900.0
TIMEOUT_S = 30.0
#: Bytes: a page of a thousand rows has about two million; a configuration some thousands.
PAGE_BYTES, CONFIG_BYTES = 64 << 20, 2 << 20
#: The class of an entry that the Hub could not serve now: it is asked for again next time.
UNAVAILABLE = "hub_unavailable"
_RETRIED = (408, 425, 429, 500, 502, 503, 504)


class HubError(Exception):
    """The Hub cannot be used now: it is not there, or went on refusing. The crawl can be resumed later."""


class Refused(Exception):
    """One entry cannot be had. `kind` is one of `extract.failures.CLASSES`."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


class Unavailable(HubError):
    """A request was refused as often as it is decent to ask."""


class Client:
    """Requests to one endpoint. `requests` counts them, tries included."""

    def __init__(self, endpoint: str = "", token: bool | None = None):
        self.endpoint = (endpoint or constants.ENDPOINT).rstrip("/")
        if constants.HF_HUB_OFFLINE:
            raise HubError("HF_HUB_OFFLINE is set: unset it to list models of a Hub")
        self._headers = build_hf_headers(library_name="passnet", library_version="0.1", token=token)
        self._lock = threading.Lock()
        self._quiet_until = 0.0
        self.requests = 0

    def page(self, url: str) -> tuple[list[Any], str]:
        """Rows of a page of the listing, and the URL of the next page (empty after the last). HubError."""
        for attempt in range(TRIES):
            status, body, headers = self._get(url, PAGE_BYTES)
            if status != 200:
                raise HubError(f"{self.endpoint} answers the listing with status {status}: look at the filters given")
            try:
                rows = json.loads(body)
                if not isinstance(rows, list):
                    raise ValueError("no list")
                return rows, self._next(url, headers)
            except (ValueError, RecursionError):  # HTML of a proxy or of a busy server: it passes, as a rule
                self._wait(attempt, None)
        raise HubError(f"{self.endpoint} does not answer the listing with JSON: is HF_ENDPOINT a Hub?")

    def config(self, name: str, sha: str) -> Any:
        """config.json of a model at a commit, as data. Refused for what this model alone is to blame for."""
        try:
            status, body, _ = self._get(f"{self.endpoint}/{name}/resolve/{sha}/config.json", CONFIG_BYTES)
        except Unavailable as error:
            raise Refused(UNAVAILABLE, str(error)) from error
        if status in (401, 403):
            raise Refused("hub_no_access", f"status {status}: gated, private or gone")
        if status in (404, 410):
            raise Refused("hub_missing", f"status {status}: no config.json at this commit")
        if status != 200:
            raise Refused("hub_answer_invalid", f"status {status}")
        try:
            return json.loads(body, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise Refused("hub_answer_invalid", f"config.json is not JSON: {type(error).__name__}") from error

    def _next(self, url: str, headers: Mapping[str, str]) -> str:
        found = httpx.Response(200, headers={"link": headers.get("link", "")}).links.get("next", {}).get("url", "")
        following = urljoin(url, found) if found else ""
        if following and urlsplit(following).netloc != urlsplit(self.endpoint).netloc:
            raise HubError(f"{self.endpoint} names another host for its next page, which is not followed")
        return following

    def _get(self, url: str, most: int) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, body and headers, after as many tries as are decent. HubError when none succeeds."""
        problem = "no answer"
        for attempt in range(TRIES):
            self._hold()
            with self._lock:
                self.requests += 1
            told = None
            try:
                client = get_session()
                with client.stream(
                    "GET", url, headers=self._headers, timeout=TIMEOUT_S, follow_redirects=True
                ) as answer:
                    if answer.status_code not in _RETRIED:
                        return answer.status_code, _body(answer, most), answer.headers
                    problem, told = f"status {answer.status_code}", _told(answer.headers)
            except httpx.HTTPError as error:  # cut connections and answers included
                problem = type(error).__name__
            self._wait(attempt, told)
        raise Unavailable(f"{self.endpoint} went on refusing ({problem}): what is listed is kept, run it again later")

    def _wait(self, attempt: int, told: float | None) -> None:
        """Hold all requests back: as long as the Hub says, else twice as long each time, with some chance in it."""
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * random.uniform(0.8, 1.2) if told is None else told
        with self._lock:
            self._quiet_until = max(self._quiet_until, time.monotonic() + wait)

    def _hold(self) -> None:
        while (left := self._quiet_until - time.monotonic()) > 0:
            time.sleep(left)


def _told(headers: Mapping[str, str]) -> float | None:
    """Seconds that the Hub asks to wait; None when it does not say. HubError when it asks for very long."""
    limit = parse_ratelimit_headers(headers)
    told = float(limit.reset_in_seconds) if limit is not None and limit.remaining == 0 else None
    after = headers.get("retry-after", "")
    if after.isdigit():
        told = max(told or 0.0, float(after))
    if told is not None and told > LONGEST_TOLD:
        raise HubError(f"the Hub asks to wait {told:.0f} s: what is listed is kept, run it again then")
    return told


def _body(answer: Any, most: int) -> bytes:
    parts, size = [], 0
    for part in answer.iter_bytes():
        size += len(part)
        if size > most:
            raise Refused("hub_answer_invalid", f"more than {most >> 20} MiB")
        parts.append(part)
    return b"".join(parts)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")
