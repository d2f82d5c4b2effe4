"""Whether a warehouse can be at an address at all: asked before anything slow is done for it."""

from __future__ import annotations

import errno
import os

from warehouse.storage import LocalStorage, Storage, explained


def expect_writable(storage: Storage) -> None:
    """WarehouseError when a local folder can neither be written nor made. Of other storages nothing is asked yet."""
    if not isinstance(storage, LocalStorage):
        return
    with explained(storage, "create the warehouse"):
        for place in (storage.root, *storage.root.parents):
            try:
                os.stat(place)
            except FileNotFoundError:
                if not os.path.lexists(place):
                    continue
                raise  # a link that leads nowhere
            if not place.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
            if not os.access(place, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
            return
