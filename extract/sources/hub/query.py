"""What a crawl asks a Hub for: filters of the listing, and how many of the most downloaded models."""

from __future__ import annotations

import re
from dataclasses import dataclass

import xxhash

#: What a listing row holds; asking for fields by name keeps everything else out of the answer.
FIELDS = (
    "author", "config", "downloads", "gated", "lastModified", "library_name", "pipeline_tag", "private", "safetensors",
    "sha", "tags",
)  # fmt: skip
PAGE = 1000
#: Models listed when nothing is said: a polite number that one page answers.
DEFAULT_LIMIT = 1000

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class QueryError(ValueError):
    """A filter that no Hub could answer; the text says which."""


@dataclass(frozen=True, slots=True)
class Query:
    """Filters, each empty for no filter. `since` is a day (YYYY-MM-DD): models modified before it are left out."""

    task: str = ""
    library: str = ""
    author: str = ""
    since: str = ""
    limit: int = DEFAULT_LIMIT

    def __post_init__(self) -> None:
        for name in ("task", "library", "author"):
            value = getattr(self, name)
            if value and not _WORD.fullmatch(value):
                raise QueryError(f"--hub-{name} {value[:80]!r} is no name on a Hub: letters, digits, '.', '_' and '-'")
        if self.since and not _DAY.fullmatch(self.since):
            raise QueryError(f"--hub-since {self.since[:80]!r} is no day: give YYYY-MM-DD")
        if self.limit < 1:
            raise QueryError(f"--hub-limit {self.limit} lists nothing: give 1 or more")

    def parameters(self) -> list[tuple[str, str]]:
        """Of the first page's URL; the Hub's cursor carries them on."""
        asked = [("sort", "downloads"), ("direction", "-1"), ("limit", str(PAGE))]
        asked += [("pipeline_tag", self.task)] if self.task else []
        asked += [("filter", self.library)] if self.library else []
        asked += [("author", self.author)] if self.author else []
        return asked + [("expand", field) for field in FIELDS]

    def key(self, endpoint: str) -> str:
        """The listing's name in the ledger: a digest of all that decides which models it holds."""
        text = f"{endpoint}\n{self.parameters()}\n{self.since}\n{self.limit}"
        return xxhash.xxh3_128_hexdigest(text.encode())
