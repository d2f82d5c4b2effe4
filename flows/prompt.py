"""The interactive SQL prompt, and the printing of answers for people, JSON and CSV.

In go a connection of `warehouse.sql.connect` and lines of text, out come tables. A mistake is one line that names the
nearest thing that exists; the prompt never ends on one.
"""

from __future__ import annotations

import csv
import datetime
import difflib
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeAlias

import duckdb
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from curate import ready
from warehouse.sql import first_line

#: What carries rows: `connection.execute(...)` or `connection.sql(...)`.
Answer: TypeAlias = duckdb.DuckDBPyConnection | duckdb.DuckDBPyRelation

FORMATS = ("table", "json", "csv")
TABLE_ROWS = 100
_CELL = 200
_BATCH = 10_000
_COMMANDS = (".tables", ".schema", ".queries", ".run", ".help", ".quit")
_HELP = """\
SELECT ...;              ask in SQL; an empty line does not end it, a semicolon does
.tables                  tables, views and macros
.schema NAME             columns of a table or view, with what they mean
.queries                 ready questions
.run NAME [key=value]    ask one of them
.quit                    leave (so does Ctrl-D)"""


def print_result(relation: Answer, fmt: str = "table", file: IO[str] | None = None) -> int:
    """Print an answer and return its number of rows.

    `table` shows at most `TABLE_ROWS` rows and says how many it left out; `json` is a list of objects; `csv` has a
    header, an empty field for NULL, and nested values as JSON. ValueError for another format.
    """
    if fmt not in FORMATS:
        raise ValueError(f"unknown format {fmt!r}; known: {', '.join(FORMATS)}")
    out = file or sys.stdout
    columns = [str(column[0]) for column in relation.description or ()]
    if fmt == "table":
        return _print_table(columns, _rows(relation, TABLE_ROWS), lambda: _count_rest(relation), out)
    return (_print_json if fmt == "json" else _print_csv)(columns, _rows(relation, _BATCH), out)


def interactive(
    connection: duckdb.DuckDBPyConnection,
    read: Callable[[str], str] = input,
    file: IO[str] | None = None,
    history: Path | None = None,
) -> None:
    """Prompt until `.quit` or the end of input. `history` is a file that keeps lines between sessions."""
    out = file or sys.stdout
    with _history(history if read is input else None):
        waiting: list[str] = []
        while True:
            try:
                line = read("passnet> " if not waiting else "    ...> ")
            except EOFError:
                print(file=out)
                return
            except KeyboardInterrupt:
                waiting = []
                print("(cancelled; .quit leaves)", file=out)
                continue
            if not waiting and line.strip().startswith("."):
                if line.split()[0] in (".quit", ".exit"):
                    return
                _attempt(partial(_command, connection, line.split(), out), out)
            elif waiting or line.strip():
                waiting.append(line)
                if _complete("\n".join(waiting)):
                    query, waiting = "\n".join(waiting), []
                    _attempt(partial(_ask, connection, query, out), out)


def _ask(connection: duckdb.DuckDBPyConnection, query: str, out: IO[str]) -> None:
    print_result(connection.execute(query), "table", out)


def _attempt(act: Callable[[], Any], out: IO[str]) -> None:
    """Run one line of the prompt; what goes wrong becomes one line."""
    try:
        act()
    except duckdb.Error as error:
        print(first_line(error), file=out)
    except (LookupError, ValueError) as error:
        print(error.args[0] if error.args else error, file=out)
    except KeyboardInterrupt:
        print("(interrupted)", file=out)


def _complete(text: str) -> bool:
    """Whether a statement ends here: a semicolon at the end of the text, outside strings and comments."""
    if not text.rstrip().endswith(";"):
        return False
    try:
        tokens = duckdb.tokenize(text)
    except duckdb.Error:
        return True
    last = text.rstrip()[:-1]
    # Inside an open string or comment the semicolon belongs to a token that began before it.
    starts = [start for start, _ in tokens]
    return len(last) in starts or not tokens


def _command(connection: duckdb.DuckDBPyConnection, words: list[str], out: IO[str]) -> None:
    name, rest = words[0], words[1:]
    if name == ".help":
        print(_HELP, file=out)
    elif name == ".tables":
        answer = connection.execute(
            "SELECT view_name AS name, 'view' AS kind, comment FROM duckdb_views() WHERE NOT internal UNION ALL "
            "SELECT DISTINCT function_name, 'macro', comment FROM duckdb_functions() "
            "WHERE function_type LIKE '%macro' AND NOT internal ORDER BY kind DESC, name"
        )
        print_result(answer, "table", out)
    elif name == ".schema":
        if len(rest) != 1:
            raise ValueError(".schema needs the name of one table or view, for example: .schema graphs")
        known = [
            row[0] for row in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        ]
        if rest[0] not in known:
            raise LookupError(f"there is no table or view {rest[0]!r}{_nearest(rest[0], known)}")
        answer = connection.execute(
            "SELECT column_name AS name, data_type AS type, comment FROM duckdb_columns() WHERE table_name = ? "
            "ORDER BY column_index",
            [rest[0]],
        )
        print_result(answer, "table", out)
    elif name == ".queries":
        for query in map(ready.load, ready.names()):
            print(f"{query.name:28} {query.question}", file=out)
    elif name == ".run":
        if not rest:
            raise ValueError(f".run needs the name of a query: {', '.join(ready.names())}")
        odd = next((word for word in rest[1:] if "=" not in word), None)
        if odd is not None:
            raise ValueError(f"parameters are written key=value, not {odd!r}")
        values = dict(word.split("=", 1) for word in rest[1:])
        print_result(ready.load(rest[0]).run(connection, **values), "table", out)
    else:
        raise LookupError(f"unknown command {name!r}{_nearest(name, list(_COMMANDS))}")


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(sorted(known))}"


def _rows(relation: Answer, batch_rows: int) -> Iterator[tuple[Any, ...]]:
    # The stubs of DuckDB give a connection's and a relation's methods different types.
    fetch: Any = relation.fetchmany
    while batch := fetch(batch_rows):
        yield from batch


def _count_rest(relation: Answer) -> int:
    """Rows not fetched yet, counted as Arrow batches: millions take a blink, and no Python objects."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        reader: Any = relation.to_arrow_reader(100_000)
    return sum(batch.num_rows for batch in reader)


def _print_table(
    columns: list[str], rows: Iterator[tuple[Any, ...]], count_rest: Callable[[], int], out: IO[str]
) -> int:
    if not columns:
        return 0
    # Data may hold square brackets, which rich would read as markup, and control characters, which a terminal obeys.
    table = Table(*(escape(column) for column in columns), header_style="bold")
    numbers: set[int] = set(range(len(columns)))
    shown = []
    for row in islice(rows, TABLE_ROWS):
        shown.append([escape(_cell(value)) for value in row])
        numbers -= {i for i in numbers if not isinstance(row[i], int | float | Decimal | None)}
    for i in numbers if shown else ():
        table.columns[i].justify = "right"
    for cells in shown:
        table.add_row(*cells)
    console = Console(file=out, width=None if out.isatty() else 240, highlight=False)
    console.print(table)
    left = count_rest() if len(shown) == TABLE_ROWS else 0
    count = len(shown) + left
    more = f" ({left:,} not shown: --json and --csv print all)" if left else ""
    console.print(f"{count:,} row{'' if count == 1 else 's'}{more}", markup=False)
    return count


def _print_json(columns: list[str], rows: Iterator[tuple[Any, ...]], out: IO[str]) -> int:
    keys = _distinct(columns)
    count = 0
    out.write("[")
    for row in rows:
        out.write(",\n " if count else "\n ")
        json.dump({key: _plain(value) for key, value in zip(keys, row, strict=True)}, out, ensure_ascii=False)
        count += 1
    out.write("\n]\n" if count else "]\n")
    return count


def _print_csv(columns: list[str], rows: Iterator[tuple[Any, ...]], out: IO[str]) -> int:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    count = 0
    for row in rows:
        writer.writerow("" if value is None else _text(value) for value in row)
        count += 1
    return count


def _distinct(columns: list[str]) -> list[str]:
    """Keys for a JSON object: a column name that occurs again gets a number, so that no value is lost."""
    keys: list[str] = []
    for column in columns:
        key, number = column, 2
        while key in keys:
            key, number = f"{column}_{number}", number + 1
        keys.append(key)
    return keys


def _plain(value: Any) -> Any:
    """A value of DuckDB as JSON holds it: NaN and infinities become null, as JSON has no word for them."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    return str(value)


def _text(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return json.dumps(_plain(value), ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, float | int) else str(_plain(value))


def _cell(value: Any) -> str:
    text = "" if value is None else _text(value)
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


class _history:
    """Line editing for the prompt, with a history file when one is named and can be used."""

    def __init__(self, path: Path | None):
        self._path = path

    def __enter__(self) -> None:
        with suppress(ImportError):
            import readline

            if self._path is not None:
                with suppress(OSError):
                    readline.read_history_file(self._path)

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            with suppress(ImportError, OSError):
                import readline

                self._path.parent.mkdir(parents=True, exist_ok=True)
                readline.set_history_length(2000)
                readline.write_history_file(self._path)
