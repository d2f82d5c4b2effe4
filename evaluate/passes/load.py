"""A task's passes, imported: a stranger's code runs from here on.

Only the judge's worker calls this, or somebody who trusts the passes. In go a task's passes and the folder that
`TaskPasses.written` made, out come `Pass`es; everything that goes wrong is a PassError of one line.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from evaluate.match.pattern import Pass, PassError, make_pass
from evaluate.passes.files import Limits, TaskPasses

#: Folders that passes were loaded from in this process.
_FOLDERS: set[str] = set()


def load(passes: TaskPasses, folder: Path) -> list[Pass]:
    """The passes in their order. `folder` holds the files; they stay importable by their plain names.

    Triton reads a kernel's source from its file, so the files must stay there as long as the passes are used.
    Raises PassError: a file that fails to import, a missing or bad function, more replacement functions than allowed.
    """
    _leave_others(str(folder))
    # Last on the path: a helper file can stand in for nothing that is installed.
    sys.path.append(str(folder))
    importlib.invalidate_caches()
    made = [_one(rule, folder) for rule in passes.rules]
    _count(made, passes.limits)
    return made


def _leave_others(folder: str) -> None:
    """Forget the modules of folders loaded before: their files may have the same names. Their functions live on."""
    for name, module in list(sys.modules.items()):
        if str(Path(getattr(module, "__file__", None) or "/").parent) in _FOLDERS:
            del sys.modules[name]
    sys.path[:] = [p for p in sys.path if p not in _FOLDERS]
    _FOLDERS.add(folder)


def _one(rule: str, folder: Path) -> Pass:
    module = _module(rule, folder / f"{rule}.py")
    functions: list[Any] = []
    for name in ("pattern", "replacement_args", "replacement_func"):
        if not hasattr(module, name):
            raise PassError(
                f"{rule}: there is no {name}; a pass file defines pattern, replacement_args, replacement_func"
            )
        functions.append(getattr(module, name))
    return make_pass(rule, *functions)


def _module(rule: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(rule, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[rule] = module  # so that Triton and helper files find it by its name
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a stranger's file may raise anything
        sys.modules.pop(rule, None)
        raise PassError(f"{rule}: the file cannot be imported ({type(error).__name__}: {error})") from None
    return module


def _count(made: list[Pass], limits: Limits) -> None:
    functions = {id(p.replacement): p for p in made}
    if len(functions) > limits.replacements:
        names = ", ".join(p.replacement.__name__ for p in functions.values())
        raise PassError(
            f"{len(functions)} replacement functions ({names}); the limit is {limits.replacements}: share one "
            "function, and tell it by a constant in replacement_args which way to go"
        )
