"""The Dask cluster that a refresh works on: a local one made for it, or an existing one given by `--scheduler`."""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Iterator

import dask
from distributed import Client, LocalCluster

from flows.errors import UserError

#: A batch may be on a worker that is killed this often before Dask gives it up.
ALLOWED_FAILURES = 20


@contextlib.contextmanager
def connected(scheduler: str | None, workers: int) -> Iterator[Client]:
    """A client of the cluster, current while the context lasts. UserError when the scheduler does not answer."""
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # the flow reports losses itself, in one line
    settings = {
        "distributed.scheduler.allowed-failures": ALLOWED_FAILURES,
        "distributed.comm.timeouts.connect": "10s",
        "distributed.admin.log-format": "%(message)s",
    }
    with dask.config.set(settings), contextlib.ExitStack() as stack:
        if scheduler is None:
            with _deaf_children():
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address="127.0.0.1:0",  # nobody is to find it, and two refreshes never want one port
                    memory_limit=None,  # capture workers have caps of their own
                    silence_logs=logging.CRITICAL,
                )
                stack.enter_context(cluster)
                client = Client(cluster)
        else:
            client = _existing(scheduler)
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):  # it closes with an error when its scheduler is gone, which is known
                client.close(timeout=5)


@contextlib.contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes and threads begun inside never get Ctrl-C, which a terminal sends to all: the flow alone answers it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _existing(scheduler: str) -> Client:
    try:
        client = Client(scheduler, timeout="10s")
        client.wait_for_workers(1, timeout=60)
    except (OSError, ValueError, TimeoutError) as error:
        raise UserError(
            f"no Dask scheduler with a worker answers at {scheduler}: start them with `dask scheduler` and "
            "`dask worker`, or leave --scheduler out"
        ) from error
    return client
