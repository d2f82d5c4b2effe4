"""A submission on disk, read as text: a folder of task folders, each with pass files and the order they are applied in.

    SUBMISSION/TASK/sorted_output_pass_rule_names.json     ["FuseAddRelu", "FuseSoftmax"]: stems, first is applied first
    SUBMISSION/TASK/FuseAddRelu.py                         pattern, replacement_args, replacement_func
    SUBMISSION/TASK/kernels.py                             helper files: any other .py file of the folder

The files of a task may also stand in TASK/pass_dir. Nothing here imports or runs what it reads. What was read is what
is screened, hashed and loaded: `written` writes exactly these texts to a fresh folder for the worker.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

ORDER = "sorted_output_pass_rule_names.json"
_STEM = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
#: Names that a file of a submission may not take: it would stand in for a module that others import.
_TAKEN = sys.stdlib_module_names | {"torch", "triton", "numpy", "evaluate", "warehouse", "curate", "extract", "flows"}


class IntakeError(ValueError):
    """A folder that is no submission, or no task's passes. One line: what, where, and what to change."""

    def __init__(self, message: str):
        super().__init__(" ".join(message.split())[:500])


@dataclass(frozen=True, slots=True)
class Limits:
    """patterns, replacements: of one task (the published limits). file_bytes, files: of one task's folder."""

    patterns: int = 100
    replacements: int = 1
    file_bytes: int = 512 * 1024
    files: int = 200
    tasks: int = 5000


@dataclass(frozen=True, slots=True)
class TaskPasses:
    """The passes of one task: stems in order, and the text of every .py file by name. `hash` covers both."""

    task: str
    rules: tuple[str, ...]
    sources: dict[str, str]
    limits: Limits = Limits()

    @property
    def hash(self) -> str:
        held = json.dumps([list(self.rules), sorted(self.sources.items())])
        return hashlib.blake2b(held.encode(), digest_size=16).hexdigest()

    def written(self, folder: Path) -> Path:
        """The folder, made and filled with the files as they were read; it must not exist yet."""
        folder.mkdir(parents=True)
        for name, text in self.sources.items():
            (folder / name).write_text(text, encoding="utf-8")
        (folder / ORDER).write_text(json.dumps(self.rules), encoding="utf-8")
        return folder


@dataclass(frozen=True, slots=True)
class Submission:
    """tasks: those that could be read. broken: why others could not, by task. `hash` covers all that was read."""

    name: str
    tasks: dict[str, TaskPasses]
    broken: dict[str, str]

    @property
    def hash(self) -> str:
        held = [[t, p.hash] for t, p in sorted(self.tasks.items())] + sorted(map(list, self.broken.items()))
        return hashlib.blake2b(json.dumps(held).encode(), digest_size=16).hexdigest()


def read_submission(folder: Path | str, limits: Limits = Limits()) -> Submission:
    """Every task folder of a submission. Raises IntakeError when it is no folder or holds no task folder."""
    folder = Path(folder)
    _real(folder, directory=True)
    names = sorted(p.name for p in folder.iterdir() if not p.name.startswith(".") and p.is_dir())
    if not names:
        raise IntakeError(f"{folder} holds no task folder: a submission is a folder of folders, one a task")
    if len(names) > limits.tasks:
        raise IntakeError(f"{folder} holds {len(names)} task folders; at most {limits.tasks}")
    tasks: dict[str, TaskPasses] = {}
    broken: dict[str, str] = {}
    for name in names:
        try:
            tasks[name] = read_task(folder / name, limits)
        except IntakeError as error:
            broken[name] = str(error)
    return Submission(folder.resolve().name, tasks, broken)


def read_task(folder: Path | str, limits: Limits = Limits()) -> TaskPasses:
    """The passes of one task's folder, or of its pass_dir. Raises IntakeError."""
    folder = Path(folder)
    _real(folder, directory=True)
    task = folder.name
    if not (folder / ORDER).exists() and (folder / "pass_dir").is_dir():
        folder = folder / "pass_dir"
        _real(folder, directory=True)
    rules = _order(folder, limits)
    paths = sorted(p for p in folder.iterdir() if p.suffix == ".py")
    if len(paths) > limits.files:
        raise IntakeError(f"{task}: {len(paths)} files; at most {limits.files}")
    sources = {path.name: _text(path, limits) for path in paths}
    for path in paths:
        if not _STEM.fullmatch(path.stem):
            raise IntakeError(f"{task}: {path.name!r} is no module name; use letters, digits and _")
        if path.stem in _TAKEN:
            raise IntakeError(f"{task}: {path.name} has the name of a module that others import; rename it")
    if missing := next((r for r in rules if f"{r}.py" not in sources), None):
        raise IntakeError(f"{task}: {ORDER} names {missing}, and there is no {missing}.py")
    return TaskPasses(task, rules, sources, limits)


def _order(folder: Path, limits: Limits) -> tuple[str, ...]:
    where = f"{folder.name}/{ORDER}"
    if not (folder / ORDER).exists():
        raise IntakeError(f"{where} is missing: a JSON list of the pass files' names without .py, first applied first")
    try:
        names = json.loads(_text(folder / ORDER, limits))
    except (ValueError, RecursionError) as error:
        raise IntakeError(f"{where} is not JSON: {error}") from None
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise IntakeError(f"{where} must be a list of names with at least one")
    if bad := next((n for n in names if not _STEM.fullmatch(n)), None):
        raise IntakeError(f"{where} holds {bad[:60]!r}; give the file's name without .py")
    if len(set(names)) < len(names):
        raise IntakeError(f"{where} names a pass twice")
    if len(names) > limits.patterns:
        # The published harness drops passes at random; a score that depends on that would be worth nothing.
        raise IntakeError(f"{where} names {len(names)} passes; the limit is {limits.patterns}")
    return tuple(names)


def _text(path: Path, limits: Limits) -> str:
    _real(path, directory=False)
    size = path.stat().st_size
    if size > limits.file_bytes:
        raise IntakeError(f"{path.parent.name}/{path.name} has {size} bytes; at most {limits.file_bytes}")
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise IntakeError(f"{path.parent.name}/{path.name} is not UTF-8") from None
    except OSError as error:
        raise IntakeError(f"cannot read {path.parent.name}/{path.name}: {error.strerror}") from None
    if "\0" in text:
        raise IntakeError(f"{path.parent.name}/{path.name} holds a NUL character")
    return text


def _real(path: Path, directory: bool) -> None:
    """Refuse what is missing, and links, devices and pipes: they may lead anywhere, or never end."""
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        raise IntakeError(f"cannot read {path}: {error.strerror}") from None
    if not (stat.S_ISDIR(mode) if directory else stat.S_ISREG(mode)):
        kind = "folder" if directory else "plain file"
        raise IntakeError(f"{path} is no {kind}" + (": links are not followed" if stat.S_ISLNK(mode) else ""))
