"""SQL over a snapshot: a DuckDB connection whose tables are exactly the files that one manifest names.

In go a warehouse's address and a snapshot, out comes a `duckdb.DuckDBPyConnection` with the tables, the views of
`views/*.sql`, the macros of `macros/*.sql`, and a comment on every one of their columns.

The connection can read those files and nothing else. They are served by a small in-process filesystem that knows no
writing, and DuckDB's own access to files, networks, extensions and the caller's variables is switched off and locked;
so no statement, however it is dressed up, changes the warehouse or reads another file. (Leaving DuckDB the paths
themselves would not do: a path it may read it may also overwrite by COPY.) CREATE works in the session's memory, and
is gone with it.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import duckdb
import psutil
import pyarrow as pa
from fsspec import AbstractFileSystem

from warehouse import families
from warehouse.schema import TABLES, Table
from warehouse.snapshot import Snapshot, Warehouse
from warehouse.storage import Storage, WarehouseError

HERE = Path(__file__).parent
PROTOCOL = "snapshot"
_TYPES = {
    pa.string(): "VARCHAR",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.bool_(): "BOOLEAN",
    pa.float64(): "DOUBLE",
    pa.list_(pa.string()): "VARCHAR[]",
    pa.list_(pa.int32()): "INTEGER[]",
    pa.list_(pa.int64()): "BIGINT[]",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
}


def connect(
    url: str | os.PathLike[str], snapshot: str | int | None = None, threads: int | None = None
) -> duckdb.DuckDBPyConnection:
    """A read-only connection to one snapshot: by id, beginning of an id or sequence number; the newest for None.

    `threads` defaults to the cores this process may use. Raises WarehouseError when there is no such warehouse or
    snapshot, or when one of its files is missing, cut short or foreign.
    """
    warehouse = Warehouse.open(url)
    chosen = warehouse.snapshot(snapshot)
    warehouse.check(chosen)
    connection = duckdb.connect(":memory:")
    try:
        connection.register_filesystem(_SnapshotFiles(warehouse.storage, chosen))
        for table in TABLES.values():
            _define(connection, table, chosen)
        _define_families(connection)
        for path in definitions("views") + definitions("macros"):
            connection.execute(path.read_text())
        _lock_down(connection, threads or len(os.sched_getaffinity(0)))
    except duckdb.Error as error:
        connection.close()
        raise WarehouseError(f"cannot open snapshot {chosen.sequence} of {url} for SQL: {first_line(error)}") from error
    return connection


def definitions(folder: str) -> list[Path]:
    """The SQL files of `views` or `macros`, in the order of their names (views may build on earlier ones)."""
    return sorted((HERE / folder).glob("*.sql"))


#: What DuckDB calls a statement's own fault: the files behind it need no second look.
_THE_STATEMENTS = (
    *(duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.PermissionException),
    *(duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.SyntaxException, duckdb.TypeMismatchException),
)


@contextlib.contextmanager
def damage_named(url: str | os.PathLike[str], snapshot: str | int | None = None) -> Iterator[None]:
    """Where reading fails because a file of the snapshot is damaged, WarehouseError naming it; else DuckDB's error."""
    try:
        yield
    except duckdb.Error as error:
        if not isinstance(error, _THE_STATEMENTS):
            warehouse = Warehouse.open(url)
            warehouse.check(warehouse.snapshot(snapshot), contents=True)
        raise


def first_line(error: BaseException) -> str:
    """DuckDB's message in one line, its suggestion of a nearer name kept."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and (lines[0].startswith("Traceback") or isinstance(error, duckdb.PermissionException)):
        said = [line for line in lines if not line.startswith(("^", "LINE "))]
        return f"refused, a snapshot is read-only and alone: {said[-1]}"
    hints = [line for line in lines[1:] if line.startswith(("Did you mean", "Candidate"))]
    return " ".join(lines[:1] + hints[:1]) or type(error).__name__


def quoted(name: str) -> str:
    """An SQL identifier. Data never needs it: values are bound as parameters."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string, for the statements that take no parameters (COMMENT ON, SET)."""
    return "'" + text.replace("'", "''") + "'"


def _define(connection: duckdb.DuckDBPyConnection, table: Table, snapshot: Snapshot) -> None:
    """A table as a view with a comment on it and on each column; an empty one when the snapshot has no rows of it."""
    held = snapshot.tables.get(table.name)
    files = [literal(f"{PROTOCOL}://{file.path}") for file in (held.files if held else ())]
    if files:
        columns = ", ".join(quoted(name) for name, _, _ in table.columns)
        source = f"SELECT {columns} FROM read_parquet([{', '.join(files)}])"
    else:
        columns = ", ".join(f"NULL::{_TYPES[type]} AS {quoted(name)}" for name, type, _ in table.columns)
        source = f"SELECT {columns} WHERE false"
    connection.execute(f"CREATE VIEW {quoted(table.name)} AS {source}")
    connection.execute(f"COMMENT ON VIEW {quoted(table.name)} IS {literal(table.comment)}")
    for name, _, comment in table.columns:
        connection.execute(f"COMMENT ON COLUMN {quoted(table.name)}.{quoted(name)} IS {literal(comment)}")


def _define_families(connection: duckdb.DuckDBPyConnection) -> None:
    """The macros `op_family` and `is_pointwise`, from `warehouse.families`.

    The names are literals in them, so that DuckDB decides once for each dictionary entry of a file, not for each row.
    """
    spelled = {
        family: "(" + ", ".join(literal(name + suffix) for name in names for suffix in ("", "_")) + ")"
        for family, names in families.FAMILIES.items()
    }
    short = "regexp_extract(target, '[^.]+$')"
    cases = " ".join(f"WHEN {short} IN {names} THEN {literal(family)}" for family, names in spelled.items())
    for statement in (
        f"CREATE MACRO op_family(target) AS CASE {cases} ELSE {literal(families.OTHER)} END",
        "COMMENT ON MACRO op_family IS 'Family of an operator: matmul, pointwise, layout ...; or other.'",
        f"CREATE MACRO is_pointwise(target) AS {short} IN {spelled['pointwise']}",
        "COMMENT ON MACRO is_pointwise IS 'Whether an operator computes each element from the elements at its place.'",
    ):
        connection.execute(statement)


def _lock_down(connection: duckdb.DuckDBPyConnection, threads: int) -> None:
    megabytes = max(256, psutil.virtual_memory().available // 2 // 2**20)
    for setting in (
        f"threads = {threads}",
        f"memory_limit = '{megabytes}MB'",
        "parquet_metadata_cache = true",
        "temp_directory = ''",
        "python_enable_replacements = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        f"allowed_directories = ['{PROTOCOL}://']",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


class _SnapshotFiles(AbstractFileSystem):
    """The files of one snapshot as a filesystem that can be read and nothing else."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self, storage: Storage, snapshot: Snapshot):
        super().__init__()
        self._storage = storage
        self._sizes = {path: storage.size(path) or 0 for path in snapshot.paths()}

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        return str(path).removeprefix(f"{PROTOCOL}://").strip("/")

    def _known(self, path: Any) -> str:
        name = str(self._strip_protocol(path))
        if name not in self._sizes:
            raise FileNotFoundError(f"{name[:80]} is no file of this snapshot")
        return name

    def info(self, path: Any, **_: Any) -> dict[str, Any]:
        name = self._known(path)
        return {"name": name, "size": self._sizes[name], "type": "file"}

    def exists(self, path: Any, **_: Any) -> bool:
        return self._strip_protocol(path) in self._sizes

    def glob(self, path: Any, **_: Any) -> list[str]:
        return [str(path)] if self.exists(path) else []

    def ls(self, path: Any, detail: bool = True, **_: Any) -> Iterable[Any]:
        return []

    def modified(self, path: Any) -> datetime.datetime:
        return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)  # the files never change

    def open(self, path: Any, mode: str = "rb", **_: Any) -> Any:
        if mode != "rb":
            raise PermissionError("a snapshot is read-only: query results leave through --json and --csv")
        return _PositionPerThread(self._storage.read(self._known(path)))

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise PermissionError("a snapshot is read-only: query results leave through --json and --csv")

    mv = rm = rm_file = _rm = mkdir = makedirs = rmdir = touch = cp_file = pipe_file = _refuse


class _PositionPerThread:
    """A file opened for reading that DuckDB's threads may share.

    DuckDB reads at a place by `seek` and then `read`, two calls between which another of its threads may seek. So each
    thread has its own position here, and moving the real one and reading is a single step. The key is the thread's
    number: thread-local storage would not outlive one call from a thread that Python did not start.
    """

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._lock = threading.Lock()
        self._positions: dict[int, int] = {}

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR:
            offset += self.tell()
        elif whence == os.SEEK_END:
            with self._lock:
                offset = self._file.seek(offset, os.SEEK_END)
        self._positions[threading.get_ident()] = offset
        return offset

    def tell(self) -> int:
        return self._positions.get(threading.get_ident(), 0)

    def read(self, size: int = -1) -> bytes:
        with self._lock:
            self._file.seek(self.tell())
            data = self._file.read(size)
        self._positions[threading.get_ident()] = self.tell() + len(data)
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        self._file.close()
