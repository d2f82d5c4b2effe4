"""Sample folders under a directory: found, told apart, and read as plain text, whatever a stranger put there.

In: a directory. Out: one `Sample` for each folder in GraphNet's layout, with its ModelRef and Variant. Links are not
followed (but see `_listed`), only regular files of a sane size are read, and a folder that cannot be used keeps its
problem, which becomes a classed row.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from extract.graphnet.problem import SampleError, shown
from extract.model import ModelRef, Variant, canonical_config
from warehouse.graphnet.layout import CONSTRAINTS, FACTS, HASH, INPUTS, MODEL, SUBGRAPH, TASK_GRAPHS, TASK_LIST, WEIGHTS

SOURCE = "graphnet"
#: What a sample is read for; those that must be there.
FILES = (MODEL, WEIGHTS, INPUTS, FACTS, HASH, CONSTRAINTS, SUBGRAPH)
NEEDED = (MODEL, WEIGHTS, FACTS)
MAX_BYTES = 64 << 20
MAX_FOLDERS = 5_000_000
_MODALITIES = {"computer_vision": "vision", "nlp": "text", "audio": "audio", "multimodal": "multimodal"}
_KEPT_FACTS = ("model_name", "source", "heuristic_tag", "original_tag", "dynamic", "framework")


@dataclass(frozen=True, slots=True)
class Sample:
    """`name`: path under the directory that was given, printable. `problem`: why the folder cannot be read at all."""

    name: str
    folder: str
    problem: str | None = None


def find(root: Path) -> Iterator[Sample]:
    """Every sample under `root` (or `root` itself), in the order of their paths."""
    waiting, met = [os.fspath(root)], 0
    while waiting and met < MAX_FOLDERS:
        here = waiting.pop()
        met += 1
        try:
            with os.scandir(here) as entries:
                inside = sorted(entries, key=lambda e: e.name)
        except OSError as error:
            yield Sample(_name(here, root), here, f"the folder cannot be read: {error.strerror}")
            continue
        names = {entry.name for entry in inside}
        if sum(name in names for name in NEEDED) >= 2:
            yield Sample(_name(here, root), here)
        elif TASK_LIST in names:
            yield from _listed(here, root)
        else:
            for entry in inside:
                if entry.is_symlink() and entry.is_dir() and not _inside(entry.path, root):
                    yield Sample(_name(entry.path, root), entry.path, "a link that leads out of the folder")
        waiting.extend(entry.path for entry in reversed(inside) if entry.is_dir(follow_symlinks=False))


def _listed(task: str, root: Path) -> Iterator[Sample]:
    """Graphs that a task folder lists through its link `graphs`, which leads to the folder `graphs` of the checkout.

    Where that lies under `root`, or the task has a folder `graphs` of its own, the walk meets the graphs anyway.
    """
    link = Path(task) / TASK_GRAPHS
    if not link.is_symlink():
        return
    target = link.resolve()
    if target.is_relative_to(root.resolve()):
        return
    if target not in {parent / TASK_GRAPHS for parent in Path(task).resolve().parents}:
        yield Sample(_name(os.fspath(link), root), os.fspath(link), "a link that leads out of the folder")
        return
    try:
        lines = read(task, TASK_LIST).splitlines()
    except SampleError as error:
        yield Sample(_name(os.path.join(task, TASK_LIST), root), task, str(error))
        return
    for line in dict.fromkeys(line.strip() for line in lines):
        if not line:
            continue
        folder = Path(task, line)
        name = _name(os.path.join(task, line), root)
        if line.split("/")[0] != TASK_GRAPHS or not folder.resolve().is_relative_to(target):
            yield Sample(_printable(name), os.fspath(folder), "a listed path that leads out of the graphs")
        else:
            yield Sample(name, os.fspath(folder.resolve()))


def _inside(path: str, root: Path) -> bool:
    try:
        return Path(path).resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # a circle of links
        return True


def _name(path: str, root: Path) -> str:
    relative = os.path.relpath(path, root)
    return _printable(root.resolve().name if relative == "." else Path(relative).as_posix())


def _printable(text: str) -> str:
    """A file name as text that any table and terminal takes: what is not printable is escaped."""
    shown_as = "".join(
        c if c.isprintable() and not 0xD800 <= ord(c) < 0xE000 else c.encode("unicode_escape", "surrogatepass").decode()
        for c in text
    )
    return (
        shown_as
        if len(shown_as) <= 1024
        else f"{shown_as[:990]}…{xxhash.xxh3_128_hexdigest(text.encode('utf-8', 'surrogatepass'))}"
    )


def read_bytes(folder: str, file: str) -> bytes:
    """The bytes of one file of a sample. Raises SampleError when it is missing, a link, no file, or too large."""
    try:
        # Neither through a link nor waiting for a pipe's other end.
        handle = os.open(os.path.join(folder, file), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise SampleError("sample_incomplete", f"{file} is missing", file) from error
    except (OSError, ValueError) as error:
        why = "a link" if os.path.islink(os.path.join(folder, file)) else getattr(error, "strerror", None) or str(error)
        raise SampleError("sample_refused", f"{file} cannot be opened: {shown(why)}", file) from error
    about = os.fstat(handle)
    if stat.S_ISDIR(about.st_mode):
        os.close(handle)
        raise SampleError("sample_refused", f"{file} is a folder", file)
    with open(handle, "rb") as stream:
        if not stat.S_ISREG(about.st_mode):
            raise SampleError("sample_refused", f"{file} is no regular file", file)
        if about.st_size > MAX_BYTES:
            raise SampleError("sample_refused", f"{file} has {about.st_size} bytes; at most {MAX_BYTES} are read", file)
        try:
            return stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise SampleError("sample_refused", f"{file} cannot be read: {error.strerror}", file) from error


def read(folder: str, file: str) -> str:
    """The text of one file of a sample. Raises SampleError as `read_bytes` does, and for bytes that are not UTF-8."""
    try:
        return read_bytes(folder, file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SampleError("sample_refused", f"{file} is not UTF-8: byte {error.start}", file) from error


def describe(sample: Sample) -> tuple[ModelRef, Variant]:
    """Who a sample is, without parsing its code: two samples with equal bytes and facts are the same.

    Revision is a hash of the sample's files. Everything its `graph_net.json` and `graph_hash.txt` say about where it
    comes from is in the configuration; family is the leading word of its folder's name.
    """
    digest, texts = xxhash.xxh3_128(), {}
    for file in FILES if sample.problem is None else ():
        try:
            data = read_bytes(sample.folder, file)
        except SampleError as error:
            data = error.kind.encode()  # the job meets it again and says so
        digest.update(f"{file}\0{len(data)}\0".encode())
        digest.update(data)
        texts[file] = data
    facts = _facts(texts.get(FACTS, b""))
    theirs = texts.get(HASH, b"")[:128].decode("ascii", "replace").strip()
    config = {
        "layout": SOURCE,
        "path": sample.name,
        "content": digest.hexdigest(),
        "graph_hash": theirs if re.fullmatch(r"[0-9a-f]{64}", theirs) else "",
        **facts,
    }
    last = sample.name.rsplit("/", 1)[-1].lower()
    word = re.match(r"[a-z]+", last)
    tag = str(facts.get("heuristic_tag", ""))
    ref = ModelRef(
        source=SOURCE,
        name=sample.name,
        config=canonical_config(config),
        family=word.group() if word else "",
        task=tag,
        modality=_MODALITIES.get(tag, ""),
        revision=digest.hexdigest(),
    )
    return ref, _variant(texts.get(WEIGHTS, b""))


def _facts(data: bytes) -> dict[str, Any]:
    """What a sample says of where it comes from, plain values only."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(told, dict):
        return {}
    kept: dict[str, str | bool] = {}
    for key in _KEPT_FACTS:
        value = told.get(key)
        if isinstance(value, str) and value:
            kept[key] = _printable(value[:300])
        elif isinstance(value, bool):
            kept[key] = value
    return kept


def _variant(metas: bytes) -> Variant:
    """dtype: the floating-point type of most tensors; device: that of the sample's tensors."""
    counts = {name: metas.count(f'"torch.{name}"'.encode()) for name in ("float32", "float16", "bfloat16")}
    dtype = max(counts, key=lambda name: counts[name])
    return Variant(dtype=dtype, device="cuda" if b'"cuda' in metas or not metas else "cpu")
