"""Snapshots of a warehouse: published whole, read whole, never changed.

    data/<table>/<xxh3-128 of the bytes>.parquet     immutable files
    manifests/<8-digit sequence>.json                one snapshot each: the files that make it up

In go Arrow tables, out comes a `Snapshot`, or nothing: files are written under temporary names, made durable and
renamed, their rows are counted against what was expected, and one rename of the manifest publishes them all. A
publisher killed at any moment leaves files that no manifest names; readers never see them and `prune` deletes them.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import IO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse import manifest, parquet
from warehouse.checks import check_file, readable
from warehouse.manifest import DataFile, Snapshot, TableFiles
from warehouse.schema import TABLES, Table
from warehouse.storage import ELSEWHERE, TEMPORARY, Storage, WarehouseError, explained, open_storage

__all__ = ["Pruned", "Snapshot", "Warehouse", "WarehouseError"]

#: Unnamed files younger than this may belong to a refresh that is about to publish them.
LEFTOVER_SECONDS = 3600.0

#: Rows of one table, or a file of them that `Warehouse.write_ahead` made.
Piece: TypeAlias = parquet.Rows | DataFile


@dataclass(frozen=True, slots=True)
class Pruned:
    """What `prune` deleted, or would: snapshots, data files and temporaries by path, and the bytes set free."""

    snapshots: tuple[Snapshot, ...]
    files: tuple[str, ...]
    bytes: int


class Warehouse:
    """A folder (or fsspec URL) of snapshots. Every method that meets bad data raises WarehouseError."""

    def __init__(self, storage: Storage):
        self.storage = storage

    @classmethod
    def open(cls, url: str | os.PathLike[str], create: bool = False) -> Warehouse:
        """The warehouse at `url`; with `create` its folders are made where missing.

        Raises WarehouseError when there is none (and `create` is False) or the folders cannot be made.
        """
        storage = open_storage(url)
        if create:
            with explained(storage, "create the warehouse"):
                for folder in ("manifests", *(f"data/{name}" for name in TABLES)):
                    storage.make_folder(folder)
        elif not storage.exists():
            raise WarehouseError(f"there is no warehouse at {storage.url}: run `passnet refresh` first, or {ELSEWHERE}")
        elif not storage.list("manifests"):
            raise WarehouseError(
                f"{storage.url} is not a warehouse, or nothing was published in it: run `passnet refresh` first, "
                f"or {ELSEWHERE}"
            )
        return cls(storage)

    # ------------------------------------------------------------------ reading

    def snapshots(self) -> list[Snapshot]:
        """Every snapshot, oldest first; empty when nothing was published yet."""
        return [self._load(sequence) for sequence in self._sequences()]

    def listing(self) -> list[tuple[int, Snapshot | WarehouseError]]:
        """Every number with its snapshot, oldest first, or with what is wrong with its manifest."""
        found: list[tuple[int, Snapshot | WarehouseError]] = []
        for sequence in self._sequences():
            try:
                found.append((sequence, self._load(sequence)))
            except WarehouseError as error:
                found.append((sequence, error))
        return found

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None when nothing was published yet."""
        sequences = self._sequences()
        return self._load(sequences[-1]) if sequences else None

    def snapshot(self, name: str | int | None = None) -> Snapshot:
        """A snapshot by id, unique beginning of an id, or sequence number; the newest for None.

        A text of at most eight digits is a sequence number first. Raises WarehouseError when none or several fit.
        """
        sequences = self._sequences()
        if not sequences:
            raise WarehouseError(f"the warehouse {self.storage.url} is empty: run `passnet refresh` first")
        if name is None:
            return self._load(sequences[-1])
        text = str(name).strip().lower()
        if text.isdecimal() and len(text) <= 8 and int(text) in sequences:
            return self._load(int(text))
        every = []
        for sequence in sequences:
            # A damaged neighbour must not hide the snapshot that was asked for.
            with contextlib.suppress(WarehouseError):
                every.append(self._load(sequence))
        # The same content can be published twice, around other content: the newest of equal ids stands for them.
        found = {s.id: s for s in every if text and s.id.startswith(text)}
        if len(found) == 1:
            return next(iter(found.values()))
        listing = ", ".join(f"{s.sequence} ({s.id[:12]})" for s in (list(found.values()) or every)[-6:])
        problem = "several snapshots begin with" if found else "no snapshot is called"
        raise WarehouseError(f"{problem} {str(name)[:60]!r} in {self.storage.url}; there are: {listing}")

    def addresses(self, snapshot: Snapshot, table: str) -> list[str]:
        """What to open the files of one table by, in DuckDB, pandas or pyarrow."""
        return [self.storage.address(file.path) for file in snapshot.tables[table].files]

    def check(self, snapshot: Snapshot, contents: bool = False) -> None:
        """WarehouseError naming the first file that is missing, cut short, foreign or (`contents`) changed."""
        for name, table in snapshot.tables.items():
            for file in table.files:
                check_file(self.storage, file, TABLES[name], contents)

    def read(self, snapshot: Snapshot, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of one table in memory, file after file. Raises WarehouseError for a file that cannot be read."""
        schema = TABLES[table].schema
        chosen = schema if columns is None else pa.schema([schema.field(c) for c in columns], schema.metadata)
        parts = [chosen.empty_table()]
        for file in snapshot.tables[table].files if table in snapshot.tables else ():
            check_file(self.storage, file, TABLES[table])
            with readable(self.storage, file.path) as stream:
                parts.append(pq.read_table(stream, columns=chosen.names).cast(chosen))
        return pa.concat_tables(parts)

    # --------------------------------------------------------------- publishing

    def publish(
        self,
        parent: Snapshot | None,
        new: Mapping[str, Piece | Iterable[Piece]],
        replace: AbstractSet[str] = frozenset(),
    ) -> Snapshot:
        """Publish parent's files plus `new` ones; of the tables named in `replace` only the new ones.

        `new` maps a table to rows, or to an iterable of pieces taken one by one, each of them rows or a file of
        `write_ahead`. Rows are sorted by the table's key, cut at `parquet.FILE_ROWS` and written with the warehouse's
        own settings, so pieces with the same rows give the same bytes. Keys must be new: rows are not compared with
        the parent's. When the content equals the parent's, measured tables aside, the parent is returned and nothing
        is published.

        Raises WarehouseError, with all published snapshots intact, when the disk is full or not writable, counts
        disagree, or another publisher took the next sequence number.
        """
        unknown = sorted((set(new) | set(replace)) - set(TABLES))
        if unknown:
            raise WarehouseError(f"there is no table {unknown[0]!r}; known: {', '.join(TABLES)}")
        with self.unpruned():
            return self._publish(parent, new, replace)

    @contextlib.contextmanager
    def unpruned(self) -> Iterator[None]:
        """Keep `prune` away while files are written that no snapshot names yet. WarehouseError when it is at work."""
        try:
            with explained(self.storage, "publish"), self.storage.lock(exclusive=False):
                yield
        except BlockingIOError as error:
            raise WarehouseError(f"{self.storage.url} is being pruned: wait a moment and run it again") from error

    def _publish(
        self,
        parent: Snapshot | None,
        new: Mapping[str, Piece | Iterable[Piece]],
        replace: AbstractSet[str],
    ) -> Snapshot:
        sequence = parent.sequence + 1 if parent else 1
        self._refuse_taken(sequence)
        tables: dict[str, TableFiles] = {}
        for name, table in TABLES.items():
            if not table.measured:
                pieces = self._pieces(new.get(name, ()), table)
                tables[name] = self._with_parent(name, parent, replace, pieces)
        identity = manifest.snapshot_id(tables)
        if parent is not None and identity == parent.id:
            return parent
        for name, table in TABLES.items():
            if table.measured:
                pieces = (
                    self._write(rows, table, f"{identity}-{i}")
                    for i, rows in enumerate(parquet.pieces(new.get(name, ()), table))  # type: ignore[arg-type]
                )
                tables[name] = self._with_parent(name, parent, replace, pieces)
        snapshot = Snapshot(identity, sequence, parent.id if parent else None, tables)
        self.check(snapshot)
        with self._temporary("manifests") as temporary:
            with self._written(temporary) as sink:
                sink.write(manifest.dump(snapshot))
            try:
                self.storage.claim(temporary, snapshot.manifest)
            except FileExistsError:
                self._refuse_taken(sequence)
                raise
        return snapshot

    def write_ahead(self, name: str, rows: pa.Table) -> list[DataFile]:
        """Write rows of a table as data files that no snapshot names yet, for `publish`: what workers do in parallel.

        Equal rows give one and the same file, so doing it again after a loss leaves nothing behind. Files that are
        never published go with `prune`, which `unpruned` keeps away. Raises WarehouseError as `publish` does.
        """
        with explained(self.storage, "publish"):
            return list(self._with_parent(name, None, frozenset(), self._pieces(rows, TABLES[name])).files)

    def _pieces(self, given: Piece | Iterable[Piece], table: Table) -> Iterator[tuple[int, DataFile]]:
        """(rows handed over, file) of each piece."""
        single = isinstance(given, pa.Table | DataFile | str | os.PathLike)
        for part in [given] if single else given:  # type: ignore[list-item, union-attr]
            if isinstance(part, DataFile):
                yield part.rows, part
            else:
                yield from (self._write(rows, table) for rows in parquet.pieces(part, table))  # type: ignore[arg-type]

    def _with_parent(
        self, name: str, parent: Snapshot | None, replace: AbstractSet[str], written: Iterable[tuple[int, DataFile]]
    ) -> TableFiles:
        carried = parent.tables[name].files if parent and name in parent.tables and name not in replace else ()
        pieces = list(written)
        expected = sum(rows for rows, _ in pieces) + sum(file.rows for file in carried)
        files = tuple({file.path: file for file in (*carried, *(file for _, file in pieces))}.values())
        counted = sum(file.rows for file in files)
        if counted != expected:
            raise WarehouseError(
                f"table {name}: {expected} rows were to be written and the files hold {counted} (the same rows handed "
                "over twice, as a rule): nothing was published"
            )
        return TableFiles(expected, counted, files)

    def _write(self, rows: pa.Table, table: Table, stem: str | None = None) -> tuple[int, DataFile]:
        """(rows handed over, file written). Rows are counted in what reached the disk, not in what was sent."""
        folder = f"data/{table.name}"
        with self._temporary(folder) as temporary:
            with self._written(temporary) as sink:
                hashing = parquet.HashingSink(sink)
                parquet.write(rows, table, hashing)  # type: ignore[arg-type]
            with readable(self.storage, temporary) as stream:
                counted = pq.read_metadata(stream).num_rows
            path = f"{folder}/{stem or hashing.hexdigest()}.parquet"
            if stem is None or not self._named(path):
                self.storage.move(temporary, path)
        if stem is not None:
            return rows.num_rows, DataFile(path, counted, None, None)
        return rows.num_rows, DataFile(path, counted, hashing.bytes, hashing.hexdigest())

    # ------------------------------------------------------------------ pruning

    def prune(self, keep: int | None = None, ids: Iterable[str | int] = (), dry_run: bool = False) -> Pruned:
        """Delete all but the newest `keep` snapshots, or the ones named; then every file that no manifest names.

        Files that no snapshot ever named (a killed refresh's) go once they are an hour old. The newest snapshot is
        never deleted. `dry_run` deletes nothing and returns the same answer.
        """
        every = self.snapshots()
        if keep is not None and keep < 1:
            raise WarehouseError(f"cannot keep {keep} snapshots: the newest one always stays, so give 1 or more")
        doomed = {s.sequence: s for s in (every[:-keep] if keep is not None else [])}
        for name in ids:
            snapshot = self.snapshot(name)
            if snapshot.sequence == every[-1].sequence:
                raise WarehouseError(f"snapshot {snapshot.sequence} is the newest one and cannot be pruned")
            doomed[snapshot.sequence] = snapshot
        try:
            with explained(self.storage, "prune"), self.storage.lock(exclusive=True):
                kept = {p for s in every if s.sequence not in doomed for p in s.paths()}
                named = {p for s in doomed.values() for p in s.paths()}
                files = sorted(self._unnamed(kept, named))
                freed = sum(self.storage.size(p) or 0 for p in (*files, *(s.manifest for s in doomed.values())))
                # Manifests first: a reader must never find one whose files are gone.
                for path in () if dry_run else (*(s.manifest for s in doomed.values()), *files):
                    self.storage.remove(path)
        except BlockingIOError as error:
            raise WarehouseError(f"{self.storage.url} is being refreshed: prune when the refresh has ended") from error
        return Pruned(tuple(doomed[key] for key in sorted(doomed)), tuple(files), freed)

    def _unnamed(self, kept: set[str], named: set[str]) -> Iterator[str]:
        for folder in ("manifests", *(f"data/{name}" for name in TABLES)):
            for name in self.storage.list(folder):
                path = f"{folder}/{name}"
                ours = name.startswith(TEMPORARY) or (folder != "manifests" and name.endswith(".parquet"))
                if ours and path not in kept and (path in named or self.storage.age(path) > LEFTOVER_SECONDS):
                    yield path

    # ------------------------------------------------------------------ helpers

    def _sequences(self) -> list[int]:
        with explained(self.storage, "read the warehouse"):
            return sorted(n for name in self.storage.list("manifests") if (n := manifest.sequence_of(name)) is not None)

    def _load(self, sequence: int) -> Snapshot:
        path = manifest.manifest_path(sequence)
        with explained(self.storage, "read the warehouse"), self.storage.read(path) as stream:
            return manifest.load(stream.read(), path)

    def _named(self, path: str) -> bool:
        """Whether a readable snapshot names the file."""
        for sequence in self._sequences():
            with contextlib.suppress(WarehouseError):
                if path in self._load(sequence).paths():
                    return True
        return False

    def _refuse_taken(self, sequence: int) -> None:
        if sequence <= max(self._sequences(), default=0):
            raise WarehouseError(
                f"another refresh published snapshot {sequence} in {self.storage.url} meanwhile: nothing of it or of "
                "this one is lost; run the same command again to build on it"
            )

    @contextlib.contextmanager
    def _temporary(self, folder: str) -> Iterator[str]:
        """A name for a temporary file; whatever still has it at the end is deleted."""
        path = f"{folder}/{TEMPORARY}{uuid.uuid4().hex}"
        try:
            yield path
        finally:
            with contextlib.suppress(OSError):
                self.storage.remove(path)

    @contextlib.contextmanager
    def _written(self, path: str) -> Iterator[IO[bytes]]:
        sink = self.storage.create(path)
        try:
            yield sink
        except BaseException:
            with contextlib.suppress(OSError):
                sink.close()
            raise
        self.storage.settle(sink)
