"""The SQL prompt answers, explains mistakes in one line, and prints every value faithfully."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from flows.prompt import TABLE_ROWS, interactive, print_result
from tests.warehouse import tiny
from warehouse.sql import connect


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    root = tmp_path_factory.mktemp("lake")
    tiny.publish(root)
    yield connect(root)


def session(connection: duckdb.DuckDBPyConnection, *lines: str) -> list[str]:
    waiting = iter(lines)

    def read(prompt: str) -> str:
        line = next(waiting, None)
        if line is None:
            raise EOFError
        return line

    out = io.StringIO()
    interactive(connection, read, out)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_a_statement_may_run_over_lines_until_its_semicolon(connection: duckdb.DuckDBPyConnection) -> None:
    out = session(connection, "SELECT 'a;", "b' AS x,", "count(*) AS n -- no end;", "FROM graphs", ";")
    assert any("a; b │ 6" in line for line in out)


def test_commands_list_tables_columns_and_questions(connection: duckdb.DuckDBPyConnection) -> None:
    tables = session(connection, ".tables")
    assert any("│ nodes │ view │ The graphs themselves" in line for line in tables)
    assert any("│ op_ngrams │ macro │" in line for line in tables)
    schema = session(connection, ".schema occurrences")
    assert any("│ graph_index │ INTEGER │ which graph of that capture" in line for line in schema)
    assert "effects Which operators mutate their inputs or draw random numbers?" in session(connection, ".queries")
    assert any("torch.Tensor.relu_ │ 1 │" in line for line in session(connection, ".run effects rows=1"))


@pytest.mark.parametrize(
    "line, says",
    [
        ("SELECT * FROM grphs;", 'Did you mean "graphs"?'),
        ("SELECT grph_hash FROM graphs;", '"graph_hash"'),
        ("SELEC 1;", "syntax error"),
        (".schema graph", "did you mean 'graphs'?"),
        (".schema", ".schema needs the name"),
        (".run efects", "did you mean 'effects'?"),
        (".run", ".run needs the name of a query"),
        (".run effects rows", "key=value"),
        (".run effects rows=many", "must be of type int"),
        (".run effects row=1", "known: rows"),
        (".table", "did you mean '.tables'?"),
        ("COPY nodes TO '/tmp/x.csv';", "read-only"),
    ],
)
def test_a_mistake_is_one_line_and_the_prompt_goes_on(
    connection: duckdb.DuckDBPyConnection, line: str, says: str
) -> None:
    out = session(connection, line, "SELECT 42 AS answer;")
    assert says in out[0]
    assert "│ 42 │" in out


def test_quit_ends_at_once(connection: duckdb.DuckDBPyConnection) -> None:
    assert session(connection, ".quit", "SELECT 42 AS answer;") == []


def test_an_interrupt_drops_the_statement_and_not_the_prompt(connection: duckdb.DuckDBPyConnection) -> None:
    lines = iter(["SELECT", KeyboardInterrupt, "SELECT 42 AS answer;", EOFError])

    def read(_: str) -> str:
        line = next(lines)
        if isinstance(line, str):
            return line
        raise line

    out = io.StringIO()
    interactive(connection, read, out)
    assert "cancelled" in out.getvalue() and "42" in out.getvalue()


VALUES = (
    "SELECT [1, NULL] AS list, {'x': 1.5} AS struct, NULL AS nothing, 'q\"u,o\nt' AS text, true AS yes, "
    "'nan'::DOUBLE AS nan, DATE '2026-01-02' AS day, MAP {'k': [1]} AS map, 1.50::DECIMAL(5,2) AS decimal, 1 AS list, "
    "'\\xAA'::BLOB AS blob, 170141183460469231731687303715884105727::HUGEINT AS huge, '' AS empty"
)


def test_json_is_a_list_of_objects_with_nested_values_and_nulls(connection: duckdb.DuckDBPyConnection) -> None:
    out = io.StringIO()
    assert print_result(connection.execute(VALUES), "json", out) == 1
    assert json.loads(out.getvalue()) == [
        {
            "list": [1, None], "struct": {"x": 1.5}, "nothing": None, "text": 'q"u,o\nt', "yes": True, "nan": None,
            "day": "2026-01-02", "map": {"k": [1]}, "decimal": 1.5, "list_2": 1, "blob": "aa", "huge": 2**127 - 1,
            "empty": "",
        }
    ]  # fmt: skip
    out = io.StringIO()
    assert print_result(connection.execute("FROM graphs WHERE false"), "json", out) == 0
    assert json.loads(out.getvalue()) == []


def test_csv_reads_back(connection: duckdb.DuckDBPyConnection) -> None:
    out = io.StringIO()
    print_result(connection.execute(VALUES), "csv", out)
    header, row = csv.reader(io.StringIO(out.getvalue()))
    got = dict(zip(header, row, strict=True)) | {"list": row[0]}
    assert got["list"] == "[1, null]" and got["struct"] == '{"x": 1.5}' and got["nothing"] == ""
    assert got["text"] == 'q"u,o\nt' and got["yes"] == "true" and got["day"] == "2026-01-02"
    out = io.StringIO()
    print_result(connection.execute("FROM graphs WHERE false"), "csv", out)
    assert out.getvalue().startswith("graph_hash,structure_hash,") and out.getvalue().count("\n") == 1


@pytest.mark.parametrize("extra, left", [(0, ""), (1, "(1 not shown"), (250_000, "(250,000 not shown")])
def test_only_tables_are_cut_and_say_how_much(connection: duckdb.DuckDBPyConnection, extra: int, left: str) -> None:
    query = f"SELECT i FROM range({TABLE_ROWS + extra}) AS t(i)"
    out = io.StringIO()
    assert print_result(connection.execute(query), "table", out) == TABLE_ROWS + extra
    last = out.getvalue().splitlines()[-1]
    assert last.startswith(f"{TABLE_ROWS + extra:,} rows") and left in last
    out = io.StringIO()
    assert print_result(connection.execute(query), "csv", out) == TABLE_ROWS + extra
    assert out.getvalue().count("\n") == TABLE_ROWS + extra + 1


def test_data_is_neither_markup_nor_terminal_control(connection: duckdb.DuckDBPyConnection) -> None:
    out = io.StringIO()
    print_result(connection.execute("SELECT '[red]x[/red]' || chr(27) || '[2J' AS \"[bold]c\""), "table", out)
    assert "[red]x[/red]" in out.getvalue() and "[bold]c" in out.getvalue() and "\x1b" not in out.getvalue()


def test_an_unknown_format_is_refused(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(ValueError, match="known: table, json, csv"):
        print_result(connection.execute("SELECT 1"), "xml")


def test_history_is_kept_only_where_it_can_be(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    waiting = iter([".quit"])
    interactive(connection, lambda _: next(waiting), io.StringIO(), history=blocked / "sub" / "history")
