"""The `passnet` command: its subcommands, and what becomes of errors.

Each command lives in `flows/commands/` and imports what it needs when it runs, so `--help` is quick. A mendable error
is one line on stderr and exit code 2; docs/cli.md lists the codes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Annotated, Any

import typer

from flows.commands import (
    decompose,
    diff,
    doctor,
    export,
    import_,
    plan,
    profile,
    refresh,
    regenerate,
    report,
    score,
    show,
    snapshots,
    sql,
)
from flows.errors import INTERRUPTED, MENDABLE, OK, UserError

app = typer.Typer(
    name="passnet",
    help="Real computation graphs of real models: capture, deduplicate, and ask in SQL.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        print(f"passnet {metadata.version('passnet')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


app.command("refresh")(refresh.refresh)
app.command("plan")(plan.plan)
app.command("decompose")(decompose.decompose)
app.command("profile")(profile.profile)
app.command("regenerate")(regenerate.regenerate)
app.command("score")(score.score)
app.command("report")(report.report)
app.add_typer(import_.app, name="import")
app.add_typer(export.app, name="export")
app.command("sql")(sql.sql)
app.command("show")(show.show)
app.add_typer(snapshots.app, name="snapshots")
app.command("diff")(diff.diff)
app.command("doctor")(doctor.doctor)


#: What typer raises for a wrong command line: its base, found where each version of typer keeps it.
_USAGE: Any = typer.BadParameter.__mro__[2]
#: Refusals of the operating system that are the machine's state, not a fault of ours.
_MACHINES = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO),
    *(errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP, errno.EMFILE, errno.ENFILE),
)


def main() -> None:
    """Entry point of the command."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        getattr(sys, name).reconfigure(errors="backslashreplace")  # data may hold what a terminal cannot show
    guarded(lambda: app(standalone_mode=False))


def _interrupt(*_: object) -> None:
    """What asks a command to end, ends it as Ctrl-C does: with everything in its place."""
    raise KeyboardInterrupt


def guarded(command: Callable[[], object]) -> None:
    """Run a command and exit: what a user can mend becomes one line on stderr and an exit code."""
    from extract.sources.registry import BrokenSource
    from warehouse.storage import WarehouseError

    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = command()
    except (UserError, WarehouseError, BrokenSource) as error:
        _say(str(error))
        code = getattr(error, "code", MENDABLE)
    except _USAGE as error:
        if text := str(error.format_message()).strip():  # empty when the help page was shown instead
            path = error.ctx.command_path if getattr(error, "ctx", None) else "passnet"
            _say(f"{text.rstrip('.')}: `{path} --help` lists what there is")
        code = MENDABLE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (BrokenPipeError, SystemExit) as error:
        # The reader of our output has seen enough; rich says so by SystemExit(1), after which stdout is gone.
        code = OK if isinstance(error, BrokenPipeError) or error.code == 1 else int(error.code or OK)
    except OSError as error:
        if error.errno not in _MACHINES:
            raise
        _say(_refused(error))
        code = MENDABLE
    if code == INTERRUPTED:
        _say("interrupted; run the same command again to go on")
    _leave(code if isinstance(code, int) else OK)


def _say(text: str) -> None:
    """One line on stderr. It may quote what a user or a file gave, which must not steer a terminal."""
    line = " ".join(text.split())
    print("passnet: " + "".join(c if c.isprintable() else "?" for c in line), file=sys.stderr)


def _refused(error: OSError) -> str:
    place = error.filename or "the output"
    return f"cannot use {place}: {error.strerror}; mend that and run it again: what is published or captured is kept"


def _leave(code: int) -> None:
    """End now: background threads of Dask and Prefect have nothing left to say."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError as error:  # the answer is not whole, so this is no success
        if code == OK:
            _say(_refused(error))
            code = MENDABLE
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
