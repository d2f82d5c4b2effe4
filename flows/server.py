"""A Prefect API for one refresh: the one that PREFECT_API_URL names, else a process of our own on the loopback device.

Prefect can start such a process itself, but that one outlives a flow that is killed; ours asks the kernel to die with
it. It starts while the Dask cluster does, since either takes seconds. Its runs and artifacts are kept where Prefect
keeps them (`~/.prefect`), so that a `prefect server start` later shows them.

Run as `python -m flows.server OWNER SOCKET` by `started` below, with the owner's process id and a listening socket.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from flows.errors import UserError

#: Seconds until a start counts as failed: a first start on a slow disk makes its database.
PATIENCE = 180.0


@contextlib.contextmanager
def started() -> Iterator[Callable[[], str]]:
    """Start the API in the background; the function given waits for it and returns its URL. Call from the main thread.

    The kernel ends the process with the thread that started it. UserError (when waiting) if it does not come up, or
    (at once) if the one named does not answer.
    """
    existing = os.environ.get("PREFECT_API_URL")
    if existing:
        _answers(existing)
        yield lambda: existing
        return
    with _home(), contextlib.ExitStack() as stack:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/api"
            process = subprocess.Popen(
                [sys.executable, "-m", "flows.server", str(os.getpid()), str(listening.fileno())],
                pass_fds=[listening.fileno()],
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        stack.callback(process.wait)
        stack.callback(process.kill)
        yield lambda: _ready(process, url)


def _answers(url: str) -> None:
    try:
        urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=10).close()
    except urllib.error.HTTPError:
        pass  # somebody is there; what it thinks of us, Prefect's client will say
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise UserError(
            f"no Prefect server answers at PREFECT_API_URL={url}: start it with `prefect server start`, or unset the "
            "variable"
        ) from error


def _environment() -> dict[str, str]:
    silent = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **silent}


@contextlib.contextmanager
def _home() -> Iterator[None]:
    """Prefect's folder: the usual one, or where that cannot be written, a temporary one for as long as this lasts."""
    usual = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    try:
        usual.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=usual).close()
    except OSError:
        with tempfile.TemporaryDirectory(prefix="passnet-prefect-") as place:
            os.environ["PREFECT_HOME"] = place
            yield
    else:
        yield


def _ready(process: subprocess.Popen[bytes], url: str) -> str:
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(urllib.error.URLError, OSError), urllib.request.urlopen(f"{url}/health", timeout=5):
            return url
        time.sleep(0.05)
    raise UserError("Prefect's local server does not start: try `.venv/bin/prefect server start` to see why")


def main() -> None:
    """Serve until the owner dies."""
    from extract.zygote import die_with_parent

    die_with_parent(int(sys.argv[1]))
    import uvicorn
    from prefect.server.api.server import create_app

    config = uvicorn.Config(create_app(ephemeral=True, final=True), log_level="critical", lifespan="on")
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[2]))])


if __name__ == "__main__":
    main()
