"""Ready questions give the answers that the tiny warehouse's six graphs have, counted by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from curate import ready
from tests.warehouse import tiny
from warehouse.sql import connect

DOCS = Path(__file__).parents[2] / "docs" / "queries.md"
F = "torch.nn.functional."


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    root = tmp_path_factory.mktemp("tiny")
    tiny.publish(root)
    yield connect(root)


def ask(connection: duckdb.DuckDBPyConnection, name: str, **values: Any) -> list[dict[str, Any]]:
    answer = ready.load(name).run(connection, **values)
    columns = [column[0] for column in answer.description]
    return [dict(zip(columns, row, strict=True)) for row in answer.fetchall()]


def attention(c):
    rows = ask(c, "attention_without_softmax")
    assert [(r["kind"], r["graph_hash"][0], r["products"], r["models"]) for r in rows] == [
        ("products", "d", 2, 1),
        ("fused", "c", 0, 1),
    ]
    assert rows[1]["example"] == f"timm:{tiny.HOSTILE}"


def dtypes(c):
    rows = ask(c, "dtype_mix")
    # Calls that yield a tensor: A and B 4 each, C 1, D 5, E 3 (bfloat16), F 1 and 1 in its body.
    assert [(r["dtype"], r["calls"], r["graphs"]) for r in rows] == [("float32", 16, 5), ("bfloat16", 3, 1)]
    # Weighted: A and B are one template, so 4 of them count.
    assert [r["weighted_share"] for r in rows] == [round(12 / 15, 5), round(3 / 15, 5)]


def effects(c):
    assert ask(c, "effects") == [{"target": "torch.Tensor.relu_", "effectful_calls": 1, "share": 1.0, "graphs": 1}]


def failures(c):
    assert ask(c, "failures_by_class") == [
        {
            "source": "transformers",
            "class": "timeout",
            "failures": 1,
            "share": 0.5,
            "seconds": 4.0,
            "example": "bad",
            "example_message": "the deadline passed",
        }
    ]


def sequences(c):
    rows = ask(c, "frequent_sequences", length=2, rows=50)
    found = {r["sequence"]: (r["template_calls"], r["calls"]) for r in rows}
    assert found[f"{F}linear → {F}layer_norm"] == (1, 2)
    assert found["operator.add → operator.mul"] == (1, 1)
    # A: 3 pairs, B the same, D: 4, E: 2; F's wrap and its body's add are in different scopes, and so no pair.
    assert sum(calls for _, calls in found.values()) == 12
    assert not any("wrap" in sequence for sequence in found)
    assert len(ask(c, "frequent_sequences", length=2, rows=1)) == 1


def breaks(c):
    rows = ask(c, "graph_breaks_by_reason")
    assert [(r["reason"], r["breaks"], r["captures"]) for r in rows] == [
        ("data-dependent jump", 2, 2),
        ("unsupported call", 1, 1),
    ]


def largest(c):
    rows = {(r["source"], r["family"]): r for r in ask(c, "largest_graphs")}
    assert rows["transformers", "bert"]["graph_hash"] == "d" * 32
    assert rows["timm", "mlp_"]["graph_hash"] == "a" * 32
    assert rows["timm", "mlp_"]["op_count"] == 4
    assert len(rows) == 4


def sharing(c):
    rows = ask(c, "models_sharing_a_graph")
    assert [(r["graph_hash"][0], r["models"], r["op_count"]) for r in rows] == [("a", 3, 4), ("b", 2, 4)]
    assert rows[1]["names"] == "timm:mlp_a, timm:mlp_twin"


def shares(c):
    rows = ask(c, "operators_by_share")
    assert rows[0]["target"] == "torch.matmul"
    assert rows[0]["template_share"] == 0.4 and rows[0]["calls"] == 4 and rows[0]["family"] == "matmul"
    assert rows[-1]["covered"] == 1.0 and [r["rank"] for r in rows] == list(range(1, len(rows) + 1))
    linear = next(r for r in rows if r["target"] == F + "linear")
    assert (linear["calls"], linear["calls_in_models"], linear["template_share"]) == (4, 6, 0.2)


def chains(c):
    # matmul -> add -> mul -> relu_ -> matmul: three pointwise operators in a row.
    assert ask(c, "pointwise_chains") == [{"operators": 3, "chain": "add → mul → relu_", "occurrences": 1, "graphs": 1}]
    assert ask(c, "pointwise_chains", shortest=4) == []


def symbolic(c):
    rows = ask(c, "symbolic_operators")
    assert [(r["target"], r["symbolic_calls"], r["example"]) for r in rows] == [
        ("torch.matmul", 2, "[s0, s0]"),
        (F + "softmax", 1, "[s0, s0]"),
    ]


def widest(c):
    rows = ask(c, "widest_layer_norm")
    assert [(r["width"], r["dtype"], r["rows"], r["calls"], r["graphs"]) for r in rows] == [
        (16, "float32", 4, 1, 1),
        (8, "float32", 4, 1, 1),
    ]


def unprofiled(c, name):
    assert ask(c, name) == []


ANSWERS = {
    "attention_without_softmax": attention, "dtype_mix": dtypes, "effects": effects, "failures_by_class": failures,
    "frequent_sequences": sequences, "graph_breaks_by_reason": breaks, "largest_graphs": largest,
    "models_sharing_a_graph": sharing, "operators_by_share": shares, "pointwise_chains": chains,
    "symbolic_operators": symbolic, "widest_layer_norm": widest,
    # Nothing was profiled in the tiny warehouse; tests/curate/profile/test_sql.py asks one that was.
    "host_or_device": unprofiled, "inductor_wrong": unprofiled,
    # Nor are there subgraphs; tests/curate/passbench/test_questions.py asks a world that has them.
    "headroom": unprofiled, "slower_under_inductor": unprofiled, "slowest_on_device": unprofiled,
}  # fmt: skip


@pytest.mark.parametrize("name", ready.names())
def test_each_ready_query_gives_the_known_answer(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    answer = ANSWERS[name]
    answer(connection, name) if answer is unprofiled else answer(connection)


def test_each_question_ends_in_a_question_mark_and_says_how_to_read_its_answer() -> None:
    assert sorted(ANSWERS) == ready.names()
    for query in map(ready.load, ready.names()):
        assert query.question.endswith("?") and query.reading


def test_parameters_are_bound_as_values_and_never_become_sql(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(ValueError, match="must be of type int"):
        ask(connection, "frequent_sequences", rows="1; DROP VIEW nodes")
    with pytest.raises(LookupError, match="no parameter 'row'; known: length, rows"):
        ask(connection, "frequent_sequences", row=1)


def test_an_unknown_query_names_the_nearest() -> None:
    with pytest.raises(LookupError, match="did you mean 'dtype_mix'"):
        ready.load("dtype_mixx")
    with pytest.raises(LookupError, match="there is no ready query"):
        ready.load("../ready")


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("SELECT 1", "must be a comment"),
        ("-- Q?\nSELECT $n", "n is declared"),
        ("-- Q?\n-- param n = 1: x\nSELECT 1", "n is"),
    ],
)
def test_a_query_file_with_a_bad_header_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        ready.parse("q", text)


def test_every_query_named_in_the_docs_exists_with_the_sql_shown_there() -> None:
    text = DOCS.read_text()
    shown = re.findall(r"^`curate/queries/(\w+)\.sql`", text, re.MULTILINE)
    assert sorted(shown) == ready.names()
    for name in shown:
        assert ready.load(name).sql in text, f"make docs/queries.md again: {name} has changed"


def test_the_docs_page_is_made_from_a_warehouse_by_one_command(tmp_path: Path) -> None:
    tiny.publish(tmp_path / "lake")
    target = tmp_path / "queries.md"
    assert ready.main(["--warehouse", str(tmp_path / "lake"), "--write", str(target)]) == 0
    text = target.read_text()
    assert "6 unique graphs" in text and "| torch.Tensor.relu\\_ | 1 | 1.0 | 1 |" in text
    assert "\n../../etc" not in text, "a name with a newline must stay inside its cell"


def test_single_answers_are_printed_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny.publish(tmp_path / "lake")
    assert ready.main(["effects", "dtype_mix", "--warehouse", str(tmp_path / "lake")]) == 0
    text = capsys.readouterr().out
    assert "| torch.Tensor.relu\\_ | 1 | 1.0 | 1 |" in text and "bfloat16" in text and "SELECT" not in text
    assert ready.main(["effekts", "--warehouse", str(tmp_path / "lake")]) == 2
    assert "did you mean 'effects'" in capsys.readouterr().err


def test_the_command_says_in_one_line_that_there_is_no_warehouse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ready.main(["--warehouse", str(tmp_path / "none")]) == 2
    error = capsys.readouterr().err
    assert "passnet refresh" in error and error.count("\n") == 1
