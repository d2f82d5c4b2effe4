"""Options that several commands share, with one meaning and one help text each."""

from __future__ import annotations

from typing import Annotated

import typer

Warehouse = Annotated[
    str,
    typer.Option("--warehouse", envvar="PASSNET_WAREHOUSE", help="Folder or URL of the warehouse.", show_envvar=True),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines on stdout.")]
SnapshotName = Annotated[
    str | None,
    typer.Option("--snapshot", help="Snapshot id, unique beginning of one, or number; the newest if left out."),
]
