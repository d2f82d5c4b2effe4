"""`passnet score`: a submission judged and scored, or scores of given samples."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.commands.options import Json, Warehouse
from flows.errors import UserError

DEVICES, LOWERINGS = ("cpu", "cuda"), ("direct", "dynamo", "inductor")


def score(
    submission: Annotated[
        str | None, typer.Argument(help="Folder of task folders, or baseline:NAME.", show_default=False)
    ] = None,
    bench: Annotated[Path, typer.Option("--bench", help="Folder of a PassBench.")] = Path("bench"),
    device: Annotated[
        str, typer.Option("--device", help="cpu (Triton's interpreter, no claim about time) or cuda.")
    ] = "cuda",
    task: Annotated[list[str] | None, typer.Option("--task", help="Only this task; may be given again.")] = None,
    lowering: Annotated[
        str, typer.Option("--lowering", help=f"How the rewritten graph is run: {', '.join(LOWERINGS)}.")
    ] = "direct",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Kept with every row.")] = 0,
    warehouse: Warehouse = "lake",
    samples: Annotated[
        Path | None,
        typer.Option("--samples", help="JSON file of cases: print S_t, ES_t and AS of each; `-` reads stdin."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge a submission on a PassBench and score it, or score samples that a file holds without running anything.

    Verdicts and scores are published as a new snapshot. Kill it at any moment: the same command goes on.
    """
    if samples is not None:
        of_samples(samples, as_json)
        return
    if submission is None:
        raise UserError("nothing to score: give a submission (a folder, or baseline:NAME), or --samples FILE.json")
    for value, known, option in ((device, DEVICES, "--device"), (lowering, LOWERINGS, "--lowering")):
        if value not in known:
            raise UserError(f"{option} {value!r}: give one of {', '.join(known)}")
    from flows.score import Request
    from flows.score import score as run

    request = Request(submission, bench, warehouse, device, lowering, tuple(task or ()), seed)
    found = run(request, lambda line: print(line, file=sys.stderr, flush=True))
    if as_json:
        json.dump(found.summary(), sys.stdout)
        print()
        return
    _close(found)


def _close(found: Any) -> None:
    for row in found.rows:
        if row["verdict"] != "clean":
            why = f"{row['exploit']}: " if row["exploit"] else ""
            print(f"{row['task']} {row['subgraph_hash'][:8]} {row['verdict']}: {why}{row['detail']}")
            if row["miss"]:
                print(f"    {row['miss']}")
    summary = found.summary()
    verdicts = ", ".join(f"{name} {count}" for name, count in summary["verdicts"].items())
    print(f"{summary['submission_name']} on {summary['device']}: {verdicts}; {found.seconds:.1f} s")
    for line in summary["scores"]:
        if line["aggregate"] is not None:
            clock = "correctness alone" if line["clock"] == "none" else f"{line['clock']} clock"
            print(f"AS {line['aggregate']:.4f} by {clock}, pooled over {line['pool']}; correct {line['correct']:.3f}")
    print(f"run {summary['run']}, snapshot {found.snapshot.sequence} ({found.snapshot.id[:12]})")


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
