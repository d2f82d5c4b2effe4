"""`passnet score`: scores of given samples."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import Json
from flows.errors import UserError


def score(
    samples: Annotated[
        Path | None,
        typer.Option("--samples", help="JSON file of cases: print S_t, ES_t and AS of each; `-` reads stdin."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Score samples that a file holds, without running anything."""
    if samples is None:
        raise UserError("nothing to score: give --samples FILE.json")
    of_samples(samples, as_json)


def of_samples(file: Path, as_json: bool) -> None:
    """Print S_t, ES_t and AS of the cases in `file`."""
    from evaluate.score.cases import CaseError, scored

    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise UserError(f"cannot read {file}: {reason}; give a JSON file with --samples") from None
    try:
        found = scored(text)
    except CaseError as error:
        raise UserError(f"{file}: {error}; docs/scores.md shows the form") from None
    if as_json:
        json.dump({"cases": found}, sys.stdout)
        print()
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("case", "samples", "S_0", "ES_0", "ES_1", "ES_3", "AS"):
        table.add_column(name, justify="left" if name == "case" else "right")
    for case in found:
        shown = [case["S_t"]["0"], *(case["ES_t"][t] for t in ("0", "1", "3")), case["AS"]]
        figures = ["-" if value is None else f"{value:.4f}" for value in shown]
        table.add_row(Text(str(case["name"] or "")), str(case["samples"]), *figures)
    Console().print(table)
