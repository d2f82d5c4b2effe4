"""Where the warehouse's bytes live: a local folder, or any filesystem that fsspec can name by URL.

In go relative paths (`data/nodes/….parquet`), out come open files, sizes and listings; every side effect of the
warehouse on a disk happens here. What publishing needs of a filesystem is small: write a file under a temporary name,
make it durable, rename it, and claim a name that nobody else may claim. Locally the claim is a hard link, which the
kernel grants once; elsewhere it is an existence check followed by a rename, as good as the store's own promises.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

import fsspec

TEMPORARY = ".tmp-"
ELSEWHERE = "name another place with --warehouse"


class WarehouseError(Exception):
    """The warehouse cannot be read or written. The text is one line: what is wrong, where, and the mend."""

    def __init__(self, message: str):
        super().__init__(" ".join(message.split()))


@contextlib.contextmanager
def explained(storage: Storage, act: str) -> Iterator[None]:
    """Turn the operating system's refusals into one line with the mend."""
    try:
        yield
    except (BlockingIOError, FileExistsError) as error:
        if isinstance(error, BlockingIOError):
            raise
        raise WarehouseError(
            f"cannot {act} in {storage.url}: a file stands in the way ({error.filename}); {ELSEWHERE}"
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise WarehouseError(
                f"the disk is full: could not {act} in {storage.url}; free some space and run it again (published "
                "snapshots are intact; `passnet snapshots prune --keep 1 --yes` deletes old ones)"
            ) from error
        reason = error.strerror or str(error) or type(error).__name__
        raise WarehouseError(
            f"cannot {act} in {storage.url}: {reason}; check its permissions, or {ELSEWHERE}"
        ) from error


class Storage(Protocol):
    """The operations a warehouse needs. Paths are relative to `url`, parts joined by `/`."""

    url: str

    def address(self, path: str) -> str:
        """What DuckDB, pandas or pyarrow open the file by."""
        ...

    def exists(self) -> bool:
        """Whether the warehouse's own folder is there."""
        ...

    def make_folder(self, path: str) -> None: ...

    def list(self, folder: str) -> list[str]:
        """Names in a folder, sorted, temporaries included; empty when there is no such folder."""
        ...

    def size(self, path: str) -> int | None:
        """Bytes of a file; None when it is missing."""
        ...

    def age(self, path: str) -> float:
        """Seconds since a file was last written."""
        ...

    def read(self, path: str) -> IO[bytes]: ...

    def create(self, path: str) -> IO[bytes]: ...

    def settle(self, file: IO[bytes]) -> None:
        """Close a file that `create` opened, its bytes durable."""
        ...

    def move(self, source: str, target: str) -> None:
        """Rename, replacing `target`."""
        ...

    def claim(self, source: str, target: str) -> None:
        """Rename in one step; FileExistsError when `target` exists."""
        ...

    def remove(self, path: str) -> None:
        """Delete a file, already gone or not."""
        ...

    def lock(self, exclusive: bool) -> contextlib.AbstractContextManager[None]:
        """Publishers share the lock, pruning takes it alone. BlockingIOError when someone is in the way."""
        ...


@contextlib.contextmanager
def durable(storage: Storage, path: str, act: str) -> Iterator[IO[bytes]]:
    """A file to write to, which appears at `path` by one rename of durable bytes, or not at all.

    `act` names the deed in the WarehouseError that a refusal of the operating system becomes.
    """
    folder = path.rsplit("/", 1)[0]
    temporary = f"{folder}/{TEMPORARY}{uuid.uuid4().hex}"
    with explained(storage, act):
        storage.make_folder(folder)
        try:
            sink = storage.create(temporary)
            try:
                yield sink
                storage.settle(sink)
            finally:
                sink.close()
            storage.move(temporary, path)
        except BaseException:
            storage.remove(temporary)
            raise


def open_storage(url: str | os.PathLike[str]) -> Storage:
    """Storage for a path or URL. WarehouseError for a protocol that is unknown or not installed."""
    url = os.fspath(url)
    if not url.strip():
        raise WarehouseError("the warehouse's address is empty: give a folder or URL with --warehouse")
    if "\0" in url:
        raise WarehouseError("the warehouse's address holds a NUL character: give a folder or URL with --warehouse")
    if "://" not in url:
        return LocalStorage(Path(url))
    try:
        filesystem, path = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise WarehouseError(f"cannot open the warehouse {url}: {error}; install that filesystem's package") from error
    if isinstance(filesystem, fsspec.implementations.local.LocalFileSystem):
        return LocalStorage(Path(path))
    return RemoteStorage(filesystem, path, url)


class LocalStorage:
    """A folder on this machine."""

    def __init__(self, root: Path):
        self.root = Path(os.path.abspath(root))
        self.url = str(self.root)

    def address(self, path: str) -> str:
        return str(self.root / path)

    def exists(self) -> bool:
        return self.root.is_dir()

    def make_folder(self, path: str) -> None:
        (self.root / path).mkdir(parents=True, exist_ok=True)

    def list(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self.root / folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def size(self, path: str) -> int | None:
        try:
            return (self.root / path).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def age(self, path: str) -> float:
        return time.time() - (self.root / path).stat().st_mtime

    def read(self, path: str) -> IO[bytes]:
        return open(self.root / path, "rb")

    def create(self, path: str) -> IO[bytes]:
        return open(self.root / path, "xb")

    def settle(self, file: IO[bytes]) -> None:
        file.flush()
        os.fsync(file.fileno())
        file.close()

    def move(self, source: str, target: str) -> None:
        os.replace(self.root / source, self.root / target)
        self._sync_folder(target)

    def claim(self, source: str, target: str) -> None:
        try:
            os.link(self.root / source, self.root / target)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                raise
            # No hard links here (FAT, some network mounts): claim the name by exclusive creation of a marker first.
            marker = self.root / f"{target}.claim"
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            try:
                if (self.root / target).exists():
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from error
                os.replace(self.root / source, self.root / target)
            finally:
                marker.unlink()
        else:
            os.unlink(self.root / source)
        self._sync_folder(target)

    def remove(self, path: str) -> None:
        (self.root / path).unlink(missing_ok=True)

    @contextlib.contextmanager
    def lock(self, exclusive: bool) -> Iterator[None]:
        # The kernel drops a flock with its process, so a killed publisher leaves nothing to clean up.
        with open(self.root / ".lock", "ab") as handle:
            mode = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
            try:
                fcntl.flock(handle, mode | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise
                raise BlockingIOError(error.errno, "locked") from error
            yield

    def _sync_folder(self, path: str) -> None:
        handle = os.open((self.root / path).parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class RemoteStorage:
    """A folder of an fsspec filesystem. Its `lock` excludes nobody: prune when no refresh runs."""

    def __init__(self, filesystem: fsspec.AbstractFileSystem, root: str, url: str):
        self.filesystem, self.root, self.url = filesystem, root.rstrip("/"), url.rstrip("/")

    def _full(self, path: str) -> str:
        return f"{self.root}/{path}"

    def address(self, path: str) -> str:
        return f"{self.url}/{path}"

    def exists(self) -> bool:
        return bool(self.filesystem.isdir(self.root))

    def make_folder(self, path: str) -> None:
        self.filesystem.makedirs(self._full(path), exist_ok=True)

    def list(self, folder: str) -> list[str]:
        self.filesystem.invalidate_cache()
        try:
            return sorted(name.rsplit("/", 1)[-1] for name in self.filesystem.ls(self._full(folder), detail=False))
        except FileNotFoundError:
            return []

    def size(self, path: str) -> int | None:
        try:
            return int(self.filesystem.size(self._full(path)))
        except FileNotFoundError:
            return None

    def age(self, path: str) -> float:
        return time.time() - float(self.filesystem.modified(self._full(path)).timestamp())

    def read(self, path: str) -> IO[bytes]:
        return self.filesystem.open(self._full(path), "rb")  # type: ignore[no-any-return]

    def create(self, path: str) -> IO[bytes]:
        return self.filesystem.open(self._full(path), "wb")  # type: ignore[no-any-return]

    def settle(self, file: IO[bytes]) -> None:
        file.close()

    def move(self, source: str, target: str) -> None:
        self.filesystem.mv(self._full(source), self._full(target))

    def claim(self, source: str, target: str) -> None:
        self.filesystem.invalidate_cache()
        if self.filesystem.exists(self._full(target)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        self.filesystem.mv(self._full(source), self._full(target))

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.rm_file(self._full(path))

    @contextlib.contextmanager
    def lock(self, exclusive: bool) -> Iterator[None]:
        yield
