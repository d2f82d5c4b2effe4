"""Tracing a repeated block once: while Dynamo traces a model, a call like an earlier one is copied from the graph.

Deep models call the same block many times, with other weights. When a module's fingerprint (`extract.fingerprints`),
the kinds of its arguments and the state around the call are those of an earlier call, Dynamo would trace the same
nodes again, at about a millisecond each. The nodes of the earlier call are copied instead, their references mapped to
this call's arguments and weights. The graph is the one that Dynamo makes, node by node; tests compare the two.

A call is copied only if tracing it had no effect but nodes: no attribute, list or global changed, no random state
read, nothing but plain tensors and constants went in and came out, and no node needs a nested graph, a constant tensor
or a symbolic size. Once something that was there before the trace has changed, what was learnt is dropped.

Relies on Dynamo internals, as `extract.dynamo` does; where a release of torch lacks one, nothing is copied.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from torch._dynamo.side_effects import SideEffects
from torch._dynamo.variables.base import AttributeMutationNew, ValueMutationNew, VariableTracker
from torch._dynamo.variables.nn_module import UnspecializedNNModuleVariable
from torch._dynamo.variables.tensor import TensorVariable
from torch._dynamo.variables.user_defined import UserDefinedObjectVariable

from extract.calls import Call, Given, NotCopied
from extract.fingerprints import Fingerprints

#: Methods of SideEffects that change something; their first argument says what.
_CHANGES = ("mutation", "store_attr", "store_cell", "store_global")


@contextlib.contextmanager
def repeats_copied() -> Iterator[None]:
    """Copy repeated module calls for the traces inside. Only sound without guards and without gradients."""
    trace = UnspecializedNNModuleVariable.call_function
    changes = {name: vars(SideEffects)[name] for name in _CHANGES if name in vars(SideEffects)}
    memory = _Memory(trace)

    def call_function(self: Any, tx: Any, args: Any, kwargs: Any) -> VariableTracker:
        return memory.call(self, tx, list(args), dict(kwargs))

    def noting(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(self: Any, item: Any, *args: Any, **kwargs: Any) -> Any:
            memory.attend(self.output_graph_weakref())
            memory.note(item)
            return change(self, item, *args, **kwargs)

        return changed

    UnspecializedNNModuleVariable.call_function = call_function  # type: ignore[method-assign]
    for name, change in changes.items():
        setattr(SideEffects, name, noting(change))
    try:
        yield
    finally:
        UnspecializedNNModuleVariable.call_function = trace  # type: ignore[method-assign]
        for name, change in changes.items():
            setattr(SideEffects, name, change)


class _Memory:
    """The calls traced so far in one graph, by what decides their trace."""

    def __init__(self, trace: Callable[..., VariableTracker]):
        self.trace = trace
        self.output: Any = None

    def attend(self, output: Any) -> None:
        """Begin anew when this is another graph than the last."""
        if output is self.output:
            return
        self.output = output
        self.calls: dict[Hashable, Call | None] = {}
        self.fingerprints = Fingerprints()
        self.changed = self.shared = False

    def note(self, item: Any) -> None:
        """Something is about to be changed. What the trace itself has made does not count while it alone knows it."""
        kind = getattr(item, "mutation_type", None)
        made_here = isinstance(kind, ValueMutationNew) or (
            isinstance(kind, AttributeMutationNew) and not isinstance(item, TensorVariable)
        )
        if made_here and not self.shared:
            return
        if made_here or type(item) is UserDefinedObjectVariable:
            # Fingerprints know a foreign object by its identity, so calls that follow compare again. It may now hold
            # what the trace has made: from here on that counts too.
            self.calls, self.shared = {}, True
        else:
            self.changed = True

    def call(self, module: Any, tx: Any, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        self.attend(tx.output)
        try:
            if self.changed:  # fingerprints are of the values that were there before
                raise NotCopied
            given = Given.of(self.fingerprints, module, tx, args, kwargs)
        except NotCopied:
            return self.trace(module, tx, args, kwargs)
        known = self.calls.get(given.key)
        if known is not None:
            with contextlib.suppress(NotCopied):
                return known.copied(module, tx, given)
            self.calls[given.key] = None
        if given.key in self.calls:
            return self.trace(module, tx, args, kwargs)
        call, calls = Call.begin(tx, module, given), self.calls
        result = self.trace(module, tx, args, kwargs)
        if self.calls is calls and not self.changed:
            calls[given.key] = call if call.end(tx, result) else None
        return result
