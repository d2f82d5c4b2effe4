"""Ready questions: one SQL file each in `curate/queries/`, with a header that asks the question in words.

In goes a query's name and values for its parameters, out comes DuckDB's answer. `python -m curate.ready --write
docs/queries.md` asks all of them of one warehouse and writes the page that shows question, SQL and answer;
`python -m curate.ready NAME...` prints the answers to some as Markdown tables.

A header is a comment block: its first line is the question, the rest says how to read the answer, and a line
`-- param NAME = DEFAULT: meaning` declares a parameter, written `$NAME` in the SQL and bound as a value.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from warehouse.sql import connect, first_line
from warehouse.storage import WarehouseError

FOLDER = Path(__file__).parent / "queries"
_PARAMETER = re.compile(r"param (\w+) = (.+?): (.+)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that the SQL names as `$name`."""

    name: str
    default: Any
    meaning: str


@dataclass(frozen=True, slots=True)
class ReadyQuery:
    """One question: `question` in a line, `reading` says how to read the answer, `sql` is one SELECT."""

    name: str
    question: str
    reading: str
    parameters: tuple[Parameter, ...]
    sql: str

    def run(self, connection: duckdb.DuckDBPyConnection, **values: Any) -> duckdb.DuckDBPyConnection:
        """Ask `connection`, with defaults for parameters not given; texts are read as the default's type.

        Raises LookupError for an unknown parameter, ValueError for a value of the wrong type, duckdb.Error as it comes.
        """
        bound = {parameter.name: parameter.default for parameter in self.parameters}
        for name, value in values.items():
            if name not in bound:
                known = ", ".join(bound) or "it takes none"
                raise LookupError(f"query {self.name} has no parameter {name!r}; known: {known}")
            kind = type(bound[name])
            try:
                bound[name] = kind(value)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"parameter {name} of {self.name} must be of type {kind.__name__}: {value!r}"
                ) from error
        return connection.execute(self.sql, bound or None)


def names() -> list[str]:
    """Names of all ready queries, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.sql"))


def load(name: str) -> ReadyQuery:
    """The query called `name`. LookupError names the nearest."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names())}"
        raise LookupError(f"there is no ready query {name[:60]!r}{hint}")
    return parse(name, (FOLDER / f"{name}.sql").read_text())


def parse(name: str, text: str) -> ReadyQuery:
    """A query from the text of its file. ValueError when the header has no question or a parameter has no default."""
    lines = text.splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    header = [line.removeprefix("--").strip() for line in lines[:end]]
    sql = "\n".join(lines[end:]).strip()
    if not header or not header[0]:
        raise ValueError(f"query {name}: the first line must be a comment with the question")
    parameters = tuple(
        Parameter(match.group(1), json.loads(match.group(2)), match.group(3))
        for line in header
        if (match := _PARAMETER.fullmatch(line))
    )
    undeclared = set(re.findall(r"\$(\w+)", sql)) ^ {parameter.name for parameter in parameters}
    if undeclared:
        raise ValueError(f"query {name}: {sorted(undeclared)[0]} is declared without use or used without declaration")
    reading = " ".join(line for line in header[1:] if line and not line.startswith("param "))
    return ReadyQuery(name, header[0], reading, parameters, sql)


def page(connection: duckdb.DuckDBPyConnection, origin: str) -> str:
    """docs/queries.md: every question with its SQL and its answer. `origin` says whose answers they are."""
    parts = [
        "# Questions to a warehouse\n",
        "Each question is a file in `curate/queries/`. Ask one at the prompt of `passnet sql` with `.run NAME`\n"
        "(parameters as `name=value`), or paste the SQL into `passnet sql`, with a value for each `$name`.\n",
        f"The answers below are of {origin}. Make this page again with\n"
        "`python -m curate.ready --warehouse lake --write docs/queries.md`.\n",
    ]
    parts += [f"- [{query.question}](#{query.name})\n" for query in map(load, names())]
    for query in map(load, names()):
        answer = query.run(connection)
        columns = [column[0] for column in answer.description or ()]
        parts.append(f'\n## <a id="{query.name}"></a>{query.question}\n')
        parts.append(f"`curate/queries/{query.name}.sql`. {query.reading}\n")
        for parameter in query.parameters:
            parts.append(f"- `${parameter.name}`, by default {parameter.default}: {parameter.meaning}\n")
        parts.append(f"\n```sql\n{query.sql}\n```\n")
        parts.append(_markdown(columns, answer.fetchall()))
    return "\n".join(part.rstrip("\n") if part.startswith("- ") else part for part in parts) + "\n"


def answered(connection: duckdb.DuckDBPyConnection, query: ReadyQuery) -> str:
    """The whole answer to a query with its defaults, as a Markdown table."""
    answer = query.run(connection)
    return _markdown([column[0] for column in answer.description or ()], answer.fetchall(), most=1000)


def _markdown(columns: list[str], rows: list[tuple[Any, ...]], most: int = 12) -> str:
    """A Markdown table of the first `most` rows; cells cut at 100 characters."""
    if not rows:
        return "No rows: the warehouse holds nothing of the kind.\n"
    lines = [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
    for row in rows[:most]:
        lines.append(f"| {' | '.join(_cell(value) for value in row)} |")
    if len(rows) > most:
        lines.append(f"\n({len(rows) - most} more rows)")
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    text = text if len(text) <= 100 else text[:99] + "…"
    return re.sub(r"([\\|<>`*_\[\]])", r"\\\1", " ".join(text.split()))


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or print it. Exit code 2 with one line on standard error when something is missing."""
    parser = argparse.ArgumentParser(prog="python -m curate.ready", description="Ask all ready questions.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="print the answers to these alone")
    parser.add_argument("--warehouse", default="lake", help="folder or URL of the warehouse (default: lake)")
    parser.add_argument("--snapshot", default=None, help="id or number of a snapshot (default: the newest)")
    parser.add_argument("--write", type=Path, default=None, help="file to write (default: standard output)")
    options = parser.parse_args(arguments)
    try:
        chosen = [load(name) for name in options.names]
        connection = connect(options.warehouse, options.snapshot)
        if chosen:
            print("\n".join(f"{query.question}\n\n{answered(connection, query)}" for query in chosen), end="")
            return 0
        counted = connection.execute(
            "SELECT (SELECT count(*) FROM models), (SELECT count(*) FROM graphs), (SELECT count(*) FROM nodes)"
        ).fetchone()
        models, graphs, nodes = counted or (0, 0, 0)
        text = page(connection, f"a warehouse of {models:,} models, {graphs:,} unique graphs and {nodes:,} nodes")
        if options.write:
            options.write.write_text(text)
        else:
            sys.stdout.write(text)
    except (WarehouseError, OSError, LookupError) as error:
        print(error, file=sys.stderr)
        return 2
    except duckdb.Error as error:
        print(first_line(error), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
