"""The static screen: a submission's text is looked at before any of it is loaded.

In go the passes of a task, out come Findings, each with the exploit's name, the file and the line; none for an honest
pass. `pattern` may use what torch has, straight-line; `replacement_args` may only choose and order; Triton kernels are
free; every other function may allocate, look at shapes, make views and launch. What gets through by being clever meets
the judge's other layers: this one is about saying early and plainly what is not allowed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from evaluate.passes import allowed
from evaluate.passes.files import TaskPasses

_TENSOR_METHODS = frozenset(dir(torch.Tensor))
_STATEFUL = frozenset({"append", "add", "update", "setdefault", "extend", "insert", "pop", "clear", "popitem"})


@dataclass(frozen=True, slots=True)
class Finding:
    """exploit: its name; `syntax` for text that is no Python, which is an error and not an exploit."""

    exploit: str
    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message} ({self.exploit})"


def screen(passes: TaskPasses) -> tuple[Finding, ...]:
    """Every finding in every file of the task, helper files included, in order of file and line."""
    siblings = frozenset(name.removesuffix(".py") for name in passes.sources)
    rules = frozenset(f"{rule}.py" for rule in passes.rules)
    found: list[Finding] = []
    for name in sorted(passes.sources):
        try:
            tree = ast.parse(passes.sources[name])
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None) or 1
            found.append(Finding("syntax", name, line, f"not Python: {error}"[:200]))
            continue
        try:
            found += _File(name, siblings, name in rules).look(tree)
        except RecursionError:
            found.append(Finding("obfuscation", name, 1, "nested too deeply to be read"))
    return tuple(sorted(set(found), key=lambda f: (f.file, f.line, f.exploit, f.message)))


class _File:
    def __init__(self, name: str, siblings: frozenset[str], rule: bool):
        self.name = name
        self.siblings = siblings
        self.rule = rule
        self.found: list[Finding] = []
        self.modules: dict[str, str] = {}  # local name -> dotted module
        self.globals: set[str] = set()

    def note(self, exploit: str, node: ast.AST, message: str) -> None:
        self.found.append(Finding(exploit, self.name, getattr(node, "lineno", 1), message))

    def look(self, tree: ast.Module) -> list[Finding]:
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)
        defined = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        self.globals = {t.id for n in tree.body for t in _targets(n) if isinstance(t, ast.Name)} | set(defined)
        for node in tree.body:
            self._top(node)
        if self.rule:
            for wanted in ("pattern", "replacement_args", "replacement_func"):
                if wanted not in defined and wanted not in self.globals and wanted not in self.modules:
                    self.note("missing_function", tree, f"there is no {wanted}")
        return self.found

    # ------------------------------------------------------------------ module level

    def _top(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_text(node):
            return
        if isinstance(node, ast.FunctionDef):
            self._function(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and self._constant(node.value):
            pass
        else:
            self.note("module_level_code", node, "outside functions only imports and constants are allowed")

    def _constant(self, value: ast.expr | None) -> bool:
        """A literal, an arithmetic of constants, a dtype, or a Triton configuration."""
        if value is None or isinstance(value, ast.Constant):
            return True
        if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
            return all(map(self._constant, value.elts))
        if isinstance(value, ast.Dict):
            return all(self._constant(v) for v in [*value.keys, *value.values])
        if isinstance(value, (ast.UnaryOp, ast.BinOp)):
            return all(self._constant(v) for v in ast.iter_child_nodes(value) if isinstance(v, ast.expr))
        if isinstance(value, ast.ListComp):
            return all(self._constant(v.iter) for v in value.generators) and self._constant(value.elt)
        if isinstance(value, ast.Name):
            return value.id not in allowed.BUILTINS
        if isinstance(value, ast.Attribute):
            dotted = self._dotted(value) or ""
            return dotted.startswith(("triton.", "math.")) or dotted.removeprefix("torch.") in allowed.TORCH
        if isinstance(value, ast.Call):
            made = self._dotted(value.func) in allowed.CONSTANTS or _dotted(value.func) in allowed.CONSTANTS
            return made and all(map(self._constant, [*value.args, *(k.value for k in value.keywords)]))
        return False

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            names = [
                (a.name, a.asname or a.name.split(".")[0], a.name if a.asname else a.name.split(".")[0])
                for a in node.names
            ]
        elif node.level > 1:
            self.note("filesystem", node, "imports from outside the folder")
            return
        elif node.level == 1 or (node.module or "").split(".")[0] in self.siblings:
            return
        else:
            module = node.module or ""
            names = [(module, a.asname or a.name, f"{module}.{a.name}") for a in node.names]
            if any(a.name == "*" for a in node.names):
                self.note("obfuscation", node, f"imports everything of {module}; name what you need")
        for module, local, dotted in names:
            root = module.split(".")[0]
            if root in self.siblings:
                continue
            self.modules[local] = dotted
            if dotted in ("torch.nn", "torch.nn.functional"):
                continue  # patterns are written with it; using it elsewhere is found where it is used
            refused = next((e for m, e in allowed.SUBMODULES.items() if f"{module}.".startswith(f"{m}.")), None)
            if root not in allowed.MODULES:
                self.note(allowed.IMPORTS.get(root, "forbidden_import"), node, f"imports {module}")
            elif refused:
                self.note(refused, node, f"imports {module}")
            elif root in ("torch", "triton") and module not in (root, *allowed.IMPORTABLE):
                self.note("forbidden_import", node, f"imports {module}")
            elif dotted.startswith("torch.") and not isinstance(node, ast.Import):
                self._torch(dotted.removeprefix("torch."), node)

    # ------------------------------------------------------------------ functions

    def _function(self, node: ast.FunctionDef) -> None:
        kernel = False
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            dotted = self._dotted(called) or _dotted(called) or "?"
            kernel = kernel or dotted == "triton.jit"
            if dotted not in allowed.DECORATORS:
                self.note("monkeypatch", decorator, f"decorator {dotted}; allowed are triton.jit, triton.autotune, "
                          "triton.heuristics and torch.fx.wrap")  # fmt: skip
            if isinstance(decorator, ast.Call) and _elements(decorator) > allowed.MOST_CONFIGS:
                self.note("unbounded_autotune", decorator, f"more than {allowed.MOST_CONFIGS} configurations")
        for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]:
            if not isinstance(default, (ast.Constant, ast.UnaryOp, ast.Attribute, ast.Name, ast.Tuple)):
                self.note("state_between_calls", default, "a default that is made once and kept")
        if self.rule and node.name == "replacement_args":
            self._choosing(node)
        elif self.rule and node.name == "pattern":
            self._pattern(node)
        else:
            self._body(node, kernel)

    def _pattern(self, node: ast.FunctionDef) -> None:
        for part in ast.walk(node):
            if isinstance(
                part, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.With, ast.Try, ast.ClassDef)
            ):
                self.note("module_level_code", part, "pattern is straight-line calls of tensor operators")
            self._name(part)

    def _choosing(self, node: ast.FunctionDef) -> None:
        """replacement_args: a docstring and one return of arguments and constants."""
        body = [part for part in node.body if not _is_text(part)]
        value = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
        if not isinstance(value, (ast.Tuple, ast.List)):
            self.note("work_in_replacement_args", node, "replacement_args must be one `return (...)`")
            return
        for part in ast.walk(value):
            if not isinstance(part, (ast.Tuple, ast.List, ast.Name, ast.Constant, ast.UnaryOp, ast.USub, ast.Attribute,
                                     ast.expr_context)):  # fmt: skip
                self.note("work_in_replacement_args", part, "only arguments and constants may be returned")
            elif (
                isinstance(part, ast.Attribute)
                and (self._dotted(part) or "").removeprefix("torch.") not in allowed.TORCH
            ):
                self.note("work_in_replacement_args", part, "attributes of arguments are read in the replacement")

    def _body(self, node: ast.FunctionDef, kernel: bool) -> None:
        local = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        local |= {t.id for part in ast.walk(node) for t in _targets(part) if isinstance(t, ast.Name)}
        for part in (p for statement in node.body for p in ast.walk(statement)):
            self._name(part)
            if isinstance(part, (ast.Try, ast.TryStar)):
                self.note("silent_fallback", part, "try: a replacement works or fails")
            elif isinstance(part, (ast.Global, ast.Nonlocal)):
                self.note("state_between_calls", part, "keeps something from call to call")
            elif isinstance(part, (ast.With, ast.AsyncWith)):
                self.note("side_stream", part, "with: streams, devices and modes are the judge's")
            elif isinstance(part, (ast.Import, ast.ImportFrom)):
                self.note("dynamic_import", part, "imports belong at the top of the file")
            elif isinstance(part, (ast.ClassDef, ast.AsyncFunctionDef, ast.Yield, ast.YieldFrom, ast.Await)):
                self.note("obfuscation", part, f"{type(part).__name__}: plain functions are enough")
            elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult) and not kernel:
                self.note("delegation", part, "@ calls torch's matrix product")
            elif isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load):
                self._store(part)
            elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
                base = part.value
                if isinstance(base, ast.Name) and base.id in self.globals - local:
                    self.note("state_between_calls", part, f"writes into {base.id} of the module")
            if not kernel and isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                self._method(part.func, local)
            if not kernel and isinstance(part, ast.Attribute):
                dotted = self._dotted(part)
                if dotted and dotted.startswith("torch."):
                    self._torch(dotted.removeprefix("torch."), part)
            if (
                isinstance(part, ast.Name)
                and self.modules.get(part.id, "").startswith("torch")
                and part.id not in local
            ):
                self._bare(part, node)

    def _store(self, part: ast.Attribute) -> None:
        root = _dotted(part) or ""
        foreign = root.split(".")[0] in self.modules
        exploit = "monkeypatch" if foreign else "state_between_calls"
        self.note(exploit, part, f"sets an attribute ({root or part.attr})")

    def _method(self, func: ast.Attribute, local: set[str]) -> None:
        dotted = self._dotted(func)
        if dotted and dotted.split(".")[0] in ("torch", "triton", "math", "operator", "typing"):
            if dotted.startswith("operator."):
                self.note("delegation", func, f"{dotted} calls torch's operator")
            return
        base = func.value
        if isinstance(base, ast.Name) and base.id in self.globals - local and func.attr in _STATEFUL:
            self.note("state_between_calls", func, f"changes {base.id} of the module")
        elif func.attr in allowed.METHOD_EXPLOITS:
            self.note(allowed.METHOD_EXPLOITS[func.attr], func, f"calls .{func.attr}()")
        elif func.attr in _TENSOR_METHODS and func.attr not in allowed.METHODS:
            self.note("delegation", func, f"calls .{func.attr}() of a tensor; compute it in the kernel")

    def _torch(self, name: str, node: ast.AST) -> None:
        if name in allowed.TORCH or name == "fx":
            return
        parts = name.split(".")
        # An attribute chain is seen from its longest form to its shortest; only names that are whole count.
        if any(".".join(parts[:k]) in allowed.TORCH - {"fx"} for k in range(1, len(parts))):
            return
        if any(a.startswith(f"{name}.") for a in allowed.TORCH):
            return  # torch.cuda on the way to torch.cuda.get_device_properties
        exploit = next(
            (
                allowed.TORCH_EXPLOITS[k]
                for i in range(len(parts), 0, -1)
                if (k := ".".join(parts[:i])) in allowed.TORCH_EXPLOITS
            ),
            "delegation",
        )
        self.note(exploit, node, f"uses torch.{name}; a replacement allocates, views and launches")

    def _bare(self, part: ast.Name, function: ast.FunctionDef) -> None:
        """torch itself as a value could be called by any name; a function imported from torch is delegation."""
        owners = [n for n in ast.walk(function) if isinstance(n, ast.Attribute) and n.value is part]
        dotted = self.modules[part.id]
        if not owners and dotted.removeprefix("torch.") not in allowed.TORCH:
            self.note("delegation", part, f"hands {dotted} around")

    def _name(self, part: ast.AST) -> None:
        if isinstance(part, ast.Name) and part.id in allowed.BUILTINS and part.id not in self.modules:
            self.note(allowed.BUILTINS[part.id], part, f"uses {part.id}")
        elif isinstance(part, ast.Name) and part.id.startswith("__") and part.id != "__name__":
            self.note("introspection", part, f"uses {part.id}")
        elif isinstance(part, ast.Attribute) and part.attr.startswith("__"):
            self.note("dynamic_attribute", part, f"reads {part.attr}")

    def _dotted(self, node: ast.AST) -> str | None:
        """a.b.c with the imported name resolved; None for anything else."""
        dotted = _dotted(node)
        if dotted is None:
            return None
        root, _, rest = dotted.partition(".")
        known = self.modules.get(root)
        return None if known is None else f"{known}.{rest}" if rest else known


def _dotted(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    found = getattr(node, "targets", None) or [t for t in (getattr(node, "target", None),) if t is not None]
    for target in found:
        yield from (n for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _elements(call: ast.Call) -> int:
    return sum(isinstance(n, ast.Call) and (_dotted(n.func) or "").endswith("Config") for n in ast.walk(call))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
