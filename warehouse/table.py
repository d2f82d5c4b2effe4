"""What a table of a warehouse is: columns with Arrow types and comments, a sort key, and whether it holds measurements.

Sort keys are stated because files are written sorted: equal rows give equal bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Table:
    """A table of the warehouse. `measured` tables hold clock readings and stay out of a snapshot's identity."""

    name: str
    comment: str
    columns: tuple[tuple[str, pa.DataType, str], ...]
    sort: tuple[str, ...]
    measured: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [pa.field(n, t, metadata={"comment": c}) for n, t, c in self.columns]
        return pa.schema(fields, metadata={"table": self.name, "schema_version": str(SCHEMA_VERSION)})
