"""`passnet profile`: options, progress, and the closing figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.commands.options import Json, Warehouse
from flows.errors import UserError

DEVICES = ("cpu", "cuda")
MODES = ("default", "reduce-overhead", "max-autotune")


def profile(
    warehouse: Warehouse = "lake",
    device: Annotated[
        str, typer.Option("--device", help="cpu or cuda; cuda when a GPU answers, if left out.", show_default=False)
    ] = "",
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most this many subgraphs.")] = None,
    mode: Annotated[str, typer.Option("--mode", help=f"Mode of torch.compile: {', '.join(MODES)}.")] = "default",
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.0, help="Begin nothing new after so many minutes.")
    ] = None,
    compilers: Annotated[
        int, typer.Option("--compilers", min=0, max=256, help="Processes that compile ahead; 0: by cores.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the inputs.")] = 0,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Address of an existing Dask scheduler (tcp://host:port).")
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option("--items", help="Measure nothing: write what a machine without a warehouse is to measure."),
    ] = None,
    device_name: Annotated[
        str, typer.Option("--device-name", help="With --items: the GPU's name, to leave out what it has profiled.")
    ] = "",
    receive: Annotated[
        Path | None,
        typer.Option("--receive", help="Measure nothing: publish the folder that such a machine wrote."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure subgraphs under eager and Inductor on a device, and publish the profiles as a new snapshot.

    Only subgraphs without a profile on that device are measured. Kill it at any moment: the same command goes on.
    """
    for value, known, option in ((device or "cpu", DEVICES, "--device"), (mode, MODES, "--mode")):
        if value not in known:
            raise UserError(f"{option} {value!r}: give one of {', '.join(known)}")
    if items is not None and receive is not None:
        raise UserError("--items and --receive are two steps: give one of them")
    if device_name and items is None:
        raise UserError("--device-name goes with --items: it says which GPU will measure them")
    if items is not None:
        from flows.profile_elsewhere import write_items

        found = write_items(warehouse, items, device_name or "cuda", mode, limit)
        _say(found, as_json, f"{found['items']} subgraphs written to {items}; {found['left']} more have no profile")
        return
    if receive is not None:
        from flows.profile_elsewhere import receive as take

        found = take(warehouse, receive)
        line = f"{found['received']} profiles published; {found['held']} were there already"
        _say(found, as_json, line + (f"; {found['unknown']} of unknown subgraphs" if found["unknown"] else ""))
        return
    from flows.profile import Request
    from flows.profile import profile as run

    request = Request(
        warehouse=warehouse,
        device=device or _default_device(),
        mode=mode,
        limit=limit,
        seed=seed,
        compilers=compilers,
        minutes=minutes,
        scheduler=scheduler,
    )
    done = run(request, _started)
    if as_json:
        json.dump(done.summary(), sys.stdout)
        print()
        return
    _close(done)


def _say(found: dict[str, Any], as_json: bool, line: str) -> None:
    print(json.dumps(found) if as_json else line)


def _default_device() -> str:
    from flows.profile_tasks import identify

    try:
        identify("cuda")
    except UserError:
        return "cpu"
    return "cuda"


def _started(wanted: int, held: int, device: str) -> Any:
    say = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    say(f"{wanted} subgraphs to profile on {device}; {held} have a profile")
    return say


def _close(found: Any) -> None:
    from flows.profile import slower

    classes = ", ".join(f"{name} {count}" for name, count in found.classes.items()) or "nothing new"
    print(f"profiled on {found.device}: {classes}; {found.left} without a profile; {found.seconds:.1f} s")
    for clock, words in (("host", "end to end"), ("events", "back to back"), ("device", "on the device alone")):
        count, timed = slower(found.rows, clock)
        if timed:
            print(f"slower under Inductor {words}: {count} of {timed} ({100 * count / timed:.0f}%)")
    print(f"snapshot {found.snapshot.sequence} ({found.snapshot.id[:12]})")
