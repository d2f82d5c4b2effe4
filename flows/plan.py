"""What a refresh has to do: the captures asked for, less those that a snapshot or the staging area already has.

Equal configurations are captured once: the model with the least `source:name` among those selected stands for all, and
every name becomes a row of `models`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dedup.hashes import HASH_VERSION
from extract.model import ModelRef, Variant, capture_id
from extract.staged import payload
from warehouse import staging
from warehouse.schema import MODELS
from warehouse.snapshot import Snapshot, Warehouse

#: Rows of `models` made at a time.
MODEL_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Plan:
    """refs: every model asked for. wanted: capture_id -> job payload, for each unique configuration and variant that
    the snapshot does not hold. staged: those of `wanted` that are finished already. held: captures asked for that the
    snapshot holds. hub_models: rows of that table for all that a Hub listed."""

    refs: tuple[ModelRef, ...]
    wanted: dict[str, dict[str, Any]]
    staged: frozenset[str]
    held: frozenset[str]
    hub_models: pa.Table | None = None

    @property
    def to_capture(self) -> list[str]:
        """Captures to make, in a fixed order that spreads sources and sizes over batches."""
        return sorted(c for c in self.wanted if c not in self.staged)

    def models(self) -> Iterator[pa.Table]:
        """Rows of the `models` table for every model asked for, by name, some thousands at a time."""
        ordered = sorted(self.refs, key=lambda ref: (ref.source, ref.name, ref.revision))
        for start in range(0, len(ordered), MODEL_ROWS):
            part = ordered[start : start + MODEL_ROWS]
            columns = [[getattr(ref, name) for ref in part] for name in MODELS.schema.names]
            yield pa.Table.from_arrays([pa.array(c, pa.string()) for c in columns], schema=MODELS.schema)


def plan(
    warehouse: Warehouse,
    parent: Snapshot | None,
    refs: Sequence[ModelRef],
    variants: Sequence[Variant],
    hub_models: pa.Table | None = None,
) -> Plan:
    """Compare what is asked for with what is there."""
    held: set[str] = set()
    if parent is not None:
        held = set(warehouse.read(parent, "captures", ["capture_id"])["capture_id"].to_pylist())
    staged = staging.finished(warehouse.storage)
    asked: dict[str, dict[str, Any]] = {}
    for ref in sorted(refs, key=lambda r: (r.source, r.name)):
        for variant in variants:
            identity = capture_id(ref.config_hash, variant, HASH_VERSION)
            if identity not in asked:
                asked[identity] = payload(ref, variant, warehouse.storage.url)
    wanted = {identity: given for identity, given in asked.items() if identity not in held}
    return Plan(tuple(refs), wanted, frozenset(staged & set(wanted)), frozenset(held & set(asked)), hub_models)
