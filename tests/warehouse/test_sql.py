"""SQL sees exactly one snapshot, explains every column, and can harm or read nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from tests.warehouse import tiny
from tests.warehouse.test_snapshot import files, occurrence
from warehouse.families import FAMILIES, family_of
from warehouse.schema import TABLES
from warehouse.snapshot import Warehouse, WarehouseError
from warehouse.sql import connect, definitions

F = "torch.nn.functional."


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lake")
    tiny.publish(root)
    return root


@pytest.fixture
def connection(lake: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(lake) as opened:
        yield opened


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple]:  # type: ignore[type-arg]
    return connection.execute(query).fetchall()


def test_every_table_holds_what_was_published_with_its_types(connection: duckdb.DuckDBPyConnection) -> None:
    for name, table in tiny.tables().items():
        got = connection.sql(f"FROM {name} ORDER BY ALL").to_arrow_table()
        assert got.column_names == TABLES[name].schema.names
        assert got.cast(TABLES[name].schema).num_rows == table.num_rows
    assert (tiny.HOSTILE,) in rows(connection, "SELECT name FROM models")


def test_any_snapshot_can_be_opened_and_sees_its_own_rows(tmp_path: Path) -> None:
    warehouse, first = tiny.publish(tmp_path)
    second = warehouse.publish(first, {"occurrences": occurrence("x")}, replace={"models"})
    count = "SELECT (SELECT count(*) FROM occurrences), (SELECT count(*) FROM models)"
    for name in (first.id, first.id[:10], 1):
        assert rows(connect(tmp_path, name), count) == [(7, 5)]
    for name in (None, second.id, "2"):
        assert rows(connect(tmp_path, name), count) == [(8, 0)]
    with pytest.raises(WarehouseError, match="no snapshot is called 'zz'"):
        connect(tmp_path, "zz")


def test_a_warehouse_in_another_filesystem_answers_alike(lake: Path) -> None:
    tiny.publish("memory://sql-test")
    query = "FROM op_frequency()"
    assert rows(connect("memory://sql-test"), query) == rows(connect(lake), query)


def test_no_table_view_macro_or_column_lacks_a_comment(connection: duckdb.DuckDBPyConnection) -> None:
    bare = rows(connection, "SELECT view_name FROM duckdb_views() WHERE NOT internal AND comment IS NULL")
    bare += rows(
        connection,
        "SELECT c.table_name, c.column_name FROM duckdb_columns() AS c WHERE NOT c.internal AND c.comment IS NULL",
    )
    bare += rows(
        connection,
        "SELECT function_name FROM duckdb_functions() "
        "WHERE function_type LIKE '%macro' AND NOT internal AND comment IS NULL",
    )
    assert bare == []
    known = {name for (name,) in rows(connection, "SELECT view_name FROM duckdb_views() WHERE NOT internal")}
    assert known >= set(TABLES) and len(known) == len(TABLES) + len(definitions("views"))
    assert rows(connection, "SELECT count(*) FROM duckdb_tables() WHERE NOT internal") == [(0,)]


REFUSED = [
    "COPY (SELECT 1) TO '{out}'",
    "COPY nodes TO '{out}' (FORMAT parquet)",
    "COPY (SELECT 1) TO '{data}' (FORMAT parquet, USE_TMP_FILE false)",
    "COPY (SELECT 1) TO 'snapshot://{inside}' (FORMAT parquet, USE_TMP_FILE false)",
    "WITH x AS (COPY (SELECT 1) TO 'snapshot://{inside}' (FORMAT parquet, USE_TMP_FILE false)) SELECT * FROM x",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO 'snapshot://{inside}' (FORMAT parquet, USE_TMP_FILE false)",
    "EXPORT DATABASE '{out}'",
    "ATTACH '{out}'",
    "ATTACH 'snapshot://new.db'",
    "ATTACH 'snapshot://{inside}' (READ_ONLY)",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{out}'",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('{data}')",
    "SELECT * FROM read_parquet('{data}')",
    "SELECT * FROM '{data}'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_text('snapshot://../../etc/passwd')",
    "SELECT * FROM read_csv('https://example.com/x.csv')",
    "CREATE SECRET s (TYPE s3)",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET lock_configuration = false",
    "RESET enable_external_access",
    "SET temp_directory = '/tmp'",
    "SET python_enable_replacements = true",
    "SELECT * FROM local_frame",
    "INSERT INTO nodes (op) VALUES ('x')",
    "DELETE FROM nodes",
    "UPDATE nodes SET op = 'x'",
    "DROP TABLE nodes",
    "ALTER TABLE nodes ADD COLUMN x INTEGER",
    "SELECT getenv('HOME')",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_statements_that_write_or_read_elsewhere_are_refused(lake: Path, tmp_path: Path, statement: str) -> None:
    local_frame = pd.DataFrame({"secret": [1]})  # noqa: F841  (DuckDB would find it by its name)
    snapshot = Warehouse.open(lake).snapshot()
    inside = snapshot.tables["nodes"].files[0].path
    before = files(lake)
    out = tmp_path / "out"
    with connect(lake) as connection:
        text = statement.format(out=out, data=lake / inside, inside=inside)
        with pytest.raises(duckdb.Error):
            connection.execute(text).fetchall()
        assert rows(connection, "SELECT count(*) FROM nodes") == [(47,)]
    assert files(lake) == before
    assert not out.exists() and list(tmp_path.iterdir()) == []


def test_the_snapshots_own_filesystem_knows_no_other_file(connection: duckdb.DuckDBPyConnection) -> None:
    for path in ("snapshot:///etc/passwd", "snapshot://manifests/00000001.json", "snapshot://data/*"):
        assert rows(connection, f"SELECT * FROM read_text('{path}')") == []


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE t AS SELECT 1", "DROP VIEW nodes", "CREATE OR REPLACE VIEW nodes AS SELECT 1"]
)
def test_what_is_created_or_dropped_in_a_session_ends_with_it(lake: Path, statement: str) -> None:
    before = files(lake)
    with connect(lake) as connection:
        connection.execute(statement)
    assert files(lake) == before
    with connect(lake) as connection:
        assert rows(connection, "SELECT count(*) FROM nodes") == [(47,)]
        with pytest.raises(duckdb.CatalogException):
            connection.execute("FROM t")


def test_threads_reading_one_file_at_once_do_not_mix_up_their_places(lake: Path) -> None:
    with connect(lake, threads=4) as connection:
        query = "SELECT sum(hash(COLUMNS(*))::HUGEINT % 1000) FROM nodes"
        expected = rows(connection, query)
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: rows(connection.cursor(), query), range(40)))
        assert all(answer == expected for answer in answers)


def test_plain_duckdb_and_pandas_read_the_files_without_this_package(lake: Path) -> None:
    manifest = json.loads(max((lake / "manifests").glob("*.json")).read_text())
    paths = [str(lake / file["path"]) for file in manifest["tables"]["nodes"]["files"]]
    with duckdb.connect() as plain:
        query = "SELECT count(*) FROM read_parquet(?) WHERE target = ?"
        assert plain.execute(query, [paths, F + "linear"]).fetchone() == (4,)
        assert plain.execute("SELECT count(*) FROM read_parquet(?)", [f"{lake}/data/nodes/*.parquet"]).fetchone() == (
            47,
        )
    frame = pd.concat(pd.read_parquet(path) for path in paths)
    assert len(frame) == 47 and frame["target"].value_counts()[F + "linear"] == 4


def test_graph_weights_give_each_template_the_weight_of_one_graph(connection: duckdb.DuckDBPyConnection) -> None:
    got = {r[0][0]: r[1:] for r in rows(connection, "FROM graph_weights")}
    assert got["a"] == ("T1", 2, 0.5, True, 2)
    assert got["b"] == ("T1", 2, 0.5, False, 1)
    assert got["e"] == ("T4", 1, 1.0, True, 1)


def test_edges_are_the_references_and_never_strings(connection: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT scope, producer, consumer, uses FROM edges WHERE graph_hash[1] = '{}' ORDER BY ALL"
    assert rows(connection, query.format("d")) == [
        ("", 0, 1, 2), ("", 0, 5, 1), ("", 1, 2, 1), ("", 1, 3, 1), ("", 2, 3, 1), ("", 3, 4, 1), ("", 4, 5, 1),
        ("", 5, 6, 1),
    ]  # fmt: skip
    assert rows(connection, query.format("f")) == [
        ("", 0, 3, 1), ("", 1, 3, 1), ("", 2, 3, 1), ("", 3, 4, 1),
        ("body_0", 0, 2, 1), ("body_0", 1, 2, 1), ("body_0", 2, 3, 1),
    ]  # fmt: skip


def test_model_graphs_and_shared_graphs_count_every_name(connection: duckdb.DuckDBPyConnection) -> None:
    assert rows(connection, "SELECT count(*) FROM model_graphs") == [(9,)]  # c1 has two names
    assert rows(connection, "SELECT graph_hash[1], models, families, occurrences FROM shared_graphs ORDER BY 1") == [
        ("a", 3, 3, 3),
        ("b", 2, 2, 2),
    ]


def test_captures_failures_and_breaks_are_joined_with_their_seconds(connection: duckdb.DuckDBPyConnection) -> None:
    assert rows(connection, "SELECT failure_class, seconds FROM capture_summary ORDER BY capture_id") == [
        (None, 1.0), (None, 2.0), (None, 3.0), ("timeout", 4.0),
    ]  # fmt: skip
    assert rows(connection, "SELECT class, seconds, peak_mb FROM failures_timed") == [("timeout", 4.0, 100.0)]
    assert rows(connection, "SELECT capture_id, break_index, reason FROM graph_breaks ORDER BY ALL") == [
        ("c1", 0, "data-dependent jump\nmore"),
        ("c3", 0, "data-dependent jump\nother"),
        ("c3", 1, "unsupported call"),
    ]


def test_operators_have_the_family_that_drawings_use(connection: duckdb.DuckDBPyConnection) -> None:
    got = dict(rows(connection, "FROM operators"))
    assert got == {target: family_of(target) for target in got} and got["torch.Tensor.relu_"] == "pointwise"
    assert rows(connection, "SELECT op_family('torch.ops.higher_order.wrap')") == [("other",)]
    named = [name for names in FAMILIES.values() for name in names]
    assert len(named) == len(set(named)), "an operator is in two families"
    for name in named:
        for target in (f"torch.{name}", f"torch.Tensor.{name}_"):
            family, pointwise = rows(connection, f"SELECT op_family('{target}'), is_pointwise('{target}')")[0]
            assert family == family_of(target) and pointwise == (family == "pointwise")


def test_graphs_are_found_by_the_operators_they_call(connection: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT graph_hash[1] FROM {}([{}])"
    assert rows(connection, query.format("graphs_with_ops", f"'torch.matmul', '{F}softmax'")) == [("e",)]
    assert rows(connection, query.format("graphs_with_ops", "'no.such'")) == []
    assert rows(connection, query.format("graphs_without_ops", f"'torch.matmul', '{F}linear'")) == [("c",), ("f",)]


def test_op_frequency_counts_graphs_templates_and_occurrences(connection: duckdb.DuckDBPyConnection) -> None:
    got = {r[0]: r[1:] for r in rows(connection, "FROM op_frequency()")}
    assert got[F + "linear"] == (4, 2, 2.0, 0.2, 6)
    assert got["torch.matmul"] == (4, 2, 4.0, 0.4, 4)
    assert got["operator.add"] == (2, 2, 2.0, 0.4, 2)


@pytest.mark.parametrize("n", range(1, 9))
def test_op_ngrams_are_those_counted_in_python(connection: duckdb.DuckDBPyConnection, n: int) -> None:
    expected: dict[tuple[str, ...], list[int]] = {}
    for graph_hash, record in tiny.RECORDS.items():
        for _, graph in record.walk():
            calls = graph.operators()
            for start in range(len(calls) - n + 1):
                counts = expected.setdefault(tuple(calls[start : start + n]), [0, 0])
                counts[0] += graph_hash[0] != "b"  # B is not its template's representative
                counts[1] += 1
    got = {tuple(r[0]): list(r[1:]) for r in rows(connection, f"FROM op_ngrams({n})")}
    assert got == expected


def test_op_ngrams_outside_one_to_eight_are_none(connection: duckdb.DuckDBPyConnection) -> None:
    assert rows(connection, "FROM op_ngrams(9)") == []


def test_show_graph_prints_references_as_rows_and_leaves_strings_alone(connection: duckdb.DuckDBPyConnection) -> None:
    lines = rows(connection, "SELECT scope, idx, code, yields FROM show_graph('dddd')")
    assert lines[0] == ("", 0, "input x", "float32[4,4]")
    assert lines[5] == ("", 5, "torch.matmul[%4,%0]", "float32[4,4]")
    assert lines[6][2] == 'return [{"tuple":[%5]}]'
    nested = rows(connection, "SELECT code FROM show_graph('ffff') WHERE idx = 3 AND scope = ''")
    assert nested == [('torch.ops.higher_order.wrap[%2,%0,%1,{"str":"%1 \\"%2"}]',)]
    assert rows(connection, "FROM show_graph('none')") == []


def test_each_sql_file_begins_with_a_comment_and_defines_what_its_name_says() -> None:
    for folder in ("views", "macros"):
        for path in definitions(folder):
            text = path.read_text()
            name = re.sub(r"^\d+_", "", path.stem)
            assert text.startswith("-- ") and re.search(rf"CREATE (VIEW|MACRO) {name}\b", text), path
