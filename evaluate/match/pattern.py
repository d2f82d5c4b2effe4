"""A pass in memory: its pattern as a graph, and what takes the pattern's place.

In go the three functions of a pass file, out comes a `Pass`, or a PassError that says what its author should change.
The functions are a stranger's code: this runs in the judge's worker, never in the judge.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from evaluate.match.calls import Call, call_of

#: Literals that a replacement may be given besides values of the graph.
_LITERALS = (bool, int, float, complex, str, torch.dtype, torch.device, torch.memory_format, torch.layout, type(None))


class PassError(ValueError):
    """A pass that cannot be used. One line: which pass, what is wrong, what to change."""

    def __init__(self, message: str):
        super().__init__(" ".join(message.split())[:600])


@dataclass(frozen=True, slots=True)
class Argument:
    """Stands for a pattern argument while replacement_args runs: it can be handed on, and nothing else."""

    index: int
    name: str

    def __bool__(self) -> bool:
        raise PassError(
            f"replacement_args may not test {self.name}: it is a value of the graph, known only at run time"
        )


@dataclass(frozen=True, slots=True)
class Pass:
    """name           the pass file's stem
    graph          the traced pattern
    calls          call of every operator node of it
    parameters     its placeholders, in order
    outputs        its output values, flat, in order; `single`: it returns one value, not a tuple
    arguments      what the replacement is called with: Arguments, literals, tuples of them
    replacement    the function that takes the pattern's place
    """

    name: str
    graph: fx.Graph
    calls: dict[fx.Node, Call]
    parameters: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]
    single: bool
    arguments: tuple[Any, ...]
    replacement: Callable[..., Any]


def make_pass(name: str, pattern: Any, replacement_args: Any, replacement_func: Any) -> Pass:
    """A Pass of a pass file's functions. Raises PassError; whatever those functions raise becomes one, too."""
    graph = _traced(name, pattern)
    parameters = tuple(n for n in graph.nodes if n.op == "placeholder")
    returned = next(n for n in graph.nodes if n.op == "output").args[0]
    single = isinstance(returned, fx.Node)
    outputs = (returned,) if single else tuple(returned) if isinstance(returned, (tuple, list)) else ()
    calls = {n: c for n in graph.nodes if (c := call_of(n)) is not None}
    if not outputs or not all(isinstance(o, fx.Node) and o in calls for o in outputs):
        raise PassError(f"{name}: pattern must return the result of an operator, or a flat tuple of such results")
    if len(set(outputs)) < len(outputs):
        raise PassError(f"{name}: pattern returns one value twice; return it once")
    if unused := next((p for p in parameters if not p.users), None):
        raise PassError(f"{name}: pattern does not use its argument {unused.name}; take it out of the signature")
    needed = _ancestors(outputs)
    if dead := next((n for n in calls if n not in needed), None):
        raise PassError(f"{name}: {dead.name} of the pattern leads to no output; return it or take it out")
    arguments = _arguments(name, replacement_args, parameters)
    return Pass(name, graph, calls, parameters, outputs, single, arguments, _replacement(name, replacement_func))


def _traced(name: str, pattern: Any) -> fx.Graph:
    if isinstance(pattern, fx.GraphModule):
        return pattern.graph
    if not callable(pattern):
        raise PassError(f"{name}: pattern is no function; define `def pattern(x, ...)`")
    try:
        kinds = [p.kind for p in inspect.signature(pattern).parameters.values()]
        if any(k in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) for k in kinds):
            raise PassError(f"{name}: pattern takes *args or **kwargs; name its arguments one by one")
        return fx.Tracer().trace(pattern)
    except PassError:
        raise
    except Exception as error:  # a stranger's function may raise anything
        raise PassError(
            f"{name}: pattern cannot be traced ({type(error).__name__}: {error}); it must be straight-line calls of "
            "tensor operators on its arguments"
        ) from None


def _ancestors(outputs: Sequence[fx.Node]) -> set[fx.Node]:
    found: set[fx.Node] = set()
    todo = list(outputs)
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += node.all_input_nodes
    return found


def _arguments(name: str, replacement_args: Any, parameters: Sequence[fx.Node]) -> tuple[Any, ...]:
    given = tuple(Argument(i, p.name) for i, p in enumerate(parameters))
    if not callable(replacement_args):
        raise PassError(f"{name}: replacement_args is no function; define `def replacement_args(...)`")
    try:
        returned = replacement_args(*given)
    except Exception as error:
        raise PassError(
            f"{name}: replacement_args failed ({type(error).__name__}: {error}); it takes the pattern's arguments and "
            "may only choose, order and add constants: work belongs into the replacement"
        ) from None
    if not isinstance(returned, (tuple, list)):
        raise PassError(f"{name}: replacement_args must return a tuple of arguments")
    return tuple(_argument(name, value, given) for value in returned)


def _argument(name: str, value: Any, given: Sequence[Argument]) -> Any:
    if isinstance(value, Argument):
        return given[value.index]
    if isinstance(value, (tuple, list)):
        return tuple(_argument(name, v, given) for v in value)
    if isinstance(value, _LITERALS):
        return value
    raise PassError(
        f"{name}: replacement_args returns a {type(value).__name__}; only the pattern's arguments and plain constants "
        "may be handed to the replacement"
    )


def _replacement(name: str, replacement_func: Any) -> Callable[..., Any]:
    if not callable(replacement_func):
        raise PassError(f"{name}: replacement_func is no function; define `def replacement_func():` that returns one")
    try:
        first, second = replacement_func(), replacement_func()
    except Exception as error:
        raise PassError(f"{name}: replacement_func failed ({type(error).__name__}: {error})") from None
    if not callable(first) or first is not second:
        raise PassError(f"{name}: replacement_func must return the same module-level function at every call")
    if not inspect.isfunction(first):
        raise PassError(f"{name}: replacement_func must return a function of the pass file, not {type(first).__name__}")
    return first
