"""The `passnet` command: its subcommands, and what becomes of errors.

Each command lives in `flows/commands/` and imports what it needs when it runs, so `--help` is quick. A mendable error
is one line on stderr and exit code 2; docs/cli.md lists the codes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import typer

from flows.commands import doctor, refresh, show, snapshots, sql
from flows.errors import INTERRUPTED, MENDABLE, UserError

app = typer.Typer(
    name="passnet",
    help="Real computation graphs of real models: capture, deduplicate, and ask in SQL.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("refresh")(refresh.refresh)
app.command("sql")(sql.sql)
app.command("show")(show.show)
app.add_typer(snapshots.app, name="snapshots")
app.command("doctor")(doctor.doctor)


def main() -> None:
    """Entry point of the command."""
    guarded(app)


def guarded(command: Callable[[], object]) -> None:
    """Run a command and turn what a user can mend into one line on stderr and an exit code."""
    from warehouse.storage import WarehouseError

    try:
        command()
    except (UserError, WarehouseError) as error:
        print(f"passnet: {error}", file=sys.stderr)
        _leave(getattr(error, "code", MENDABLE))
    except KeyboardInterrupt:
        print("passnet: interrupted; run the same command again to go on", file=sys.stderr)
        _leave(INTERRUPTED)
    except BrokenPipeError:
        _leave(0)  # the reader of our output has seen enough


def _leave(code: int) -> None:
    """End now: background threads of Dask and Prefect have nothing left to say."""
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
