"""The card of a release, `README.md`: YAML for the Hub, then what the data are, where from, and how to read them.

In go the contents of a release, out comes text. Licences and sources are strangers' words (a Hub's tags, another
package's names): they are escaped in Markdown, and only identifiers that the Hub knows get into the YAML.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from warehouse.release.contents import Contents
from warehouse.release.croissant import DESCRIPTION
from warehouse.schema import TABLES

#: Table that readers get who name none.
FIRST = "graphs"
#: Rows that a table of the card shows at most.
SHOWN = 40
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
          (10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"), (1_000_000_000, "100M<n<1B"))  # fmt: skip
_COUNTED = (
    ("graphs", "distinct graphs"),
    ("structures", "structures (graphs without dtypes and sizes)"),
    ("templates", "templates (structures without numeric literals)"),
    ("op_sequences", "operator sequences"),
    ("occurrences", "places where a graph occurs"),
    ("nodes", "nodes of distinct graphs"),
    ("operators", "operators called"),
    ("models", "names of models listed"),
    ("configurations", "distinct configurations among them"),
    ("complete", "captures complete"),
    ("partial", "captures partial: some graphs, then a failure"),
    ("failed", "captures failed, each a row of `failures` with its class"),
)

_TEXT = """\
# Computation graphs of PyTorch models

{description}

Nothing here is code: a graph is the rows of `nodes` with one `graph_hash`, ordered by `scope` and `idx`; in `args` and
`kwargs` the text `%3` is the value of the node three rows above. There are no weights; inputs have value recipes.

Snapshot {id}, number {sequence} of its warehouse{captured}.

## Tables

Each is a configuration with one split, `train`: the data are not divided. Equal graphs are stored once and
`occurrences` says where else they occur. {empty}

{tables}

## Figures

{figures}

Graphs of one template differ in sizes, dtypes and literals alone, and one model family can hold hundreds: weigh by
`template_hash` where a share is meant.

## Where the graphs come from

{origins}

## Licences

The graphs are structure extracted from model definitions; no weights and no source text are in them. Licences as the
sources of the models state them, for models of which at least one graph is here (a graph that occurs under several
licences counts under each):

{licences}

## Reading it

```python
from datasets import load_dataset
graphs = load_dataset("PATH_OR_REPOSITORY", "{first}", split="train")
```

```sql
SELECT target, count(*) FROM read_parquet('PATH/nodes/train-*.parquet')   -- DuckDB
WHERE op IN ('call_function', 'call_method') GROUP BY ALL ORDER BY ALL;
```

```python
import pandas as pd
models = pd.read_parquet("PATH/models")
```

`croissant.json` describes every file (with its SHA-256) and column.
"""


def card(contents: Contents) -> str:
    """The text of `README.md`."""
    empty = [name for name, table in TABLES.items() if not table.measured and name not in contents.shards]
    day = contents.captured_on
    return f"---\n{_front(contents)}---\n\n" + _TEXT.format(
        description="\n".join(textwrap.wrap(DESCRIPTION, 118)),
        id=contents.snapshot.id,
        sequence=contents.snapshot.sequence,
        captured=f"; its newest capture began on {day}" if day else "",
        empty=f"Empty in this snapshot and left out: {', '.join(empty)}." if empty else "",
        tables=_table(("table", "rows", "files", "bytes", "what it holds"), _tables(contents)),
        figures=_table(("count", "of"), ((contents.figures[key], label) for key, label in _COUNTED)),
        origins=_table(
            ("source", "library", "torch", "configurations", "captures with graphs", "failed"),
            (tuple(_plain(v) if isinstance(v, str) else v for v in row.values()) for row in contents.origins),
        ),
        licences=_table(
            ("licence", "models", "configurations", "distinct graphs"),
            ((_plain(row["license"]) or "not stated", *list(row.values())[1:]) for row in contents.licences),
        ),
        first=_first(contents),
    )


def _first(contents: Contents) -> str:
    return FIRST if FIRST in contents.shards else next(iter(contents.shards))


def _front(contents: Contents) -> str:
    """The YAML that the Hub and `datasets` read: https://huggingface.co/docs/hub/datasets-cards."""
    configs = [
        {
            "config_name": table,
            "data_files": [{"split": "train", "path": f"{table}/train-*.parquet"}],
            **({"default": True} if table == _first(contents) else {}),
        }
        for table in contents.shards
    ]
    size = next((name for bound, name in _SIZES if contents.rows < bound), "n>1T")
    front = {
        "pretty_name": "Computation graphs of PyTorch models",
        "license": contents.licence_identifiers,
        "tags": ["computation-graphs", "compilers", "pytorch", "croissant"],
        "size_categories": [size],
        "configs": configs,
    }
    return str(yaml.safe_dump(front, sort_keys=False, width=1000))


def _tables(contents: Contents) -> Iterator[tuple[Any, ...]]:
    for name, shards in contents.shards.items():
        yield name, sum(s.rows for s in shards), len(shards), sum(s.bytes for s in shards), TABLES[name].comment


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    every = list(rows)
    cells = (tuple(f"{value:,}" if isinstance(value, int) else value for value in row) for row in every[:SHOWN])
    lines = [head, tuple("---" for _ in head), *cells]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return text + (f"\n\n… and {len(every) - SHOWN} rows more." if len(every) > SHOWN else "")


def _plain(text: str) -> str:
    """A stranger's words as plain text inside a Markdown table, whatever they hold."""
    shown = "".join(c if c.isprintable() else "?" for c in text[:120])
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#!|~&@" else c for c in shown)
