"""Options that several commands share, with one meaning and one help text each."""

from __future__ import annotations

from typing import Annotated

import typer

Warehouse = Annotated[
    str,
    typer.Option("--warehouse", envvar="PASSNET_WAREHOUSE", help="Folder or URL of the warehouse.", show_envvar=True),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines on stdout.")]
HubTask = Annotated[str, typer.Option("--hub-task", help="With --source hub: only this task (pipeline tag).")]
HubLibrary = Annotated[str, typer.Option("--hub-library", help="With --source hub: only this library or tag.")]
HubAuthor = Annotated[str, typer.Option("--hub-author", help="With --source hub: only this author's models.")]
HubSince = Annotated[str, typer.Option("--hub-since", help="With --source hub: modified on this day or later.")]
HubLimit = Annotated[
    int | None, typer.Option("--hub-limit", help="With --source hub: the N most downloaded models; 1000 if left out.")
]
SnapshotName = Annotated[
    str | None,
    typer.Option("--snapshot", help="Snapshot id, unique beginning of one, or number; the newest if left out."),
]
